"""Allocation: what 1,000 items cost, and which way to choose levels keeps more.

Where the documents of multihop questions are there (see questions.py), each question's own are
packed for it: the share of answers that still stand in the prompt, beside the share of worth that
the levels keep. Summaries are quotations, so that no model has a part in it.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from benchmarks.questions import DATA
from holdfast.allocate import (
    AllocationResult,
    ContentItem,
    ContentState,
    ContextBudgetManager,
    Rung,
    priorities,
)
from holdfast.allocate.level_choice import Option, best_total, priority_first, total_cost
from holdfast.allocate.manager import token_counter
from holdfast.allocate.strategy import WORTH
from holdfast.allocate.truncation import truncate_to_tokens
from holdfast.errors import AllocationError
from holdfast.settings import Settings
from holdfast.summarise import RATIO, ContentSummarizer, SummarizationLevel, SummarizationResult

TARGET_MS = 50
ITEMS = 1000
WAYS = ("best_total", "priority_first")
SHARES = (0.15, 0.3, 0.5)
QUESTIONS = 100
TOGETHER = 6
"""Documents that make one long source: alone they have some 90 tokens, a third of which is as much
as the lines around a part."""
_QUESTIONS_FILE = DATA / "multihop" / "questions.jsonl.gz"


def run(console: Console) -> None:
    """Print the tables."""
    console.print(_speed())
    console.print(_against_the_optimum())
    if _QUESTIONS_FILE.exists():
        console.print(_answers(1))
        console.print(_answers(TOGETHER))
    else:
        console.print("No documents of questions here; set HOLDFAST_DATA.")


# --- speed ---------------------------------------------------------------------------------------


class _Timed:
    """Quotations, remembered; what they take is not allocation's time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._summarizer = ContentSummarizer()
        self._made: dict[tuple[str, SummarizationLevel, int | None], SummarizationResult] = {}

    async def summarize(
        self,
        content: str,
        target_level: SummarizationLevel,
        context: str = "",
        target_budget: int | None = None,
    ) -> SummarizationResult:
        start = time.process_time()
        key = content, target_level, target_budget
        if key not in self._made:
            self._made[key] = self.extract(content, target_level, context, target_budget)
        self.seconds += time.process_time() - start
        return self._made[key]

    def extract(
        self,
        content: str,
        level: SummarizationLevel,
        context: str = "",
        budget: int | None = None,
    ) -> SummarizationResult:
        return self._summarizer.extract(content, level, context, budget)


def _speed() -> Table:
    table = Table(title=f"Allocate {ITEMS:,} items, ms of CPU beside summaries ({TARGET_MS} ms)")
    for column in ("budget, share of all", *WAYS):
        table.add_column(column, justify="right")
    items = _made_items()
    total = sum(map(token_counter(""), (item.content for item in items)))
    for share in (0.1, 0.3, 0.6, 2.0):
        row = [f"{share:.0%}"]
        for way in WAYS:
            ms = _best_ms(items, round(total * share), way)
            ratios.note_ms(f"allocate: {ITEMS:,} items, {way}, {share:.0%}", ms)
            row.append(f"{ms:.1f}")
        table.add_row(*row)
    return table


def _made_items() -> list[ContentItem]:
    chance = random.Random(1)
    words = [f"{a}{b}" for a in ("ri", "stone", "water", "elm", "bo") for b in ("ver", "s", "way")]
    items = []
    for n in range(ITEMS):
        sentences = (
            " ".join(chance.choices(words, k=chance.randrange(6, 16))).capitalize() + "."
            for _ in range(chance.randrange(2, 12))
        )
        items.append(
            ContentItem(source_id=f"s{n}", content=" ".join(sentences), priority=chance.random())
        )
    return items


def _best_ms(items: Sequence[ContentItem], budget: int, way: str) -> float:
    summarizer = _Timed()
    best = float("inf")
    for _ in range(7):
        manager = ContextBudgetManager(Settings(), summarizer)
        summarizer.seconds, start = 0.0, time.process_time()
        asyncio.run(manager.allocate_budget(items, budget, way))
        best = min(best, time.process_time() - start - summarizer.seconds)
    return best * 1000


# --- how near to the best ------------------------------------------------------------------------


def _against_the_optimum() -> Table:
    """Six items at all levels, every choice tried: what each way keeps of the best one."""
    chance = random.Random(2)
    kept: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(30):
        sizes = [chance.randrange(50, 2_000) for _ in range(6)]
        weights = [chance.uniform(0.2, 1) for _ in sizes]
        ladders = [_ladder(size, weight) for size, weight in zip(sizes, weights, strict=True)]
        room = round(sum(sizes) * chance.uniform(0.1, 0.7))
        choices = map(list, itertools.product(range(5), repeat=len(ladders)))
        optimum = max(_worth(ladders, c) for c in choices if total_cost(ladders, c) <= room)
        for way, choose in zip(WAYS, (best_total, priority_first), strict=True):
            choice = choose(ladders, weights, [0] * len(ladders))(room)
            assert choice is not None
            kept[way].append(_worth(ladders, choice) / optimum)
    table = Table(title="Share of the best possible total, 30 sets of 6 items")
    for column in ("way", "mean", "least"):
        table.add_column(column)
    for way, shares in kept.items():
        table.add_row(way, f"{sum(shares) / len(shares):.3f}", f"{min(shares):.3f}")
    return table


