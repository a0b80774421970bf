"""research: the commands that answer questions from sources, and check the reports."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

from holdfast.engine import Holdfast
from holdfast.engine.options import fit_options, work_limits
from holdfast.errors import HoldfastError
from holdfast.quoting import inline
from holdfast.settings import Settings
from holdfast.store import Store
from holdfast.workers import Workers

from ._context import COLOR, OUTPUT, WORKSPACE, CommandContext, shared_options
from ._groups import CommandGroup
from ._input import read_content, read_text, write_body
from ._output import Output, counted, remark, table
from .pack import pack
from .summarise import summarise

if TYPE_CHECKING:
    from holdfast.researching import (
        PhaseProgress,
        Progress,
        Report,
        ResearchResult,
        VerificationResult,
    )

Format = Literal["md", "html", "json"]
_SUFFIXES: dict[str, Format] = {".md": "md", ".html": "html", ".htm": "html", ".json": "json"}
_FAULTY = 1
_STDIN = "-"
_RUN = "research-"
"""How the names of runs begin."""
_SHOWN_OF_A_NAME = 40
"""Characters of a source's name beside its bar, from its end."""


class _ResearchGroup(CommandGroup):
    """A group that reads `holdfast research QUESTION …` as `holdfast research ask …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, with `ask` in front unless they name a command."""
        if args and args[0] not in (*self.commands, "--help"):
            args = ["ask", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_ResearchGroup, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _research() -> None:
    """Answer a question from files, folders, URLs and refs; summarise or pack sources.

    \b
    Answer a question:  holdfast research "Why did the June deploy fail?" notes/ logs/app.log
    Check a report:     holdfast research verify report.json
    Summarise a file:   holdfast research summarise report.md --level key_points
    Build a prompt:     holdfast research pack *.md --question "why?" --budget 8000

    `holdfast research ask --help` lists the options for questions.
    """


@app.command()
@shared_options(*WORKSPACE, *COLOR)
def ask(
    context: CommandContext,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question to answer.")],
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE…", help="Files, folders, URLs, refs; - reads standard input."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="ID", help="The model to ask; without one the report only quotes."
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            min=400,
            help="Maximum tokens of the report, or with a model of all its prompts and answers.",
        ),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="md, html or json; the default follows --out, or is md in a terminal, json in a "
            "pipe.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="PATH", help="Write to this file instead of stdout."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the same research after an interruption.")
    ] = False,
    discard: Annotated[
        bool,
        typer.Option(
            "--discard",
            help="Release the sources that only this research stored; `holdfast store gc` removes "
            "them after an hour, and until then the report can be verified.",
        ),
    ] = False,
    allow_urls: Annotated[
        bool | None, typer.Option("--allow-urls/--no-urls", help="Allow pages to be fetched.")
    ] = None,
) -> None:
    """Answer a question from sources with a report of verified quotes; `ask` is optional.

    Every claim of the report has an exact quote from a stored source, with line numbers. Sources
    that could not be read are listed with the reason. Without a model, a thousand files take about
    a minute.

    \b
    Examples:
      holdfast research "Why did the June deploy fail?" notes/ logs/app.log report.pdf
      holdfast research ask "What changed?" a.md https://example.com/b --allow-urls --out b.html
      holdfast research "Who decided it?" mail/ --model anthropic:claude-sonnet-4-5 --budget 200000
    """
    # Imported here because numpy would slow every other command down.
    from holdfast.researching import Options, SourceLimits, conduct  # noqa: PLC0415

    context = context.override(allow_urls=allow_urls)
    settings = context.settings
    stdin = read_text(_STDIN, settings) if _STDIN in sources else ""
    limits = SourceLimits(allow_urls=settings.allow_urls, at_once=settings.parallel_calls)

    async def work(opened: Store) -> ResearchResult:
        workers = Workers(work_limits(settings))
        engine = Holdfast(opened, context.scope, options=fit_options(settings), workers=workers)
        with _bars(settings) as progress:
            options = Options(
                budget=budget,
                model=model,
                limits=limits,
                resume=resume,
                discard=discard,
                stdin=stdin,
                progress=progress,
            )
            try:
                return await conduct(question, sources, engine, settings, options)
            finally:
                workers.close()

    researched = context.run(work, creates=True)
    report = researched.report
    chosen = form or _SUFFIXES.get(out.suffix.lower() if out else "") or _default(settings)
    write_body(_written(report, chosen), out)
    _remarks(report)
    if not report.sources_read:  # scripts look at the exit code
        raise HoldfastError(
            "no source could be read",
            where="sources",
            fix="The report lists the reason for each.",
        )


