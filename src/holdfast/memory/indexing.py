"""What recall reads in a turn when it is remembered, and keeps beside it.

indexing: after pieces, words and dates. A turn is read once; what is found can be made again from
it at any time, so that an index of another maker, of an older version or of another embedder, is
replaced and never compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
import re2  # type: ignore[import-untyped]

from holdfast.memory import dates
from holdfast.memory.pieces import Span, pieces_of
from holdfast.models.protocol import Embedder
from holdfast.search.postings import encoded
from holdfast.search.vectors import quantised
from holdfast.search.words import terms_of, words_of

VERSION = 1
TIME, FIRST_PERSON, WISH, RULE = 1, 2, 4, 8
"""Marks of a piece: it speaks of time, of the speaker, of a wish; it sets a standing rule."""

_MOST_CAPITALS = 20
_PATTERNS = {
    TIME: re2.compile(
        r"(?i)\b(?:yesterday|today|tonight|tomorrow|ago|last|next|week|weekend|month|year|since|"
        r"until|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|"
        r"april|june|july|august|september|october|november|december|(?:19|20)\d\d|\d{1,2}:\d\d)\b"
    ),
    FIRST_PERSON: re2.compile(r"\b(?:I|I'm|I've|I'd|I'll|my|My|we|We|our|Our|me|mine|us)\b"),
    WISH: re2.compile(
        r"(?i)\bprefer|\bi'd rather\b|\bmy (?:personal )?favou?rite|\brather than\b|\binstead of\b|"
        r"\bi (?:really |usually |always |never |don't |also ){0,2}"
        r"(?:like|love|hate|enjoy|avoid)\b|"
        r"\bwithout (?:using|compromising|relying|losing)\b|\bi (?:can't|cannot) stand\b"
    ),
    # A rule is said at the beginning of a sentence, or with what it is to hold for.
    RULE: re2.compile(
        r"(?i)(?:^|[.!?\n]\s*)(?:please )?(?:always|never|from now on|whenever i|every time i|"
        r"when i ask|in (?:the )?future,|going forward|do not ever|don't ever)\b|"
        r"\b(?:always|never)\b.{0,200}\bwhen(?:ever)? (?:i|we) (?:ask|say|talk|request|mention)\b"
    ),
}
_CAPITALISED = re2.compile(r"[a-z,;]\s+[A-Z][a-z]")


class PieceIndex(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a piece without opening its turn."""

    start: int
    end: int
    tokens: int
    terms: bytes
    """Numbers of its words, each once, in 4 bytes."""
    counts: bytes
    """How often each stands there."""
    days: list[int]
    """Firsts and lasts of the dates that it says, in turn."""
    marks: int
    capitals: int
    """Names, roughly: capitalised words inside sentences."""


class TurnIndex(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a turn."""

    pieces: list[PieceIndex]
    vectors: bytes
    """One for each piece, in 1 byte for each number; none without an embedder."""
    asks: bool
    """It ends with a question."""


def maker_of(embedder: Embedder | None) -> str:
    """Who makes indexes with this embedder."""
    return f"{VERSION} {'words' if embedder is None else embedder.name}"


_decoder = msgspec.msgpack.Decoder(TurnIndex)


def decoded(index: bytes) -> TurnIndex:
    """What `indexes_of` encoded."""
    return _decoder.decode(index)


class Readable(msgspec.Struct, frozen=True):
    """A turn to be read."""

    content: str
    at: float
    tokens: int


def indexes_of(
    turns: Sequence[Readable], count: Callable[[str], int], embedder: Embedder | None
) -> list[bytes]:
    """The index of each turn; texts of all are embedded together."""
    # Lone surrogates stand for nothing, and re2 does not read them: as many characters stay.
    texts = [turn.content.encode("utf-8", "replace").decode() for turn in turns]
    spans = [pieces_of(text, turn.tokens, count) for text, turn in zip(texts, turns, strict=True)]
    shown = [
        text[piece.start : piece.end]
        for text, pieces in zip(texts, spans, strict=True)
        for piece in pieces
    ]
    vectors = None if embedder is None else quantised(embedder.embed(shown))
    indexes, at = [], 0
    for text, turn, pieces in zip(texts, turns, spans, strict=True):
        held = b"" if vectors is None else vectors[at : at + len(pieces)].tobytes()
        at += len(pieces)
        day = dates.day_of(turn.at)
        index = TurnIndex(
            pieces=[_piece(text[piece.start : piece.end], piece, day) for piece in pieces],
            vectors=held,
            asks=text.rstrip().endswith("?"),
        )
        indexes.append(msgspec.msgpack.encode(index))
    return indexes


def _piece(text: str, span: Span, said_on: int) -> PieceIndex:
    terms, counts = encoded(Counter(terms_of(words_of(text))))
    days = [day for meant in dates.spans_in(text, said_on) for day in meant]
    marks = sum(mark for mark, pattern in _PATTERNS.items() if pattern.search(text))
    capitals = 0
    for _ in _CAPITALISED.finditer(text):
        capitals += 1
        if capitals == _MOST_CAPITALS:
            break
    return PieceIndex(
        start=span.start,
        end=span.end,
        tokens=span.tokens,
        terms=terms,
        counts=counts,
        days=days,
        marks=marks,
        capitals=capitals,
    )