def _ladder(tokens: int, weight: float) -> list[Option]:
    options = [Option(Rung.DROPPED, 0, 0, 0.0)]
    for level in reversed(SummarizationLevel):
        size = round(RATIO[level] * tokens)
        rung = Rung(level)
        lines = 10 if rung is Rung.RAW else 30
        options.append(Option(rung, size, size + lines, weight * WORTH[rung]))
    return options


def _worth(ladders: Sequence[Sequence[Option]], choice: Sequence[int]) -> float:
    return sum(ladder[n].worth for ladder, n in zip(ladders, choice, strict=True))


# --- answers -------------------------------------------------------------------------------------


class _Case(NamedTuple):
    question: str
    answer: str
    items: list[ContentItem]
    tokens: int


def _answers(together: int) -> Table:
    sources = "each a source" if together == 1 else f"{together} to a source"
    table = Table(title=f"Answers kept, {QUESTIONS} questions with documents, {sources}")
    table.add_column("budget, share of all")
    for way in WAYS:
        for column in ("answers", "worth", "dropped"):
            table.add_column(f"{way}: {column}", justify="right")
    table.add_column("not managed: answers", justify="right")
    cases = list(itertools.islice(_cases(together), QUESTIONS))
    for share in SHARES:
        row = [f"{share:.0%}"]
        for way in WAYS:
            results = asyncio.run(_packed(cases, share, way))
            answered = [case.answer in _folded(result.text) for case, result in results]
            worth = [result.weighted_fidelity for _, result in results]
            dropped = [len(result.dropped_ids) / len(case.items) for case, result in results]
            row += [f"{sum(each) / len(each):.1%}" for each in (answered, worth, dropped)]
        unmanaged = asyncio.run(_not_managed(cases, share))
        table.add_row(*row, f"{sum(unmanaged) / len(unmanaged):.1%}")
    return table


def _cases(together: int) -> Iterator[_Case]:
    """Questions whose answer stands in a document; one of yes or no can stand anywhere.

    Long sources are made of the documents of some questions, shuffled; the first one is asked.
    """
    with gzip.open(_QUESTIONS_FILE, "rt", encoding="utf-8") as lines:
        records: list[dict[str, Any]] = [json.loads(line) for line in lines]
    for n, record in enumerate(records):
        others = records[n + 1 : n + together // 2 + 1] if together > 1 else []
        texts = [
            f"{document['title']}\n{document['text']}"
            for each in (record, *others)
            for document in each["documents"]
        ]
        random.Random(n).shuffle(texts)
        answer = _folded(record["answer"])
        if answer not in ("yes", "no") and answer in _folded("\n".join(texts)):
            sources = ["\n\n".join(part) for part in _parts(texts, together)]
            yield _Case(
                record["question"],
                answer,
                _items(sources, record["question"]),
                sum(map(token_counter(""), sources)),
            )


def _parts(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    yield from (texts[at : at + size] for at in range(0, len(texts), size))


def _items(texts: Sequence[str], question: str) -> list[ContentItem]:
    items = [ContentItem(source_id=f"s{n}", content=text) for n, text in enumerate(texts)]
    scores = priorities(items, ContentState(query=question, now=0.0))
    return [
        msgspec.structs.replace(item, priority=score)
        for item, score in zip(items, scores, strict=True)
    ]


async def _not_managed(cases: Sequence[_Case], share: float) -> list[bool]:
    """Whether answers stand in what a window keeps of a prompt that is not managed (000-103)."""
    manager = ContextBudgetManager(Settings(token_management_enabled=False), ContentSummarizer())
    answered = []
    for case in cases:
        budget = round(case.tokens * share)
        result = await manager.allocate_budget(case.items, budget, context=case.question)
        answered.append(
            case.answer in _folded(truncate_to_tokens(result.text, budget, token_counter("")))
        )
    return answered


async def _packed(
    cases: Sequence[_Case], share: float, way: str
) -> list[tuple[_Case, AllocationResult]]:
    results = []
    for case in cases:
        manager = ContextBudgetManager(Settings(), ContentSummarizer())
        try:
            result = await manager.allocate_budget(
                case.items, round(case.tokens * share), way, context=case.question
            )
        except AllocationError:  # three items do not fit, whichever way is taken
            continue
        results.append((case, result))
    return results


def _folded(text: str) -> str:
    return " ".join(text.lower().split())
