"""Estimate the tokens of messages, tools and outputs before they are sent.

The guard takes the larger of the tokenizer's count and a quarter of the bytes, because recorded
usage exceeds some tokenizers' counts. A bare message list states no dialect, and a wrong one loses
content: an Anthropic tool result read as OpenAI's becomes an unknown block of no tokens. Every
entry is therefore examined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from holdfast.errors import TokenCountingError
from holdfast.guard.targets import TargetContextConfig
from holdfast.tokens import count, estimate_tokens
from holdfast.tokens.families import UNKNOWN, family_of
from holdfast.tokens.vocabulary import shared
from holdfast.wire import Conversation, Message, Text, Thinking, ToolCall, ToolResult, read
from holdfast.wire.blocks import Block, Media, Opaque
from holdfast.wire.json_places import Place
from holdfast.wire.strict import encode

_LIST_KEYS = {"gemini": "contents", "openai-responses": "input"}
"""Key of the message list in each dialect; all others use `messages`."""

_ANTHROPIC_PARTS = frozenset(
    "tool_use tool_result thinking redacted_thinking server_tool_use search_result document "
    "mcp_tool_use mcp_tool_result compaction tool_reference".split()
)
_RESPONSES_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})


def conversation_of(messages: Sequence[Mapping[str, Any]]) -> Conversation:
    """Parse a list of messages in the dialect of its entries."""
    dialect = _dialect_of_messages(messages)
    return read({_LIST_KEYS.get(dialect, "messages"): list(messages)}, dialect)


def request_with_tools(tools: Sequence[Mapping[str, Any]]) -> Conversation:
    """Return a minimal request that offers these tools, in their dialect."""
    dialect = _dialect_of_tools(tools)
    tool_list = list(tools)
    match dialect:
        case "gemini":
            request = {"contents": [{"role": "user", "parts": [{"text": "-"}]}], "tools": tool_list}
        case "converse":
            request = {
                "messages": [{"role": "user", "content": [{"text": "-"}]}],
                "toolConfig": {"tools": tool_list},
            }
        case "openai-responses":
            request = {"input": "-", "tools": tool_list}
        case _:
            request = {"messages": [{"role": "user", "content": "-"}], "tools": tool_list}
    return read(request, dialect)


def _dialect_of_messages(messages: Sequence[Mapping[str, Any]]) -> str:
    for message in messages:
        if "parts" in message:
            return "gemini"
        if "role" not in message and "type" in message:
            return "openai-responses"
        for part in _parts(message):
            kind = part.get("type")
            if kind is None:
                return "converse"
            if kind in _ANTHROPIC_PARTS:
                return "anthropic"
            if kind in _RESPONSES_PARTS:
                return "openai-responses"
    return "openai-chat"


def _parts(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, list):
        yield from (part for part in content if isinstance(part, Mapping))


def _dialect_of_tools(tools: Sequence[Mapping[str, Any]]) -> str:
    for tool in tools:
        if "function" in tool:
            return "openai-chat"
        if "input_schema" in tool:
            return "anthropic"
        if "functionDeclarations" in tool or "function_declarations" in tool:
            return "gemini"
        if "toolSpec" in tool:
            return "converse"
        if tool.get("type") == "function" and "name" in tool:
            return "openai-responses"
    return "openai-chat"


Tokenizer = Callable[[str], int]

_MESSAGE_TOKENS = 8
"""Tokens for role and separators of a message when no renderer is known."""
_SEALED_LENGTH = 512


def resolve_tokenizer(tokenizer_id: str | None) -> Tokenizer:
    """Return the token counter for a model id or vocabulary name; None counts by length."""
    if tokenizer_id is None:
        return quarter_of_bytes
    name = tokenizer_id
    if family_of(name) == UNKNOWN and _is_vocabulary(name):
        return lambda text: max(shared.count(name, text), quarter_of_bytes(text))
    return lambda text: max(estimate_tokens(text, name), quarter_of_bytes(text))


def quarter_of_bytes(text: str) -> int:
    """Return a quarter of the text's bytes."""
    return math.ceil(len(text.encode(errors="replace")) / 4)


