"""Count the tokens of a text in a named vocabulary, with a cache.

Special tokens inside user text count as ordinary text, as at the providers. The cache stores
hashes, never texts. A long text is counted in pieces, because an encoder holds the GIL until it
finishes: one word of 8 MB would block everything else for seconds.
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
"""Function from (vocabulary, text) to tokens."""


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
    """Return the tokens of a text as ordinary text, without the cache.

    A long text is counted in pieces whose counts add up to the count of the text. A piece ends
    between two words, where every vocabulary splits. Base64, Chinese and long runs of digits or
    spaces have no such place for thousands of characters; there a piece ends between two tokens.
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
    # a lone surrogate: count the replacement that a provider would receive
    except UnicodeEncodeError:
        tokens = encoder.encode_ordinary(text.encode(errors="replace").decode())
    return tokens


# Maximum characters given to an encoder at once: the slowest needs 2 ms for them.
PIECE_CHARACTERS = 16_000
_LOOK_BACK = 1_000
"""Characters before a piece's limit in which the end of a word is searched."""
_WORD_END = re.compile(r'[A-Za-z0-9](?=[ "+,:;)}\]\n])|\n(?=[A-Za-z0-9])')
"""Places where every vocabulary splits; no token spans them."""


def _last_word_end(text: str, limit: int) -> int | None:
    end = None
    for match in _WORD_END.finditer(text, limit - _LOOK_BACK, limit):
        end = match.end()
    return end


def pieces(text: str) -> Iterator[str]:
    """Yield a text in parts of at most PIECE_CHARACTERS, split between words if possible.

    Use it for regular expressions, which hold the GIL as well. The token counts of the parts need
    not add up; use `count_ordinary` to count.
    """
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        limit = start + PIECE_CHARACTERS
        end = _last_word_end(text, limit) or limit
        yield text[start:end]
        start = end
    yield text[start:]


# Tokens at the end of a piece that are counted again with the following text: the cut may have
# changed them.
_SPARE_TOKENS = 64
_CUT_ATTEMPTS = 16


def _count_to_token_end(vocabulary: str, piece: str) -> tuple[int, int]:
    """Return the tokens of a piece up to a token boundary, and the characters before it.

    The byte-pair encoding of a text is the concatenation of its parts' encodings if no token spans
    the boundary. A boundary is used only if the text after it encodes to the same tokens alone.
    That fails inside a number, because digits are grouped in threes from the left.
    """
    if vocabulary in _BY_WORDS:
        return _BY_WORDS[vocabulary](piece), len(piece)
    tokens = _encode(vocabulary, piece)
    spare = min(_SPARE_TOKENS, len(tokens) // 2)
    for count in range(spare, min(spare + _CUT_ATTEMPTS, len(tokens))):
        last = tokens[-count:]
        try:
            tail = _tokenizer(vocabulary).decode_bytes(last).decode()
        except UnicodeDecodeError:  # the boundary is inside a character
            continue
        if piece.endswith(tail) and _encode(vocabulary, tail) == last:
            return len(tokens) - count, len(piece) - len(tail)
    return len(tokens), len(piece)


# The gemma3 and llama2 encoders are slow (3 MB/s), but none of their tokens continues after a
# space. They are counted by word, because words repeat. Of 1,472 texts of more than 16,000
# characters, 44 differ from the direct count in gemma3, by 0.44 % at most.
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


# Llama 2 is only a weighted term, never exact, so long words may be split as well.
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
    """Return the tokens of a piece inside a word; after a line break no space is inserted."""
    encode = _tokenizer("llama2").encode_ordinary
    return len(encode("\n" + piece)) - len(encode("\n"))


class CountCache:
    """A cache of token counts for the latest texts, at most `size` of them.

    It is safe to share between threads. When the young generation is full it replaces the old one,
    and a hit moves an entry back to the young one. Look-ups take no lock: a lost race costs a
    repeated count, never a wrong one.
    """

    def __init__(self, size: int = 100_000) -> None:
        self._half = max(1, size // 2)
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}
        self._lock = threading.Lock()

    def count(self, vocabulary: str, text: str) -> int:
        """Return the tokens of a text, from the cache if possible."""
        if not text:
            return 0
        # Python's string hash is keyed and has 64 bits, so a collision among 100,000 texts has a
        # chance below one in a billion. A tuple as key would take three times the memory.
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
        """Remove every count."""
        with self._lock:
            self._young, self._old = {}, {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


shared = CountCache()
"""Default cache; about 15 MB when full."""
