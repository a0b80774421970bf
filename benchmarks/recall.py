"""Recall: how much of the evidence stands in 3,000 tokens, beside recency, BM25, vectors and RRF.

Every method fills the same budget with the same rendering, counted on the whole text. A turn counts
as there only if its text stands in what is shown of it, or at least 60 % of its sentences do: ids
earn nothing. Then the same with each signal left out, and what a question and a turn take.

    python -m benchmarks recall [words]     `words`: without an embedder, even where there are some
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.recall_data import DATA, Asked, Talk, locomo, long_chats, longmemeval
from holdfast.cite import count as count_tokens
from holdfast.extras import is_installed
from holdfast.memory import ArrayCache
from holdfast.memory.arrays import ScopeArrays
from holdfast.memory.memory import Memory
from holdfast.memory.pieces import split_sentences
from holdfast.memory.question import RecallQuestion, read_question
from holdfast.memory.ranking import PieceScores, signals_of
from holdfast.memory.selection import RecallLimits, build_passages, fit_passages, select_turns
from holdfast.memory.weights import weights_of
from holdfast.models import minilm
from holdfast.models.embedding import open_embedder
from holdfast.models.protocol import Embedder
from holdfast.search.arrays import Floats
from holdfast.search.fusion import add_signals, weight_signals
from holdfast.search.words import words_of
from holdfast.store import Scope
from holdfast.store.opening import open_memory
from holdfast.store.turn_store import RememberedTurn

BUDGET = 3_000
SENTENCES = 0.6
ABLATED = 5
"""Of so many questions, one is asked without each signal in turn: there are twenty of them."""
ANSWER_WORDS = 0.9


class Prepared(NamedTuple):
    """A conversation that was remembered."""

    talk: Talk
    arrays: ScopeArrays
    turns: list[RememberedTurn]
    """In the order of the arrays."""


class Judged(NamedTuple):
    """What became of a question's evidence."""

    share: float
    all: bool
    share_of_words: float
    all_words: bool


def prepare(talk: Talk, embedder: Embedder | None) -> Prepared:
    """Remember a conversation in a store of its own."""

    async def work() -> Prepared:
        store, scope, held = open_memory(), Scope(), ArrayCache()
        memory = Memory(store, scope, count=count_tokens, embedder=embedder, arrays=held)
        sessions: dict[str, list[dict[str, object]]] = {}
        for turn in talk.turns:
            sessions.setdefault(str(turn["session"]), []).append(turn)
        for session, turns in sessions.items():
            await memory.remember(session, turns)
        async with held.of(store.remembered, scope, embedder) as arrays:
            places = [int(place) for place in arrays.place.all]
        opened = await store.remembered.turns(scope, places)
        return Prepared(talk, arrays, [opened[place] for place in places])

    return asyncio.run(work())


class Query(NamedTuple):
    """A question to a conversation, with every signal of every piece."""

    prepared: Prepared
    asked: Asked
    question: RecallQuestion
    signals: Mapping[str, Floats]


def queries(prepared: Prepared, embedder: Embedder | None) -> Iterable[Query]:
    """The questions of a conversation, asked on its last day."""
    arrays = prepared.arrays
    today = int(arrays.day.all.max())
    for asked in prepared.talk.asked:
        question = read_question(asked.text, arrays.names, today)
        vector = None
        if embedder is not None:
            vector = np.asarray(embedder.embed([question.text])[0], np.float32)
        yield Query(prepared, asked, question, signals_of(arrays, question, vector))


def weighed(query: Query, weights: Mapping[str, float]) -> PieceScores:
    """Scores with these weights."""
    parts = weight_signals(query.signals, weights)
    return PieceScores(add_signals(parts.values(), (len(query.prepared.arrays.turn),)), parts)


