"""Research without a model: how much of what answers stands in the report, and what reading costs.

Multi-hop questions (see questions.py) with the documents of twenty questions together, some 28,000
tokens, so that a report has to choose. Beside it, at the same tokens: the beginnings of all
documents, the best documents by BM25, and LangChain's stuffing (documents as they come, joined by
blank lines, until the window is full). The weights of the ranking were chosen on the first half.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import random
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from benchmarks.questions import DATA
from holdfast.allocate.manager import token_counter
from holdfast.allocate.truncation import truncate_to_tokens
from holdfast.engine import Holdfast
from holdfast.models.embedding import open_embedder
from holdfast.researching import Options, SourceText, conduct, markdown
from holdfast.search.postings import TermIndex
from holdfast.search.words import terms_of, words_of
from holdfast.settings import Settings
from holdfast.store import open_store
from holdfast.store.opening import open_memory
from holdfast.store.protocol import Store

BUDGETS = (2_000, 8_000, 32_000)
TOGETHER = 20
QUESTIONS = 60
"""Of each half: a research takes a second or two."""
SOURCES = 1_000
_FILE = DATA / "multihop" / "questions.jsonl.gz"
count = token_counter("")


class Case(NamedTuple):
    question: str
    answer: str
    supporting: frozenset[str]
    documents: Sequence[SourceText]


def run(console: Console) -> None:
    """Print the tables."""
    if _FILE.exists():
        for name, cases in zip(("tuned on", "held out"), _halves(), strict=True):
            console.print(_quality(name, cases[:QUESTIONS]))
    else:
        console.print("No documents of questions here; set HOLDFAST_DATA.")
    console.print(_speed())


def _halves() -> tuple[list[Case], list[Case]]:
    with gzip.open(_FILE, "rt", encoding="utf-8") as lines:
        questions = [json.loads(line) for line in lines]
    questions.sort(key=lambda q: hashlib.sha256(q["id"].encode()).hexdigest())
    return _cases(questions[::2]), _cases(questions[1::2])


def _cases(questions: Sequence[dict[str, Any]]) -> list[Case]:
    cases = []
    for at in range(0, len(questions), TOGETHER):
        group = questions[at : at + TOGETHER]
        documents = {(d["title"], d["text"]) for q in group for d in q["documents"]}
        ordered = sorted(documents, key=lambda d: hashlib.sha256(d[1].encode()).hexdigest())
        names = {document: f"{document[0]}#{n}" for n, document in enumerate(ordered)}
        texts = [SourceText(names[d].rpartition("#")[0] or "?", d[1]) for d in ordered]
        for q in group:
            chosen = [q["documents"][n] for n in q["supporting_index"]]
            wanted = frozenset(d["text"] for d in chosen)
            cases.append(Case(q["question"], q["answer"], wanted, texts))
    return cases


Way = Callable[[Case, int], tuple[set[str], str]]
"""A case and a budget → the texts that are cited, and what is shown."""


def _quality(name: str, cases: Sequence[Case]) -> Table:
    table = Table(
        title=f"{len(cases)} multi-hop questions, {name}; documents of {TOGETHER} together"
    )
    for column in ("way", *(f"{b:,}: documents / answers" for b in BUDGETS)):
        table.add_column(column, justify="left" if column == "way" else "right")
    ways: dict[str, Way] = {
        "research": _research(open_memory()),
        "BM25 top-k": _top_k,
        "head truncation": _heads,
        "LangChain stuffing": _stuffed,
    }
    shares = {label: [_shares(way, cases, b) for b in BUDGETS] for label, way in ways.items()}
    for label, cells in shares.items():
        table.add_row(label, *(f"{documents:.3f} / {answers:.3f}" for documents, answers in cells))
    for place, budget in enumerate(BUDGETS):
        ours, theirs = shares["research"][place][1], shares["BM25 top-k"][place][1]
        # The more answers the better, and a ratio says how many times as long theirs takes.
        ratios.note(f"research answers at {budget:,} beside BM25, {name}", ours, theirs)
    return table


def _shares(way: Way, cases: Sequence[Case], budget: int) -> tuple[float, float]:
    documents, answers, asked = 0.0, 0, 0
    for case in cases:
        cited, shown = way(case, budget)
        documents += len(case.supporting & cited) / len(case.supporting)
        if _plain(case.answer) not in ("yes", "no"):
            asked += 1
            answers += _plain(case.answer) in _plain(shown)
    return documents / len(cases), answers / asked


def _plain(text: str) -> str:
    return " ".join(text.replace("\\", "").lower().split())


def _research(store: Store) -> Way:
    def way(case: Case, budget: int) -> tuple[set[str], str]:
        engine = Holdfast(store)
        options = Options(budget=budget, now=0.0)
        done = asyncio.run(conduct(case.question, case.documents, engine, Settings(), options))
        by_id = {
            entry.id: document.text
            for entry, document in zip(done.state.sources, case.documents, strict=True)
        }
        drawn = markdown(done.report)
        assert count(drawn) <= budget
        return {by_id[source.id] for source in done.report.sources}, drawn

    return way


def _joined(documents: Sequence[SourceText], budget: int) -> tuple[set[str], str]:
    """Documents whole, one behind the other, until the tokens are used."""
    shown: list[str] = []
    cited: set[str] = set()
    room = budget
    for document in documents:
        text = f"{document.name}\n{document.text}"
        room -= count(text) + 1
        if room < 0:
            break
        shown.append(text)
        cited.add(document.text)
    return cited, "\n\n".join(shown)


def _stuffed(case: Case, budget: int) -> tuple[set[str], str]:
    return _joined(case.documents, budget)


def _top_k(case: Case, budget: int) -> tuple[set[str], str]:
    texts = [document.text for document in case.documents]
    index = TermIndex.of([terms_of(words_of(text)) for text in texts])
    scores = index.scores(dict.fromkeys(terms_of(words_of(case.question)), 1.0))
    order = sorted(range(len(texts)), key=lambda n: -scores[n])
    return _joined([case.documents[n] for n in order], budget)


def _heads(case: Case, budget: int) -> tuple[set[str], str]:
    """The beginning of every document, all with the same share."""
    share = budget // len(case.documents)
    cited: set[str] = set()
    shown = []
    for document in case.documents:
        head = truncate_to_tokens(f"{document.name}\n{document.text}", share, count)
        shown.append(head)
        if document.text in head:  # half a document is not cited: its end may be what answers
            cited.add(document.text)
    return cited, "\n\n".join(shown)


def _speed() -> Table:
    """A thousand files of 10 KB: read, stored, ranked and reported; then once more."""
    open_embedder()
    chance = random.Random(3)
    words = [
        f"{chance.choice('bcdfg')}{n}{chance.choice(['ing', 'er', 'o'])}" for n in range(20_000)
    ]
    table = Table(title=f"{SOURCES:,} sources of 10 KB without a model (the machine may be loaded)")
    for column in ("", "wall s", "CPU s", "peak MB"):
        table.add_column(column, justify="right")
    with TemporaryDirectory() as folder:
        for n in range(SOURCES):
            text = ". ".join(" ".join(chance.choices(words, k=12)).title() for _ in range(110))
            (Path(folder) / f"{n}.txt").write_text(text[:10_240])
        question = f"What of {words[5]} and {words[77]}?"
        for name in ("first", "again"):
            wall, cpu = time.perf_counter(), time.process_time()
            asyncio.run(_read_all(folder, question))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            table.add_row(
                name,
                f"{time.perf_counter() - wall:.1f}",
                f"{time.process_time() - cpu:.1f}",
                f"{peak:.0f}",
            )
    return table


async def _read_all(folder: str, question: str) -> None:
    store = await open_store(f"sqlite:///{folder}/research.db")
    try:
        engine = Holdfast(store)
        sources = sorted(Path(folder).glob("*.txt"))
        await conduct(question, sources, engine, Settings(), Options(budget=8_000))
    finally:
        await store.close()
