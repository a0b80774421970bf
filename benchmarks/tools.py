"""Finding tools: all right ones among the first ten, beside FastMCP's and Pydantic AI's own search.

Run over the labelled directories of ../shared/data/tools (or $HOLDFAST_DATA/tools): a query counts
if every tool that it needs, or one that upstream calls as good, stands among the first ten. Labels
that name several tools of which one will do (livemcp's `any_of`) are a row of their own. The peers
are asked some queries of each set: FastMCP's search takes 0.2 s of each among 4,000 tools. What was
shipped stands beside weights that are learnt here: on all sets, and for each set on the four
others alone, which is what an unknown directory can expect; both with WordLlama's vectors, and with
MiniLM's beside them. Then how long a search and the ingest
take among 1,000 and 10,000 tools, in processor time.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.peers.environment import beside
from benchmarks.recall_data import DATA
from holdfast import Holdfast
from holdfast.models.embedding import tool_embedder
from holdfast.models.protocol import Embedder
from holdfast.settings import Settings
from holdfast.toolbox import Tool, read_tool
from holdfast.toolbox.tool_search import ToolSearch, search_over, weights_for
from holdfast.toolbox.weights import WITH_VECTORS

SETS = ("livemcp", "mcptoolbenchpp", "metatool", "sealtools", "bfcl")
FOLDER = DATA / "tools"
K = 10
_FASTMCP = (
    *("fastmcp==4.1.4", "fastmcp-slim==4.1.4"),
    *("uncalled-for==0.6.0", "exceptiongroup==1.3.1"),
)
_OF_PEERS = 150
_STEPS, _NEGATIVES, _QUERIES = 300, 90, 300
LEARNT = tuple(name for name in WITH_VECTORS if name not in ("called", "used"))
Weights = Mapping[str, float]


class Asked(NamedTuple):
    """A query, and for each tool that it needs the places of those that will do."""

    query: str
    wanted: list[set[int]]


class Directory(NamedTuple):
    """A set: its tools, and what was asked of them."""

    tools: list[Tool]
    raw: list[dict[str, Any]]
    asked: list[Asked]


def load(name: str, *, either: bool = False) -> Directory:
    """A set; `either` with the labels of which one of several tools will do."""
    path = FOLDER / name / "tools.jsonl"
    packed = path.with_suffix(".jsonl.gz")
    text = path.read_bytes() if path.exists() else gzip.decompress(packed.read_bytes())
    raw = [json.loads(line) for line in text.splitlines()]
    places = {each["id"]: n for n, each in enumerate(raw)}
    tools = [read_tool(each, each.get("server", "")) for each in raw]
    lines = (FOLDER / name / "queries.jsonl").read_text().splitlines()
    queries = [json.loads(line) for line in lines]
    return Directory(tools, raw, [_asked(query, places, either=either) for query in queries])


def _asked(query: Mapping[str, Any], places: Mapping[str, int], *, either: bool) -> Asked:
    as_good = query.get("also_acceptable") or ()
    labels = [[name, *as_good] for name in query["relevant_tools"]]
    labels += query.get("any_of") or () if either else ()
    return Asked(query["query"], [{places[each] for each in label} for label in labels])


def has_all(asked: Asked, top: Sequence[int]) -> bool:
    return all(will_do & set(top) for will_do in asked.wanted)


# --- ours ----------------------------------------------------------------------------------------


def ours(
    directory: Directory, embedder: Embedder | None, weights: Weights | None = None
) -> tuple[float, float]:
    """The share of queries with all tools among the first ten, and how many are shown of ten."""
    search = search_over(directory.tools, embedder)
    shipped = search.weights
    if weights is not None:
        search.weights = {**shipped, **weights}
    try:
        hits = [search(each.query, K) for each in directory.asked]
    finally:
        search.weights = shipped
    right = [
        has_all(asked, [hit.place for hit in found])
        for asked, found in zip(directory.asked, hits, strict=True)
    ]
    return float(np.mean(right)), float(np.mean([len(found) for found in hits]))


class Example(NamedTuple):
    """The signals of tools for queries: the right one first, and which of the others count."""

    signals: np.ndarray[Any, Any]
    there: np.ndarray[Any, Any]


def examples(directory: Directory, embedder: Embedder | None) -> Example:
    """Each right tool of some queries beside tools that look like it and tools by chance."""
    chance = np.random.default_rng(0)
    search: ToolSearch = search_over(directory.tools, embedder)
    rows, there = [], []
    chosen = chance.permutation(len(directory.asked))[:_QUERIES]
    for asked in (directory.asked[n] for n in chosen):
        signals = search.signals([asked.query], {})
        size = signals["whole"].shape[1]
        values = np.stack([np.broadcast_to(signals[name][0], size) for name in LEARNT])
        like = np.argsort(-(signals["whole"][0] + signals["meaning"][0]))[: _NEGATIVES // 2]
        others = {*like.tolist(), *chance.integers(0, values.shape[1], _NEGATIVES // 2).tolist()}
        others -= set().union(*asked.wanted)
        padded = [*others, *([0] * (_NEGATIVES - len(others)))]
        for will_do in filter(None, asked.wanted):
            best = max(will_do, key=lambda n: float(signals["whole"][0][n]))
            rows.append(values[:, [best, *padded]])
            there.append([True] + [n < len(others) for n in range(_NEGATIVES)])
    return Example(np.stack(rows).astype(np.float32), np.array(there))


def learnt(examples: Sequence[Example]) -> dict[str, float]:
    """Weights by which the right tool comes first: a softmax over each list, every set alike."""
    spread = np.mean([each.signals.std(axis=(0, 2)) for each in examples], axis=0) + 1e-6
    weights = np.zeros(len(LEARNT))
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        gradient = 1e-3 * weights
        for each in examples:
            values = each.signals / spread[None, :, None]
            scores = np.where(each.there, np.einsum("qfd,f->qd", values, weights), -1e9)
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            shares /= shares.sum(axis=1, keepdims=True)
            expected = np.einsum("qfd,qd->qf", values, shares)
            gradient += (expected - values[:, :, 0]).mean(axis=0) / len(examples)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        rate = 0.05 / (1 - 0.9**step)
        weights -= rate * mean / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return dict(zip(LEARNT, (weights / spread).tolist(), strict=True))


# --- peers ---------------------------------------------------------------------------------------


def fastmcp(directory: Directory) -> float:
    beside("fastmcp", *_FASTMCP)
    from fastmcp.server.transforms.search.bm25 import BM25SearchTransform  # noqa: PLC0415 - optional
    from fastmcp.tools.base import Tool as Peer  # noqa: PLC0415 - optional

    logging.getLogger("mcp").setLevel(logging.ERROR)  # it remarks on every name with a slash
    places = {each["id"]: n for n, each in enumerate(directory.raw)}
    peers = [
        Peer(name=each["id"], description=each["description"], parameters=each["input_schema"])
        for each in directory.raw
    ]
    transform = BM25SearchTransform(max_results=K)

    async def main() -> float:
        right = []
        for asked in directory.asked:
            hits = await transform._search(peers, asked.query)  # it has no other way in
            right.append(has_all(asked, [places[hit.name] for hit in hits]))
        return float(np.mean(right))

    return asyncio.run(main())


def pydantic_ai(directory: Directory) -> float:
    from pydantic_ai.tools import ToolDefinition  # noqa: PLC0415 - optional
    from pydantic_ai.toolsets._tool_search import keywords_search_fn  # noqa: PLC0415 - optional

    places = {each["id"]: n for n, each in enumerate(directory.raw)}
    peers = [
        ToolDefinition(name=each["id"], description=each["description"]) for each in directory.raw
    ]
    context: Any = None  # it does not look at it
    right = []
    for asked in directory.asked:
        names = keywords_search_fn(context, [asked.query], peers)[:K]
        right.append(has_all(asked, [places[name] for name in names]))
    return float(np.mean(right))


# --- tables --------------------------------------------------------------------------------------


class Once:
    """An embedder that is asked for each text once: queries are searched with several weights."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.is_quick = embedder.is_quick
        self._embedder = embedder
        self._vectors: dict[str, Any] = {}

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        for text, vector in zip(new, self._embedder.embed(new), strict=True):
            self._vectors[text] = np.asarray(vector, np.float32)
        return [self._vectors[text] for text in texts]