def texts_of(query: Query, ranked: PieceScores, budget: int = BUDGET) -> dict[str, str]:
    """What is shown of each turn, by its id; never over the budget."""
    arrays = query.prepared.arrays
    chosen = select_turns(arrays, ranked, RecallLimits(budget, None, None), count_tokens)
    opened = {int(arrays.place.all[each.turn]): query.prepared.turns[each.turn] for each in chosen}
    passages = build_passages(arrays, ranked, chosen, opened)
    ordered, text, tokens = fit_passages(passages, budget, count_tokens)
    assert tokens <= budget
    assert count_tokens(text) == tokens
    return {passage.turn_id: passage.text for passage in ordered}


def judged(query: Query, texts: Mapping[str, str]) -> Judged:
    """How much of the evidence stands in what is shown."""
    turns = {turn.id: turn for turn in query.prepared.turns}
    evidence = [turns[id_] for id_ in query.asked.evidence if id_ in turns]
    if not evidence:
        return Judged(0.0, False, 0.0, False)
    here = [stands_in(turn.content, texts.get(turn.id, "")) for turn in evidence]
    answer = {word.lower() for word in words_of(query.asked.answer)}
    words = [_words_stand(turn.content, texts.get(turn.id, ""), answer) for turn in evidence]
    return Judged(sum(here) / len(here), all(here), sum(words) / len(words), all(words))


def stands_in(content: str, shown: str) -> bool:
    """Return whether a turn's text stands in what is shown, or most of its sentences do."""
    if not shown:
        return False
    flat = " ".join(shown.split())
    if " ".join(content.split()) in flat:
        return True
    sentences = [" ".join(sentence.split()) for sentence in split_sentences(content)]
    return sum(sentence in flat for sentence in sentences) >= SENTENCES * len(sentences)


def _words_stand(content: str, shown: str, answer: set[str]) -> bool:
    """Whether the words of the answer that this turn gives stand in what is shown of it."""
    given = answer & {word.lower() for word in words_of(content)}
    there = given & {word.lower() for word in words_of(shown)}
    return bool(shown) and len(there) >= ANSWER_WORDS * len(given)


# --- the peers: whole turns in their order, as many as fit --------------------------------------


def _turn_scores(query: Query, name: str) -> Floats:
    """The best piece of each turn."""
    arrays = query.prepared.arrays
    scores = np.full(len(arrays), -np.inf, np.float32)
    np.maximum.at(scores, arrays.turn.all, query.signals[name])
    return scores


def _ranks(scores: Floats) -> Floats:
    ranks = np.empty(len(scores), np.float32)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return ranks


def recency(query: Query) -> Floats:
    return np.arange(len(query.prepared.arrays), dtype=np.float32)


def bm25(query: Query) -> Floats:
    return _turn_scores(query, "words")


def vectors(query: Query) -> Floats:
    return _turn_scores(query, "meaning")


def rrf(query: Query) -> Floats:
    fused: Floats = 1 / (60 + _ranks(bm25(query))) + 1 / (60 + _ranks(vectors(query)))
    return fused


def whole_turns(query: Query, scores: Floats) -> dict[str, str]:
    """Turns from the best on while they fit, whole; one that does not fit is passed over."""
    arrays = query.prepared.arrays
    per_turn = np.bincount(arrays.turn.all, weights=arrays.tokens.all, minlength=len(arrays))
    left, texts = BUDGET, {}
    days: set[int] = set()
    for place in np.argsort(-scores, kind="stable"):
        turn, day = query.prepared.turns[place], int(arrays.day.all[place])
        # As our own lines cost: a speaker, and a day, of which the first has a year.
        cost = int(per_turn[place]) + count_tokens(f"{turn.name or turn.role}:")
        cost += 0 if day in days else 4 if days else 7
        if cost <= left:
            left -= cost
            days.add(day)
            texts[turn.id] = turn.content
        if left < 20:
            break
    return texts


Method = Callable[[Query], dict[str, str]]


