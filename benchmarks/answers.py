"""Answers for like questions: pairs that may not share an answer but would, and paraphrases served.

Labelled pairs of questions and statements, which are no part of the project. Nothing is fitted to
them: reading, lexicon and guards are written by hand, and the threshold is the seed's. Beside ours
stand plain thresholds on the cosine of the same embedder, at what GPTCache and RedisVL document,
and at the least at which as few traps are served as by ours, chosen on the other pairs in turn.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from holdfast.answer_cache.guards import GUARDS, disagreement, unshared_because
from holdfast.answer_cache.reading import Reading, read
from holdfast.answer_cache.vectors import cosines, encoded, vector_of
from holdfast.models.embedding import open_embedder
from holdfast.models.protocol import Embedder
from tests.support.recorded import DATA

PAIRS = DATA / "cache_pairs" / "pairs.jsonl"
THRESHOLD = 0.97
GPTCACHE = 0.8
"""`similarity_threshold` of GPTCache's configuration, over its own embedder."""
REDISVL = 0.9
"""RedisVL's SemanticCache takes a distance of 0.1 for the same, over its own embedder."""
FOLDS = 5


class Pair(NamedTuple):
    """Two texts, and whether one answer may serve both."""

    source: str
    kind: str
    is_same: bool
    one: str
    other: str
    group: str
    plain: float
    """The cosine of the texts as they are."""
    read: float
    """The cosine of their readings."""
    differs: str
    """The guard that tells them apart, or why one of them shares no answer; empty if nothing."""


class Score(NamedTuple):
    """How many pairs were served."""

    traps: int
    of_traps: int
    paraphrases: int
    of_paraphrases: int

    @property
    def shown(self) -> tuple[str, str]:
        """Both shares in percent."""
        return _percent(self.traps, self.of_traps), _percent(self.paraphrases, self.of_paraphrases)


def run(console: Console) -> None:
    """Print the tables; without the data or an embedder, say what is missing."""
    embedder = open_embedder()
    if not PAIRS.exists() or embedder is None:
        console.print("answers: needs the labelled pairs (HOLDFAST_DATA) and holdfast[embeddings].")
        return
    pairs = _pairs(embedder)
    _ways(console, pairs)
    _by_part(console, pairs, "source", lambda pair: pair.source)
    _by_part(console, pairs, "kind", lambda pair: pair.kind)
    _ablation(console, pairs)
    _speed(console, pairs, embedder)


def _pairs(embedder: Embedder) -> list[Pair]:
    rows = [json.loads(line) for line in PAIRS.read_text("utf-8").splitlines()]
    texts = sorted({row[side] for row in rows for side in ("a", "b")})
    plain = dict(zip(texts, map(encoded, embedder.embed(texts)), strict=True))
    readings = {text: read(text) for text in texts}
    readable = [text for text in texts if readings[text] is not None]
    vectors = {text: vector_of(_sure(readings[text]), embedder) for text in readable}
    return [_pair(row, plain, readings, vectors) for row in rows]


def _pair(
    row: dict[str, Any],
    plain: dict[str, bytes],
    readings: dict[str, Reading | None],
    vectors: dict[str, bytes],
) -> Pair:
    one, other = row["a"], row["b"]
    left, right = readings[one], readings[other]
    differs = "length"
    if left is not None and right is not None:
        alone = unshared_because(one) or unshared_because(other)
        differs = "not shared" if alone else disagreement(left, right)
    pick = f" {row['pick']}" if "pick" in row else ""
    return Pair(
        f"{row['source']}{pick}",
        row["kind"],
        bool(row["label"]),
        one,
        other,
        row["id"],
        cosines(plain[one], [plain[other]])[0],
        cosines(vectors.get(one, b""), [vectors.get(other, b"")])[0],
        differs,
    )


def _sure(reading: Reading | None) -> Reading:
    assert reading is not None
    return reading


def _ours(pair: Pair) -> bool:
    return not pair.differs and pair.read >= THRESHOLD


