"""Citing tool results: how much shorter, how fast, on real ones where this machine has them."""

from __future__ import annotations

import json
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from benchmarks.questions import MANIFEST
from holdfast.cite import Citation, cite

SIZE = 100_000
TARGET_MS = {"html": 40.0}
"""For 100 KB; all other kinds have 15 ms."""
RUNS = 3


def run(console: Console) -> None:
    """Print the table."""
    table = Table(title="Cite tool results, without a question and with one")
    for column in ("kind", "files", "tokens saved", "most tokens", "ms per 100 KB", "target"):
        table.add_column(column, justify="left" if column == "kind" else "right")
    found: dict[str, list[tuple[Citation, float]]] = defaultdict(list)
    for content, question in _contents():
        made, seconds = _cited(content, question)
        if made.content is None:
            continue
        assert made.content.data == content
        found[made.kind].append((made, seconds * 1000 * SIZE / len(content)))
    for kind, cited in sorted(found.items()):
        _row(table, kind, cited)
    _row(table, "all", [one for cited in found.values() for one in cited])
    console.print(table)


def _row(table: Table, kind: str, cited: list[tuple[Citation, float]]) -> None:
    ratios.note_ms(f"cite: {kind}", statistics.median(ms for _, ms in cited))
    saved = [1 - made.tokens / made.fidelity.from_tokens for made, _ in cited]
    table.add_row(
        kind,
        str(len(cited)),
        f"{statistics.median(saved):.1%}",
        str(max(made.tokens for made, _ in cited)),
        f"{statistics.median(ms for _, ms in cited):.1f}",
        "" if kind == "all" else f"{TARGET_MS.get(kind, 15.0):.0f}",
    )


def _cited(content: bytes, question: str) -> tuple[Citation, float]:
    """A citation, and the processor time of the best of some runs."""
    best = float("inf")
    for _ in range(RUNS):
        start = time.process_time()
        made = cite(content, question=question)
        best = min(best, time.process_time() - start)
    return made, best


def _contents() -> Iterator[tuple[bytes, str]]:
    if not MANIFEST.exists():
        yield from (
            (content, question) for content in _made() for question in ("", "Which failed?")
        )
        return
    for line in MANIFEST.read_text("utf-8").splitlines():
        content = (MANIFEST.parent / json.loads(line)["path"]).read_bytes()
        yield content, ""
        yield content, "What is the latest error, and which name does it have?"


def _made() -> Iterator[bytes]:
    """Contents of our own, where there are no recorded ones."""
    chance = random.Random(5)
    words = "service port error timeout connection user order invoice payment database".split()
    rows = [
        {"id": n, "name": f"item {n}", "note": " ".join(chance.choices(words, k=6))}
        for n in range(1000)
    ]
    yield json.dumps(rows).encode()
    yield "\n".join(f"2024-05-01 12:00:00 INFO {row['note']}" for row in rows).encode()
    yield "\n\n".join(f"{row['note'].capitalize()}." * 3 for row in rows).encode()
