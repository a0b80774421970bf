"""The index of a turn: what ranking needs to know about it, built when the turn is stored.

An index can be rebuilt from its turn at any time. One made by another version or embedder is
replaced, never compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
import re2  # type: ignore[import-untyped]

from holdfast.memory import dates
from holdfast.memory.pieces import PieceSpan, split_pieces
from holdfast.models.protocol import Embedder
from holdfast.search.postings import encode_counts
from holdfast.search.vectors import quantise
from holdfast.search.words import terms_of, words_of

VERSION = 1
TIME, FIRST_PERSON, WISH, RULE = 1, 2, 4, 8
"""Marks of a piece: it mentions a time, speaks in the first person, states a wish, or sets a
standing rule."""

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
    # A rule begins a sentence, or names the case for which it holds.
    RULE: re2.compile(
        r"(?i)(?:^|[.!?\n]\s*)(?:please )?(?:always|never|from now on|whenever i|every time i|"
        r"when i ask|in (?:the )?future,|going forward|do not ever|don't ever)\b|"
        r"\b(?:always|never)\b.{0,200}\bwhen(?:ever)? (?:i|we) (?:ask|say|talk|request|mention)\b"
    ),
}
_CAPITALISED = re2.compile(r"[a-z,;]\s+[A-Z][a-z]")


class PieceIndex(msgspec.Struct, frozen=True, array_like=True):
    """The index of one piece of a turn."""

    start: int
    end: int
    tokens: int
    terms: bytes
    """Ids of its distinct words, 4 bytes each."""
    counts: bytes
    """How often each word occurs."""
    days: list[int]
    """The first and last day of each date that it mentions, flattened."""
    marks: int
    capitals: int
    """Number of capitalised words inside sentences, which are roughly its names."""


class TurnIndex(msgspec.Struct, frozen=True, array_like=True):
    """The index of a turn."""

    pieces: list[PieceIndex]
    vectors: bytes
    """One vector per piece, 1 byte per dimension; empty without an embedder."""
    asks: bool
    """Whether the turn ends with a question."""


def index_maker(embedder: Embedder | None) -> str:
    """Return the name of the indexer: its version and its embedder."""
    return f"{VERSION} {'words' if embedder is None else embedder.name}"


_decoder = msgspec.msgpack.Decoder(TurnIndex)


def decode_index(index: bytes) -> TurnIndex:
    """Decode an index that `build_indexes` encoded."""
    return _decoder.decode(index)


class TurnText(msgspec.Struct, frozen=True):
    """A turn that is to be indexed."""

    content: str
    at: float
    tokens: int


def build_indexes(
    turns: Sequence[TurnText], count: Callable[[str], int], embedder: Embedder | None
) -> list[bytes]:
    """Return the encoded index of each turn; the embedder gets all texts in one call."""
    # re2 rejects lone surrogates. Replacing each with one character keeps all offsets.
    texts = [turn.content.encode("utf-8", "replace").decode() for turn in turns]
    spans = [
        split_pieces(text, turn.tokens, count) for text, turn in zip(texts, turns, strict=True)
    ]
    piece_texts = [
        text[piece.start : piece.end]
        for text, pieces in zip(texts, spans, strict=True)
        for piece in pieces
    ]
    vectors = None if embedder is None else quantise(embedder.embed(piece_texts))
    indexes, at = [], 0
    for text, turn, pieces in zip(texts, turns, spans, strict=True):
        piece_vectors = b"" if vectors is None else vectors[at : at + len(pieces)].tobytes()
        at += len(pieces)
        day = dates.day_of(turn.at)
        index = TurnIndex(
            pieces=[_piece(text[piece.start : piece.end], piece, day) for piece in pieces],
            vectors=piece_vectors,
            asks=text.rstrip().endswith("?"),
        )
        indexes.append(msgspec.msgpack.encode(index))
    return indexes


def _piece(text: str, piece: PieceSpan, said_on: int) -> PieceIndex:
    terms, counts = encode_counts(Counter(terms_of(words_of(text))))
    days = [day for span in dates.spans_in(text, said_on) for day in span]
    marks = sum(mark for mark, pattern in _PATTERNS.items() if pattern.search(text))
    capitals = 0
    for _ in _CAPITALISED.finditer(text):
        capitals += 1
        if capitals == _MOST_CAPITALS:
            break
    return PieceIndex(
        start=piece.start,
        end=piece.end,
        tokens=piece.tokens,
        terms=terms,
        counts=counts,
        days=days,
        marks=marks,
        capitals=capitals,
    )