def by_meaning(way: Literal["wordllama", "minilm"]) -> Embedder:
    """The embedder of a setting."""
    embedder = tool_embedder(Settings(embedder=way))
    assert embedder is not None, "install the extras embeddings and embed"
    return Once(embedder)


class Learning(NamedTuple):
    """What an embedder finds with the weights that are shipped, and with some that are learnt."""

    embedder: Embedder | None
    examples: dict[str, Example]
    of_all: dict[str, float]

    @classmethod
    def by(cls, sets: Mapping[str, Directory], embedder: Embedder | None) -> Self:
        lists = {name: examples(directory, embedder) for name, directory in sets.items()}
        return cls(embedder, lists, learnt(list(lists.values())))

    def figures(self, name: str, directory: Directory) -> tuple[float, ...]:
        """Shipped, how many are shown, learnt without the set, learnt on all."""
        others = [each for other, each in self.examples.items() if not name.startswith(other)]
        left_out = ours(directory, self.embedder, learnt(others))[0]
        return (
            *ours(directory, self.embedder),
            left_out,
            ours(directory, self.embedder, self.of_all)[0],
        )

    def told(self) -> str:
        shipped = weights_for(self.embedder)
        scale = sum(shipped[name] for name in LEARNT) / sum(self.of_all.values())
        weights = ", ".join(f"{name} {value * scale:.2f}" for name, value in self.of_all.items())
        return f"learnt on all, on the scale of those shipped: {weights}"


