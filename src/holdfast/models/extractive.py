"""The offline model: it quotes passages of the conversation about the question.

The proxy's offline answers use it. Pure: the same conversation gets the same answer. It cannot
fail: without passages to quote it reports that.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from holdfast.condense.condenser import Passage
from holdfast.condense.excerpt import excerpt
from holdfast.condense.places import short_place
from holdfast.models.digest import count
from holdfast.models.sources import (
    LabelledText,
    LastQuestion,
    asked,
    held,
    passages,
    quotations,
    refs_in,
)
from holdfast.search.passages import hits_by_text, rank
from holdfast.search.query import terms
from holdfast.wire import Conversation, Message
from holdfast.wire.reader import dialect_named

INTRODUCTION = (
    "Holdfast's offline model: it quotes, it does not think. Configure an upstream for real "
    "answers."
)

_MOST_QUOTES = 5
_LONGEST_QUOTE = 400
_AROUND = 1
"""Lines shown before and after the relevant one."""
_MOST_OPENINGS = 2
"""Openings for one question, one after the other."""
_ANSWERED = 0.6
"""Share of the question's terms, by weight, that a passage must hold to answer it."""
_MOST_TERMS = 24
"""Terms of the longest question that something is opened for: a longer text is a task, of which no
passage holds most terms, so something would be opened for it on every turn."""
_LISTED = 8
_PIECE = 48
_LONGEST_TOKEN = 128
_WORDS = re.compile(r"\S*\s*")
_LINES = re.compile(r"lines (\d+)-(\d+)")


class Opening(msgspec.Struct, frozen=True):
    """A ref that the model asks to see before it answers."""

    ref_id: str
    query: str

    def __repr__(self) -> str:
        return f"<Opening of {self.ref_id}>"


class OfflineAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The model's answer: openings first, and text once it has seen them."""

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


class _QuotedPassage(NamedTuple):
    """A passage that can be quoted, and the text that it is part of."""

    source: LabelledText
    passage: Passage


def answer(conversation: Conversation, *, expansion_tool: str | None = None) -> OfflineAnswer:
    """Answer the last question of a conversation.

    `expansion_tool` is the name of the tool that opens refs, if the request offers it.
    """
    question = asked(conversation.messages)
    # The model's earlier answers only quote the conversation.
    texts = [
        text
        for text in held(conversation, question, expansion_tool)
        if not text.text.startswith(INTRODUCTION)
    ]
    candidates = [_QuotedPassage(text, passage) for text in texts for passage in passages(text)]
    if expansion_tool is not None:
        earlier = _earlier_openings(conversation.messages, question, expansion_tool)
        openings = _openings(texts, candidates, question.question, earlier)
        if openings:
            return OfflineAnswer(openings=openings)
    text = "\n\n".join((INTRODUCTION, *_said(question.question, texts, candidates)))
    most = dialect_named(conversation.dialect).params(conversation.rest).get("max_tokens")
    excerpt_text = _cut(text, most) if isinstance(most, int) and most > 0 else text
    return OfflineAnswer(pieces=tuple(_pieces(excerpt_text)), cut=len(excerpt_text) < len(text))


# --- what to open --------------------------------------------------------------------------------


class _Earlier(NamedTuple):
    """The openings that the conversation holds already."""

    since: int
    """Openings since the question was asked."""
    refs: frozenset[str]
    """Refs that were opened since then, or earlier for the same question."""


def _earlier_openings(messages: Sequence[Message], question: LastQuestion, tool: str) -> _Earlier:
    since = 0
    refs = set()
    for index, message in enumerate(messages):
        for call in message.calls:
            if call.name != tool:
                continue
            ref, query = _arguments(call.arguments)
            is_since = index >= question.at
            since += is_since
            if is_since or query == question.question:
                refs.add(ref)
    return _Earlier(since, frozenset(refs))


def _arguments(arguments: object) -> tuple[str, str]:
    """Return the ref and the question of an opening; empty where there is none."""
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = json.loads(arguments)
    if not isinstance(arguments, dict):
        return "", ""
    return str(arguments.get("ref", "")), str(arguments.get("find", ""))