def methods(weights: Mapping[str, float], *, has_vectors: bool) -> dict[str, Method]:
    """Every way to fill the budget."""
    peers: dict[str, Callable[[Query], Floats]] = {"recency": recency, "BM25": bm25}
    if has_vectors:
        peers |= {"vectors": vectors, "RRF": rrf}
    filled: dict[str, Method] = {
        name: lambda query, scores=scores: whole_turns(query, scores(query))
        for name, scores in peers.items()
    }
    filled["Holdfast"] = lambda query: texts_of(query, weighed(query, weights))
    for left_out in weights:
        rest = {name: weight for name, weight in weights.items() if name != left_out}
        filled[f"without {left_out}"] = lambda query, rest=rest: texts_of(
            query, weighed(query, rest)
        )
    return filled


# --- tables --------------------------------------------------------------------------------------


Verdicts = dict[str, dict[str, list[Judged]]]
"""What each method keeps, by method and category."""


def measured(
    talks: Iterable[Talk], embedder: Embedder | None, weights: Mapping[str, float]
) -> Verdicts:
    """What each method keeps: by method and category."""
    kept: Verdicts = defaultdict(lambda: defaultdict(list))
    ways = methods(weights, has_vectors=embedder is not None)
    for talk in talks:
        prepared = prepare(talk, embedder)
        for number, query in enumerate(queries(prepared, embedder)):
            roles = {turn.id: turn.role for turn in prepared.turns}
            of_assistant = {roles.get(id_) for id_ in query.asked.evidence} == {"assistant"}
            for name, way in ways.items():
                if name.startswith("without") and number % ABLATED:
                    continue
                verdict = judged(query, way(query))
                if name == "Holdfast" and number % ABLATED == 0:
                    kept["with all"]["all"].append(verdict)
                kept[name][query.asked.category].append(verdict)
                kept[name]["all"].append(verdict)
                if of_assistant:
                    kept[name]["assistant's turns"].append(verdict)
                if len(query.asked.evidence) > 2:
                    kept[name]["3+ turns"].append(verdict)
    return kept


def mean(verdicts: list[Judged], field: str) -> float:
    """The mean of a field."""
    return sum(float(getattr(verdict, field)) for verdict in verdicts) / max(1, len(verdicts))


def _figure(verdicts: list[Judged], words: bool) -> str:
    fields = ("share_of_words", "all_words") if words else ("share", "all")
    return "/".join(f"{mean(verdicts, field):.3f}".lstrip("0") for field in fields)


def show(console: Console, title: str, kept: dict[str, Verdicts], *, words: bool) -> None:
    """By category and embedder, then what each signal is worth."""
    ours = next(iter(kept.values()))["Holdfast"]
    categories = sorted(ours, key=lambda name: (name == "all", name))
    columns = ("by", "method", *categories, *(["≥ 90 % of words"] if words else []))
    table = Table(*columns, title=title)
    shown: set[str] = set()
    for by, methods_of in kept.items():
        for name, by_category in methods_of.items():
            if name.startswith("with") or name in shown:
                continue
            cells = [_figure(by_category[category], False) for category in categories]
            cells += [_figure(by_category["all"], True)] if words else []
            is_alike = name in ("recency", "BM25")  # whichever embedder there is
            shown |= {name} if is_alike else set()
            table.add_row("" if is_alike else by, name, *cells)
    table.add_row("", "questions", *(str(len(ours[each])) for each in categories))
    console.print(table)
    for by, methods_of in kept.items():
        whole = methods_of["with all"]["all"]
        falls = ", ".join(_falls(methods_of, mean(whole, "share")))
        console.print(f"Without a signal, {by}, of {len(whole)} questions: {falls}\n")


def _falls(kept: Verdicts, whole: float) -> Iterable[str]:
    """What each signal's absence costs."""
    for name, by_category in kept.items():
        if name.startswith("without"):
            fall = mean(by_category["all"], "share") - whole
            yield f"{name.removeprefix('without ')} {fall:+.3f}"


