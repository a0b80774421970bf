"""Summaries without a model: which answers are still there at half, a quarter and a tenth.

At the same tokens: our quotations, with the question and without, the beginning of the content, and
LangChain's `trim_messages` as it comes (the end). llmtrim takes no number of tokens: it is asked
what it makes of each content, and we for as many tokens. Then speed and memory. The numbers in
condense/digest.py were chosen on every third multi-hop question: these have a table of their own
beside that of the others.

    python -m benchmarks summaries                   every second content
    SUMMARIES_EVERY=1 python -m benchmarks summaries all
"""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from benchmarks.questions import DATA, MANIFEST, asked, holds
from holdfast.models.digest import count, digest
from holdfast.summarise import LADDER, ContentSummarizer, SummarizationLevel, target_tokens

EVERY = int(os.environ.get("SUMMARIES_EVERY", "2"))
MULTIHOP = DATA / "multihop" / "questions.jsonl.gz"
TARGET_MS = 30.0
SIZE = 100_000
_LEVELS = LADDER[1:]
_LINE_BY_LINE = 40_000
_CHOSEN_ON = 3
"""Every third question: see condense/digest.py."""

Shorten = Callable[[str, int, str], str]
"""(content, most tokens, question) → what is left."""


class Sample(NamedTuple):
    """A content, and questions whose answers it holds."""

    content: str
    questions: list[tuple[str, str]]


def run(console: Console) -> None:
    """Print the tables."""
    if MANIFEST.exists() and MULTIHOP.exists():
        tables = {
            "multi-hop questions, held out": multihop(held_out=True),
            "multi-hop questions that numbers were chosen on": multihop(held_out=False),
            "tool results": results(),
        }
        for name, samples in tables.items():
            console.print(_kept(name, list(samples)))
    else:
        console.print("Questions are asked of recorded contents, which are not here: HOLDFAST_DATA")
    console.print(_speed())


def multihop(*, held_out: bool) -> Iterator[Sample]:
    with gzip.open(MULTIHOP, "rt", encoding="utf-8") as lines:
        parts = [line for n, line in enumerate(lines) if bool(n % _CHOSEN_ON) is held_out]
        for line in parts[::EVERY]:
            record = json.loads(line)
            documents = [f"{each['title']}\n{each['text']}" for each in record["documents"]]
            content, answer = "\n\n".join(documents), str(record["answer"])
            if answer.lower() not in ("yes", "no") and answer in content:
                yield Sample(content, [(record["question"], answer)])


def results() -> Iterator[Sample]:
    for each in list(asked(per_file=4))[::EVERY]:
        if each.questions:
            yield Sample(each.content, [(one.text, one.answer) for one in each.questions])


# --- what is left --------------------------------------------------------------------------------


def quoted(content: str, most: int, question: str) -> str:
    return digest(content, most, question).text


def quoted_blindly(content: str, most: int, _: str) -> str:
    return digest(content, most).text


def beginning(content: str, most: int, _: str) -> str:
    low, high = 0, min(len(content), most * 12)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(content[:middle]) <= most else (low, middle - 1)
    return content[:low]


def langchain(content: str, most: int, _: str) -> str:
    from langchain_core.messages import HumanMessage, trim_messages  # noqa: PLC0415 - a peer

    left = trim_messages(
        [HumanMessage(content)],
        max_tokens=most,
        token_counter=lambda messages: sum(count(str(each.content)) for each in messages),
        allow_partial=True,
    )
    return str(left[0].content) if left else ""


WAYS: dict[str, Shorten] = {
    "ours, with the question": quoted,
    "ours, without": quoted_blindly,
    "the beginning": beginning,
    "LangChain trim_messages (to 40 KB)": langchain,
}


def _kept(name: str, samples: list[Sample]) -> Table:
    total = sum(len(sample.questions) for sample in samples)
    table = Table(title=f"Answers still there: {name} ({total} questions, {len(samples)} contents)")
    for column in ("", *_LEVELS, "at llmtrim's tokens"):
        table.add_column(column, justify="left" if not column else "right")
    trimmed = _llmtrim(samples)
    for way, shorten in WAYS.items():
        # LangChain's takes a line away and counts all others again: minutes for 300 KB.
        taken = [s for s in samples if shorten is not langchain or len(s.content) <= _LINE_BY_LINE]
        shares = [_share(taken, shorten, level) for level in _LEVELS]
        beside = _share_at(trimmed, shorten) if trimmed and shorten is not langchain else ""
        table.add_row(way, *(f"{share:.1%}" for share in shares), beside)
    if trimmed:
        kept = sum(holds(left, answer) for _, _, answer, left in trimmed) / len(trimmed)
        tokens = sum(count(left) for *_, left in trimmed)
        before = sum(count(content) for content, *_ in trimmed)
        table.add_row("llmtrim 0.13.7", "", "", "", f"{kept:.1%} ({tokens / before:.0%} of tokens)")
    return table