def _score(pairs: Iterable[Pair], serves: Callable[[Pair], bool]) -> Score:
    counts = [0, 0, 0, 0]
    for pair in pairs:
        at = 2 if pair.is_same else 0
        counts[at] += serves(pair)
        counts[at + 1] += 1
    return Score(*counts)


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _ways(console: Console, pairs: Sequence[Pair]) -> None:
    table = Table(title=f"{len(pairs):,} pairs: traps served / paraphrases served")
    for column in ("", "traps", "paraphrases"):
        table.add_column(column, justify="left" if not column else "right")
    ways: dict[str, Callable[[Pair], bool]] = {
        f"ours: reading >= {THRESHOLD} and guards": _ours,
        "guards alone": lambda pair: not pair.differs,
        f"reading >= {THRESHOLD} alone": lambda pair: pair.read >= THRESHOLD,
        f"cosine >= {THRESHOLD}, the seed's threshold": lambda pair: pair.plain >= THRESHOLD,
        f"cosine >= {REDISVL}, as RedisVL's default": lambda pair: pair.plain >= REDISVL,
        f"cosine >= {GPTCACHE}, as GPTCache's default": lambda pair: pair.plain >= GPTCACHE,
    }
    for name, serves in ways.items():
        table.add_row(name, *_score(pairs, serves).shown)
    table.add_row("cosine at 1 % traps, cross-validated", *_cross_validated(pairs).shown)
    console.print(table)


def _cross_validated(pairs: Sequence[Pair]) -> Score:
    """A plain threshold that serves at most 1 % of the traps of the other folds."""
    total = [0, 0, 0, 0]
    for fold in range(FOLDS):
        ours = [pair for n, pair in enumerate(sorted(pairs, key=_group)) if n % FOLDS == fold]
        others = [pair for n, pair in enumerate(sorted(pairs, key=_group)) if n % FOLDS != fold]
        traps = sorted((pair.plain for pair in others if not pair.is_same), reverse=True)
        least = traps[len(traps) // 100]
        score = _score(ours, lambda pair, least=least: pair.plain > least)  # type: ignore[misc]
        total = [before + more for before, more in zip(total, score, strict=True)]
    return Score(*total)


def _group(pair: Pair) -> str:
    return pair.group


def _by_part(
    console: Console, pairs: Sequence[Pair], name: str, part: Callable[[Pair], str]
) -> None:
    table = Table(title=f"ours, by {name}")
    for column in (name, "traps", "paraphrases", "of traps", "of paraphrases"):
        table.add_column(column, justify="left" if column == name else "right")
    for value in sorted({part(pair) for pair in pairs}):
        score = _score([pair for pair in pairs if part(pair) == value], _ours)
        table.add_row(value, *score.shown, f"{score.of_traps:,}", f"{score.of_paraphrases:,}")
    console.print(table)


def _ablation(console: Console, pairs: Sequence[Pair]) -> None:
    """What each guard does that no other would have done."""
    table = Table(title="ours without one guard")
    for column in ("guard", "traps", "paraphrases"):
        table.add_column(column, justify="left" if column == "guard" else "right")
    for left_out in GUARDS:
        others = {name: agree for name, agree in GUARDS.items() if name != left_out}

        def serves(pair: Pair, others: dict[str, Any] = others) -> bool:
            if pair.read < THRESHOLD or pair.differs in ("length", "not shared"):
                return False
            one, other = _sure(read(pair.one)), _sure(read(pair.other))
            return all(agree(one, other) for agree in others.values())

        table.add_row(left_out, *_score(pairs, serves).shown)
    console.print(table)


def _speed(console: Console, pairs: Sequence[Pair], embedder: Embedder) -> None:
    """What a request pays: its reading, its vector, and 1,000 vectors beside it."""
    prompts = list(dict.fromkeys(pair.one for pair in pairs if not pair.differs))[:300]
    vectors = [vector_of(_sure(read(prompt)), embedder) for prompt in prompts]
    times: dict[str, list[float]] = {"reading": [], "vector": [], "1,000 cosines": []}
    for prompt in prompts:
        read.cache_clear()
        began = time.process_time()
        reading = _sure(read(prompt))
        times["reading"].append(time.process_time() - began)
        began = time.process_time()
        vector = vector_of(reading, embedder)
        times["vector"].append(time.process_time() - began)
    for vector in vectors[:20]:
        began = time.process_time()
        cosines(vector, (vectors[n % len(vectors)] for n in range(1_000)))
        times["1,000 cosines"].append(time.process_time() - began)
    table = Table(title="CPU time of a lookup, milliseconds")
    for column in ("", "median", "p90"):
        table.add_column(column, justify="left" if not column else "right")
    for name, taken in times.items():
        p90 = statistics.quantiles(taken, n=10)[-1]
        table.add_row(name, f"{statistics.median(taken) * 1e3:.2f}", f"{p90 * 1e3:.2f}")
    console.print(table)
