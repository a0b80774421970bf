"""text: contents and times on the terminal, without letting a content drive it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ._output import printable

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def print_text(console: Console, text: str) -> None:
    """Print a text as it stands; the terminal breaks lines that are too long for it."""
    for line in text.removesuffix("\n").split("\n"):
        console.print(Text(printable(line.removesuffix("\r").expandtabs())), soft_wrap=True)


def age(seconds: float) -> str:
    """A time that has passed or will, in the largest unit that it fills."""
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return "now"
