"""output: what commands share when they print: table or JSON, colour, errors.

Results go to stdout, remarks to stderr. Text that comes from outside is shown with its control
characters replaced, so that a request cannot drive the terminal it is shown in.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from holdfast.errors import HoldfastError
from holdfast.settings import Settings

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
    """Where a command's results go, and in which form."""

    def __init__(self, settings: Settings) -> None:
        self.console = _console(settings)
        self.in_terminal = sys.stdout.isatty()
        self.as_json = settings.output == "json" or (
            settings.output == "auto" and not self.in_terminal
        )

    def emit(self, data: object, draw: Callable[[Console], None]) -> None:
        """Print the data as JSON, or else draw it."""
        if self.as_json:
            sys.stdout.write(_json(data) + "\n")
        else:
            draw(self.console)


def _console(settings: Settings) -> Console:
    match settings.color:
        case "always":
            return Console(highlight=False, force_terminal=True, color_system="standard")
        case "never":
            return Console(highlight=False, color_system=None)
        case "auto":
            return Console(highlight=False)


def _json(data: object) -> str:
    """Write JSON that people can read, with escapes for what a terminal would obey."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def table(*columns: Column | str, rows: Iterable[Iterable[object]]) -> Table:
    """Lay the rows out below the columns' headings; of very many rows, only the first."""
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
    """Make a cell that gives way to the others: what there is no room for is left out."""
    return Text(printable(text), no_wrap=True, overflow="ellipsis")


def printable(text: str) -> str:
    """Replace what a terminal would obey or could not show."""
    return "".join(c if c.isprintable() else "�" for c in text)


def remark(text: str) -> None:
    """Say something beside the result."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    if not "≈".encode(encoding, "ignore"):  # such as the console of an older Windows
        text = text.replace("≈", "~")
    typer.echo(printable(text), err=True)


def complain(error: HoldfastError) -> None:
    """Print an error as one line, and what to do about it as a second."""
    where = f" ({error.where})" if error.where else ""
    remark(f"holdfast: {error.what}{where}")
    if error.fix:
        remark(f"  {error.fix}")


def prepare_streams() -> None:
    """Let neither a closed stream nor a character that an encoding lacks stop the program."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  # open to the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def abandon_stdout() -> None:
    """Send what is still buffered nowhere, or the interpreter would complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
