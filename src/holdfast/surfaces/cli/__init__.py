"""cli: the `holdfast` command. One file per command; `_output` decides how things are printed.

Exit codes: 0 fine, 1 the body or the settings have faults, 2 the command could not do its work,
3 a bug in Holdfast, 130 interrupted. No traceback is ever printed, and no error message holds
text of a conversation.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import holdfast
from holdfast.errors import HoldfastError

from . import (
    cite,
    config,
    convert,
    count,
    expand,
    facts,
    fit,
    jobs,
    models,
    pack,
    rebuild,
    refs,
    serve,
    show,
    stats,
    store,
    summarise,
    tour,
    validate,
    worker,
)
from ._output import abandon_stdout, complain, prepare_streams

app = typer.Typer(
    name="holdfast",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    *(tour.tour, serve.serve, stats.stats, show.show, validate.validate, convert.convert),
    *(count.count, fit.fit, cite.cite, expand.expand, refs.refs, rebuild.rebuild),
    *(summarise.summarise, pack.pack, worker.worker, jobs.jobs, models.models, config.config),
):
    app.command()(command)
app.add_typer(store.app, name="store")
app.add_typer(facts.app, name="facts")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"holdfast {holdfast.__version__}")
        raise typer.Exit


@app.callback()
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
    Run the proxy:     holdfast serve
    See what it saves: holdfast stats
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
    List the refs:     holdfast refs
    Rebuild a request: holdfast rebuild SESSION TURN > asked.json
    See the jobs:      holdfast jobs
    See the models:    holdfast models claude
    See what is known: holdfast facts list
    See what is kept:  holdfast store stats
    See the settings:  holdfast config

    FILE can be - for standard input. Results are tables in a terminal and JSON in a pipe.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, with the process's own arguments if none are given, and exit."""
    prepare_streams()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        abandon_stdout()
        code = 1
    except OSError as error:
        abandon_stdout()
        complain(HoldfastError(f"the output cannot be written: {error.strerror}"))
        code = 2
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int | str | None:
    try:
        app(arguments, prog_name="holdfast")
    except SystemExit as end:
        return end.code
    except HoldfastError as error:
        complain(error)
        return 2
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001  # a bug of ours; its text may hold content
        place = traceback.extract_tb(error.__traceback__)[-1]
        complain(
            HoldfastError(
                f"internal error: {type(error).__name__}",
                where=f"{Path(place.filename).name}:{place.lineno}",
                fix="This is a bug; please report it with this line.",
            )
        )
        return 3
    return 0
