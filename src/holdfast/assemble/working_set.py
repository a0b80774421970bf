"""The working set of a turn: recent pairs, recalled turns, facts and stored results.

A set is trimmed in a fixed order, one step at a time: the oldest history, facts with little
relevance to the question, stale summaries, facts beyond the first ten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from holdfast.assemble.history_compression import CUT_CHARACTERS, cut_middle, headline
from holdfast.assemble.intents import LEAST_FACTS
from holdfast.cite import count
from holdfast.memory.passages import shorten_heading
from holdfast.quoting import MEMORY, item
from holdfast.summarise.fidelity import Rung

PartKind = Literal["rules", "tools", "profile", "history", "recalled", "fact", "summary", "user"]
"""The kind of a part of an assembled turn."""
TrimTarget = Literal[
    "oldest_history", "low_similarity_facts", "stale_summaries", "extra_facts_beyond_10"
]
"""The targets of trimming, in order."""

LOW_SIMILARITY = 0.5
"""Share of the best fact's score below which a fact has little to do with the question."""
_LONG_CHARACTERS = 1_200
"""Length of a long message of the last pair after its first cut."""
_PAIRS = 4
"""Fewer pairs are shown only after older ones have become lines."""
_MESSAGE_OVERHEAD = 4
"""Tokens of a message's frame."""
_ITEM_OVERHEAD = 1
"""Tokens at the end of an item's last line."""


class ContextPiece(msgspec.Struct, frozen=True, kw_only=True):
    """One item of a working set, as it is sent, with its source."""

    kind: PartKind
    id: str
    """Id of the turn or fact, or the ref."""
    text: str
    tokens: int
    whole: int
    """Tokens of the original."""
    level: Rung = Rung.RAW
    score: float = 0.0
    stale: bool = False
    heading: str = ""
    """The heading above recalled turns of one day."""
    role: str = ""
    """The role of a history message."""
    age: int = 0
    """Age of a history message in pairs; the last question and answer have 0."""
    original: str = ""
    """The full text of a history message, from which shorter forms are made."""


def make_piece(
    kind: PartKind, name: str, text: str, *, score: float = 0.0, **what: object
) -> ContextPiece:
    """Return a complete piece with its token count."""
    if kind == "history":
        tokens = count(text) + _MESSAGE_OVERHEAD
    else:  # further lines of an item are indented: in answers with lists that is a token per line
        tokens = count(item(text)) + _ITEM_OVERHEAD
    return msgspec.structs.replace(
        ContextPiece(kind=kind, id=name, text=text, tokens=tokens, whole=tokens, score=score),
        **what,
    )


class WorkingSet(msgspec.Struct, frozen=True, kw_only=True):
    """All pieces of a turn except its header and the user's words."""

    history: tuple[ContextPiece, ...] = ()
    """In the order of the conversation."""
    recalled: tuple[ContextPiece, ...] = ()
    """Earlier turns, in time order."""
    facts: tuple[ContextPiece, ...] = ()
    """Best first."""
    summaries: tuple[ContextPiece, ...] = ()
    """Most used first."""

    @property
    def pieces(self) -> tuple[ContextPiece, ...]:
        """Return all pieces."""
        return (*self.facts, *self.recalled, *self.summaries, *self.history)

    @property
    def remembers(self) -> bool:
        """Return whether there is anything to quote."""
        return bool(self.facts or self.recalled or self.summaries)


def tokens_of(pieces: Sequence[ContextPiece]) -> int:
    """Return the tokens of all pieces."""
    return sum(each.tokens for each in pieces)


# --- quoted memory -------------------------------------------------------------------------------


