"""What a turn is made of beside its header: recent pairs, recalled turns, facts, stored results.

working_set: after ageing. A set is made smaller in the seed's order (004-44), one step at a time:
the oldest history, facts that have little to do with the question, stale summaries, facts beyond
the first ten. It knows texts and tokens, and neither dialects nor the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from holdfast.assemble.ageing import CUT_CHARACTERS, cut, line
from holdfast.assemble.intents import LEAST_FACTS
from holdfast.cite import count
from holdfast.memory.passages import shorten_heading
from holdfast.quoting import MEMORY, item
from holdfast.summarise.fidelity import Rung

PartKind = Literal["rules", "tools", "profile", "history", "recalled", "fact", "summary", "user"]
"""What a part of an assembled turn is."""
TrimTarget = Literal[
    "oldest_history", "low_similarity_facts", "stale_summaries", "extra_facts_beyond_10"
]
"""What is trimmed, in this order (004-44)."""

LOW_SIMILARITY = 0.5
"""Of the best fact's score: below it a fact has little to do with the question."""
_LONG_CHARACTERS = 1_200
"""What a long message of the last pair is cut to before it is cut as older ones are."""
_PAIRS = 4
"""Fewer pairs than the seed's least are shown only where older ones have become lines."""
_MESSAGE_OVERHEAD = 4
"""Tokens of a message's frame."""
_ITEM_OVERHEAD = 1
"""Tokens of the end of an item's last line."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """One thing of a working set as it stands in the request, and what it stands for."""

    kind: PartKind
    id: str
    """Of the turn or the fact, or the ref."""
    text: str
    tokens: int
    whole: int
    """Tokens of the original."""
    level: Rung = Rung.RAW
    score: float = 0.0
    stale: bool = False
    heading: str = ""
    """The line above a recalled turn and its neighbours: the day on which they were said."""
    role: str = ""
    """Who said it, of history."""
    age: int = 0
    """Of history, in pairs: the last question and answer have 0."""
    original: str = ""
    """The whole text, of history: from it every shorter form is made."""


def piece(kind: PartKind, name: str, text: str, *, score: float = 0.0, **what: object) -> Piece:
    """A piece that stands whole, counted."""
    if kind == "history":
        tokens = count(text) + _MESSAGE_OVERHEAD
    else:  # further lines of an item are set in: in answers with lists that is a token a line
        tokens = count(item(text)) + _ITEM_OVERHEAD
    return msgspec.structs.replace(
        Piece(kind=kind, id=name, text=text, tokens=tokens, whole=tokens, score=score), **what
    )


class WorkingSet(msgspec.Struct, frozen=True, kw_only=True):
    """All pieces of a turn beside its header and the user's own words."""

    history: tuple[Piece, ...] = ()
    """In the order in which it was said."""
    recalled: tuple[Piece, ...] = ()
    """The same, of earlier turns."""
    facts: tuple[Piece, ...] = ()
    """The best first."""
    summaries: tuple[Piece, ...] = ()
    """The most used first."""

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All of them."""
        return (*self.facts, *self.recalled, *self.summaries, *self.history)

    @property
    def remembers(self) -> bool:
        """Whether there is anything to be quoted."""
        return bool(self.facts or self.recalled or self.summaries)


def tokens_of(pieces: Sequence[Piece]) -> int:
    """Tokens of pieces together."""
    return sum(each.tokens for each in pieces)


# --- the quoted part -----------------------------------------------------------------------------


def memory_text(working: WorkingSet, *, recall: str, opener: str) -> str:
    """Facts, recalled turns and stored results as one text, each an item of a list.

    So no line of a piece can pass for one of ours, which begin where items do not.
    """
    way = f" {recall}(query) finds more." if recall else ""
    lines = [f"{MEMORY}quoted from earlier turns and stored results.{way}]"]
    if working.facts:
        lines += ["Facts:", *(item(fact.text) for fact in working.facts)]
    if working.recalled:
        lines.append("Earlier turns (dates in [brackets] were added):")
        heading = ""
        for turn in working.recalled:
            if turn.heading and turn.heading != heading:
                lines.append(shorten_heading(heading, turn.heading))
                heading = turn.heading
            lines.append(item(turn.text))
    if working.summaries:
        lines.append(f"Stored results, opened with {opener}(ref_id):")
        lines += [item(summary.text) for summary in working.summaries]
    return "\n".join(lines)


# --- smaller -------------------------------------------------------------------------------------


class Step(NamedTuple):
    """A working set with something less in it."""

    target: TrimTarget
    working: WorkingSet


def trims(working: WorkingSet) -> Iterator[Step]:
    """Ever smaller sets, in the seed's order; of the facts ten stay, and of history one pair."""
    for history in shorter(working.history):
        working = msgspec.structs.replace(working, history=history)
        yield Step("oldest_history", working)
    for turn in sorted(working.recalled, key=lambda each: each.score):
        recalled = tuple(each for each in working.recalled if each is not turn)
        working = msgspec.structs.replace(working, recalled=recalled)
        yield Step("oldest_history", working)
    least = LOW_SIMILARITY * max((fact.score for fact in working.facts), default=0.0)
    for fact in reversed(working.facts[LEAST_FACTS:]):
        if fact.score < least:
            facts = tuple(each for each in working.facts if each is not fact)
            working = msgspec.structs.replace(working, facts=facts)
            yield Step("low_similarity_facts", working)
    least_used_first = enumerate(working.summaries[::-1])
    for _, summary in sorted(least_used_first, key=lambda each: (not each[1].stale, each[0])):
        summaries = tuple(each for each in working.summaries if each is not summary)
        working = msgspec.structs.replace(working, summaries=summaries)
        yield Step("stale_summaries", working)
    for stop in range(len(working.facts) - 1, LEAST_FACTS - 1, -1):
        working = msgspec.structs.replace(working, facts=working.facts[:stop])
        yield Step("extra_facts_beyond_10", working)


