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
            fix="See `holdfast models` for the vocabularies in use.",
        ) from None


def count_ordinary(vocabulary: str, text: str) -> int:
    """Count a text as ordinary text, without remembering it."""
    if len(text) <= PIECE_CHARACTERS:
        return _count(vocabulary, text)
    return sum(_count(vocabulary, piece) for piece in pieces(text))


def _count(vocabulary: str, text: str) -> int:
    try:
        if vocabulary in _BY_WORDS:
            return _BY_WORDS[vocabulary](text)
        return len(_tokenizer(vocabulary).encode_ordinary(text))
    except UnicodeEncodeError:  # a lone surrogate: what a provider would be sent instead
        return _count(vocabulary, text.encode(errors="replace").decode())


PIECE_CHARACTERS = 16_000
"""What an encoder is given at once: the slowest take 2 ms for it."""
_LOOK_BACK = 1_000
"""How far before its end a piece may end at a line or a word."""


def pieces(text: str) -> Iterator[str]:
    """A long text in parts whose tokens add up to those of the whole.

    Vocabularies cut text into words before anything else: no token reaches from a letter or digit
    over what cannot be in its word. A run without such a place is cut anywhere, which costs at most
    a token or two for each piece.
    """
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        limit = start + PIECE_CHARACTERS
        end = limit
        for place in _BETWEEN_WORDS.finditer(text, limit - _LOOK_BACK, limit):
            end = place.end()
        yield text[start:end]
        start = end
    yield text[start:]


_BETWEEN_WORDS = re.compile(r'[A-Za-z0-9](?=[ "+,:;)}\]\n])|\n(?=[A-Za-z0-9])')


# Two vocabularies have a slow encoder (3 MB/s), but no token that goes on behind a space: they are
# counted word by word, and words repeat. Of 1,000 texts that agents read, two differ from the
# whole by 0.1 %.
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
