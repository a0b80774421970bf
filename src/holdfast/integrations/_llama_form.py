"""LlamaIndex's messages, written as those of OpenAI's chat and read back where they were edited.

llama_form: before llama_index. Calls stand in blocks of a message, or as the provider's client gave
them among its other arguments: both are found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock

from holdfast.wire.strict import encode


class ChatForm:
    """LlamaIndex's messages, written as those of OpenAI's chat and read back."""

    dialect = "openai-chat"

    def write(self, message: ChatMessage) -> Sequence[Mapping[str, Any]]:
        """A message as one of the dialect."""
        value: dict[str, Any] = {"role": message.role.value, "content": message.content or ""}
        if calls := _calls(message):
            value["tool_calls"] = calls
        if value["role"] == "tool":
            value["tool_call_id"] = message.additional_kwargs.get("tool_call_id", "")
        return [value]

    def read(self, parts: Sequence[tuple[Any, ChatMessage | None]]) -> Sequence[ChatMessage]:
        """Messages that were edited, with what they say now; and digests."""
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
    ] or [_given(call) for call in message.additional_kwargs.get("tool_calls") or ()]


def _arguments(arguments: Mapping[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else encode(arguments).decode()


def _given(call: Any) -> dict[str, Any]:
    """A call as the client of the provider gave it, where there is no block for it."""
    given: dict[str, Any] = call if isinstance(call, dict) else call.model_dump(exclude_none=True)
    return given


def _read(value: Any, like: ChatMessage | None) -> ChatMessage:
    content = value.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(part["text"] for part in content)
    if like is None:
        return ChatMessage(role=value["role"], content=text)
    others = [block for block in like.blocks if not isinstance(block, TextBlock)]
    return like.model_copy(update={"blocks": [TextBlock(text=text), *others]})
