"""Read and write OpenAI's chat responses, including the variants of compatible services.

A chunk's delta and a complete message have the same fields. All text blocks are joined, and
thinking is written to `reasoning_content`, which clients of DeepSeek, vLLM and others read.
"""

from __future__ import annotations

from typing import Any

from holdfast.wire.responses.openai_chat import chunk
from holdfast.wire.responses.shared import dicts, load, text
from holdfast.wire.responses.sse import write_event
from holdfast.wire.responses.translation.pieces import (
    AnswerBlock,
    BlockBegins,
    CompletePieces,
    Losses,
    Piece,
    Stop,
    UsageReported,
    call_id,
)
from holdfast.wire.responses.translation.reader import (
    CITATIONS,
    LOGPROBS,
    AnswerReader,
    AnswerWriter,
    failure,
)
from holdfast.wire.responses.translation.usages import from_chat, to_chat
from holdfast.wire.strict import encode
from holdfast.wire.values import inner, take

_STOPS: dict[str, Stop] = {
    "stop": "end",
    "length": "length",
    "tool_calls": "calls",
    "function_call": "calls",
    "content_filter": "filtered",
}
# Services use different names, and some send the same reasoning under two; the first one counts.
_REASONING = ("reasoning_content", "reasoning", "thinking")
_LOSSES = {"annotations": CITATIONS, "audio": "audio", "images": "images", "citations": CITATIONS}
_READ = frozenset(
    ("role", "content", "refusal", "tool_calls", "function_call", "reasoning_details", *_REASONING)
)


class _GrowingCall:
    """A call received in pieces."""

    __slots__ = ("arguments", "id", "is_open", "key", "may_end")

    def __init__(self, key: tuple[str, int]) -> None:
        self.key = key
        self.id = ""
        self.arguments: list[str] = []
        self.is_open = False
        self.may_end = True
        """Whether its arguments have not been checked for completeness."""


class ChatReader(AnswerReader):
    """Distinguishes calls by their numbers; calls have no explicit end."""

    def __init__(self, losses: Losses) -> None:
        super().__init__(losses)
        self._calls: dict[int, _GrowingCall] = {}
        self._latest: _GrowingCall | None = None
        self._count = 0

    def take(self, value: dict[str, Any], out: list[Piece]) -> None:
        """Append the pieces of a chunk, or of a complete response, to `out`."""
        if value.get("error"):
            out.append(failure(value["error"]))
            return
        choices = dicts(value.get("choices"))
        if choices:  # Azure starts with a chunk without choices and id
            self.begin(value.get("id"), value.get("created"), out)
        for choice in choices:
            if choice.get("index", 0) not in (0, None):
                self.losses.add("further choices")
                continue
            self._choice(choice, out)
        if isinstance(value.get("usage"), dict):
            out.append(UsageReported(from_chat(value["usage"])))

    def _choice(self, choice: dict[str, Any], out: list[Piece]) -> None:
        if choice.get("logprobs"):
            self.losses.add(LOGPROBS)
        self._delta(inner(choice, "delta") or inner(choice, "message"), out)
        if stop := text(choice.get("finish_reason")):
            self.hush(out)
            for call in self._calls.values():
                self._end(call, out)
            self.blocks.close_all(out)
            self.stop(stop, _STOPS, out)

    def _delta(self, delta: dict[str, Any], out: list[Piece]) -> None:
        reasoning = next((delta[key] for key in _REASONING if text(delta.get(key))), "")
        self.say("thinking", reasoning, out)
        content = delta.get("content")
        if isinstance(content, list):
            self._parts(dicts(content), out)
        else:
            self.say("text", text(content), out)
        self.say("refusal", text(delta.get("refusal")), out)
        for position, piece in enumerate(dicts(delta.get("tool_calls"))):
            self._call(piece, position, out)
        if isinstance(delta.get("function_call"), dict):
            self._call({"function": delta["function_call"]}, 0, out)
        for key in delta.keys() - _READ:
            if delta[key]:
                self.losses.add(_LOSSES.get(key, "the field"), "" if key in _LOSSES else key)

    def _parts(self, parts: list[dict[str, Any]], out: list[Piece]) -> None:
        """Read Mistral's content: a list of texts and thinking."""
        for part in parts:
            if part.get("type") == "thinking":
                inside = part.get("thinking")
                words = text(inside) or "".join(text(p.get("text")) for p in dicts(inside))
                self.say("thinking", words, out)
            elif part.get("type") in ("text", "output_text"):
                self.say("text", text(part.get("text")), out)
            elif part.get("type") == "refusal":
                self.say("refusal", text(part.get("refusal")), out)
            else:
                self.losses.add("content of type", text(part.get("type")))

    # --- calls ---------------------------------------------------------------------------------

    def _call(self, piece: dict[str, Any], position: int, out: list[Piece]) -> None:
        index = piece.get("index")
        index = index if isinstance(index, int) else position
        custom = isinstance(piece.get("custom"), dict)
        name = take(piece, "custom" if custom else "function", "name")
        call = self._calls.get(index)
        # Some services number every call 0 and distinguish them only by id.
        if call is None or (name and call.is_open and take(piece, "id") not in ("", call.id)):
            call = self._next(index, out)
        call.id = call.id or take(piece, "id")
        if name and not call.is_open:
            call.is_open = True
            call.id = call.id or call_id(self.id, call.key[1], name)
            self.hush(out)
            self.blocks.open(
                call.key, BlockBegins("custom" if custom else "call", call.id, name), out
            )
            for written in call.arguments:  # received before the name
                self.blocks.grow(call.key, written, out)
        fragment = take(piece, "custom", "input") or _arguments(inner(piece, "function"))
        if fragment:
            call.arguments.append(fragment)
            if call.is_open:
                self.blocks.grow(call.key, fragment, out)

    def _next(self, index: int, out: list[Piece]) -> _GrowingCall:
        """Start a call; end the previous one if its arguments are complete."""
        before = self._latest
        if before is not None and before.may_end:
            before.may_end = False  # one check per call keeps the time linear
            if load("".join(before.arguments).encode()) is not None:
                self._end(before, out)
        self._count += 1
        call = self._calls[index] = self._latest = _GrowingCall(("call", self._count))
        return call

    def _end(self, call: _GrowingCall, out: list[Piece]) -> None:
        if call.is_open and not call.arguments:
            self.blocks.grow(call.key, "{}", out)
        self.blocks.close(call.key, out)


