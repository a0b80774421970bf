"""Anthropic's answers: a message of blocks; in a stream each block starts, grows and stops.

anthropic: after joiner. Usage comes with the start of the message and, complete, with its end:
counts in `message_delta` are of the whole message, so the joined ones replace what came first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.wire.responses.joiner import Joiner, changed
from holdfast.wire.responses.shared import (
    Call,
    Handed,
    Hidden,
    dicts,
    handed_calls,
    joined_usage,
    load,
    text,
)
from holdfast.wire.responses.sse import Event, write_event
from holdfast.wire.strict import encode
from holdfast.wire.values import inner, take

# --- whole answers -----------------------------------------------------------------------------


def turn_of(body: dict[str, Any]) -> list[Any]:
    """The assistant's message in an answer."""
    return [_message(dicts(body.get("content")))]


def stop_of(body: dict[str, Any]) -> str:
    """Why the model stopped."""
    return text(body.get("stop_reason"))


def usage_of(body: dict[str, Any]) -> dict[str, Any]:
    """What the answer says it used."""
    return inner(body, "usage")


def hides(body: dict[str, Any], hidden: Hidden) -> bool:
    """Whether an answer holds anything that the client must not see."""
    return any(_is_hidden(block, hidden) for block in dicts(body.get("content")))


def without(message: Any, hidden: Hidden) -> Any:
    """A message without its hidden calls; None if nothing is left."""
    kept = [block for block in message["content"] if not _is_hidden(block, hidden)]
    return {**message, "content": kept} if kept else None


def join_bodies(bodies: Sequence[dict[str, Any]], hidden: Hidden, handed: Handed) -> dict[str, Any]:
    """Several answers as one."""
    blocks = [
        block
        for body in bodies
        for block in dicts(body.get("content"))
        if not _is_hidden(block, hidden)
    ]
    natives = [b for b in dicts(bodies[-1].get("content")) if b.get("type") == "tool_use"]
    blocks += [_handed(block, call) for block, call in handed_calls(natives, handed)]
    stop = bodies[-1].get("stop_reason")
    if stop == "tool_use" and not any(block.get("type") == "tool_use" for block in blocks):
        stop = "end_turn"
    usage = joined_usage([usage_of(body) for body in bodies])
    first = {key: bodies[0][key] for key in ("id",) if key in bodies[0]}
    return {**bodies[-1], **first, "content": blocks, "stop_reason": stop, "usage": usage}


def _is_hidden(block: dict[str, Any], hidden: Hidden) -> bool:
    return block.get("type") == "tool_use" and hidden(text(block.get("name")))


def _handed(block: dict[str, Any], call: Call) -> dict[str, Any]:
    """A call as the client gets it instead."""
    given = load(call.arguments.encode())
    return {**block, "id": call.id, "name": call.name, "input": given}


