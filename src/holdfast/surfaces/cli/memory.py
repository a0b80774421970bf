"""memory: the group of commands for turns, facts and cached answers."""

from __future__ import annotations

import typer

from . import answers, facts
from ._groups import CommandGroup
from .assemble import assemble
from .compare import compare
from .recall import forget, recall

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)
app.command()(recall)
app.command()(assemble)
app.command()(compare)
app.command()(forget)
app.add_typer(facts.app, name="facts")
app.add_typer(answers.app, name="answers")


@app.callback()
def _memory() -> None:
    """Recall turns of past sessions, and manage facts and cached answers.

    \b
    Find turns:           holdfast memory recall "when does my first sprint end?"
    Preview a turn:       holdfast memory assemble alfred "Plan the release"
    Test the quality:     holdfast memory compare request.json
    Remove turns:         holdfast memory forget --session nightly
    Search facts:         holdfast memory facts search "where does Ann live?"
    List cached answers:  holdfast memory answers list

    Turns come from `Holdfast.remember`, or from the proxy in the mode assemble.
    """