def quality(console: Console) -> None:
    sets = {name: load(name) for name in SETS}
    wordllama = Learning.by(sets, by_meaning("wordllama"))
    minilm = Learning.by(sets, by_meaning("minilm"))
    chance = np.random.default_rng(0)
    rows = {**sets, "livemcp, either-or too": load("livemcp", either=True)}
    table = Table("set", "tools", "queries", title="all right tools among the first 10")
    for column in (*("FastMCP", "Pydantic AI", "ours of these", "with MiniLM"),
                   *("ours", "shown", "set left out", "learnt on all"),
                   *("with MiniLM", "shown", "set left out", "learnt on all")):  # fmt: skip
        table.add_column(column, justify="right")
    for name, directory in rows.items():
        some = chance.permutation(len(directory.asked))[:_OF_PEERS]
        asked = directory._replace(asked=[directory.asked[n] for n in some])
        peers = (fastmcp(asked), pydantic_ai(asked))
        of_these = (ours(asked, each.embedder)[0] for each in (wordllama, minilm))
        both = (*wordllama.figures(name, directory), *minilm.figures(name, directory))
        table.add_row(
            *(name, str(len(directory.tools)), str(len(directory.asked))),
            *(f"{value:.3f}" for value in (*peers, *of_these)),
            *(f"{value:.1f}" if value > 1 else f"{value:.3f}" for value in both),
        )
    console.print(table)
    console.print(f"WordLlama: {wordllama.told()}")
    console.print(f"with MiniLM: {minilm.told()}")


def _cpu(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def speed(console: Console) -> None:
    names = ("livemcp", "sealtools", "bfcl")
    raw = [each for name in names for each in load(name).raw]
    queries = [asked.query for name in names for asked in load(name).asked[:60]]
    table = Table("tools", "ingest s", "first search ms", "search p50 ms", "p90 ms")
    for size in (1_000, 10_000):
        some = [
            {**each, "name": f"{each['name'][:200]}_{n}" if n >= len(raw) else each["name"]}
            for n, each in zip(range(size), itertools.cycle(raw), strict=False)
        ]
        unique = list({each["name"]: each for each in some}.values())

        async def main(tools: list[dict[str, Any]]) -> tuple[float, ...]:
            async with Holdfast.open("memory:") as engine:
                started = time.process_time()
                await engine.toolbox.register(tools)
                ingest = time.process_time() - started
                started = time.process_time()
                await engine.toolbox.search("warm up")
                first = time.process_time() - started
                took = []
                for query in queries:
                    started = time.process_time()
                    await engine.toolbox.search(query)
                    took.append(time.process_time() - started)
                middle, late = np.quantile(took, [0.5, 0.9]).tolist()
                return ingest, first, middle, late

        ingest, first, middle, late = asyncio.run(main(unique))
        table.add_row(
            *(f"{len(unique):,}", f"{ingest:.2f}", f"{first * 1e3:.0f}"),
            *(f"{middle * 1e3:.1f}", f"{late * 1e3:.1f}"),
        )
    console.print(table)


def run(console: Console) -> None:
    if not FOLDER.is_dir():
        console.print("no directories of tools: set HOLDFAST_DATA to a folder that holds tools/")
        return
    quality(console)
    speed(console)