def _message(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Blocks of an answer as a message of a request, which takes no empty text (rule A7)."""
    kept = [block for block in blocks if block.get("type") != "text" or block.get("text")]
    called = next((n for n, b in enumerate(kept) if b.get("type") == "tool_use"), len(kept))
    # Nor does it take text behind a call (rule A4).
    late = [block for block in kept[called:] if block.get("type") == "text"]
    rest = [block for block in kept[called:] if block.get("type") != "text"]
    return {"role": "assistant", "content": [*kept[:called], *late, *rest]}


# --- streams -----------------------------------------------------------------------------------


class AnthropicJoiner(Joiner):
    """Blocks are numbered on over all upstream streams; there is one start and one end."""

    def __init__(self, hidden: Hidden, *, hide_usage: bool = False) -> None:
        self._next = 0
        """The number of the client's next block."""
        super().__init__(hidden, hide_usage=hide_usage)

    def _reset(self) -> None:
        super()._reset()
        self._blocks: dict[int, _Block] = {}
        self._shift = self._next

    def join(self, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        """Take an event that is an object."""
        kind = value.get("type")
        if kind in ("content_block_delta", "content_block_start", "content_block_stop"):
            self._block(kind, value, event, out)
        elif kind == "message_start":
            self.usage = dict(inner(value, "message", "usage"))
            self.upstream_id = take(value, "message", "id")
            if not self.continued:
                out.append(event.raw)
        elif kind in ("message_delta", "message_stop"):
            self._ending(kind, value, event, out)
        else:
            out.append(event.raw)

    def _block(self, kind: str, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        index = value.get("index")
        if not isinstance(index, int):
            out.append(event.raw)
            return
        if kind == "content_block_start":
            self._start(index, inner(value, "content_block"))
        block = self._blocks.get(index)
        if block is None:
            out.append(event.raw)
            return
        if kind == "content_block_delta":
            block.grow(inner(value, "delta"))
        if block.shown is None:
            return
        if not self.spoken and block.says():
            self.spoken = True
        if block.shown == index:
            out.append(event.raw)
        else:
            out.append(changed({**value, "index": block.shown}, event))

    def _start(self, index: int, content: dict[str, Any]) -> None:
        if _is_hidden(content, self.hidden):
            self.secretive = True
            self._shift -= 1
            self._blocks[index] = _Block(content, None)
        else:
            shown = index + self._shift
            self._next = max(self._next, shown + 1)
            self._blocks[index] = _Block(content, shown)

    def _ending(self, kind: str, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        if kind == "message_stop":
            self.ended = self.over = True
        else:
            self.stop_reason = text(inner(value, "delta").get("stop_reason")) or self.stop_reason
            said = inner(value, "usage")
            self.usage.update({key: n for key, n in said.items() if n is not None})
        if self.holding:
            self.tail.append((event, value))
        elif self.continued and kind == "message_delta":
            out.append(changed({**value, "usage": self.reported}, event))
        else:
            out.append(event.raw)

    def end(self, value: Any, event: Event, out: list[bytes]) -> None:
        """Give an end that was held back."""
        if value["type"] == "message_delta":
            delta = inner(value, "delta")
            if delta.get("stop_reason") == "tool_use" and not self.visible:
                delta = {**delta, "stop_reason": "end_turn"}
            value = {**value, "delta": delta, "usage": self.reported}
        out.append(changed(value, event))

    def give_calls(self, handed: Handed, out: list[bytes]) -> None:
        """Put whole calls into the stream, as blocks of one piece."""
        natives = [
            block.content
            for _, block in sorted(self._blocks.items())
            if block.content.get("type") == "tool_use"
        ]
        for native, call in handed_calls(natives, handed):
            start = {**_handed(native, call), "input": {}}
            delta = {"type": "input_json_delta", "partial_json": call.arguments}
            at = self._next
            out += [
                named({"type": "content_block_start", "index": at, "content_block": start}),
                named({"type": "content_block_delta", "index": at, "delta": delta}),
                named({"type": "content_block_stop", "index": at}),
            ]
            self._next += 1

    def messages(self) -> list[Any]:
        """The assistant's turn of this upstream stream, as the next request has it."""
        return [_message([self._blocks[index].whole() for index in sorted(self._blocks)])]

    def calls(self) -> list[Call]:
        """The calls of this upstream stream, hidden ones too."""
        return [
            block.call()
            for _, block in sorted(self._blocks.items())
            if block.content.get("type") == "tool_use"
        ]


class _Block:
    """A block that grows."""

    __slots__ = ("_pieces", "content", "shown")

    def __init__(self, content: dict[str, Any], shown: int | None) -> None:
        self.content = content
        self.shown = shown
        """Its number in the client's stream; None if it is hidden."""
        self._pieces: dict[str, list[Any]] = {}

    def grow(self, delta: dict[str, Any]) -> None:
        for key, piece in delta.items():
            if key != "type" and piece is not None:
                self._pieces.setdefault(key, []).append(piece)

    def says(self) -> bool:
        kind = self.content.get("type")
        return kind == "tool_use" or (
            kind == "text" and (bool(self.content.get("text")) or any(self._pieces.get("text", ())))
        )

    def call(self) -> Call:
        made = self.content
        arguments = self._joined("partial_json") or encode(made.get("input") or {}).decode()
        return Call(text(made.get("id")), text(made.get("name")), arguments)

    def whole(self) -> dict[str, Any]:
        whole = dict(self.content)
        for key, pieces in self._pieces.items():
            if key == "partial_json":
                given = load(self._joined(key).encode())
                whole["input"] = given if isinstance(given, dict) else whole.get("input") or {}
            elif key == "citation":
                whole["citations"] = [*(whole.get("citations") or []), *pieces]
            elif key == "signature":
                whole[key] = pieces[-1]
            elif isinstance(pieces[0], str):
                whole[key] = text(whole.get(key)) + self._joined(key)
            else:
                whole[key] = pieces[-1]
        return whole

    def _joined(self, key: str) -> str:
        return "".join(piece for piece in self._pieces.get(key, ()) if isinstance(piece, str))


def named(value: dict[str, Any]) -> bytes:
    """An event that is named after its type, as Anthropic and OpenAI's Responses have it."""
    return write_event(encode(value), value["type"].encode())
