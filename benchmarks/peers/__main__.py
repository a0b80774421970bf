"""The table: `python -m benchmarks.peers [--per-file N] [--brief] [--misses] [PEER ...]`."""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.peers import environment, ours
from benchmarks.peers.conversation import Shrunk
from benchmarks.questions import MANIFEST, PER_FILE, Asked, Question, asked, holds
from holdfast.tokens.vocabulary import count_ordinary

Reply = tuple[Shrunk, float]
"""And how long it took, in seconds."""

TYPES = ("key", "row", "line", "sentence")
PEERS = {
    "holdfast": (),
    "headroom": ("headroom",),
    "litellm.compress": ("litellm",),
    "litellm.compress, trigger 2,000": ("litellm", "2000"),
    "llmtrim": ("llmtrim",),
    "openai-agents ToolOutputTrimmer": ("openai_agents",),
}
"""How each is started; the second of litellm acts where its default would not."""


class Answered(NamedTuple):
    """What became of one question."""

    path: str
    question: Question
    tokens: int
    before: int
    kept: bool
    small: bool
    """Answered by what is shown, or by at most 1,000 tokens more."""
    recoverable: bool
    """Answered by what is shown or can be asked for, however much that is."""
    whole: bool
    seconds: float


@functools.lru_cache(maxsize=64)
def tokens_of(text: str) -> int:
    return count_ordinary("o200k_base", text)


def judge(each: Asked, question: Question, shrunk: Shrunk, seconds: float) -> Answered:
    kept = holds(shrunk.text, question.answer)
    more = shrunk.more or ""
    found = holds(more, question.answer)
    return Answered(
        path=each.path,
        question=question,
        tokens=tokens_of(shrunk.text),
        before=tokens_of(each.content),
        kept=kept,
        small=kept or (found and tokens_of(more) <= ours.MOST_TOKENS),
        recoverable=kept or found or shrunk.whole,
        whole=shrunk.whole,
        seconds=seconds,
    )


def ask(peer: tuple[str, ...], files: list[Asked]) -> Iterator[Answered]:
    """Ask a peer every question."""
    for each in files:
        with_peer = _process(peer) if peer else _ours
        for question in each.questions:
            yield judge(each, question, *with_peer(each, question))


def _ours(each: Asked, question: Question) -> Reply:
    began = time.perf_counter()
    shrunk = ours.shrink(each.content, question.text)
    return shrunk, time.perf_counter() - began


@functools.cache
def _process(peer: tuple[str, ...]) -> Callable[[Asked, Question], Reply]:
    process = environment.start(*peer)
    assert process.stdin is not None
    assert process.stdout is not None
    given, taken = process.stdin, process.stdout
    known: set[str] = set()

    def reply(each: Asked, question: Question) -> Reply:
        if each.path not in known:
            known.add(each.path)
            given.write(json.dumps({"id": each.path, "text": each.content}) + "\n")
        given.write(json.dumps({"id": each.path, "question": question.text}) + "\n")
        given.flush()
        line = taken.readline()
        if not line:
            raise EOFError(f"{peer[0]} stopped with status {process.wait()}")
        answer = json.loads(line)
        seconds = answer.pop("seconds")
        return Shrunk(**answer), seconds

    return reply


def share(values: list[bool]) -> str:
    return f"{statistics.mean(values):.1%}" if values else "-"


def row(answers: list[Answered]) -> list[str]:
    left = [a.tokens / a.before for a in answers]
    return [
        f"{1 - statistics.median(left):.1%}",
        f"{statistics.median(a.tokens for a in answers):,.0f}",
        share([a.kept for a in answers]),
        *(share([a.kept for a in answers if a.question.type == each]) for each in TYPES),
        share([a.small for a in answers]),
        share([a.recoverable for a in answers]),
        share([a.whole for a in answers]),
        f"{statistics.median(a.seconds for a in answers) * 1000:.1f}",
    ]


COLUMNS = (
    "",
    "tokens saved\n(median)",
    "tokens left\n(median)",
    "answer\nkept",
    *(f"of {each}" for each in TYPES),
    "in ≤ 1,000\ntokens more",
    "recoverable\nat all",
    "original\nexact",
    "ms\n(median)",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--per-file", type=int, default=PER_FILE, help="questions for each file")
    parser.add_argument("--brief", action="store_true", help="ask in the second phrasing")
    parser.add_argument("--misses", action="store_true", help="list what Holdfast did not keep")
    parser.add_argument("peers", nargs="*", help=f"some of: {', '.join(PEERS)}")
    options = parser.parse_args()
    if not MANIFEST.exists():
        sys.exit("Recorded tool results are not on this machine: set HOLDFAST_DATA.")
    unknown = set(options.peers) - set(PEERS)
    if unknown:
        sys.exit(f"There is no peer {', '.join(sorted(unknown))}. Choose from: {', '.join(PEERS)}.")
    files = [each for each in asked(options.per_file, brief=options.brief) if each.questions]
    number = sum(len(each.questions) for each in files)
    table = Table(title=f"{number} questions about {len(files)} tool results, o200k tokens")
    for column in COLUMNS:
        table.add_column(column, justify="right" if column else "left")
    remarks = []
    for name in options.peers or PEERS:
        try:
            answers = list(ask(PEERS[name], files))
        except (OSError, EOFError) as error:
            table.add_row(name, "could not be run")
            remarks.append(f"{name}: {error}")
            continue
        table.add_row(name, *row(answers))
        if options.misses and not PEERS[name]:
            remarks += list(misses(answers))
    console = Console(width=170)
    console.print(table)
    for remark in remarks:
        console.print(remark, markup=False, highlight=False, soft_wrap=True)


def misses(answers: list[Answered]) -> Iterator[str]:
    """What Holdfast did not keep: for whoever improves it."""
    kinds = Counter((a.path.split("/")[1], a.question.type) for a in answers if not a.kept)
    yield from (f"{number:4} {kind} {type_}" for (kind, type_), number in kinds.most_common())
    for a in answers:
        if not a.kept:
            how = "expansion has it" if a.small else "NOT FOUND"
            yield f"{how}: {a.path} | {a.question.text} | {a.question.answer[:80]}"


if __name__ == "__main__":
    main()
