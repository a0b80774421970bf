"""Assemble the message of a chat choice and its calls from streamed pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.wire.responses.shared import IsHidden, ModelCall, text
from holdfast.wire.values import take


def name_of(call: dict[str, Any]) -> str:
    """Return the name of a call's tool; empty if this piece lacks it."""
    return take(call, "function", "name") or take(call, "custom", "name")


def index_of(piece: dict[str, Any]) -> int:
    """Return the number of a choice or call; services with at most one omit it."""
    index = piece.get("index")
    return index if isinstance(index, int) else 0


class GrowingChoice:
    """A choice that grows during the stream."""

    def __init__(self) -> None:
        self.first = True
        """Whether no text was received yet."""
        self.slots: list[GrowingCall] = []
        self._open: dict[int, GrowingCall] = {}
        self._names: dict[int, str] = {}
        self._pieces: dict[str, list[Any]] = {}
        self._gone: list[int] = []
        """Numbers of hidden calls."""

    def slot(self, piece: dict[str, Any]) -> GrowingCall | None:
        """Return the call that a piece belongs to; None if it starts a new one."""
        slot = self._open.get(index_of(piece))
        # Some services number every call 0 and distinguish them only by id.
        is_another_call = (
            slot and name_of(piece) and piece.get("id") and piece["id"] != slot.value.get("id")
        )
        return None if is_another_call else slot

    def learn(self, piece: dict[str, Any]) -> bool:
        """Record the name of a call, which may come late; return whether it is known."""
        if name := name_of(piece):
            self._names[index_of(piece)] = name
        return index_of(piece) in self._names

    def open(self, piece: dict[str, Any], hidden: IsHidden) -> GrowingCall:
        """Start a call."""
        index = index_of(piece)
        name = name_of(piece) or self._names.get(index, "")
        if hidden(name):
            slot = GrowingCall(None)
            self._gone.append(index)
        else:
            slot = GrowingCall(index - sum(hidden_index < index for hidden_index in self._gone))
        self._open[index] = slot
        self.slots.append(slot)
        return slot

    def grow(self, delta: dict[str, Any]) -> None:
        """Add a piece of the message; calls are extended separately."""
        for key, piece in delta.items():
            if piece is not None and key not in ("role", "tool_calls"):
                self._pieces.setdefault(key, []).append(piece)

    def message(self) -> dict[str, Any]:
        """Return the message so far."""
        message = {key: _together(pieces) for key, pieces in self._pieces.items()}
        return {**message, "tool_calls": [slot.joined_value() for slot in self.slots]}


class GrowingCall:
    """A call that grows during the stream."""

    def __init__(self, shown: int | None) -> None:
        self.shown = shown
        """Number of the call in the client's stream; None if it is hidden."""
        self.value: dict[str, Any] = {}
        self._pieces: dict[str, list[str]] = {}

    def grow(self, piece: dict[str, Any]) -> None:
        """Add a piece of the call."""
        for key, field_value in piece.items():
            if key == "index" or field_value in (None, ""):
                continue
            if key in ("function", "custom") and isinstance(field_value, dict):
                self._grow_inside(key, field_value)
            else:
                self.value[key] = field_value

    def _grow_inside(self, key: str, field_values: dict[str, Any]) -> None:
        fields = self.value.setdefault(key, {})
        for inside, piece in field_values.items():
            if inside in ("arguments", "input"):
                self._pieces.setdefault(inside, []).append(text(piece))
                fields.setdefault(inside, "")
            elif piece:
                fields.setdefault(inside, piece)

    def joined_value(self) -> dict[str, Any]:
        """Return the call so far, in the form of a request."""
        value = dict(self.value)
        for key, inside in (("function", "arguments"), ("custom", "input")):
            if isinstance(value.get(key), dict):
                written = "".join(self._pieces.get(inside, ()))
                value[key] = {**value[key], inside: written}
        value.setdefault("type", "custom" if "custom" in value else "function")
        return value

    def call(self) -> ModelCall:
        """Return the call so far."""
        value = self.joined_value()
        arguments = take(value, "function", "arguments") or take(value, "custom", "input")
        return ModelCall(text(value.get("id")), name_of(value), arguments)


def _together(pieces: list[Any]) -> Any:
    """Join the pieces of one field: concatenate texts and lists, merge objects."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    if all(isinstance(piece, dict) for piece in pieces):
        keys = dict.fromkeys(key for piece in pieces for key in piece)
        return {
            key: _together([p[key] for p in pieces if p.get(key) is not None] or [None])
            for key in keys
        }
    if any(isinstance(piece, list) for piece in pieces):
        return [part for piece in pieces for part in _parts(piece)]
    return pieces[-1]


def _parts(piece: Any) -> Iterator[Any]:
    if isinstance(piece, list):
        yield from piece
    elif isinstance(piece, str) and piece:
        yield {"type": "text", "text": piece}
