"""Read, filter and join Anthropic's responses: blocks that start, grow and stop.

Usage comes with the start of a message and completely with its end; the counts in `message_delta`
cover the complete message, so joined counts replace the earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.wire.responses.joiner import Joiner, changed_event
from holdfast.wire.responses.shared import (
    HandedCalls,
    IsHidden,
    ModelCall,
    dicts,
    handed_calls,
    joined_usage,
    load,
    text,
)
from holdfast.wire.responses.sse import Event, write_event
from holdfast.wire.strict import encode
from holdfast.wire.values import inner, take

# --- complete responses ------------------------------------------------------------------------


def turn_of(body: dict[str, Any]) -> list[Any]:
    """Return the assistant's message of a response."""
    return [_message(dicts(body.get("content")))]


def stop_of(body: dict[str, Any]) -> str:
    """Return the stop reason."""
    return text(body.get("stop_reason"))


def usage_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the reported usage."""
    return inner(body, "usage")


def hides(body: dict[str, Any], hidden: IsHidden) -> bool:
    """Return whether a response contains anything that the client must not see."""
    return any(_is_hidden(block, hidden) for block in dicts(body.get("content")))


def without(message: Any, hidden: IsHidden) -> Any:
    """Return a message without its hidden calls; None if nothing remains."""
    visible_blocks = [block for block in message["content"] if not _is_hidden(block, hidden)]
    return {**message, "content": visible_blocks} if visible_blocks else None


def join_bodies(
    bodies: Sequence[dict[str, Any]], hidden: IsHidden, handed: HandedCalls
) -> dict[str, Any]:
    """Join several responses into one."""
    blocks = [
        block
        for body in bodies
        for block in dicts(body.get("content"))
        if not _is_hidden(block, hidden)
    ]
    natives = [b for b in dicts(bodies[-1].get("content")) if b.get("type") == "tool_use"]
    blocks += [_as_handed(block, call) for block, call in handed_calls(natives, handed)]
    stop = bodies[-1].get("stop_reason")
    if stop == "tool_use" and not any(block.get("type") == "tool_use" for block in blocks):
        stop = "end_turn"
    usage = joined_usage([usage_of(body) for body in bodies])
    first = {key: bodies[0][key] for key in ("id",) if key in bodies[0]}
    return {**bodies[-1], **first, "content": blocks, "stop_reason": stop, "usage": usage}


def _is_hidden(block: dict[str, Any], hidden: IsHidden) -> bool:
    return block.get("type") == "tool_use" and hidden(text(block.get("name")))


def _as_handed(block: dict[str, Any], call: ModelCall) -> dict[str, Any]:
    """Return a call in the form that the client receives."""
    arguments = load(call.arguments.encode())
    return {**block, "id": call.id, "name": call.name, "input": arguments}


def _message(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the blocks of a response as a message of a request.

    The API rejects empty text (claude-code#59812) and text after a call (opencode), so both are
    removed or moved.
    """
    non_empty = [block for block in blocks if block.get("type") != "text" or block.get("text")]
    called = next(
        (n for n, b in enumerate(non_empty) if b.get("type") == "tool_use"), len(non_empty)
    )
    # Text after a call is rejected, so it moves before the first call.
    late = [block for block in non_empty[called:] if block.get("type") == "text"]
    other_blocks = [block for block in non_empty[called:] if block.get("type") != "text"]
    return {"role": "assistant", "content": [*non_empty[:called], *late, *other_blocks]}


# --- streams -----------------------------------------------------------------------------------


