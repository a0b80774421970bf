"""application: the table of commands, each imported only when it is called.

All of them together take a second to import; a new command is a line here and a file beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

import holdfast

_COMMANDS = (
    *(
        "tour",
        "wrap",
        "serve",
        "stats",
        "top",
        "show",
        "validate",
        "convert",
        "count",
        "fit",
        "cite",
        "expand",
    ),
    *("refs", "rebuild", "recall", "assemble", "compare", "summarise", "pack", "worker"),
    *("jobs", "models", "config", "doctor", "completion"),
)
"""A module each, with a function of its name; in the order of the help."""
_GROUPS = ("research", "answers", "tools", "store", "facts", "mcp")
"""A module each, whose `app` has commands of its own."""


def application(names: Sequence[str] = (*_COMMANDS, *_GROUPS)) -> typer.Typer:
    """The command line with these commands; the others are not even imported."""
    app = typer.Typer(
        name="holdfast",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_holdfast)
    for name in names:
        module = import_module(f".{name}", __package__)
        if name in _GROUPS:
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(getattr(module, name))
    return app


def chosen(arguments: Sequence[str]) -> Sequence[str]:
    """The commands that arguments can mean: one, else all for the help."""
    named = [name for name in arguments[:1] if name in (*_COMMANDS, *_GROUPS)]
    return named or (*_COMMANDS, *_GROUPS)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"holdfast {holdfast.__version__}")
        raise typer.Exit


def _holdfast(
    version: Annotated[  # the callback acts on it
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Read, check, count, mend and convert the requests that agents send to LLMs.

    \b
    New here?          holdfast tour
    Run an agent:      holdfast wrap claude
    Run the proxy:     holdfast serve
    See what it saves: holdfast stats
    Watch it work:     holdfast top
    See a request:     holdfast show request.json
    Check it:          holdfast validate request.json
    Mend it:           holdfast validate --repair request.json > mended.json
    Change dialect:    holdfast convert request.json --to openai-chat
    Count its tokens:  holdfast count request.json
    Make it fit:       holdfast fit request.json --limit 8000 > smaller.json
    Cite a content:    holdfast cite build.log --question "why did it fail?"
    Open a part of it: holdfast expand REF --lines 40-80
    Say less of it:    holdfast summarise report.md --level key_points
    Pack sources:      holdfast pack *.md --question "why did it fail?" --budget 8000
    Research sources:  holdfast research "why did it fail?" notes/ logs/ report.pdf
    Assemble a turn:   holdfast assemble SESSION "When is my flight?"
    Compare answers:   holdfast compare request.json
    List the refs:     holdfast refs
    Recall a talk:     holdfast recall "what did I decide?"
    Rebuild a request: holdfast rebuild SESSION TURN > asked.json
    Answers in memory: holdfast answers list
    Tools and schemas: holdfast tools list
    See the jobs:      holdfast jobs
    See the models:    holdfast models claude
    See what is known: holdfast facts list
    Serve MCP hosts:   holdfast mcp --config mcp.json
    See what is kept:  holdfast store stats
    See the settings:  holdfast config
    Check all of it:   holdfast doctor
    Help the shell:    holdfast completion bash >> ~/.bashrc

    FILE can be - for standard input. Results are tables in a terminal and JSON in a pipe.
    """
