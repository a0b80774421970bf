"""output: tables, JSON, remarks and errors of all commands.

Results go to stdout, remarks to stderr. Control characters in outside text are replaced, so that
a request cannot send commands to the terminal.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from holdfast.errors import HoldfastError
from holdfast.settings import Settings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

# rich is imported where something is drawn: `holdfast serve` draws nothing, and keeps its 5 MB.

OutputOption = Annotated[
    Literal["auto", "table", "json"] | None,
    typer.Option("--output", help="Table or JSON; auto: a table in a terminal, JSON in a pipe."),
]
ColorOption = Annotated[
    Literal["auto", "always", "never"] | None,
    typer.Option("--color", help="When to use colour; auto: in a terminal."),
]

MOST_ROWS = 1000


class Output:
    """The standard output of a command, as a table or as JSON."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.in_terminal = sys.stdout.isatty()
        self.as_json = settings.output == "json" or (
            settings.output == "auto" and not self.in_terminal
        )

    @cached_property
    def console(self) -> Console:
        """The console on which results are drawn."""
        return _console(self._settings)

    def emit(self, data: object, draw: Callable[[Console], None]) -> None:
        """Print the data as JSON, or else draw it."""
        if self.as_json:
            sys.stdout.write(_json(data) + "\n")
        else:
            draw(self.console)


def _console(settings: Settings) -> Console:
    from rich.console import Console  # noqa: PLC0415 - see above

    match settings.color:
        case "always":
            return Console(highlight=False, force_terminal=True, color_system="standard")
        case "never":
            return Console(highlight=False, color_system=None)
        case "auto":
            return Console(highlight=False)


def _json(data: object) -> str:
    """Return indented JSON with terminal control characters escaped."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def table(*columns: Column | str, rows: Iterable[Iterable[object]]) -> Table:
    """Return a table of the rows; of very many, only the first MOST_ROWS."""
    from rich import box  # noqa: PLC0415 - see above
    from rich.table import Column, Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    drawn = Table(
        *(Column(c, overflow="fold") if isinstance(c, str) else c for c in columns),
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        header_style="bold",
    )
    rows = list(rows)
    for row in rows[:MOST_ROWS]:
        drawn.add_row(*(c if isinstance(c, Text) else Text(printable(str(c))) for c in row))
    if len(rows) > MOST_ROWS:
        drawn.caption = f"… {len(rows) - MOST_ROWS:,} more: --output json"
    return drawn


def one_line(text: str) -> Text:
    """Return a cell that is cut to the room that the other columns leave."""
    from rich.text import Text  # noqa: PLC0415 - see above

    return Text(printable(text), no_wrap=True, overflow="ellipsis")


def printable(text: str) -> str:
    """Replace characters that a terminal would interpret or cannot show."""
    return "".join(c if c.isprintable() else "�" for c in text)


def remark(text: str) -> None:
    """Print a line on stderr."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    if not "≈".encode(encoding, "ignore"):  # such as the console of an older Windows
        text = text.replace("≈", "~")
    typer.echo(printable(text), err=True)


def remark_removal(number: int, noun: str, *, is_done: bool) -> None:
    """Say how many records were removed, or would be with --yes."""
    named = counted(number, noun)
    hint = ": add --yes" if number else ""
    remark(f"{named} removed." if is_done else f"{named} would be removed{hint}.")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def complain(error: HoldfastError) -> None:
    """Print an error as one line, and the next step as a second."""
    where = f" ({error.where})" if error.where else ""
    remark(f"holdfast: {error.what}{where}")
    if error.fix:
        remark(f"  {error.fix}")


def prepare_streams() -> None:
    """Open closed streams, and escape characters that an encoding lacks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  # open to the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def abandon_stdout() -> None:
    """Discard buffered output, which the interpreter would fail to write when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
