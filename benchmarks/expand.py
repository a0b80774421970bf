"""Opening parts of stored contents of 100 KB: lines, pages, rows, paths, hits, answers."""

from __future__ import annotations

import json
import random
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from benchmarks.measure import best_ms
from holdfast.condense.condenser import Passage
from holdfast.expand import ExpandOptions, expand, pages
from holdfast.search.passages import rank
from holdfast.search.query import terms
from holdfast.tokens.vocabulary import count_ordinary

SIZE = 100_000
RANGE_MS, QUERY_MS, RANK_MS = 2.0, 15.0, 5.0
WORDS = "service port error timeout connection user order invoice payment database retry".split()


def run(console: Console) -> None:
    """Print the tables."""
    contents = {"log": _log(), "json_rows": _json(), "text": _prose()}
    table = Table(title=f"Expand a part of {SIZE // 1000} KB, in milliseconds")
    for column in ("content", "options", "ms", "target", "tokens", "shown"):
        table.add_column(
            column, justify="right" if column in ("ms", "target", "tokens") else "left"
        )
    for kind, options in CASES:
        data, wanted = contents[kind], ExpandOptions.parse(options)
        shown = expand(f"ref:{kind}:0123456789abcdef", data, kind, wanted, count=_count)
        took = best_ms(lambda d=data, k=kind, w=wanted: _once(d, k, w))  # type: ignore[misc]
        ratios.note_ms(f"expand: {kind} {json.dumps(options)}", took)
        target = QUERY_MS if wanted.query else RANGE_MS
        table.add_row(
            kind,
            json.dumps(options),
            f"{took:.2f}",
            f"{target:.0f}",
            str(shown.tokens),
            shown.where[:40],
        )
    console.print(table)
    passages = [Passage(line, "") for line in _log().decode().splitlines()]
    took = best_ms(lambda: rank("Why did the payment of worker-700 time out?", passages))
    console.print(f"Rank {len(passages):,} lines by a question: {took:.2f} ms of {RANK_MS:.0f}.\n")


CASES: list[tuple[str, dict[str, Any]]] = [
    ("log", {}),
    ("log", {"lines": "700-720"}),
    ("log", {"page": 3}),
    ("log", {"pattern": "ERROR.*timeout"}),
    ("log", {"around": "worker-700 "}),
    ("log", {"query": "Why did the payment of worker-700 time out?"}),
    ("json_rows", {}),
    ("json_rows", {"path": "$.items[500].owner"}),
    ("json_rows", {"path": "$.items[*].owner.login"}),
    ("json_rows", {"path": "$..login"}),
    ("json_rows", {"offset": 500, "limit": 5}),
    ("json_rows", {"fields": ["id", "owner.login"], "offset": 500, "limit": 20}),
    ("json_rows", {"pattern": "u70\\b"}),
    ("json_rows", {"query": "Who owns n700?"}),
    ("text", {"offset": 50, "limit": 5}),
    ("text", {"query": "invoice 700"}),
]


def _once(data: bytes, kind: str, options: ExpandOptions) -> None:
    pages._known.clear()  # as if no page had been read before
    terms.cache_clear()
    expand(f"ref:{kind}:0123456789abcdef", data, kind, options, count=_count)


def _count(text: str) -> int:
    return count_ordinary("o200k_base", text)


def _log() -> bytes:
    chance = random.Random(5)
    lines, size = [], 0
    while size < SIZE:
        level = "ERROR" if len(lines) % 97 == 0 else "INFO"
        said = " ".join(chance.choices(WORDS, k=5))
        lines.append(f"2024-05-01T12:00:{len(lines) % 60:02d} {level} worker-{len(lines)} {said}")
        size += len(lines[-1]) + 1
    return "\n".join(lines).encode()


def _json() -> bytes:
    rows: list[dict[str, Any]] = []
    while len(rows) * 104 < SIZE:
        n = len(rows)
        rows.append({"id": n, "name": f"n{n}", "owner": {"login": f"u{n}"}, "note": "a b c " * 8})
    return json.dumps({"total": len(rows), "items": rows}).encode()


def _prose() -> bytes:
    chance = random.Random(5)
    made = [
        f"The invoice {n} says: " + " ".join(chance.choices(WORDS, k=60))
        for n in range(SIZE // 500)
    ]
    return "\n\n".join(made).encode()