class AnthropicJoiner(Joiner):
    """Numbers blocks continuously over all upstream streams, with one start and one end."""

    def __init__(self, hidden: IsHidden, *, hide_usage: bool = False) -> None:
        self._next = 0
        """Number of the client's next block."""
        super().__init__(hidden, hide_usage=hide_usage)

    def _reset(self) -> None:
        super()._reset()
        self._blocks: dict[int, _GrowingBlock] = {}
        self._shift = self._next

    def join(self, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        """Process an event with a JSON object."""
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
            out.append(changed_event({**value, "index": block.shown}, event))

    def _start(self, index: int, content: dict[str, Any]) -> None:
        if _is_hidden(content, self.hidden):
            self.secretive = True
            self._shift -= 1
            self._blocks[index] = _GrowingBlock(content, None)
        else:
            client_index = index + self._shift
            self._next = max(self._next, client_index + 1)
            self._blocks[index] = _GrowingBlock(content, client_index)

    def _ending(self, kind: str, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        if kind == "message_stop":
            self.ended = self.over = True
        else:
            self.stop_reason = text(inner(value, "delta").get("stop_reason")) or self.stop_reason
            usage = inner(value, "usage")
            self.usage.update({key: n for key, n in usage.items() if n is not None})
        if self.holding:
            self.tail.append((event, value))
        elif self.continued and kind == "message_delta":
            out.append(changed_event({**value, "usage": self.reported}, event))
        else:
            out.append(event.raw)

    def end(self, value: Any, event: Event, out: list[bytes]) -> None:
        """Emit an end that was held back."""
        if value["type"] == "message_delta":
            delta = inner(value, "delta")
            if delta.get("stop_reason") == "tool_use" and not self.visible:
                delta = {**delta, "stop_reason": "end_turn"}
            value = {**value, "delta": delta, "usage": self.reported}
        out.append(changed_event(value, event))

    def give_calls(self, handed: HandedCalls, out: list[bytes]) -> None:
        """Emit complete calls as blocks of one piece."""
        natives = [
            block.content
            for _, block in sorted(self._blocks.items())
            if block.content.get("type") == "tool_use"
        ]
        for native, call in handed_calls(natives, handed):
            start = {**_as_handed(native, call), "input": {}}
            delta = {"type": "input_json_delta", "partial_json": call.arguments}
            at = self._next
            out += [
                named_event({"type": "content_block_start", "index": at, "content_block": start}),
                named_event({"type": "content_block_delta", "index": at, "delta": delta}),
                named_event({"type": "content_block_stop", "index": at}),
            ]
            self._next += 1

    def messages(self) -> list[Any]:
        """Return the assistant's turn of this upstream stream, as the next request contains it."""
        return [_message([self._blocks[index].joined_content() for index in sorted(self._blocks)])]

    def calls(self) -> list[ModelCall]:
        """Return the calls of this upstream stream, including hidden ones."""
        return [
            block.call()
            for _, block in sorted(self._blocks.items())
            if block.content.get("type") == "tool_use"
        ]


class _GrowingBlock:
    """A block that grows during the stream."""

    __slots__ = ("_pieces", "content", "shown")

    def __init__(self, content: dict[str, Any], shown: int | None) -> None:
        self.content = content
        self.shown = shown
        """Number of the block in the client's stream; None if it is hidden."""
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

    def call(self) -> ModelCall:
        content = self.content
        arguments = self._joined("partial_json") or encode(content.get("input") or {}).decode()
        return ModelCall(text(content.get("id")), text(content.get("name")), arguments)

    def joined_content(self) -> dict[str, Any]:
        block = dict(self.content)
        for key, pieces in self._pieces.items():
            if key == "partial_json":
                arguments = load(self._joined(key).encode())
                block["input"] = (
                    arguments if isinstance(arguments, dict) else block.get("input") or {}
                )
            elif key == "citation":
                block["citations"] = [*(block.get("citations") or []), *pieces]
            elif key == "signature":
                block[key] = pieces[-1]
            elif isinstance(pieces[0], str):
                block[key] = text(block.get(key)) + self._joined(key)
            else:
                block[key] = pieces[-1]
        return block

    def _joined(self, key: str) -> str:
        return "".join(piece for piece in self._pieces.get(key, ()) if isinstance(piece, str))


def named_event(value: dict[str, Any]) -> bytes:
    """Return an event named after its type, as Anthropic and OpenAI Responses send it."""
    return write_event(encode(value), value["type"].encode())
