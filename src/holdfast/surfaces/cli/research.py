"""research: a cited report from any number of sources, and a check of one that was written."""

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
from typer.core import TyperGroup

from holdfast.engine import Holdfast
from holdfast.engine.options import fit_options, work_limits
from holdfast.errors import HoldfastError
from holdfast.settings import Settings
from holdfast.store import Scope, Store
from holdfast.voice import inline
from holdfast.workers import Workers

from ._input import read_content, read_text, write_body
from ._output import ColorOption, Output, OutputOption, remark, table
from ._store import DEFAULT, StoreOption, UserOption, WorkspaceOption, with_store

if TYPE_CHECKING:
    from holdfast.researching import PhaseProgress, Progress, Report, Researched, Verified

Format = Literal["md", "html", "json"]
_SUFFIXES: dict[str, Format] = {".md": "md", ".html": "html", ".htm": "html", ".json": "json"}
_FAULTY = 1
_STDIN = "-"
_RUN = "research-"
"""How the names of runs begin."""
_SHOWN_OF_A_NAME = 40
"""Characters of a source's name beside its bar: its end tells more than its beginning."""


class _AsksByDefault(TyperGroup):
    """`holdfast research QUESTION …` asks; only the names of commands are commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            args = ["ask", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_AsksByDefault,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Research a question in files, folders, URLs and stored contents: a report that quotes.",
)


@app.command()
def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What is to be found out.")],
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE…", help="Files, folders, URLs, refs; - reads standard input."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="ID", help="Who is asked; else all is quotation."),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            min=400,
            help="Most tokens: of the report, or with a model of all its prompts and answers.",
        ),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="md, html or json; else as --out ends, md in a terminal, json in a pipe.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="PATH", help="Write here, not to stdout.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from where the same research was interrupted.")
    ] = False,
    discard: Annotated[
        bool,
        typer.Option(
            "--discard",
            help="Let go of what only this research stored; `holdfast store gc` removes it after "
            "an hour, and until then the report can be verified.",
        ),
    ] = False,
    allow_urls: Annotated[
        bool | None, typer.Option("--allow-urls/--no-urls", help="Whether pages may be fetched.")
    ] = None,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    color: ColorOption = None,
) -> None:
    """Research a question in sources (`ask` may be left out).

    Every claim of the report has a quote that stands byte for byte in a stored source, with its
    lines; sources that could not be read are listed with the reason. Without a model it needs
    nothing else, and reads a thousand files in a minute.

    \b
    Examples:
      holdfast research "Why did the June deploy fail?" notes/ logs/app.log report.pdf
      holdfast research "What changed?" a.md https://example.com/b --allow-urls --out report.html
      holdfast research "Who decided it?" mail/ --model anthropic:claude-sonnet-4-5 --budget 200000
    """
    # Not at the top: it brings numpy, for which every other command would wait.
    from holdfast.researching import Options, SourceLimits, conduct  # noqa: PLC0415

    settings = Settings.load(color=color, store_url=store, allow_urls=allow_urls)
    stdin = read_text(_STDIN, settings) if _STDIN in sources else ""
    limits = SourceLimits(allow_urls=settings.allow_urls, at_once=settings.parallel_calls)

    async def work(opened: Store) -> Researched:
        workers = Workers(work_limits(settings))
        engine = Holdfast(
            opened, Scope(user, workspace), options=fit_options(settings), workers=workers
        )
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

    researched = with_store(settings, work, creates=True)
    report = researched.report
    chosen = form or _SUFFIXES.get(out.suffix.lower() if out else "") or _default(settings)
    write_body(_written(report, chosen), out)
    _remarks(report)
    if not report.sources_read:  # a script must be able to tell
        raise HoldfastError(
            "no source could be read",
            where="sources",
            fix="The report lists each with the reason it was left out.",
        )


@app.command("verify")
def verify_report(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A report as JSON; - reads standard input.")
    ],
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Check a report again, without a model: every quote, place, source and claim.

    Exit code 1 if something does not hold.

    \b
    Example:
      holdfast research verify report.json
    """
    from holdfast.researching import Report, verify  # noqa: PLC0415 - see `ask`

    settings = Settings.load(output=output, color=color, store_url=store)
    report = Report.load(read_content(file, settings))

    async def work(opened: Store) -> Verified:
        return await verify(report, opened, Scope(user, workspace))

    verified = with_store(settings, work)
    described = {
        "quotes": verified.quotes,
        "sources": verified.sources,
        "faults": [fault._asdict() for fault in verified.faults],
    }

    def draw(console: Console) -> None:
        if verified.faults:
            console.print(table("where", "what", rows=verified.faults))
        told = f"{len(verified.faults):,} faults" if verified.faults else "everything holds"
        remark(f"{verified.quotes:,} quotes of {verified.sources:,} sources: {told}")

    Output(settings).emit(described, draw)
    if verified.faults:
        raise typer.Exit(_FAULTY)


@app.command("forget")
def forget_run(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="As a report names it, or that report as JSON."),
    ],
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Remove a research from the store: its record, and the sources that only it used.

    What other runs or sessions use stays. Reports of the run can no longer be verified.

    \b
    Examples:
      holdfast research forget report.json
      holdfast research forget research-0123456789abcdef
    """
    from holdfast.researching import Forgotten, Report, forget  # noqa: PLC0415 - see `ask`

    settings = Settings.load(output=output, color=color, store_url=store)
    name = run if run.startswith(_RUN) else Report.load(read_content(run, settings)).run

    async def work(opened: Store) -> Forgotten:
        return await forget(name, opened, Scope(user, workspace))

    forgotten = with_store(settings, work)

    def draw(console: Console) -> None:
        console.print(
            f"Removed {name} with {forgotten.removed:,} contents; {forgotten.shared:,} stay, which "
            "others use. Its reports can no longer be verified."
        )

    Output(settings).emit({"run": name, **forgotten._asdict()}, draw)


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
    counts = f"{len(report.findings):,} findings of {len(report.sources):,} sources"
    remark(f"{counts}; {report.sources_read:,} read, {len(report.left_out):,} left out")
    if report.model:
        spent, whole = report.usage.tokens, report.source_tokens
        remark(f"{spent:,} tokens of {report.model}, for sources of {whole:,} tokens")


@contextmanager
def _bars(settings: Settings) -> Iterator[Progress]:
    """A bar for each phase on a terminal, with tokens and source; elsewhere nothing."""
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
