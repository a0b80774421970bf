"""Convert LlamaIndex messages to Chat Completions messages, and edited ones back.

Tool calls are in a message's blocks or among the provider's additional arguments; both are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock

from holdfast.wire.strict import encode


class ChatForm:
    """Converts LlamaIndex messages to and from Chat Completions messages."""

    dialect = "openai-chat"

    def write(self, message: ChatMessage) -> Sequence[Mapping[str, Any]]:
        """Return a message in the dialect."""
        value: dict[str, Any] = {"role": message.role.value, "content": message.content or ""}
        if calls := _calls(message):
            value["tool_calls"] = calls
        if value["role"] == "tool":
            value["tool_call_id"] = message.additional_kwargs.get("tool_call_id", "")
        return [value]

    def read(self, parts: Sequence[tuple[Any, ChatMessage | None]]) -> Sequence[ChatMessage]:
        """Return edited messages with their new texts, and digests."""
        return [_read(value, like) for value, like in parts]


def _calls(message: ChatMessage) -> list[dict[str, Any]]:
    blocks = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    return [
        {
            "id": block.tool_call_id or block.tool_name,
            "type": "function",
            "function": {"name": block.tool_name, "arguments": _arguments(block.tool_kwargs)},
        }
        for block in blocks
    ] or [_provider_call(call) for call in message.additional_kwargs.get("tool_calls") or ()]


def _arguments(arguments: Mapping[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else encode(arguments).decode()


def _provider_call(call: Any) -> dict[str, Any]:
    """Return a call in the form of the provider's client, which has no block for it."""
    call_fields: dict[str, Any] = (
        call if isinstance(call, dict) else call.model_dump(exclude_none=True)
    )
    return call_fields


def _read(value: Any, like: ChatMessage | None) -> ChatMessage:
    content = value.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(part["text"] for part in content)
    if like is None:
        return ChatMessage(role=value["role"], content=text)
    other_blocks = [block for block in like.blocks if not isinstance(block, TextBlock)]
    return like.model_copy(update={"blocks": [TextBlock(text=text), *other_blocks]})
