"""Write OpenAI's chat answers: one message, whose text is one even where others have blocks.

write_chat: after writer. Thinking goes into `reasoning_content`, where the clients of DeepSeek,
vLLM and many others look for it.
"""

from __future__ import annotations

from typing import Any

from holdfast.wire.answers.openai_chat import chunk
from holdfast.wire.answers.sse import write_event
from holdfast.wire.answers.translating.pieces import AnswerBlock, BlockBegins, Stop, WholeAnswer
from holdfast.wire.answers.translating.usages import to_chat
from holdfast.wire.answers.translating.writer import AnswerWriter
from holdfast.wire.strict import encode

_STOPS: dict[Stop, str] = {
    "end": "stop",
    "length": "length",
    "calls": "tool_calls",
    "sequence": "stop",
    "filtered": "content_filter",
}
_MEMBERS = {"text": "content", "thinking": "reasoning_content", "refusal": "refusal"}


def whole(answer: WholeAnswer) -> dict[str, Any]:
    """A complete answer in one piece."""
    words = {
        member: "".join(block.text for block in answer.blocks if block.kind == kind)
        for kind, member in _MEMBERS.items()
    }
    message: dict[str, Any] = {
        "role": "assistant",
        "content": words["content"] or None,
        "refusal": words["refusal"] or None,
    }
    if words["reasoning_content"]:
        message["reasoning_content"] = words["reasoning_content"]
    if calls := [_call(block) for block in answer.blocks if block.kind in ("call", "custom")]:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None}
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": [{**choice, "finish_reason": _STOPS[answer.stop]}],
        "usage": to_chat(answer.usage),
    }


def _call(block: AnswerBlock) -> dict[str, Any]:
    head = {"id": block.id, "type": "custom" if block.kind == "custom" else "function"}
    if block.kind == "custom":
        return {**head, "custom": {"name": block.name, "input": block.text}}
    return {**head, "function": {"name": block.name, "arguments": block.text}}


class ChatWriter(AnswerWriter):
    """Calls are numbered; the usage stands behind the end, in a chunk of its own."""

    def begin(self, answer: WholeAnswer) -> list[bytes]:
        """Begin with the role."""
        self._identity = {"id": f"chatcmpl-{answer.id}", "created": answer.created}
        self._model = answer.model
        self._calls = -1
        self._kind = "text"
        return [self._event({"role": "assistant", "content": ""})]

    def open(self, block: BlockBegins) -> list[bytes]:
        """Begin a call; words need no beginning."""
        self._kind = block.kind
        if block.kind not in ("call", "custom"):
            return []
        self._calls += 1
        begun = _call(AnswerBlock(block.kind, "", block.id, block.name))
        return [self._event({"tool_calls": [{"index": self._calls, **begun}]})]

    def grow(self, text: str) -> list[bytes]:
        """Go on with words, or with the arguments of the latest call."""
        if self._kind in _MEMBERS:
            return [self._event({_MEMBERS[self._kind]: text})]
        fragment = {"custom": {"input": text}} if self._kind == "custom" else {}
        fragment = fragment or {"function": {"arguments": text}}
        return [self._event({"tool_calls": [{"index": self._calls, **fragment}]})]

    def close(self, block: AnswerBlock) -> list[bytes]:
        """End a block, of which chat says nothing."""
        return []

    def end(self, answer: WholeAnswer) -> list[bytes]:
        """End with the reason, the usage if it was asked for, and the mark of the end."""
        events = [self._event({}, _STOPS[answer.stop])]
        if self.include_usage:
            last = chunk(self._identity, self._model, {})
            usage = to_chat(answer.usage)
            events.append(write_event(encode({**last, "choices": [], "usage": usage})))
        return [*events, write_event(b"[DONE]")]

    def _event(self, delta: dict[str, Any], stop: str | None = None) -> bytes:
        return write_event(encode(chunk(self._identity, self._model, delta, stop)))
