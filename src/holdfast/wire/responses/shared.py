"""Calls, tolerant JSON access and usage sums that all dialects' responses share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.errors import LimitError, ShapeError
from holdfast.wire import DIALECTS, Block, ToolCall
from holdfast.wire.strict import decode, encode

PARAGRAPH = "\n\n"
"""Separates the texts of two upstream responses in dialects with a single text."""

IsHidden = Callable[[str], bool]
"""Returns whether a tool name is one of the proxy's own, which the client never sees."""


class ModelCall(msgspec.Struct, frozen=True):
    """A tool call in a response."""

    id: str
    """Empty if the provider sends none (Gemini before 3)."""
    name: str
    arguments: str
    """JSON text as the model wrote it; it may be invalid."""

    def __repr__(self) -> str:
        return f"<Call of {self.name}, {len(self.arguments)} characters>"


HandedCalls = Mapping[int, ModelCall]
"""Hidden calls handed to the client as calls of its own tools, by their number among all calls of
the turn. They come after everything else that the client sees of it.
"""


def load(data: bytes) -> Any:
    """Return the JSON value; None if it is invalid."""
    try:
        return decode(data)
    except (ValueError, LimitError, msgspec.MsgspecError):
        return None


def dicts(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; empty if the value is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return the value if it is a string, otherwise an empty string."""
    return value if isinstance(value, str) else ""


def blocks_in(messages: Iterable[Any], dialect: str) -> Iterator[Block]:
    """Yield the blocks of an assistant's messages; invalid messages have none."""
    spoken = DIALECTS[dialect]
    for message in messages:
        with suppress(ShapeError):
            spoken.check(message, ())
            yield from spoken.blocks(message, None)


def calls_in(messages: Iterable[Any], dialect: str) -> list[ModelCall]:
    """Return the calls of an assistant's messages, in order."""
    return [
        ModelCall(block.id, block.name, _arguments(block.arguments))
        for block in blocks_in(messages, dialect)
        if isinstance(block, ToolCall)
    ]


def handed_calls(natives: Sequence[Any], handed: HandedCalls) -> list[tuple[Any, ModelCall]]:
    """Return calls of a turn, each with the call that the client receives instead."""
    return [(natives[n], handed[n]) for n in sorted(handed) if n < len(natives)]


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else encode({} if value is None else value).decode()


def add_usage(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Return the summed usage of two upstream calls.

    Input is the sum of what each call was billed for, including the shared part each time, and so
    are cached tokens: the provider charges that. Missing counts are not guessed. Other values, such
    as a service tier, come from the later call.
    """
    total = dict(left)
    for key, value in right.items():
        total[key] = _add(total.get(key), value)
    return total


def _add(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return left if right is None else right
    if isinstance(left, bool) or isinstance(right, bool):
        return right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left + right
    if isinstance(left, dict) and isinstance(right, dict):
        return add_usage(left, right)
    if isinstance(left, list) and isinstance(right, list):
        return _add_lists(left, right)
    return right


def _add_lists(left: list[Any], right: list[Any]) -> list[Any]:
    """Sum Gemini's counts by modality; entries without one are concatenated."""
    total: dict[Any, Any] = {}
    for item in [*left, *right]:
        modality = item.get("modality") if isinstance(item, dict) else None
        if not isinstance(modality, str):
            return [*left, *right]
        total_of_modality = total.get(modality)
        total[modality] = (
            {**add_usage(total_of_modality, item), "modality": modality}
            if total_of_modality
            else item
        )
    return list(total.values())


# The size of the context that a call was shown. All other counts are generated or executed, and add
# up over calls.
_CONTEXT = frozenset(
    "input_tokens input_tokens_details cache_read_input_tokens cache_creation_input_tokens "
    "cache_creation prompt_tokens prompt_tokens_details prompt_cache_hit_tokens "
    "prompt_cache_miss_tokens promptTokenCount promptTokensDetails cachedContentTokenCount "
    "cacheTokensDetails toolUsePromptTokenCount toolUsePromptTokensDetails".split()
)
_INPUTS = ("input_tokens", "prompt_tokens", "promptTokenCount")
_TOTALS = ("total_tokens", "totalTokenCount")


def context_usage(earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """Return the usage of two upstream calls for the client: the later one's input, all output.

    Clients treat the input as the size of their conversation and compact by it: with the sum of
    eight calls, Claude Code and Codex compacted at a third of the window.
    """
    if not later.keys() & _CONTEXT:  # it reported nothing, or only its output
        return add_usage(earlier, later)
    generated = {key: value for key, value in earlier.items() if key not in _CONTEXT}
    usage = add_usage(generated, later)
    for key in _TOTALS:
        if _count(later, key):
            usage[key] = _count(later, key) + _generated(earlier, key)
    return usage


def _generated(usage: dict[str, Any], total: str) -> int:
    """Return the output of calls as total less input; a list of the parts would be incomplete."""
    return max(_count(usage, total) - sum(_count(usage, key) for key in _INPUTS), 0)


def _count(usage: dict[str, Any], key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def input_tokens(usage: dict[str, Any]) -> int:
    """Return the input tokens of calls, including cached ones."""
    # Only Anthropic excludes cached tokens from its input.
    apart = ("cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(_count(usage, key) for key in (*_INPUTS, *apart))


def with_account(usage: dict[str, Any], billed: dict[str, Any], calls: int) -> dict[str, Any]:
    """Return a client's usage with the billed total, if there were several calls.

    The total has a name of its own: the official clients and frameworks keep or ignore unknown
    fields.
    """
    if calls < 2 or not usage:
        return usage
    return {**usage, "holdfast": {"calls": calls, "input_tokens": input_tokens(billed)}}


def joined_usage(usages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the usage of several complete responses for the client."""
    reported: dict[str, Any] = {}
    billed: dict[str, Any] = {}
    for usage in usages:
        reported, billed = context_usage(reported, usage), add_usage(billed, usage)
    return with_account(reported, billed, len(usages))
