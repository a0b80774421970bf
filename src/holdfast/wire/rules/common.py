"""Checks that several dialects share: pairing, ids, names, long strings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.wire.blocks import Block, Media, Text, ToolCall, ToolResult, text_of
from holdfast.wire.json_places import Place
from holdfast.wire.rules.rule import CheckedMessage, Context, Finding

PLAIN_ID = re.compile(r"[A-Za-z0-9_-]+")


def at(message: CheckedMessage, block: Block) -> Place:
    """Return the position of a block in the body."""
    return (*message.place, *block.place)


def has_content(result: ToolResult) -> bool:
    """Return whether a result has text or media."""
    return bool(result.text.strip()) or any(isinstance(part, Media) for part in result.parts)


def repeated_calls(messages: Sequence[CheckedMessage]) -> Iterator[Finding]:
    """Yield calls that repeat the id of an earlier call."""
    earlier_ids: set[str] = set()
    for message in messages:
        for call in message.calls:
            if call.id and call.id in earlier_ids:
                yield at(message, call), "an earlier tool call has the same id"
            earlier_ids.add(call.id)


def repeated_results(messages: Sequence[CheckedMessage]) -> Iterator[Finding]:
    """Yield results whose call already has a result."""
    earlier_ids: set[str] = set()
    for message in messages:
        for result in message.results:
            if result.call_id and result.call_id in earlier_ids:
                yield at(message, result), "the call has a result already"
            earlier_ids.add(result.call_id)


def long_strings(message: CheckedMessage, limit: int) -> Iterator[Finding]:
    """Yield texts and arguments longer than the provider's limit for one string."""
    for block in message.blocks:
        for part in (block.parts if isinstance(block, ToolResult) else ()) or (block,):
            text = part.arguments if isinstance(part, ToolCall) else text_of(part)
            if isinstance(text, str) and len(text) > limit:
                yield at(message, part), f"a string has more than {limit:,} characters"


_OPENAI = re.compile(r"(?:openai[/:])?(?:gpt-(?!oss)|chatgpt-|o\d|ft:gpt|codex)")


def openai_answers(context: Context) -> bool:
    """Return whether OpenAI itself answers; compatible services are less strict."""
    return not context.model or _OPENAI.match(context.model) is not None


def blank(block: Block) -> bool:
    """Return whether a text block is empty or only white space."""
    return isinstance(block, Text) and not block.text.strip()
