"""Read, filter and join OpenAI's Responses.

The last event repeats the complete response, so the joined response is written into it: all items
that the client saw, under the first id that it received.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.wire.openai_responses import NAME
from holdfast.wire.responses.joiner import Joiner, changed_event
from holdfast.wire.responses.shared import (
    HandedCalls,
    IsHidden,
    ModelCall,
    calls_in,
    dicts,
    handed_calls,
    joined_usage,
    text,
)
from holdfast.wire.responses.sse import Event, write_event
from holdfast.wire.strict import encode
from holdfast.wire.values import inner, take

_CALLS = ("function_call", "custom_tool_call")
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_SAYS = ("response.output_text.delta", "response.refusal.delta")
_IDENTITY = ("id", "created_at", "previous_response_id")

# --- complete responses ------------------------------------------------------------------------


def turn_of(body: dict[str, Any]) -> list[Any]:
    """Return the items of a response."""
    return list(dicts(body.get("output")))


def stop_of(body: dict[str, Any]) -> str:
    """Return why the response is incomplete, otherwise its status."""
    return take(body, "incomplete_details", "reason") or text(body.get("status"))


def usage_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the reported usage."""
    return inner(body, "usage")


def hides(body: dict[str, Any], hidden: IsHidden) -> bool:
    """Return whether a response contains anything that the client must not see."""
    called = any(_is_hidden(item, hidden) for item in turn_of(body))
    return called or _without_hidden_tools(body, hidden) is not body


def without(message: Any, hidden: IsHidden) -> Any:
    """Return an item; None if it is a hidden call."""
    return None if _is_hidden(message, hidden) else message


def join_bodies(
    bodies: Sequence[dict[str, Any]], hidden: IsHidden, handed: HandedCalls
) -> dict[str, Any]:
    """Join several responses into one."""
    items = [item for body in bodies for item in turn_of(body) if not _is_hidden(item, hidden)]
    items += _as_handed(turn_of(bodies[-1]), handed)
    usage = joined_usage([usage_of(body) for body in bodies])
    return _joined(bodies[-1], bodies[0], items, usage, hidden)


def _joined(
    last: dict[str, Any],
    first: dict[str, Any],
    items: list[Any],
    usage: dict[str, Any],
    hidden: IsHidden,
) -> dict[str, Any]:
    identity = {key: first[key] for key in _IDENTITY if key in first}
    billed = {"usage": usage} if usage else {}
    return _without_hidden_tools({**last, **identity, "output": items, **billed}, hidden)


def _without_hidden_tools(response: dict[str, Any], hidden: IsHidden) -> dict[str, Any]:
    """Return a response without the hidden tools; the same object if it has none."""
    tools = response.get("tools")
    if not isinstance(tools, list):
        return response
    visible_tools = [tool for tool in tools if not hidden(take(tool, "name"))]
    if len(visible_tools) == len(tools):
        return response
    return {**response, "tools": visible_tools}


def _is_hidden(item: dict[str, Any], hidden: IsHidden) -> bool:
    return item.get("type") in _CALLS and hidden(text(item.get("name")))


