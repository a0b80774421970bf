"""summarise: the command that summarises files and stores their originals."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console

from holdfast.allocate.originals import StoredOriginals
from holdfast.cite import count
from holdfast.store import Store
from holdfast.summarise import (
    ContentSummarizer,
    StoredSummaryCache,
    SummarizationLevel,
    SummarizationResult,
)

from ._context import OUTPUT, WORKSPACE, CommandContext, shared_options
from ._input import read_text
from ._output import remark
from ._text import print_text


class _Item(NamedTuple):
    name: str
    content: str


@shared_options(*WORKSPACE, *OUTPUT)
def summarise(
    context: CommandContext,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help="Files to summarise; - reads standard input."),
    ],
    level: Annotated[
        SummarizationLevel,
        typer.Option("--level", help="How much to keep: all, a half, a quarter or a tenth."),
    ] = SummarizationLevel.CONDENSED,
    question: Annotated[
        str, typer.Option("--question", help="The question that decides what matters.")
    ] = "",
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            min=1,
            help="Maximum tokens of all summaries together; each of several files gets the level "
            "that its share allows.",
        ),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            metavar="ID",
            help="The model to ask first, such as [cli]claude:haiku; extractive asks none.",
        ),
    ] = None,
) -> None:
    """Summarise files without adding anything.

    Without a provider in the settings the summary consists of quotes and costs nothing. From the
    summary of a model, every sentence with an id, URL, number or quote that is not in the source is
    removed. The original is stored first; `holdfast expand REF` opens it.

    \b
    Examples:
      holdfast research summarise report.md --level key_points
      holdfast research summarise build.log --level headline --question "why did it fail?"
      holdfast research summarise a.md b.md c.md --budget 2000 --provider "[cli]gemini:flash"
    """
    context = context.override(summarization_provider=provider)
    settings = context.settings
    items = [_Item(file, read_text(file, settings)) for file in files]
    scope = context.scope

    async def work(opened: Store) -> list[SummarizationResult]:
        originals = StoredOriginals(settings, opened, scope)

        async def keep(content: str) -> str:
            [original] = await originals.keep([content], [count(content)])
            return original.ref

        summarizer = ContentSummarizer(settings, cache=StoredSummaryCache(opened, scope), keep=keep)
        if budget is not None and len(items) > 1:
            return await summarizer.batch_summarize(items, budget, question)
        return [await summarizer.summarize(item.content, level, question, budget) for item in items]

    results = context.run(work, creates=True)
    described = [_described(item.name, result) for item, result in zip(items, results, strict=True)]
    context.emit(described, lambda console: _draw(console, items, results))
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
