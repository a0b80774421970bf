"""The messages of one conversation of a framework: written once, and shown again as they went out.

thread: beside host, before session. A message that was not edited stays the framework's own object;
what was edited is made once and shown again with every later call.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from holdfast.fitting.state import FitState
from holdfast.trim.provenance import REPLACEMENT
from holdfast.wire import DIALECTS, Conversation, Message
from holdfast.wire.strict import Limits, to_bytes

M = TypeVar("M")


class Memo(NamedTuple, Generic[M]):
    """How a message that was written is known again: what is not, is written anew.

    Two steps, for the second is taken for each message of a history with each call: it makes
    nothing.
    """

    note: Callable[[M], object]
    """What to remember of a message when it is written."""
    knows: Callable[[Any, M], bool]
    """(what was remembered, a message) → whether it is that one, unchanged."""


class Form(Protocol[M]):
    """How a framework's messages are written in a dialect, and read back."""

    @property
    def dialect(self) -> str:
        """The dialect's name, such as `openai-chat`."""

    def write(self, message: M) -> Sequence[Mapping[str, Any]]:
        """A message as messages of the dialect: mostly one."""

    def read(self, parts: Sequence[tuple[Any, M | None]]) -> Sequence[M]:
        """Messages for what goes out in the place of others.

        Each part is a value of the dialect and the framework's message that it is an edit of; None
        if it is a digest, or was added. There are several parts only where `write` gives several.
        """


class Thread(Generic[M]):
    """The messages of one conversation, as they were written and shown last."""

    def __init__(self, form: Form[M], memo: Memo[M]) -> None:
        self._form, self._memo = form, memo
        self.asked: Conversation | None = None
        """What the conversation was last: the next is read as what was added."""
        self._lines: list[_Line[M]] = []
        self._shown: dict[int, tuple[Message, list[M]]] = {}
        """By the message that goes out, which is held so that its id stays its own."""

    def body(self, messages: Sequence[M], around: Mapping[str, Any]) -> bytes:
        """The request, of messages that are written once."""
        lines, (note, knows) = self._lines, self._memo
        same = 0
        for line, message in zip(lines, messages, strict=False):
            if not knows(line.note, message):
                break
            same += 1
        lines[same:] = [_Line(message, note(message), self._form) for message in messages[same:]]
        [key] = DIALECTS[self._form.dialect].LISTS[0]
        hollow: dict[str, Any] = {**around, str(key): []}
        head = to_bytes(hollow, Limits())[:-2]  # the list stands last, and is still open
        return head + b",".join([line.span for line in lines]) + b"]}"

    def shown(self, state: FitState, messages: Sequence[M]) -> list[M]:
        """What goes out, in the framework's own objects but for what was edited."""
        asked, sent = state.asked.messages, state.sent.messages
        if sent is asked or sent == asked:
            return list(messages)
        owners = [n for n, line in enumerate(self._lines) for _ in range(line.count)]
        shown: list[M] = []
        held: dict[int, tuple[Message, list[M]]] = {}
        first = 0
        for n, (_, stop) in enumerate(state.origins):
            if 0 < stop < len(owners) and owners[stop] == owners[stop - 1]:
                continue  # the next one is a part of the same message
            start = state.origins[first][0]
            group = sent[first : n + 1]
            if group == asked[start:stop]:
                shown.extend(messages[owners[start] : owners[stop - 1] + 1])
            else:
                known = self._shown.get(id(group[0]))
                edited = known[1] if known else self._edited(state, first, n + 1, owners, messages)
                held[id(group[0])] = (group[0], edited)
                shown.extend(edited)
            first = n + 1
        self._shown = held
        return shown

    def _edited(
        self, state: FitState, first: int, last: int, owners: list[int], messages: Sequence[M]
    ) -> list[M]:
        parts: list[tuple[Any, M | None]] = []
        for message, (start, _) in zip(
            state.sent.messages[first:last], state.origins[first:last], strict=True
        ):
            stand = REPLACEMENT.get(message)
            is_digest = stand is not None and stand.fold is not None
            is_added = stand is not None and stand.is_added
            own = start if stand is None else start + stand.own
            like = None if is_digest or is_added else messages[owners[own]]
            parts.append((message.value, like))
        return list(self._form.read(parts))


class _Line(Generic[M]):
    """A message as it was written, and what tells that it has not changed since."""

    __slots__ = ("count", "message", "note", "span")

    def __init__(self, message: M, note: object, form: Form[M]) -> None:
        self.message, self.note = message, note  # it is held, so that its id stays its own
        values = form.write(message)
        self.count, self.span = len(values), span_of(values)


def span_of(values: Sequence[Mapping[str, Any]]) -> bytes:
    return b",".join([to_bytes(value, Limits()) for value in values])


def snapshot(value: Any) -> object:
    """Return a copy that later edits of the value do not reach; it equals nothing if there is none.

    Texts are shared with the copy, so that comparing an unchanged history compares no characters.
    """
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - a framework's own object, which may refuse in any way
        return object()


def _fields(message: Any) -> Any:
    """Return all that a program may edit in place: programs redact and shorten their history so."""
    if isinstance(message, dict):
        return message
    fields = getattr(message, "__dict__", None)
    return fields or getattr(message, "content", None)


def _note(message: Any) -> object:
    return id(message), snapshot(_fields(message))


def _knows(note: Any, message: Any) -> bool:
    id_, fields = note
    # A dictionary is often a new one with each call.
    is_same = isinstance(message, dict) or id_ == id(message)
    return bool(is_same and fields == _fields(message))


BY_OBJECT: Memo[Any] = Memo(_note, _knows)
