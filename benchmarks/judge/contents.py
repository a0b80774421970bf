"""Tool results of a size that a small model can read, taken from the recorded ones.

Two sources: parts of the big results (whole rows, lines or elements, so that a part is well-formed
too) and whole results of recorded agents. The same ones every time; nothing of the data is kept.
The sets of questions draw on different files and tasks: see `questions.SETS`.
"""

from __future__ import annotations

import bisect
import functools
import gzip
import hashlib
import itertools
import json
import random
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.questions import DATA, MANIFEST, parse_content
from holdfast.tokens.vocabulary import count_ordinary

SIZES = {"small": (800, 1_100), "large": (2_500, 4_000)}
"""Least and most tokens of a content."""
TRAJECTORIES = ("tau-bench", "livemcpbench", "mcpmark", "swe-mini-bash", "deer-flow")
_ELEMENT = re.compile(r"(?=<(?:p|h[1-6]|li|tr|div|section|article|dt)\b)")
_TUNING_SHARE = 4
"""One of so many sources belongs to the tuning set."""


class Content(NamedTuple):
    """A tool result."""

    id: str
    """The start of its SHA-256."""
    source: str
    """The file or task that it was taken from."""
    kind: str
    size: str
    """`small` or `large`."""
    tokens: int
    text: str

    @property
    def set_name(self) -> str:
        """`tuning` or `final`, by the hash of the source."""
        return "final" if hash_number(self.source) % _TUNING_SHARE else "tuning"


def hash_number(text: str) -> int:
    """Return a number that depends on the text only."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def count(text: str) -> int:
    """Return the tokens of a text in o200k."""
    return count_ordinary("o200k_base", text)


def first_tokens(text: str, most: int) -> str:
    """Return the longest start of a text of at most so many tokens."""
    end = bisect.bisect_right(range(len(text) + 1), most, key=lambda length: count(text[:length]))
    return text[: end - 1]


def contents(sizes: dict[str, tuple[int, int]] | None = None) -> list[Content]:
    """Return all contents, one for each source, kind and size, in a random but fixed order."""
    unique: dict[str, Content] = {}
    for content in itertools.chain(_parts(sizes or SIZES), _recorded(sizes or SIZES)):
        unique.setdefault(content.id, content)
    return sorted(unique.values(), key=lambda content: hash_number(content.id))


@functools.cache
def all_contents() -> list[Content]:
    """Return the contents of the usual sizes; both sets of questions are about them."""
    return contents()


def _content(source: str, kind: str, size: str, text: str) -> Content:
    name = hashlib.sha256(text.encode()).hexdigest()[:12]
    return Content(name, source, kind, size, count(text), text)


def _parts(sizes: dict[str, tuple[int, int]]) -> Iterator[Content]:
    """Yield a part of each size of every big tool result."""
    for line in MANIFEST.read_text("utf-8").splitlines():
        entry = json.loads(line)
        text = (MANIFEST.parent / entry["path"]).read_bytes().decode()
        for size, (low, high) in sizes.items():
            chance = random.Random(f"{entry['path']} {size}")
            if (part := _part(text, low, high, chance)) is not None:
                yield _content(entry["path"], entry["kind"], size, part)


def _recorded(sizes: dict[str, tuple[int, int]]) -> Iterator[Content]:
    """Yield one whole result of each size of every recorded task."""
    for name in TRAJECTORIES:
        taken = set()
        with gzip.open(DATA / "trajectories" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for record in map(json.loads, lines):
                source = f"{name}/{record['task']}"
                for message in record["messages"]:
                    text = message.get("content")
                    size = _size_of(text, sizes) if message["role"] == "tool" else None
                    if size is not None and (source, size) not in taken:
                        taken.add((source, size))
                        yield _content(source, name, size, text)


def _size_of(text: Any, sizes: dict[str, tuple[int, int]]) -> str | None:
    if not isinstance(text, str) or not 2_000 < len(text) < 40_000:
        return None
    tokens = count(text)
    return next((size for size, (low, high) in sizes.items() if low <= tokens <= high), None)


def _part(text: str, low: int, high: int, chance: random.Random) -> str | None:
    value = parse_content(text)
    is_json = text.lstrip()[:1] in "[{" and value is not None
    if is_json:
        return _json_part(value, low, high, chance, indent=2 if "\n  " in text else None)
    lines = text.splitlines(keepends=True)
    if value is not None:  # a table: the header goes with its rows
        return _window(lines[1:], low, high, chance, head=lines[0])
    is_markup = text.lstrip()[:1] == "<"
    return _window(_ELEMENT.split(text) if is_markup else lines, low, high, chance)


def _json_part(
    value: Any, low: int, high: int, chance: random.Random, indent: int | None
) -> str | None:
    """Return a value inside this one, or successive rows of a list, of a size in the range."""

    def write(node: Any) -> str:
        return json.dumps(node, ensure_ascii=False, indent=indent)

    waiting, parts = [value], []
    for _ in range(2_000):  # values looked at
        if not waiting:
            break
        node = waiting.pop()
        if not isinstance(node, dict | list) or len(written := write(node)) < low:
            continue
        tokens = count(written) if len(written) < 12 * high else high + 1
        if low <= tokens <= high:
            parts.append(written)
        elif tokens > high:
            if isinstance(node, list) and len(node) > 2:
                parts += _rows_part(node, low, high, chance, write)
            waiting += list(node.values()) if isinstance(node, dict) else node[:50]
    return chance.choice(parts) if parts else None


def _rows_part(
    rows: list[Any], low: int, high: int, chance: random.Random, write: Any
) -> Iterator[str]:
    start = chance.randrange(len(rows))
    taken: list[Any] = []
    for row in rows[start:] or rows:
        if count(write([*taken, row])) > high:
            break
        taken.append(row)
    if len(taken) > 2 and count(written := write(taken)) >= low:
        yield written


def _window(
    pieces: list[str], low: int, high: int, chance: random.Random, head: str = ""
) -> str | None:
    """Return successive pieces of a size in the range, from a random start."""
    for _ in range(8):  # a start near the end, or at a long piece, gives none
        taken = head
        for piece in pieces[chance.randrange(len(pieces)) :]:
            if count(taken + piece) > high:
                break
            taken += piece
        if count(taken) >= low and len(taken.splitlines()) > 3:
            return taken
    return None