def shorter(history: tuple[Piece, ...]) -> Iterator[tuple[Piece, ...]]:
    """Ever shorter histories: pairs beyond four go, older ones become lines, then they go too."""

    def without(age: int) -> tuple[Piece, ...]:
        return tuple(each for each in history if each.age < age)

    def at(ages: range, form: Callable[[Piece], Piece]) -> tuple[Piece, ...]:
        return tuple(form(each) if each.age in ages else each for each in history)

    oldest = max((each.age for each in history), default=0)
    changes: list[Callable[[], tuple[Piece, ...]]] = [
        *(lambda age=age: without(age) for age in range(oldest, _PAIRS - 1, -1)),
        lambda: at(range(1, 2), _cut),
        lambda: at(range(2, _PAIRS), _line),
        lambda: at(range(1), _cut_long),
        lambda: at(range(1, 2), _line),
        *(lambda age=age: without(age) for age in range(min(oldest, _PAIRS - 1), 0, -1)),
        lambda: at(range(1), _cut),
        lambda: at(range(1), _line),
    ]
    for change in changes:
        smaller = change()
        if tokens_of(smaller) < tokens_of(history):
            history = smaller
            yield history


def _cut_long(said: Piece) -> Piece:
    return in_form(said, *cut(said.original or said.text, _LONG_CHARACTERS))


def _cut(said: Piece) -> Piece:
    return in_form(said, *cut(said.original or said.text, CUT_CHARACTERS))


def _line(said: Piece) -> Piece:
    return in_form(said, *line(said.original or said.text))


def in_form(said: Piece, text: str, level: Rung) -> Piece:
    """A piece in a shorter form; as it is if the form is no shorter."""
    tokens = count(text) + _MESSAGE_OVERHEAD
    if tokens >= said.tokens:
        return said
    return msgspec.structs.replace(said, text=text, tokens=tokens, level=level)


def shortened(history: tuple[Piece, ...], most: int) -> tuple[Piece, ...]:
    """A history of at most so many tokens, or the shortest there is."""
    if tokens_of(history) <= most:
        return history
    smaller = history
    for smaller in shorter(history):
        if tokens_of(smaller) <= most:
            break
    return smaller


class Trimmed(NamedTuple):
    """A working set that fits, and what had to go for that."""

    working: WorkingSet
    targets: tuple[TrimTarget, ...] = ()


def trimmed(working: WorkingSet, size: Callable[[WorkingSet], int], most: int) -> Trimmed | None:
    """The first set of the seed's order whose request has at most so many tokens; None if none has.

    `size` counts the whole request: it is asked only where enough tokens have gone by our own
    count, for the pieces of a set are many.
    """
    over = size(working) - most
    if over <= 0:
        return Trimmed(working)
    before = tokens_of(working.pieces)
    targets: dict[TrimTarget, None] = {}
    smallest = working
    for target, smallest in trims(working):
        targets[target] = None
        if before - tokens_of(smallest.pieces) < over:
            continue
        over = size(smallest) - most
        if over <= 0:
            return Trimmed(smallest, tuple(targets))
        before = tokens_of(smallest.pieces)
    # Our count of a piece is not the request's: what is left may fit nevertheless.
    return Trimmed(smallest, tuple(targets)) if size(smallest) <= most else None
