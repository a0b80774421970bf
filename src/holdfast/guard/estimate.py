"""Tokens of what is not sent yet, rather too many than too few.

estimate: after targets and plain; stands on counting. Where a report shows the tokenizer's count,
the guard takes the larger of that and a quarter of the bytes.

Messages and tools as an agent's loop holds them, plain JSON values → a conversation. Nothing says
which dialect a bare list is in but the shapes of its entries, and reading them in another one loses
what they hold: an Anthropic tool result read as OpenAI's is an unknown part of no tokens. So every
entry is looked at, not only the first ones.
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
from holdfast.wire.pointing import Place
from holdfast.wire.strict import encode

_LIST_KEYS = {"gemini": "contents", "openai-responses": "input"}
"""Where each dialect puts its list; all others in `messages`."""

_ANTHROPIC_PARTS = frozenset(
    "tool_use tool_result thinking redacted_thinking server_tool_use search_result document "
    "mcp_tool_use mcp_tool_result compaction tool_reference".split()
)
_RESPONSES_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})


def conversation_of(messages: Sequence[Mapping[str, Any]]) -> Conversation:
    """Read a list of messages, in the dialect that its entries are written in."""
    dialect = _dialect_of_messages(messages)
    return read({_LIST_KEYS.get(dialect, "messages"): list(messages)}, dialect)


def offering(tools: Sequence[Mapping[str, Any]]) -> Conversation:
    """A small request that offers these tools, in the dialect that they are written in."""
    dialect = _dialect_of_tools(tools)
    offered = list(tools)
    match dialect:
        case "gemini":
            request = {"contents": [{"role": "user", "parts": [{"text": "-"}]}], "tools": offered}
        case "converse":
            request = {
                "messages": [{"role": "user", "content": [{"text": "-"}]}],
                "toolConfig": {"tools": offered},
            }
        case "openai-responses":
            request = {"input": "-", "tools": offered}
        case _:
            request = {"messages": [{"role": "user", "content": "-"}], "tools": offered}
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
"""Role and separators of a message where no renderer knows them."""
_SEALED_LENGTH = 512


def resolve_tokenizer(tokenizer_id: str | None) -> Tokenizer:
    """Return what counts texts for a model's id or a vocabulary's name; None: by their length."""
    if tokenizer_id is None:
        return by_length
    name = tokenizer_id
    if family_of(name) == UNKNOWN and _is_vocabulary(name):
        return lambda text: max(shared.count(name, text), by_length(text))
    return lambda text: max(estimate_tokens(text, name), by_length(text))


def by_length(text: str) -> int:
    """A quarter of the text's bytes."""
    return math.ceil(len(text.encode(errors="replace")) / 4)


def estimate_messages_tokens(
    messages: Conversation | Sequence[Mapping[str, Any]], tokenizer_id: str | None
) -> int:
    """Tokens of a conversation without its tool schemas: roles, contents, calls and structure.

    A plain list holds messages as any of the dialects writes them; all in one.
    """
    if not isinstance(messages, Conversation):
        messages = conversation_of(messages)
    if not messages.messages and not messages.system:
        return 0
    texts = list(_texts(messages))
    if tokenizer_id is not None and family_of(tokenizer_id) != UNKNOWN:
        counted = count(messages, model=tokenizer_id)
        return max(counted.tokens - counted.parts.tools, sum(map(by_length, texts)))
    tokenizer = resolve_tokenizer(tokenizer_id)
    return sum(map(tokenizer, texts)) + _MESSAGE_TOKENS * len(messages.messages)


def estimate_tool_schema_tokens(
    tools: Sequence[Mapping[str, Any]], tokenizer_id: str | None
) -> int:
    """Tokens that tool definitions, as any of the dialects writes them, add to a request."""
    if not tools:
        return 0
    if tokenizer_id is None:
        return by_length(encode(list(tools)).decode())
    return count(offering(tools), model=tokenizer_id).parts.tools


def tool_output_tokens(targets: Iterable[TargetContextConfig]) -> Tokenizer:
    """Return what counts a tool's output as a message, for the target that needs most."""
    ids = tuple(dict.fromkeys(target.tokenizer_id or target.id for target in targets))
    tokenizers = [(resolve_tokenizer(id_), _tool_message_tokens(id_)) for id_ in ids]

    def estimate(output: str) -> int:
        return max(tokenizer(output) + around for tokenizer, around in tokenizers)

    return estimate


_NAME = "a_tool_of_some_longer_name"
_CALL = {"id": "call_0", "type": "function", "function": {"name": _NAME, "arguments": "{}"}}
_ASKED = ({"role": "user", "content": "-"}, {"role": "assistant", "tool_calls": [_CALL]})
_ANSWER = {"role": "tool", "tool_call_id": "call_0", "content": ""}


@lru_cache(maxsize=256)
def _tool_message_tokens(tokenizer_id: str) -> int:
    """Tokens around an output in its message; some providers repeat the tool's name there."""
    asked = estimate_messages_tokens(_ASKED, tokenizer_id)
    answered = estimate_messages_tokens([*_ASKED, _ANSWER], tokenizer_id)
    return max(answered - asked, _MESSAGE_TOKENS)


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
        if any(map(_is_unread, message.blocks)):
            yield from _unread_texts(message)
    for block in blocks:
        match block:
            case Text() | Thinking() | ToolResult():
                yield block.text
            case ToolCall():
                arguments = block.arguments
                yield block.name
                yield arguments if isinstance(arguments, str) else encode(arguments).decode()


def _is_unread(block: Block) -> bool:
    """Whether a block may hold text that it does not give: a result of parts of a new kind too."""
    return isinstance(block, Opaque | Media) or (isinstance(block, ToolResult) and not block.text)


def _unread_texts(message: Message) -> Iterator[str]:
    """The texts inside of blocks that no dialect reads: results of servers' tools, documents.

    New kinds arrive before we know them, and nobody knows how they are counted; but a session must
    not fill its window with what the guard took for nothing.
    """
    value = message.parsed
    for block in message.blocks:
        if _is_unread(block):
            for text in _strings(_at(value, block.place)):
                # Images and sealed contents are long runs without a space, and no measure of
                # their tokens.
                if len(text) < _SEALED_LENGTH or len(text[:_SEALED_LENGTH].split()) > 1:
                    yield text


def _at(value: Any, place: Place) -> Any:
    for key in place:
        value = value[key]
    return value


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case dict(inner):
                waiting.extend(inner.values())
            case list(items):
                waiting.extend(items)
