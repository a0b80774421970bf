"""Text → tokens of a named vocabulary, remembered.

vocabulary: the first step of counting; knows nothing about requests or models.

User text counts as ordinary text: a special token's spelling inside it costs what its letters
cost, as it does at the provider. Counts of texts are remembered by the texts' hashes, never the
texts themselves, in a memory of fixed size. A long text is counted piece by piece: an encoder holds
the interpreter until it is done, and with one word of 8 MB nothing else would run for seconds.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any

import splintr

from holdfast.errors import TokenCountingError

CountText = Callable[[str, str], int]
"""(vocabulary, text) → tokens."""


@cache
def _tokenizer(vocabulary: str) -> Any:
    try:
        return splintr.Tokenizer.from_pretrained(vocabulary)
    except ValueError:
        raise TokenCountingError(
            "there is no vocabulary of this name",
            where=vocabulary[:40],
            fix="See `holdfast config models` for the vocabularies in use.",
        ) from None


def count_ordinary(vocabulary: str, text: str) -> int:
    """Return the tokens of a text as ordinary text, without remembering the count.

    A long text is counted in pieces whose tokens add up to those of the whole. Vocabularies split
    text into words first, so a piece ends between two words. Base64, Chinese and long runs of
    digits or spaces have no such place for thousands of characters: there a piece ends between
    two tokens.
    """
    tokens = start = 0
    while len(text) - start > PIECE_CHARACTERS:
        limit = start + PIECE_CHARACTERS
        end = _last_word_end(text, limit)
        if end is None:
            counted, length = _count_to_token_end(vocabulary, text[start:limit])
            tokens, start = tokens + counted, start + length
        else:
            tokens, start = tokens + _count(vocabulary, text[start:end]), end
    return tokens + _count(vocabulary, text[start:])


def _count(vocabulary: str, text: str) -> int:
    if vocabulary in _BY_WORDS:
        return _BY_WORDS[vocabulary](text)
    return len(_encode(vocabulary, text))


def _encode(vocabulary: str, text: str) -> list[int]:
    encoder = _tokenizer(vocabulary)
    try:
        tokens: list[int] = encoder.encode_ordinary(text)
    except UnicodeEncodeError:  # a lone surrogate: what a provider would be sent instead
        tokens = encoder.encode_ordinary(text.encode(errors="replace").decode())
    return tokens


PIECE_CHARACTERS = 16_000
"""Characters that an encoder is given at once: the slowest takes 2 ms for them."""
_LOOK_BACK = 1_000
"""Characters before the limit of a piece in which the end of a word is looked for."""
_WORD_END = re.compile(r'[A-Za-z0-9](?=[ "+,:;)}\]\n])|\n(?=[A-Za-z0-9])')
"""Where every vocabulary splits: no token reaches over such a place."""


def _last_word_end(text: str, limit: int) -> int | None:
    end = None
    for match in _WORD_END.finditer(text, limit - _LOOK_BACK, limit):
        end = match.end()
    return end


def pieces(text: str) -> Iterator[str]:
    """Yield a text in parts of at most PIECE_CHARACTERS, cut between words where that is possible.

    For patterns, which hold the interpreter too. Their tokens need not add up: count with
    `count_ordinary`.
    """
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        limit = start + PIECE_CHARACTERS
        end = _last_word_end(text, limit) or limit
        yield text[start:end]
        start = end
    yield text[start:]


_SPARE_TOKENS = 64
"""Tokens at the end of a piece that are counted again with the text behind it: the cut at the
piece's limit may have changed them."""
_CUT_ATTEMPTS = 16