class EvidenceSet(NamedTuple):
    """Conversations whose questions say which turns answer them."""

    title: str
    path: str
    read: Callable[[], list[Talk]]
    of_words: bool = False
    """What assistants say is long: whether the answer's words stand there is counted too."""


SETS = (
    EvidenceSet("LoCoMo, dev half", "locomo/conversations.jsonl", locomo),
    EvidenceSet("BEAM 100K, dev half", "long_chats/conversations.jsonl.gz", long_chats, True),
    EvidenceSet(
        "LongMemEval, two questions that nothing was chosen by",
        "long_chats/longmemeval_sample.jsonl",
        longmemeval,
        True,
    ),
)


def run(console: Console, *, words_only: bool = False) -> None:
    """Each set, where it is, by each embedder that is installed."""
    embedders: list[Embedder | None] = [None] if words_only else installed()
    for evidence in SETS:
        if not (DATA / evidence.path).exists():
            console.print(f"recall: {evidence.path} is not on this machine; set HOLDFAST_DATA")
            continue
        talks = evidence.read()
        kept = {
            called(embedder): measured(talks, embedder, weights_of(embedder))
            for embedder in embedders
        }
        title = f"{evidence.title}: evidence in {BUDGET:,} tokens, mean / all of it"
        show(console, title, kept, words=evidence.of_words)
    for embedder in embedders:
        latency(console, embedder)


def installed() -> list[Embedder | None]:
    """The embedders that recall may go by here; words alone where there is none."""
    here: list[Embedder | None] = []
    if (wordllama := open_embedder()) is not None:
        here.append(wordllama)
    if is_installed("embed"):
        here.append(minilm.MiniLmEmbedder())
    return here or [None]


def called(embedder: Embedder | None) -> str:
    """An embedder as the tables name it."""
    return "words alone" if embedder is None else embedder.name.partition(":")[0]


# --- what it takes -------------------------------------------------------------------------------


def latency(console: Console, embedder: Embedder | None) -> None:
    """CPU of a question over made-up turns, and of remembering one."""
    is_quick = embedder is None or embedder.is_quick
    title = f"milliseconds of CPU, {called(embedder)}"
    table = Table("turns", "recall p50", "recall p90", "remember", title=title)
    # What a question takes beside its own vector is the same: 100,000 of the slow take an hour.
    for size in (10_000, 100_000) if is_quick else (1_000,):
        table.add_row(f"{size:,}", *(f"{ms:.1f}" for ms in asyncio.run(_latency(size, embedder))))
    console.print(table)


async def _latency(size: int, embedder: Embedder | None) -> tuple[float, float, float]:
    chance = np.random.default_rng(14)
    words = [f"w{number}" for number in range(20_000)]
    ranks = np.minimum(chance.zipf(1.3, (size, 25)), len(words)) - 1
    memory = Memory(open_memory(), Scope(), count=count_tokens, embedder=embedder)
    texts = [" ".join(words[rank] for rank in row) for row in ranks]
    messages = [
        {"role": "user", "content": text, "at": 60.0 * number, "id": str(number)}
        for number, text in enumerate(texts)
    ]
    for start in range(0, size, 1000):
        await memory.remember(f"s{start // 1000}", messages[start : start + 1000])
    await memory.recall("w5 w17")
    times = []
    for number in range(40):
        asked = " ".join(words[rank] for rank in ranks[number * 7, :8])
        begun = time.process_time()
        await memory.recall(asked, token_budget=BUDGET)
        times.append(1000 * (time.process_time() - begun))
    begun = time.process_time()
    for number in range(50):
        await memory.remember("new", [{"role": "user", "content": texts[number], "at": number}])
    each = 1000 * (time.process_time() - begun) / 50
    times.sort()
    return times[len(times) // 2], times[int(0.9 * len(times))], each
