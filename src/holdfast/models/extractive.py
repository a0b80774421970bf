"""The offline model: it quotes what a conversation holds on the question, and thinks nothing.

extractive: after sources; the proxy's offline answers are made of it. Pure: the same conversation
gets the same answer. It cannot fail: where there is nothing to quote it says so, and what there is
instead.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence

import msgspec

from holdfast.condense.condenser import Passage
from holdfast.condense.relevance import excerpt, rank
from holdfast.models.sources import Asked, Held, asked, held, passages, refs_in
from holdfast.tokens.vocabulary import count_ordinary
from holdfast.wire import Conversation, Message
from holdfast.wire.reader import dialect_named

INTRODUCTION = (
    "Holdfast's offline model: it quotes, it does not think. Configure an upstream for real "
    "answers."
)

_MOST_QUOTES = 5
_LONGEST_QUOTE = 400
_AROUND = 1
"""Lines shown before and behind the one that bears on the question."""
_MOST_OPENINGS = 3
_LISTED = 8
_PIECE = 48
_VOCABULARY = "o200k_base"
_LONGEST_TOKEN = 128
_WORDS = re.compile(r"\S*\s*")
_LINES = re.compile(r"lines (\d+)-(\d+)")


class Opening(msgspec.Struct, frozen=True):
    """A ref that the model asks to see before it answers."""

    ref_id: str
    query: str

    def __repr__(self) -> str:
        return f"<Opening of {self.ref_id}>"


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """What the model says: openings first, and text once it has seen them."""

    pieces: tuple[str, ...] = ()
    openings: tuple[Opening, ...] = ()
    cut: bool = False
    """The text ended because it was as long as the request allows."""

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.pieces)

    def __repr__(self) -> str:
        return f"<Spoken, {len(self.pieces)} pieces, {len(self.openings)} openings>"


def answer(conversation: Conversation, *, expansion_tool: str | None = None) -> Spoken:
    """Answer the last question of a conversation.

    `expansion_tool` is the name of the tool that opens refs, if the request offers it.
    """
    question = asked(conversation.messages)
    # What this model said before are quotations of what stands there anyway.
    texts = [
        one
        for one in held(conversation, question, expansion_tool)
        if not one.text.startswith(INTRODUCTION)
    ]
    if expansion_tool is not None:
        openings = _openings(conversation.messages, texts, question, expansion_tool)
        if openings:
            return Spoken(openings=openings)
    text = "\n\n".join((INTRODUCTION, *_said(question.question, texts)))
    most = dialect_named(conversation.dialect).params(conversation.rest).get("max_tokens")
    shown = _cut(text, most) if isinstance(most, int) and most > 0 else text
    return Spoken(pieces=tuple(_pieces(shown)), cut=len(shown) < len(text))


def count(text: str) -> int:
    """Tokens of a text, as this model counts them."""
    return count_ordinary(_VOCABULARY, text)


# --- what to open --------------------------------------------------------------------------------


def _openings(
    messages: Sequence[Message], texts: Sequence[Held], question: Asked, tool: str
) -> tuple[Opening, ...]:
    """The refs to open, once: those whose citation bears on the question, else the latest."""
    if not question.question or any(
        call.name == tool for message in messages[question.at :] for call in message.calls
    ):
        return ()
    cited = [one for one in texts if not one.opened and refs_in(one.text)]
    ranked = rank(question.question, [Passage(one.text, one.label) for one in cited])
    best = [cited[one.index] for one in ranked]
    if not best and not _ranked(question.question, texts):
        best = cited[-1:]
    refs = dict.fromkeys(ref for one in best for ref in refs_in(one.text))
    return tuple(Opening(ref, question.question) for ref in list(refs)[:_MOST_OPENINGS])


# --- the answer ----------------------------------------------------------------------------------


def _said(question: str, texts: Sequence[Held]) -> Iterator[str]:
    if not question:
        yield "There is no question in this conversation that could be looked up."
        yield from _listing(texts)
        return
    opened = {one.opened for one in texts if one.opened}
    # A citation shows no more than what was opened of its ref.
    quotable = [
        one
        for one in texts
        if one.opened or not refs_in(one.text) or opened.isdisjoint(refs_in(one.text))
    ]
    seen: set[str] = set()
    for label, passage in _ranked(question, quotable):
        quoted, where = _quotation(passage, question)
        if quoted in seen:
            continue
        seen.add(quoted)
        yield f"From {label}{', ' if where else ''}{where}:\n{quoted}"
        if len(seen) == _MOST_QUOTES:
            return
    if not seen:
        yield "Nothing in this conversation bears on the question."
        yield from _listing(texts)


def _ranked(question: str, texts: Sequence[Held]) -> list[tuple[str, Passage]]:
    """The passages that bear on the question, best first, with what they are part of."""
    labels: list[str] = []
    candidates: list[Passage] = []
    for one in texts:
        parts = passages(one)
        candidates.extend(parts)
        labels.extend([one.label] * len(parts))
    return [(labels[one.index], candidates[one.index]) for one in rank(question, candidates)]


def _quotation(passage: Passage, question: str) -> tuple[str, str]:
    """The lines of a passage that bear most on the question, and their place."""
    lines = passage.text.strip("\n").splitlines() or [""]
    best = rank(question, [Passage(line, "") for line in lines])
    at = best[0].index if best else 0
    first, last = max(0, at - _AROUND), min(len(lines), at + _AROUND + 1)
    while first < at and not lines[first].strip():
        first += 1
    while last - 1 > at and not lines[last - 1].strip():
        last -= 1
    shown = [excerpt(line.rstrip(), question, _LONGEST_QUOTE)[0] for line in lines[first:last]]
    where = passage.where
    if (of := _LINES.fullmatch(where)) and int(of[2]) - int(of[1]) + 1 == len(lines):
        where = f"lines {int(of[1]) + first}-{int(of[1]) + last - 1}"
    return "\n".join(f"> {line}" for line in shown), where


def _listing(texts: Sequence[Held]) -> Iterator[str]:
    if not texts:
        return
    lines = [f"- {one.label}, {len(one.text):,} characters" for one in texts[-_LISTED:]]
    if (more := len(texts) - _LISTED) > 0:
        lines.insert(0, f"- {more:,} older texts")
    yield "It holds:\n" + "\n".join(lines)


def _cut(text: str, most_tokens: int) -> str:
    """The longest beginning that has at most so many tokens; never nothing."""
    if count(text) <= most_tokens:
        return text
    ends = range(1, min(len(text), _LONGEST_TOKEN * most_tokens) + 1)
    at = bisect.bisect_right(ends, most_tokens, key=lambda end: count(text[:end]))
    # A longer text may have fewer tokens, so the search can end a little too far.
    while at > 1 and count(text[:at]) > most_tokens:
        at -= 1
    return text[: max(1, at)]


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of some words, as a model would speak it."""
    piece = ""
    for word in _WORDS.findall(text):
        if piece and len(piece) + len(word) > _PIECE:
            yield piece
            piece = ""
        piece += word
    if piece:
        yield piece
