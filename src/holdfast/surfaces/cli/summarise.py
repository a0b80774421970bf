"""summarise: contents in fewer tokens, each with the ref and the places of its original."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console

from holdfast.allocate.originals import Originals
from holdfast.cite import count
from holdfast.settings import Settings
from holdfast.store import Scope, Store
from holdfast.summarise import (
    ContentSummarizer,
    StoredSummaryCache,
    SummarizationLevel,
    SummarizationResult,
)

from ._input import read_text
from ._output import ColorOption, Output, OutputOption, remark
from ._store import DEFAULT, StoreOption, UserOption, WorkspaceOption, with_store
from ._text import print_text


class _Item(NamedTuple):
    name: str
    content: str


def summarise(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="Any contents; - reads standard input.")
    ],
    level: Annotated[
        SummarizationLevel,
        typer.Option("--level", help="How much is kept: all, a half, a quarter or a tenth."),
    ] = SummarizationLevel.CONDENSED,
    question: Annotated[
        str, typer.Option("--question", help="What the contents are read for.")
    ] = "",
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            min=1,
            help="Most tokens of all summaries together; of several files each gets the level "
            "that its share allows.",
        ),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            metavar="ID",
            help="Who is asked first, such as [cli]claude:haiku; extractive asks no model.",
        ),
    ] = None,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Say less of contents without saying anything else.

    Without a provider in the settings the summary is made of quotations, and costs nothing. Of one
    by a model, every sentence that states an id, a URL, a number or a quotation that its source
    does not hold is dropped. The original is stored first, and opened with `holdfast expand REF`.

    \b
    Examples:
      holdfast summarise report.md --level key_points
      holdfast summarise build.log --level headline --question "why did it fail?"
      holdfast summarise a.md b.md c.md --budget 2000 --provider "[cli]gemini:flash"
    """
    settings = Settings.load(
        output=output, color=color, store_url=store, summarization_provider=provider
    )
    items = [_Item(file, read_text(file, settings)) for file in files]
    scope = Scope(user, workspace)

    async def work(opened: Store) -> list[SummarizationResult]:
        originals = Originals(settings, opened, scope)

        async def keep(content: str) -> str:
            [original] = await originals.keep([content], [count(content)])
            return original.ref

        summarizer = ContentSummarizer(settings, cache=StoredSummaryCache(opened, scope), keep=keep)
        if budget is not None and len(items) > 1:
            return await summarizer.batch_summarize(items, budget, question)
        return [await summarizer.summarize(item.content, level, question, budget) for item in items]

    results = with_store(settings, work, creates=True)
    described = [_described(item.name, result) for item, result in zip(items, results, strict=True)]
    Output(settings).emit(described, lambda console: _draw(console, items, results))
    for item, result in zip(items, results, strict=True):
        for warning in result.warnings:
            remark(f"{item.name}: {warning}")


def _draw(console: Console, items: list[_Item], results: list[SummarizationResult]) -> None:
    for item, result in zip(items, results, strict=True):
        if len(items) > 1:
            console.print(item.name, style="bold", markup=False)
        print_text(console, result.text)
        sizes = f"{result.tokens_from:,} → {result.tokens_to:,} tokens, {result.level}"
        by = f", by {result.provider}" if result.provider else ""
        remark(f"{item.name}: {sizes}{by}, {result.ref}")


def _described(name: str, result: SummarizationResult) -> dict[str, Any]:
    return {
        "file": name,
        "ref": result.ref or None,
        "level": result.level,
        "requested_level": result.requested_level,
        "from_tokens": result.tokens_from,
        "to_tokens": result.tokens_to,
        "provider": result.provider or None,
        "model": result.model or None,
        "truncated": result.truncated,
        "cached": result.cached,
        "cost": result.cost,
        "checked_sentences": result.checked,
        "unsupported_sentences": result.unsupported,
        "warnings": list(result.warnings),
        "places": [list(place) for place in result.places],
        "text": result.text,
    }
