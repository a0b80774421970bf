"""request: the group of commands that show, check and convert a request."""

from __future__ import annotations

import typer

from ._groups import CommandGroup
from .convert import convert
from .show import show
from .validate import validate

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)
app.command()(show)
app.command()(validate)
app.command()(convert)


@app.callback()
def _request() -> None:
    """Show, validate, repair and convert a request.

    \b
    Show its messages:   holdfast request show request.json
    Check the rules:     holdfast request validate request.json
    Repair it:           holdfast request validate --repair request.json > repaired.json
    Change the dialect:  holdfast request convert request.json --to anthropic > anthropic.json

    A request is the JSON body that a client sends to OpenAI, Anthropic, Gemini, Bedrock Converse
    or Cohere. `holdfast count` and `holdfast fit` take the same files.
    """
