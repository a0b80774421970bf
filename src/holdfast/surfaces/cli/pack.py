"""pack: the command that packs sources into one prompt that fits a budget."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Column

from holdfast.allocate import (
    PHASES,
    STRATEGIES,
    AllocationResult,
    ContentItem,
    ContentState,
    ContextBudgetManager,
    DegradedResult,
    GracefulDegradationHandler,
    budget_of_phase,
    priorities,
)
from holdfast.allocate.manager import token_counter
from holdfast.allocate.strategy import find_strategy
from holdfast.budget import PhaseBudget
from holdfast.errors import HoldfastError
from holdfast.models.embedding import open_embedder
from holdfast.settings import Settings
from holdfast.store import Store
from holdfast.summarise import ContentSummarizer

from ._context import COLOR, WORKSPACE, CommandContext, shared_options
from ._input import WriteOption, read_text, write_body
from ._output import one_line, remark, table
from ._progress import Progress


class _PackLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An item in a file of JSON lines."""

    content: str
    source_id: str = ""
    priority: float | None = None
    kind: str = "source"
    quality: str = "unknown"
    confidence: str = "unknown"
    published: float | None = None


@shared_options(*WORKSPACE, *COLOR)
def pack(
    context: CommandContext,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE…",
            help="Text files, one source each, or .jsonl files with one source per line; - reads "
            "standard input.",
        ),
    ],
    question: Annotated[
        str, typer.Option("--question", help="The question that decides what matters.")
    ] = "",
    budget: Annotated[
        int | None, typer.Option("--budget", min=1, help="Maximum tokens of the prompt.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="The model that reads the prompt; decides token counts and the default budget.",
        ),
    ] = "",
    phase: Annotated[
        str,
        typer.Option("--phase", help=f"One of {', '.join(PHASES)}; decides the default budget."),
    ] = "analysis",
    strategy: Annotated[
        str, typer.Option("--strategy", help=f"One of {', '.join(STRATEGIES)}.")
    ] = "best_total",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the prompt and the record as JSON.")
    ] = False,
    write: WriteOption = None,
) -> None:
    """Pack sources into one prompt that fits a budget, and list their levels on stderr.

    Each source gets a level: full text, condensed, key points, a headline, its beginning, or
    nothing. The levels are chosen together to keep as much as possible of what matters. The prompt
    never exceeds the budget. Shortened sources are stored; `holdfast expand REF` opens them.

    \b
    Examples:
      holdfast research pack *.md --question "why did it fail?" --budget 8000 > prompt.txt
      holdfast research pack sources.jsonl --model claude-sonnet-4-5 --phase synthesis
      holdfast research pack a.md b.md --budget 2000 --strategy priority_first --json
    """
    settings = context.settings
    find_strategy(strategy)  # reject an unknown name before reading anything
    room = _room(budget, model, phase, settings)
    state = ContentState(query=question)
    items = _prioritised(_items(files, settings), state)

    async def work(opened: Store) -> AllocationResult:
        count = token_counter(model)
        summarizer = ContentSummarizer(settings, counted=count)
        manager = ContextBudgetManager(
            settings, summarizer, store=opened, scope=context.scope, count=count
        )
        with Progress("summarising") as progress:
            if strategy == "degradation":
                return await GracefulDegradationHandler(manager).handle_overflow(
                    items, room, phase, context=question, progress=progress
                )
            return await manager.allocate_budget(
                items, room, strategy, phase=phase, context=question, progress=progress
            )

    result = context.run(work, creates=True)
    if as_json:
        text = json.dumps(_described(result), indent=2, ensure_ascii=False)
        write_body(text.encode("utf-8", "replace") + b"\n", write)
        return
    _report(Console(stderr=True, highlight=False, no_color=settings.color == "never"), result)
    write_body(result.text.encode("utf-8", "replace"), write)


def _room(budget: int | None, model: str, phase: str, settings: Settings) -> PhaseBudget | int:
    if budget is not None:
        return budget
    if not model:
        raise HoldfastError(
            "there is no budget",
            where="--budget",
            fix="Give --budget, or --model to use the share of its phase.",
        )
    return budget_of_phase(phase, model, settings)


# --- what is packed ------------------------------------------------------------------------------


def _items(files: list[str], settings: Settings) -> list[tuple[ContentItem, bool]]:
    """Return the items, each with whether its priority is still open."""
    items: list[tuple[ContentItem, bool]] = []
    for file in files:
        text = read_text(file, settings)
        if file.endswith(".jsonl"):
            # Not splitlines: a string of JSON may hold U+2028 as it is.
            for number, line in enumerate(text.split("\n"), 1):
                if line.strip():
                    items.append(_of_line(line, f"{file}:{number}"))
        else:
            items.append((_of_file(file, text), True))
    if not items:
        raise HoldfastError(
            "there is nothing to pack",
            where=files[0],
            fix="Give files with text, or lines of JSON with a content each.",
        )
    return items


def _of_file(file: str, text: str) -> ContentItem:
    """A file as an item; when it was changed last is as near as can be to when it was written."""
    path = Path(file)
    published = path.stat().st_mtime if file != "-" and path.is_file() else None
    return ContentItem(
        source_id="standard input" if file == "-" else file, content=text, published=published
    )


def _of_line(line: str, where: str) -> tuple[ContentItem, bool]:
    try:
        fields = msgspec.json.decode(line, type=_PackLine)
        item = msgspec.to_builtins(fields) | {
            "source_id": fields.source_id or where,
            "priority": 0.5 if fields.priority is None else fields.priority,
        }
        return msgspec.convert(item, ContentItem), fields.priority is None
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise HoldfastError(
            f"the line is not a valid source: {str(error)[:200]}",
            where=where,
            fix=f"Fields: {', '.join(_PackLine.__struct_fields__)}; only content is required.",
        ) from None


def _prioritised(items: list[tuple[ContentItem, bool]], state: ContentState) -> list[ContentItem]:
    scores = priorities([item for item, _ in items], state, embedder=open_embedder())
    return [
        msgspec.structs.replace(item, priority=priority) if is_open else item
        for (item, is_open), priority in zip(items, scores, strict=True)
    ]


# --- what is printed -----------------------------------------------------------------------------


def _report(console: Console, result: AllocationResult) -> None:
    rows = [
        (
            one_line(record.source_id),
            f"{record.priority:.2f}",
            record.level,
            f"{record.tokens_from:,}",
            f"{record.tokens_to:,}",
            record.provider or record.reason,
            record.ref,
        )
        for record in result.fidelity_metadata.values()
    ]
    right = [Column(name, justify="right", no_wrap=True) for name in ("priority", "tokens", "now")]
    named = table("source", right[0], "level", *right[1:], "by", Column("ref"), rows=rows)
    console.print(named)
    share = f"{result.weighted_fidelity:.0%} of the weighted content kept"
    remark(f"{result.tokens:,} tokens of {result.budget:,}, {share}")
    if isinstance(result, DegradedResult) and result.steps:
        remark(f"all sources were shortened together: {', then '.join(result.steps)}")
    for warning in result.warnings:
        remark(warning)


def _described(result: AllocationResult) -> dict[str, Any]:
    return {
        "text": result.text,
        "tokens": result.tokens,
        "budget": result.budget,
        "strategy": result.strategy,
        "phase": result.phase,
        "weighted_fidelity": round(result.weighted_fidelity, 6),
        "dropped_ids": result.dropped_ids,
        "fidelity": msgspec.to_builtins(result.fidelity_metadata),
        "warnings": list(result.warnings),
        **({"steps": list(result.steps)} if isinstance(result, DegradedResult) else {}),
    }
