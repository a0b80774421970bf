"""text: a content on the terminal, line by line, without letting it drive the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ._output import printable


def print_text(console: Console, text: str) -> None:
    """Print a text as it stands; the terminal breaks lines that are too long for it."""
    for line in text.removesuffix("\n").split("\n"):
        console.print(Text(printable(line.removesuffix("\r").expandtabs())), soft_wrap=True)