def _share(samples: list[Sample], shorten: Shorten, level: SummarizationLevel) -> float:
    left = defaultdict[bool, int](int)
    for content, questions in samples:
        most = target_tokens(level, count(content))
        whole = "" if shorten is quoted else shorten(content, most, "")
        for question, answer in questions:
            text = whole if shorten is not quoted else shorten(content, most, question)
            assert shorten not in (quoted, quoted_blindly) or count(text) <= most
            left[holds(text, answer)] += 1
    return left[True] / sum(left.values())


_Trimmed = list[tuple[str, str, str, str]]


def _llmtrim(samples: list[Sample]) -> _Trimmed:
    """What llmtrim leaves of each content for its first question; nothing if it is not here."""
    from benchmarks.peers.environment import PLACE, start  # noqa: PLC0415

    if not (PLACE / "llmtrim").exists():
        return []
    trimmed = []
    with start("llmtrim") as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None
        for number, (content, questions) in enumerate(samples):
            question, answer = questions[0]
            for told in ({"text": content}, {"question": question}):
                peer.stdin.write(json.dumps({"id": number, **told}) + "\n")
            peer.stdin.flush()
            said = json.loads(peer.stdout.readline())
            trimmed.append((content, question, answer, said["text"]))
        peer.stdin.close()
    return trimmed


def _share_at(trimmed: _Trimmed, shorten: Shorten) -> str:
    """The share of answers left at as many tokens as llmtrim takes."""
    left = [
        holds(shorten(content, max(1, count(theirs)), question), answer)
        for content, question, answer, theirs in trimmed
    ]
    return f"{sum(left) / len(left):.1%}"


# --- speed and memory ----------------------------------------------------------------------------


def _speed() -> Table:
    table = Table(title="Quotations of 100 KB, key points; and of 50 MB")
    for column in ("content", "ms", "target", "MB above the start"):
        table.add_column(column, justify="left" if column == "content" else "right")
    for name, content in _contents():
        for question in ("", "Which payment failed, and when?"):
            ms = _ms(content, question)
            ratios.note_ms(f"summaries: {name}{', asked' if question else ''}", ms)
            asked_for = "with a question" if question else "without"
            table.add_row(f"{name}, {asked_for}", f"{ms:.1f}", f"{TARGET_MS:.0f}", "")
    for budget in ("", "2000"):
        code = [sys.executable, "-m", "benchmarks.summaries", budget]
        done = subprocess.run(code, capture_output=True, text=True, check=True)  # noqa: S603
        seconds, megabytes = done.stdout.split()
        asked_for = f"budget {budget}" if budget else "condensed"
        table.add_row(f"50 MB of text, {asked_for}", f"{float(seconds) * 1000:,.0f}", "", megabytes)
    return table


def _ms(content: str, question: str) -> float:
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        ContentSummarizer().extract(content, SummarizationLevel.KEY_POINTS, question)
        best = min(best, time.process_time() - start)
    return best * 1000


def _contents() -> Iterator[tuple[str, str]]:
    chance = random.Random(7)
    words = "service port error timeout connection user order invoice payment database".split()

    def sentence() -> str:
        return " ".join(chance.choices(words, k=11)).capitalize() + f" {chance.randrange(9999)}."

    yield "prose", "\n\n".join(f"{sentence()} {sentence()} {sentence()}" for _ in range(600))[:SIZE]
    lines = (f"10:{n % 60:02}:07 INFO {sentence()}" for n in range(2_000))
    yield "a log", "\n".join(lines)[:SIZE]
    rows = [{"id": n, "name": f"item {n}", "note": sentence()} for n in range(900)]
    yield "rows of JSON", json.dumps(rows)


def _large(budget: str) -> None:
    """In a process of its own: seconds, and megabytes above what the content itself took."""
    [(_, prose), *_rest] = _contents()
    parts = [f"Part {n}.\n\n{prose}\n\n" for n in range(50_000_000 // len(prose))]
    content = "".join(parts)
    del parts
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    most = int(budget) if budget else None
    ContentSummarizer().extract(content, SummarizationLevel.CONDENSED, "Part 77", most)
    seconds = time.process_time() - start
    above = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{seconds:.2f} {above / 1024:.0f}")


if __name__ == "__main__":
    _large(sys.argv[1])