def _openings(
    texts: Sequence[LabelledText],
    candidates: Sequence[_QuotedPassage],
    question: str,
    earlier: _Earlier,
) -> tuple[Opening, ...]:
    """Return the ref to open: that of the citation that fits the question best, else the latest.

    Nothing is opened if a passage that the conversation shows answers the question.
    """
    is_question = 0 < len(terms(question)) <= _MOST_TERMS
    if not is_question or earlier.since >= _MOST_OPENINGS:
        return ()
    cited = [text for text in texts if not text.opened and refs_in(text.text)]
    if not cited:
        return ()
    citations = set(cited)
    visible = [passage.text for source, passage in candidates if source not in citations]
    visible += [quotation for text in cited for quotation in quotations(text.text)]
    if _is_answered(question, visible):
        return ()
    ranked = rank(question, [Passage(text.text, text.label) for text in cited])
    best = [cited[hit.index] for hit in ranked]
    if not best and not _ranked(question, candidates):
        best = cited[-1:]
    refs = [ref for text in best for ref in refs_in(text.text) if ref not in earlier.refs]
    return tuple(Opening(ref, question) for ref in refs[:1])


def _is_answered(question: str, shown: Sequence[str]) -> bool:
    """Return whether one passage holds most terms of a question."""
    question_terms = terms(question)
    shares = [0.0] * len(shown)
    total = sum(term.weight for term in question_terms)
    for term, numbers in zip(question_terms, hits_by_text(question_terms, shown), strict=True):
        for number in numbers:
            shares[number] += term.weight / total
    return max(shares, default=0.0) >= _ANSWERED


# --- the answer ----------------------------------------------------------------------------------


def _said(
    question: str, texts: Sequence[LabelledText], candidates: Sequence[_QuotedPassage]
) -> Iterator[str]:
    if not question:
        yield "There is no question in this conversation that could be looked up."
        yield from _listing(texts)
        return
    opened = {text.opened for text in texts if text.opened}
    # A citation shows no more than the opened parts of its ref.
    superseded = {
        text for text in texts if not text.opened and not opened.isdisjoint(refs_in(text.text))
    }
    quotable = [candidate for candidate in candidates if candidate.source not in superseded]
    quoted_before: set[str] = set()
    for source, passage in _ranked(question, quotable):
        quoted, where = _quotation(passage, question)
        if quoted in quoted_before:
            continue
        quoted_before.add(quoted)
        yield f"From {source.label}{', ' if where else ''}{where}:\n{quoted}"
        if len(quoted_before) == _MOST_QUOTES:
            return
    if not quoted_before:
        yield "Nothing in this conversation bears on the question."
        yield from _listing(texts)


def _ranked(question: str, candidates: Sequence[_QuotedPassage]) -> list[_QuotedPassage]:
    """Return the passages that bear on the question, best first."""
    hits = rank(question, [candidate.passage for candidate in candidates])
    return [candidates[hit.index] for hit in hits]


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
    excerpts = [excerpt(line.rstrip(), question, _LONGEST_QUOTE)[0] for line in lines[first:last]]
    where = passage.where
    if (of := _LINES.fullmatch(where)) and int(of[2]) - int(of[1]) + 1 == len(lines):
        where = f"lines {int(of[1]) + first}-{int(of[1]) + last - 1}"
    return "\n".join(f"> {line}" for line in excerpts), short_place(where)


def _listing(texts: Sequence[LabelledText]) -> Iterator[str]:
    if not texts:
        return
    lines = [f"- {text.label}, {len(text.text):,} characters" for text in texts[-_LISTED:]]
    if (more := len(texts) - _LISTED) > 0:
        lines.insert(0, f"- {more:,} older texts")
    yield "It holds:\n" + "\n".join(lines)


def _cut(text: str, most_tokens: int) -> str:
    """Return the longest beginning of at most `most_tokens` tokens, never empty."""
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