def _as_handed(items: Sequence[dict[str, Any]], handed: HandedCalls) -> list[dict[str, Any]]:
    """Return calls in the form that the client receives."""
    natives = [item for item in items if item.get("type") in _CALLS]
    return [
        {**item, "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for item, call in handed_calls(natives, handed)
    ]


# --- streams -----------------------------------------------------------------------------------


class ResponsesJoiner(Joiner):
    """Numbers items and events continuously over all upstream streams, without hidden ones."""

    def __init__(self, hidden: IsHidden, *, hide_usage: bool = False) -> None:
        self._first: dict[str, Any] = {}
        """The first response object that the client received."""
        self._earlier: list[Any] = []
        """Items of earlier upstream streams that the client saw."""
        self._last_number = -1
        self._next_index = 0
        super().__init__(hidden, hide_usage=hide_usage)

    def _reset(self) -> None:
        super()._reset()
        self._items: dict[int, Any] = {}
        self._shown: dict[int, int | None] = {}
        self._output: list[Any] = []
        self._said: list[Any] = []
        self._index_shift = self._next_index
        self._number_shift: int | None = None if self.continued else 0

    def restart(self) -> None:
        """Prepare for the next upstream stream."""
        self._earlier.extend(self._visible_items())
        super().restart()

    def join(self, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        """Process an event with a JSON object."""
        index = value.get("output_index")
        response = value.get("response")
        if isinstance(index, int):
            self._item(index, value, event, out)
        elif isinstance(response, dict):
            self._lifecycle(response, value, event, out)
        else:
            self.failed = self.failed or value.get("type") == "error"
            self._give(value, event, out)

    def _item(self, index: int, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        kind = value.get("type")
        if kind in ("response.output_item.added", "response.output_item.done"):
            item = inner(value, "item")
            if index not in self._shown:
                self._open(index, item)
            if kind == "response.output_item.done":
                self._items[index] = item
        client_index = self._shown.get(index, index)
        if client_index is None:
            self._skip(value)
            return
        if not self.spoken:
            has_delta = kind in _SAYS and value.get("delta")
            self.spoken = bool(has_delta) or take(value, "item", "type") in _CALLS
        self._give(
            {**value, "output_index": client_index}, event, out, touched=client_index != index
        )

    def _open(self, index: int, item: dict[str, Any]) -> None:
        if _is_hidden(item, self.hidden):
            self.secretive = True
            self._index_shift -= 1
            self._shown[index] = None
        else:
            client_index = index + self._index_shift
            self._next_index = max(self._next_index, client_index + 1)
            self._shown[index] = client_index

    def _lifecycle(
        self, response: dict[str, Any], value: dict[str, Any], event: Event, out: list[bytes]
    ) -> None:
        self._first = self._first or response
        self.upstream_id = text(response.get("id"))
        if value.get("type") not in _ENDS:
            if self.continued:
                self._skip(value)
                return
        else:
            self._end_of(response, failed=value["type"] == "response.failed")
            if self.holding and not self.failed:
                self.tail.append((event, value))
                return
            if self.continued or self.secretive:
                value = {**value, "response": self._joined(response)}
        visible_response = _without_hidden_tools(response, self.hidden)
        if value.get("response") is response and visible_response is not response:
            value = {**value, "response": visible_response}
        self._give(value, event, out, touched=value.get("response") is not response)

    def _end_of(self, response: dict[str, Any], *, failed: bool) -> None:
        self.ended = self.over = True
        self.failed = self.failed or failed
        self.usage = usage_of(response)
        self.stop_reason = stop_of(response)
        self._output = turn_of(response)
        # Some services report items only here.
        self.secretive = self.secretive or any(_is_hidden(i, self.hidden) for i in self._output)

    def _joined(self, response: dict[str, Any]) -> dict[str, Any]:
        items = [*self._earlier, *self._visible_items(), *self._said]
        return _joined(response, self._first, items, self.reported, self.hidden)

    def _visible_items(self) -> list[Any]:
        return [item for item in self.messages() if not _is_hidden(item, self.hidden)]

    def _number(self, value: dict[str, Any]) -> int | None:
        number = value.get("sequence_number")
        if not isinstance(number, int):
            return None
        if self._number_shift is None:
            self._number_shift = self._last_number + 1 - number
        return number

    def _skip(self, value: dict[str, Any]) -> None:
        if self._number(value) is not None and self._number_shift is not None:
            self._number_shift -= 1

    def _give(
        self, value: dict[str, Any], event: Event, out: list[bytes], *, touched: bool = False
    ) -> None:
        number = self._number(value)
        if number is not None:
            shift = self._number_shift or 0
            self._last_number = number + shift
            if shift:
                value = {**value, "sequence_number": self._last_number}
                touched = True
        out.append(changed_event(value, event) if touched else event.raw)

    def end(self, value: Any, event: Event, out: list[bytes]) -> None:
        """Emit an end that was held back."""
        value = {**value, "response": self._joined(value["response"])}
        self._give(value, event, out, touched=True)

    def give_calls(self, handed: HandedCalls, out: list[bytes]) -> None:
        """Emit complete calls as items of one piece."""
        for item in _as_handed(self.messages(), handed):
            self._give_own(item, call_events(item, self._next_index), out)

    def _give_own(self, item: Any, events: Iterable[dict[str, Any]], out: list[bytes]) -> None:
        """Emit the events of an item that the upstream did not send."""
        for value in events:
            self._last_number += 1
            out.append(
                write_event(
                    encode({**value, "sequence_number": self._last_number}), value["type"].encode()
                )
            )
            if self._number_shift is not None:
                self._number_shift += 1
        self._said.append(item)
        self._next_index += 1
        self.spoken = True

    def messages(self) -> list[Any]:
        """Return the items of this upstream stream, as the next request contains them."""
        return [self._items[index] for index in sorted(self._items)] or self._output

    def calls(self) -> list[ModelCall]:
        """Return the calls of this upstream stream, including hidden ones."""
        return calls_in(self.messages(), NAME)


def call_events(item: dict[str, Any], index: int) -> list[dict[str, Any]]:
    """Return the events of a call sent in one piece, without sequence numbers."""
    grown = call_delta(item, index, item["arguments"])
    return [call_added(item, index), grown, *call_done(item, index)]


def call_added(item: dict[str, Any], index: int) -> dict[str, Any]:
    """Return the event that starts a call."""
    empty = {**item, "status": "in_progress", _input_of(item): ""}
    return {"type": "response.output_item.added", "output_index": index, "item": empty}


def call_delta(item: dict[str, Any], index: int, piece: str) -> dict[str, Any]:
    """Return the event with a piece of a call's arguments."""
    at = {"item_id": item.get("id", ""), "output_index": index}
    return {"type": f"{_written(item)}.delta", **at, "delta": piece}


def call_done(item: dict[str, Any], index: int) -> list[dict[str, Any]]:
    """Return the events that end a call."""
    at = {"item_id": item.get("id", ""), "output_index": index}
    input_key = _input_of(item)
    named = {"name": item["name"]} if input_key == "arguments" else {}
    return [
        {"type": f"{_written(item)}.done", **at, **named, input_key: item[input_key]},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _input_of(item: dict[str, Any]) -> str:
    return "input" if item.get("type") == "custom_tool_call" else "arguments"


def _written(item: dict[str, Any]) -> str:
    custom = item.get("type") == "custom_tool_call"
    return f"response.{'custom_tool_call_input' if custom else 'function_call_arguments'}"


def message_item(item_id: str, words: str, kind: str = "output_text") -> dict[str, Any]:
    """Return a message item with a text, or with a refusal for kind `refusal`."""
    part: dict[str, Any] = {"type": kind, "refusal": words}
    if kind == "output_text":
        part = {"type": kind, "text": words, "annotations": [], "logprobs": []}
    return {
        "id": item_id,
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def message_added(item: dict[str, Any], index: int) -> list[dict[str, Any]]:
    """Return the events that start a message."""
    [part] = item["content"]
    empty = {**item, "status": "in_progress", "content": []}
    begun = {**part, _words_of(part): ""}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": empty},
        {"type": "response.content_part.added", **_inside(item, index), "part": begun},
    ]


def message_delta(item: dict[str, Any], index: int, piece: str) -> dict[str, Any]:
    """Return the event with a piece of a message's text."""
    [part] = item["content"]
    return {**_event(part, "delta"), **_inside(item, index), "delta": piece}


def message_done(item: dict[str, Any], index: int) -> list[dict[str, Any]]:
    """Return the events that end a message."""
    [part] = item["content"]
    words = _words_of(part)
    return [
        {**_event(part, "done"), **_inside(item, index), words: part[words]},
        {"type": "response.content_part.done", **_inside(item, index), "part": part},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _inside(item: dict[str, Any], index: int) -> dict[str, Any]:
    return {"item_id": item["id"], "output_index": index, "content_index": 0}


def _words_of(part: dict[str, Any]) -> str:
    return "refusal" if part["type"] == "refusal" else "text"


def _event(part: dict[str, Any], last: str) -> dict[str, Any]:
    if part["type"] == "refusal":
        return {"type": f"response.refusal.{last}"}
    return {"type": f"response.output_text.{last}", "logprobs": []}