def _arguments(function: dict[str, Any]) -> str:
    """Return the arguments of a call; some services send an object."""
    arguments = function.get("arguments")
    return encode(arguments).decode() if isinstance(arguments, dict) else text(arguments)


_STOP_NAMES: dict[Stop, str] = {
    "end": "stop",
    "length": "length",
    "calls": "tool_calls",
    "sequence": "stop",
    "filtered": "content_filter",
}
_MEMBERS = {"text": "content", "thinking": "reasoning_content", "refusal": "refusal"}


def whole(answer: CompletePieces) -> dict[str, Any]:
    """Return a complete response."""
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
        "choices": [{**choice, "finish_reason": _STOP_NAMES[answer.stop]}],
        "usage": to_chat(answer.usage),
    }


def _call(block: AnswerBlock) -> dict[str, Any]:
    head = {"id": block.id, "type": "custom" if block.kind == "custom" else "function"}
    if block.kind == "custom":
        return {**head, "custom": {"name": block.name, "input": block.text}}
    return {**head, "function": {"name": block.name, "arguments": block.text}}


class ChatWriter(AnswerWriter):
    """Writes numbered calls, and the usage in a separate last chunk."""

    def begin(self, answer: CompletePieces) -> list[bytes]:
        """Return the first chunk, with the role."""
        self._identity = {"id": f"chatcmpl-{answer.id}", "created": answer.created}
        self._model = answer.model
        self._calls = -1
        self._kind = "text"
        return [self._event({"role": "assistant", "content": ""})]

    def open(self, block: BlockBegins) -> list[bytes]:
        """Return the start of a call; text needs no start."""
        self._kind = block.kind
        if block.kind not in ("call", "custom"):
            return []
        self._calls += 1
        begun = _call(AnswerBlock(block.kind, "", block.id, block.name))
        return [self._event({"tool_calls": [{"index": self._calls, **begun}]})]

    def grow(self, text: str) -> list[bytes]:
        """Return a chunk with text, or with arguments of the current call."""
        if self._kind in _MEMBERS:
            return [self._event({_MEMBERS[self._kind]: text})]
        fragment = {"custom": {"input": text}} if self._kind == "custom" else {}
        fragment = fragment or {"function": {"arguments": text}}
        return [self._event({"tool_calls": [{"index": self._calls, **fragment}]})]

    def close(self, block: AnswerBlock) -> list[bytes]:
        """Return nothing, because chat does not mark the end of a block."""
        return []

    def end(self, answer: CompletePieces) -> list[bytes]:
        """Return the stop reason, the usage if requested, and the end mark."""
        events = [self._event({}, _STOP_NAMES[answer.stop])]
        if self.include_usage:
            last = chunk(self._identity, self._model, {})
            usage = to_chat(answer.usage)
            events.append(write_event(encode({**last, "choices": [], "usage": usage})))
        return [*events, write_event(b"[DONE]")]

    def _event(self, delta: dict[str, Any], stop: str | None = None) -> bytes:
        return write_event(encode(chunk(self._identity, self._model, delta, stop)))
