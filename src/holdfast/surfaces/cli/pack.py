"""pack: sources in one prompt that fits, each at the level that serves the whole best."""

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
from holdfast.allocate.manager import counter_of
from holdfast.allocate.strategy import strategy_named
from holdfast.budget import PhaseBudget
from holdfast.errors import HoldfastError
from holdfast.models.embedding import open_embedder
from holdfast.settings import Settings
from holdfast.store import Scope, Store
from holdfast.summarise import ContentSummarizer

from ._input import WriteOption, read_text, write_body
from ._output import ColorOption, one_line, remark, table
from ._store import DEFAULT, Progress, StoreOption, UserOption, WorkspaceOption, with_store


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An item in a file of JSON lines."""

    content: str
    source_id: str = ""
    priority: float | None = None
    kind: str = "source"
    quality: str = "unknown"
    confidence: str = "unknown"
    published: float | None = None


def pack(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE…",
            help="Texts, each a source, or .jsonl files with an item in each line; - reads "
            "standard input.",
        ),
    ],
    question: Annotated[
        str, typer.Option("--question", help="What they are read for: it decides what matters.")
    ] = "",
    budget: Annotated[
        int | None, typer.Option("--budget", min=1, help="Most tokens of the prompt.")
    ] = None,
    model: Annotated[
        str,
        typer.Option("--model", help="Who reads it: counts for it, and gives its phase's budget."),
    ] = "",
    phase: Annotated[
        str,
        typer.Option("--phase", help=f"{', '.join(PHASES)}: the share of the model's context."),
    ] = "analysis",
    strategy: Annotated[
        str, typer.Option("--strategy", help=f"{', '.join(STRATEGIES)}.")
    ] = "best_total",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the prompt and the record as JSON.")
    ] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    write: WriteOption = None,
    color: ColorOption = None,
) -> None:
    """Pack sources into one prompt that fits, and say on stderr what became of each.

    Every source gets a level: whole, condensed, key points, a headline, its beginning, or none. The
    levels are chosen together, so that most of what matters is kept within the budget, which the
    prompt never exceeds. What is not shown whole is stored, and opened with `holdfast expand REF`.

    \b
    Examples:
      holdfast pack *.md --question "why did it fail?" --budget 8000 > prompt.txt
      holdfast pack sources.jsonl --model claude-sonnet-4-5 --phase synthesis
      holdfast pack a.md b.md --budget 2000 --strategy priority_first --json
    """
    settings = Settings.load(color=color, store_url=store)
    strategy_named(strategy)  # a name that is none is told before anything is read
    room = _room(budget, model, phase, settings)
    state = ContentState(query=question)
    items = _prioritised(_items(files, settings), state)

    async def work(opened: Store) -> AllocationResult:
        count = counter_of(model)
        summarizer = ContentSummarizer(settings, counted=count)
        manager = ContextBudgetManager(
            settings, summarizer, store=opened, scope=Scope(user, workspace), count=count
        )
        with Progress("summarising") as progress:
            if strategy == "degradation":
                return await GracefulDegradationHandler(manager).handle_overflow(
                    items, room, phase, context=question, progress=progress
                )
            return await manager.allocate_budget(
                items, room, strategy, phase=phase, context=question, progress=progress
            )

    result = with_store(settings, work, creates=True)
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
            fix="Give --budget, or --model to use what its phase may have.",
        )
    return budget_of_phase(phase, model, settings)


# --- what is packed ------------------------------------------------------------------------------


def _items(files: list[str], settings: Settings) -> list[tuple[ContentItem, bool]]:
    """The items, and of each whether its priority is still to be found out."""
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
            fix="Give files with text, or lines of JSON, each with a content.",
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
        fields = msgspec.json.decode(line, type=_Line)
        given = msgspec.to_builtins(fields) | {
            "source_id": fields.source_id or where,
            "priority": 0.5 if fields.priority is None else fields.priority,
        }
        return msgspec.convert(given, ContentItem), fields.priority is None
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise HoldfastError(
            f"the line is no item: {str(error)[:200]}",
            where=where,
            fix=f"It takes {', '.join(_Line.__struct_fields__)}; only content is needed.",
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
    share = f"{result.weighted_fidelity:.0%} of what matters kept"
    remark(f"{result.tokens:,} tokens of {result.budget:,}, {share}")
    if isinstance(result, DegradedResult) and result.steps:
        remark(f"all were taken down together: {', then '.join(result.steps)}")
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
