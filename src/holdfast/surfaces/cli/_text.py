"""text: contents and ages, printed without control characters."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ._output import printable

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def print_text(console: Console, text: str) -> None:
    """Print a text without reflowing it; the terminal wraps long lines."""
    for line in text.removesuffix("\n").split("\n"):
        console.print(Text(printable(line.removesuffix("\r").expandtabs())), soft_wrap=True)


def age(seconds: float) -> str:
    """Return a duration in the largest unit that it fills."""
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return "now"
