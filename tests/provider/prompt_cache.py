"""The providers' prompt caches, as their documentation describes them.

A prompt is a row of blocks: tools, then system text, then messages. OpenAI and Gemini cache the
beginning of every long prompt by themselves. Anthropic caches up to the blocks that the client
marks, for five minutes or an hour, and looks for earlier entries up to 20 blocks before a mark.
Time is the test's: `PromptCache.now` moves only when a test moves it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate
from typing import Any, NamedTuple

from tests.provider.request import Got

_MARKED_LEAST = 1_024
_LOOKBACK = 20
_STEP = 128
"""OpenAI reports cached tokens in steps of this many."""
_UNMARKED_LIFE = 3_600.0
_LIVES = {"5m": 300.0, "1h": 3_600.0}


class CacheUse(NamedTuple):
    """How many tokens of a prompt were read from the cache and written to it."""

    read: int = 0
    written: int = 0
    written_hour: int = 0
    """Of those written, the ones for an hour."""


class _Block(NamedTuple):
    text: str
    life: str = ""
    """`5m` or `1h` where the client marked the block."""


@dataclass
class PromptCache:
    """Prompts that a provider has read before."""

    now: float = 0.0
    _expires: dict[str, float] = field(default_factory=dict)

    def use(self, got: Got, tokens: int) -> CacheUse:
        """Look a prompt up and store it; `tokens` is the provider's count of all of it."""
        blocks = list(_blocks(got))
        ends = list(accumulate(len(block.text) for block in blocks))
        keys = _keys(got, blocks)
        sizes = [tokens * end // max(1, ends[-1]) for end in ends]
        if got.dialect == "anthropic":
            return self._marked(blocks, keys, sizes)
        least = {"gemini": 4_096 if "gemini-3" in got.model else 2_048}.get(got.dialect, 1_024)
        held = [size for key, size in zip(keys, sizes, strict=True) if self._holds(key)]
        self._expires |= dict.fromkeys(keys, self.now + _UNMARKED_LIFE)
        read = max(held, default=0) // _STEP * _STEP
        return CacheUse(read if read >= least else 0)

    def _marked(self, blocks: list[_Block], keys: list[str], sizes: list[int]) -> CacheUse:
        marks = [n for n, block in enumerate(blocks) if block.life and sizes[n] >= _MARKED_LEAST]
        if not marks:
            return CacheUse()
        near = (n for mark in marks for n in range(max(0, mark - _LOOKBACK + 1), mark + 1))
        found = [n for n in near if self._holds(keys[n])]
        read = sizes[max(found)] if found else 0
        written = hour = 0
        for mark in marks:
            new = max(0, sizes[mark] - read - written)
            written += new
            hour += new if blocks[mark].life == "1h" else 0
        for n in {*marks, *found[-1:]}:  # a read makes an entry live on
            life = _LIVES[blocks[n].life or "5m"]
            self._expires[keys[n]] = max(self._expires.get(keys[n], 0.0), self.now + life)
        return CacheUse(read, written, hour)

    def _holds(self, key: str) -> bool:
        return self._expires.get(key, 0.0) > self.now


def _keys(got: Got, blocks: list[_Block]) -> list[str]:
    """Hashes of the beginnings of a prompt, for one customer and model."""
    customer = got.header("authorization") + got.header("x-api-key") + got.header("x-goog-api-key")
    sums = sha256(f"{customer} {got.model}".encode())
    keys = []
    for block in blocks:
        sums.update(block.text.encode())
        keys.append(sums.hexdigest())
    return keys


def _blocks(got: Got) -> Iterator[_Block]:
    value = got.value
    match got.dialect:
        case "anthropic":
            for part in (*value.get("tools", ()), *_listed(value.get("system"))):
                yield _block(part)
            for message in value["messages"]:
                for part in _listed(message["content"]):
                    yield _block(part, message["role"])
        case "gemini":
            yield _block([value.get("tools"), value.get("systemInstruction")])
            yield from map(_block, value["contents"])
        case "openai-responses":
            yield _block([value.get("tools"), value.get("instructions")])
            yield from map(_block, _listed(value["input"]))
        case _:
            yield _block(value.get("tools"))
            yield from map(_block, value["messages"])


def _listed(content: Any) -> list[Any]:
    if not content:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _block(part: Any, role: str = "") -> _Block:
    if not isinstance(part, dict):
        return _Block(role + json.dumps(part))
    mark = part.get("cache_control") or {}
    words = {name: inner for name, inner in part.items() if name != "cache_control"}
    return _Block(role + json.dumps(words), str(mark.get("ttl", "5m")) if mark else "")