def estimate_messages_tokens(
    messages: Conversation | Sequence[Mapping[str, Any]], tokenizer_id: str | None
) -> int:
    """Return the tokens of a conversation without its tool schemas.

    A plain list may be in any dialect, but in only one.
    """
    if not isinstance(messages, Conversation):
        messages = conversation_of(messages)
    if not messages.messages and not messages.system:
        return 0
    texts = list(_texts(messages))
    if tokenizer_id is not None and family_of(tokenizer_id) != UNKNOWN:
        counted = count(messages, model=tokenizer_id)
        return max(counted.tokens - counted.parts.tools, sum(map(quarter_of_bytes, texts)))
    tokenizer = resolve_tokenizer(tokenizer_id)
    return sum(map(tokenizer, texts)) + _MESSAGE_TOKENS * len(messages.messages)


def estimate_tool_schema_tokens(
    tools: Sequence[Mapping[str, Any]], tokenizer_id: str | None
) -> int:
    """Return the tokens that tool definitions, in any dialect, add to a request."""
    if not tools:
        return 0
    if tokenizer_id is None:
        return quarter_of_bytes(encode(list(tools)).decode())
    return count(request_with_tools(tools), model=tokenizer_id).parts.tools


def tool_output_tokens(targets: Iterable[TargetContextConfig]) -> Tokenizer:
    """Return a counter for tool outputs as messages, for the target that needs the most tokens."""
    ids = tuple(dict.fromkeys(target.tokenizer_id or target.id for target in targets))
    tokenizers = [(resolve_tokenizer(id_), _tool_message_tokens(id_)) for id_ in ids]

    def estimate(output: str) -> int:
        return max(tokenizer(output) + around for tokenizer, around in tokenizers)

    return estimate


_NAME = "a_tool_of_some_longer_name"
_CALL = {"id": "call_0", "type": "function", "function": {"name": _NAME, "arguments": "{}"}}
_SAMPLE_CALL = ({"role": "user", "content": "-"}, {"role": "assistant", "tool_calls": [_CALL]})
_ANSWER = {"role": "tool", "tool_call_id": "call_0", "content": ""}


@lru_cache(maxsize=256)
def _tool_message_tokens(tokenizer_id: str) -> int:
    """Return the tokens around an output in its message; some providers repeat the tool's name."""
    without_result = estimate_messages_tokens(_SAMPLE_CALL, tokenizer_id)
    with_result = estimate_messages_tokens([*_SAMPLE_CALL, _ANSWER], tokenizer_id)
    return max(with_result - without_result, _MESSAGE_TOKENS)


def _is_vocabulary(name: str) -> bool:
    try:
        shared.count(name, "-")
    except TokenCountingError:
        return False
    return True


def _texts(conversation: Conversation) -> Iterator[str]:
    blocks = [block for block in conversation.system if block.owner is None]
    for message in conversation.messages:
        blocks.extend(message.blocks)
        if any(map(_may_hold_unread_text, message.blocks)):
            yield from _unread_texts(message)
    for block in blocks:
        match block:
            case Text() | Thinking() | ToolResult():
                yield block.text
            case ToolCall():
                arguments = block.arguments
                yield block.name
                yield arguments if isinstance(arguments, str) else encode(arguments).decode()


def _may_hold_unread_text(block: Block) -> bool:
    """Return whether a block may hold unread text; results with unknown parts count too."""
    return isinstance(block, Opaque | Media) or (isinstance(block, ToolResult) and not block.text)


def _unread_texts(message: Message) -> Iterator[str]:
    """Yield the texts inside unknown blocks: results of server tools, documents.

    The tokens of new block types are unknown, but counting them as zero would let a session
    overflow its window.
    """
    value = message.parsed
    for block in message.blocks:
        if _may_hold_unread_text(block):
            for text in _strings(_at(value, block.place)):
                # Images and encrypted content are long runs without a space, whose length does not
                # measure their tokens.
                if len(text) < _SEALED_LENGTH or len(text[:_SEALED_LENGTH].split()) > 1:
                    yield text


def _at(value: Any, place: Place) -> Any:
    for key in place:
        value = value[key]
    return value


def _strings(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        match pending.pop():
            case str(text):
                yield text
            case dict(inner):
                pending.extend(inner.values())
            case list(items):
                pending.extend(items)