def memory_text(working: WorkingSet, *, recall: str, opener: str) -> str:
    """Return facts, recalled turns and stored results as one text of list items.

    No line of a piece can pass for one of our lines, because items begin differently.
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


# --- trimming -----------------------------------------------------------------------------------


class TrimStep(NamedTuple):
    """A working set after one step of trimming."""

    target: TrimTarget
    working: WorkingSet


def trim_steps(working: WorkingSet) -> Iterator[TrimStep]:
    """Yield ever smaller sets in the fixed order; ten facts and one pair of history are kept."""
    for history in shorter_histories(working.history):
        working = msgspec.structs.replace(working, history=history)
        yield TrimStep("oldest_history", working)
    for turn in sorted(working.recalled, key=lambda each: each.score):
        recalled = tuple(each for each in working.recalled if each is not turn)
        working = msgspec.structs.replace(working, recalled=recalled)
        yield TrimStep("oldest_history", working)
    least = LOW_SIMILARITY * max((fact.score for fact in working.facts), default=0.0)
    for fact in reversed(working.facts[LEAST_FACTS:]):
        if fact.score < least:
            facts = tuple(each for each in working.facts if each is not fact)
            working = msgspec.structs.replace(working, facts=facts)
            yield TrimStep("low_similarity_facts", working)
    least_used_first = enumerate(working.summaries[::-1])
    for _, summary in sorted(least_used_first, key=lambda each: (not each[1].stale, each[0])):
        summaries = tuple(each for each in working.summaries if each is not summary)
        working = msgspec.structs.replace(working, summaries=summaries)
        yield TrimStep("stale_summaries", working)
    for stop in range(len(working.facts) - 1, LEAST_FACTS - 1, -1):
        working = msgspec.structs.replace(working, facts=working.facts[:stop])
        yield TrimStep("extra_facts_beyond_10", working)


def shorter_histories(history: tuple[ContextPiece, ...]) -> Iterator[tuple[ContextPiece, ...]]:
    """Yield ever shorter histories; pairs beyond four are dropped first."""

    def without(age: int) -> tuple[ContextPiece, ...]:
        return tuple(each for each in history if each.age < age)

    def at(ages: range, form: Callable[[ContextPiece], ContextPiece]) -> tuple[ContextPiece, ...]:
        return tuple(form(each) if each.age in ages else each for each in history)

    oldest = max((each.age for each in history), default=0)
    changes: list[Callable[[], tuple[ContextPiece, ...]]] = [
        *(lambda age=age: without(age) for age in range(oldest, _PAIRS - 1, -1)),
        lambda: at(range(1, 2), _cut_pair),
        lambda: at(range(2, _PAIRS), _headline),
        lambda: at(range(1), _cut_long),
        lambda: at(range(1, 2), _headline),
        *(lambda age=age: without(age) for age in range(min(oldest, _PAIRS - 1), 0, -1)),
        lambda: at(range(1), _cut_pair),
        lambda: at(range(1), _headline),
    ]
    for change in changes:
        smaller = change()
        if tokens_of(smaller) < tokens_of(history):
            history = smaller
            yield history


def _cut_long(message: ContextPiece) -> ContextPiece:
    return replace_text(message, *cut_middle(message.original or message.text, _LONG_CHARACTERS))


def _cut_pair(message: ContextPiece) -> ContextPiece:
    return replace_text(message, *cut_middle(message.original or message.text, CUT_CHARACTERS))


def _headline(message: ContextPiece) -> ContextPiece:
    return replace_text(message, *headline(message.original or message.text))


def replace_text(message: ContextPiece, text: str, level: Rung) -> ContextPiece:
    """Return a piece with a shorter text; unchanged if the new text is not shorter."""
    tokens = count(text) + _MESSAGE_OVERHEAD
    if tokens >= message.tokens:
        return message
    return msgspec.structs.replace(message, text=text, tokens=tokens, level=level)


def shorten_history(history: tuple[ContextPiece, ...], most: int) -> tuple[ContextPiece, ...]:
    """Return a history of at most `most` tokens, or the shortest there is."""
    if tokens_of(history) <= most:
        return history
    smaller = history
    for smaller in shorter_histories(history):
        if tokens_of(smaller) <= most:
            break
    return smaller


class TrimResult(NamedTuple):
    """A working set that fits, and its trimmed parts."""

    working: WorkingSet
    targets: tuple[TrimTarget, ...] = ()


def trim_to_fit(
    working: WorkingSet, size: Callable[[WorkingSet], int], most: int
) -> TrimResult | None:
    """Return the first trimmed set whose request has at most `most` tokens; None if none has.

    `size` counts the whole request, which is slow. It is called only when our own count shows that
    enough tokens were trimmed.
    """
    over = size(working) - most
    if over <= 0:
        return TrimResult(working)
    before = tokens_of(working.pieces)
    targets: dict[TrimTarget, None] = {}
    smallest = working
    for target, smallest in trim_steps(working):
        targets[target] = None
        if before - tokens_of(smallest.pieces) < over:
            continue
        over = size(smallest) - most
        if over <= 0:
            return TrimResult(smallest, tuple(targets))
        before = tokens_of(smallest.pieces)
    # Our count of a piece differs from the request's: the smallest set may fit nevertheless.
    return TrimResult(smallest, tuple(targets)) if size(smallest) <= most else None