app.command()(summarise)
app.command()(pack)


@app.command("verify")
@shared_options(*WORKSPACE, *OUTPUT)
def verify_report(
    context: CommandContext,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A report as JSON; - reads standard input.")
    ],
) -> None:
    """Check every quote, place, source and claim of a report, without a model.

    The exit code is 1 if something is wrong.

    \b
    Example:
      holdfast research verify report.json
    """
    from holdfast.researching import Report, verify  # noqa: PLC0415 - see `ask`

    settings = context.settings
    report = Report.load(read_content(file, settings))

    async def work(opened: Store) -> VerificationResult:
        return await verify(report, opened, context.scope)

    verified = context.run(work)
    described = {
        "quotes": verified.quotes,
        "sources": verified.sources,
        "faults": [fault._asdict() for fault in verified.faults],
    }

    def draw(console: Console) -> None:
        if verified.faults:
            console.print(table("where", "what is wrong", rows=verified.faults))
        faults = counted(len(verified.faults), "fault") if verified.faults else "no faults"
        sources = counted(verified.sources, "source")
        remark(f"{counted(verified.quotes, 'quote')} from {sources}: {faults}")

    context.emit(described, draw)
    if verified.faults:
        raise typer.Exit(_FAULTY)


@app.command("forget")
@shared_options(*WORKSPACE, *OUTPUT)
def forget_run(
    context: CommandContext,
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="The run that a report names, or the report as JSON."),
    ],
) -> None:
    """Remove a run from the store: its record and the sources that only it used.

    Sources that other runs or sessions use stay. Reports of the run can no longer be verified.

    \b
    Examples:
      holdfast research forget report.json
      holdfast research forget research-0123456789abcdef
    """
    from holdfast.researching import ForgetResult, Report, forget  # noqa: PLC0415 - see `ask`

    settings = context.settings
    name = run if run.startswith(_RUN) else Report.load(read_content(run, settings)).run

    async def work(opened: Store) -> ForgetResult:
        return await forget(name, opened, context.scope)

    forgotten = context.run(work)

    def draw(console: Console) -> None:
        contents = counted(forgotten.removed, "content")
        console.print(
            f"Removed {name} and {contents}; {forgotten.shared:,} stay because others use them. "
            "Reports of the run can no longer be verified."
        )

    context.emit({"run": name, **forgotten._asdict()}, draw)


def _default(settings: Settings) -> Format:
    return "json" if Output(settings).as_json else "md"


def _written(report: Report, form: Format) -> bytes:
    from holdfast.researching import html_page, markdown  # noqa: PLC0415 - see `ask`

    match form:
        case "json":
            return report.dump()
        case "html":
            return html_page(report).encode("utf-8", "replace")
        case "md":
            return markdown(report).encode("utf-8", "replace")


def _remarks(report: Report) -> None:
    sources = counted(len(report.sources), "source")
    counts = f"{counted(len(report.findings), 'finding')} from {sources}"
    remark(f"{counts}; {report.sources_read:,} read, {len(report.left_out):,} left out")
    if report.model:
        spent, total = report.usage.tokens, report.source_tokens
        remark(f"{spent:,} tokens of {report.model}, for sources of {total:,} tokens")


@contextmanager
def _bars(settings: Settings) -> Iterator[Progress]:
    """Yield a function that draws a progress bar per phase on a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    console = Console(stderr=True, no_color=settings.color == "never")
    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TextColumn("{task.fields[tokens]:,} tokens"),
        TextColumn("{task.fields[source]}", markup=False),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def tell(at: PhaseProgress) -> None:
            if at.phase not in tasks:
                tasks[at.phase] = bars.add_task(at.phase, total=at.total, tokens=0, source="")
            bars.update(
                tasks[at.phase],
                completed=at.done,
                total=at.total,
                tokens=at.tokens,
                source=inline(at.source)[-_SHOWN_OF_A_NAME:],
            )

        yield tell