def _count_to_token_end(vocabulary: str, piece: str) -> tuple[int, int]:
    """Return the tokens of a piece up to a place between two tokens, and the characters before it.

    A byte-pair encoding of two parts is the encoding of the whole if the tokens at the seam stay
    apart, so a place is taken only if the text behind it encodes to the same tokens on its own.
    Inside a number it may not: digits are grouped in threes from the left.
    """
    if vocabulary in _BY_WORDS:
        return _BY_WORDS[vocabulary](piece), len(piece)
    tokens = _encode(vocabulary, piece)
    spare = min(_SPARE_TOKENS, len(tokens) // 2)
    for count in range(spare, min(spare + _CUT_ATTEMPTS, len(tokens))):
        last = tokens[-count:]
        try:
            tail = _tokenizer(vocabulary).decode_bytes(last).decode()
        except UnicodeDecodeError:  # the place is inside a character
            continue
        if piece.endswith(tail) and _encode(vocabulary, tail) == last:
            return len(tokens) - count, len(piece) - len(tail)
    return len(tokens), len(piece)


# Two vocabularies have a slow encoder (3 MB/s), but no token that goes on behind a space: they are
# counted word by word, and words repeat. Of 1,472 texts of more than 16,000 characters, 44 differ
# from the whole in gemma3, by 0.44 % at most.
_LONG_WORD = 200
_LONG_RUN = 4_000
_SPACED_WORD = re.compile(r" +[^ ]*|[^ ]+")


def _count_gemma(text: str) -> int:
    return sum(
        _word("gemma3", word)
        if len(word) <= _LONG_WORD
        else sum(
            len(_tokenizer("gemma3").encode_ordinary(word[at : at + _LONG_RUN]))
            for at in range(0, len(word), _LONG_RUN)
        )
        for word in _SPACED_WORD.findall(text)
    )


# Llama 2 is only weighed, never exact, so that long words may be cut into pieces as well.
_PIECE = re.compile(r"[A-Za-z]{1,24}|[0-9]|[^A-Za-z0-9]{1,8}")
_RUN_OF_SPACES = re.compile(r" {2,}")


def _count_llama2(text: str) -> int:
    total = text.count("\n") + len(_RUN_OF_SPACES.findall(text))
    for word in text.split():
        if len(word) <= 24:
            total += _word("llama2", word)
        else:
            total += sum(map(_llama2_piece, _PIECE.findall(word)))
    return total


_BY_WORDS = {"gemma3": _count_gemma, "llama2": _count_llama2}


@lru_cache(maxsize=100_000)
def _word(vocabulary: str, word: str) -> int:
    return len(_tokenizer(vocabulary).encode_ordinary(word))


@lru_cache(maxsize=50_000)
def _llama2_piece(piece: str) -> int:
    """Tokens of a piece inside a word: behind a line break no space is put before it."""
    encode = _tokenizer("llama2").encode_ordinary
    return len(encode("\n" + piece)) - len(encode("\n"))


class Memory:
    """Counts of texts seen lately, at most `size` of them; safe to share between threads.

    Two generations: when the young one is full it becomes the old one, and what is used again
    moves back. Look-ups take no lock: a lost race costs one count, never a wrong one.
    """

    def __init__(self, size: int = 100_000) -> None:
        self._half = max(1, size // 2)
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}
        self._lock = threading.Lock()

    def count(self, vocabulary: str, text: str) -> int:
        """Tokens of a text, counted once."""
        if not text:
            return 0
        # Python's hash of a text is keyed and 64 bits wide: two of 100,000 texts share a key with
        # a chance of less than one in a billion. A tuple of all three takes three times the room.
        key = hash((vocabulary, len(text), text))
        tokens = self._young.get(key)
        if tokens is None:
            tokens = self._old.get(key)
            if tokens is None:
                tokens = count_ordinary(vocabulary, text)
            self._remember(key, tokens)
        return tokens

    def _remember(self, key: int, tokens: int) -> None:
        self._young[key] = tokens
        if len(self._young) >= self._half:
            with self._lock:
                if len(self._young) >= self._half:
                    self._old, self._young = self._young, {}

    def forget(self) -> None:
        """Forget every count."""
        with self._lock:
            self._young, self._old = {}, {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


shared = Memory()
"""The memory that counting uses unless it is given another: about 15 MB when full."""
