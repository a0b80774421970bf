"""top: the sessions of a running proxy, while they work."""

from __future__ import annotations

from typing import Annotated

import typer

from ._output import ColorOption, OutputOption
from ._store import DEFAULT
from .stats import stats


def top(
    url: Annotated[
        str | None,
        typer.Option("--url", help="The proxy to watch; else the one of the settings."),
    ] = None,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Watch the sessions of a running proxy, who used it last first; Ctrl-C ends it.

    The columns are those of `holdfast stats`, of which this is --live --by session.

    \b
    Examples:
      holdfast top
      holdfast top --url http://127.0.0.1:8787
    """
    stats(by="session", live=True, url=url, user=DEFAULT.user, output=output, color=color)
