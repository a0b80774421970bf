"""What the four dialects' answers share: calls, JSON that may be junk, usage that is summed.

shared: after sse, before the dialects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.errors import LimitError, ShapeError
from holdfast.wire import DIALECTS, Block, ToolCall
from holdfast.wire.strict import decode, encode

PARAGRAPH = "\n\n"
"""Parts the text of two upstream answers where the dialect has one text for both."""

Hidden = Callable[[str], bool]
"""Says of a tool's name whether it is the proxy's own, which the client never sees."""


class Call(msgspec.Struct, frozen=True):
    """A tool call in an answer."""

    id: str
    """Empty where the provider gives none (Gemini before 3)."""
    name: str
    arguments: str
    """JSON text, as the model wrote it; it may be broken."""

    def __repr__(self) -> str:
        return f"<Call of {self.name}, {len(self.arguments)} characters>"


Handed = Mapping[int, Call]
"""Hidden calls that are handed to the client all the same, as calls of its own tools: by their
number among all calls of the turn. They stand behind what else the client sees of it."""


def load(data: bytes) -> Any:
    """The JSON value; None if it is none."""
    try:
        return decode(data)
    except (ValueError, LimitError, msgspec.MsgspecError):
        return None


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of what should be a list of them."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """The value if it is text, else nothing."""
    return value if isinstance(value, str) else ""


def blocks_in(messages: Iterable[Any], dialect: str) -> Iterator[Block]:
    """The blocks of an assistant's messages; what is no message has none."""
    spoken = DIALECTS[dialect]
    for message in messages:
        with suppress(ShapeError):
            spoken.check(message, ())
            yield from spoken.blocks(message, None)


def calls_in(messages: Iterable[Any], dialect: str) -> list[Call]:
    """The calls of an assistant's messages, in order."""
    return [
        Call(block.id, block.name, _arguments(block.arguments))
        for block in blocks_in(messages, dialect)
        if isinstance(block, ToolCall)
    ]


def handed_calls(natives: Sequence[Any], handed: Handed) -> list[tuple[Any, Call]]:
    """Calls of a turn, as they stand there, each with what the client gets instead."""
    return [(natives[n], handed[n]) for n in sorted(handed) if n < len(natives)]


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else encode({} if value is None else value).decode()


def add_usage(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The usage of two upstream calls as one: every count is the sum of what was reported.

    So input is the sum of what each call was billed for, the part they have in common included
    each time, and so are cached tokens: that is what the provider charges. What a provider did not
    report is not guessed. What is no count (a service tier) is taken from the later call.
    """
    total = dict(one)
    for key, value in other.items():
        total[key] = _add(total.get(key), value)
    return total


def _add(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return one if other is None else other
    if isinstance(one, bool) or isinstance(other, bool):
        return other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one + other
    if isinstance(one, dict) and isinstance(other, dict):
        return add_usage(one, other)
    if isinstance(one, list) and isinstance(other, list):
        return _add_lists(one, other)
    return other


def _add_lists(one: list[Any], other: list[Any]) -> list[Any]:
    """Gemini lists its counts by modality; what has none stands one behind the other."""
    total: dict[Any, Any] = {}
    for item in [*one, *other]:
        modality = item.get("modality") if isinstance(item, dict) else None
        if not isinstance(modality, str):
            return [*one, *other]
        known = total.get(modality)
        total[modality] = {**add_usage(known, item), "modality": modality} if known else item
    return list(total.values())


# What a call was shown: the size of the context, as clients take it. The rest of a usage is what
# was generated or done, which adds up over calls.
_CONTEXT = frozenset(
    "input_tokens input_tokens_details cache_read_input_tokens cache_creation_input_tokens "
    "cache_creation prompt_tokens prompt_tokens_details prompt_cache_hit_tokens "
    "prompt_cache_miss_tokens promptTokenCount promptTokensDetails cachedContentTokenCount "
    "cacheTokensDetails toolUsePromptTokenCount toolUsePromptTokensDetails".split()
)
_INPUTS = ("input_tokens", "prompt_tokens", "promptTokenCount")
_TOTALS = ("total_tokens", "totalTokenCount")


def context_usage(earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """The usage of two upstream calls as the client is told: the later one's input, all output.

    Clients take the input for the size of their conversation and compact by it: told the sum of
    eight calls, Claude Code and Codex did so at a third of the window.
    """
    if not later.keys() & _CONTEXT:  # it reported nothing, or only what it generated
        return add_usage(earlier, later)
    generated = {key: value for key, value in earlier.items() if key not in _CONTEXT}
    usage = add_usage(generated, later)
    for key in _TOTALS:
        if _count(later, key):
            usage[key] = _count(later, key) + _generated(earlier, key)
    return usage


def _generated(usage: dict[str, Any], total: str) -> int:
    """Output of calls, as the difference of their total and their input: no list of its parts."""
    return max(_count(usage, total) - sum(_count(usage, key) for key in _INPUTS), 0)


def _count(usage: dict[str, Any], key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def input_tokens(usage: dict[str, Any]) -> int:
    """Tokens that calls were shown, cached ones included."""
    # Only Anthropic leaves the cached ones out of its input.
    apart = ("cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(_count(usage, key) for key in (*_INPUTS, *apart))


def with_account(usage: dict[str, Any], billed: dict[str, Any], calls: int) -> dict[str, Any]:
    """A client's usage with what all calls were billed for, where there were several.

    Under a name of our own: the official clients and the frameworks on them keep or skip members
    that they do not know.
    """
    if calls < 2 or not usage:
        return usage
    return {**usage, "holdfast": {"calls": calls, "input_tokens": input_tokens(billed)}}


def joined_usage(usages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The usage of several whole answers as the client is told it."""
    told: dict[str, Any] = {}
    billed: dict[str, Any] = {}
    for usage in usages:
        told, billed = context_usage(told, usage), add_usage(billed, usage)
    return with_account(told, billed, len(usages))
