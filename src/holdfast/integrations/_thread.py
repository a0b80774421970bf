"""The messages of one conversation, converted once and reused in later calls.

An unedited message stays the framework's object; an edited one is converted once and reused.
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
    """How to recognise an unchanged message, which is not written again.

    `knows` is called for each message of the history in each call, so it must not build objects.
    """

    note: Callable[[M], object]
    """Returns what identifies a message, when it is written."""
    knows: Callable[[Any, M], bool]
    """(note, message) → whether it is the same message, unchanged."""


class Form(Protocol[M]):
    """Converts a framework's messages to a dialect and back."""

    @property
    def dialect(self) -> str:
        """The dialect's name, such as `openai-chat`."""

    def write(self, message: M) -> Sequence[Mapping[str, Any]]:
        """Return a message as messages of the dialect: usually one."""

    def read(self, parts: Sequence[tuple[Any, M | None]]) -> Sequence[M]:
        """Return the framework's messages for edited ones.

        Each part is a value of the dialect and the framework's message that it edits; None for a
        digest or an added message. There are several parts only if `write` returns several.
        """


class Thread(Generic[M]):
    """The messages of one conversation, as last written and sent."""

    def __init__(self, form: Form[M], memo: Memo[M]) -> None:
        self._form, self._memo = form, memo
        self.asked: Conversation | None = None
        """The last conversation; the next one is read as an addition to it."""
        self._lines: list[_WrittenMessage[M]] = []
        self._shown: dict[int, tuple[Message, list[M]]] = {}
        """By id of the sent message, which is kept so that its id stays unique."""

    def body(self, messages: Sequence[M], around: Mapping[str, Any]) -> bytes:
        """Return the request; each message is written only once."""
        lines, (note, knows) = self._lines, self._memo
        unchanged = 0
        for line, message in zip(lines, messages, strict=False):
            if not knows(line.note, message):
                break
            unchanged += 1
        lines[unchanged:] = [
            _WrittenMessage(message, note(message), self._form) for message in messages[unchanged:]
        ]
        [key] = DIALECTS[self._form.dialect].LISTS[0]
        hollow: dict[str, Any] = {**around, str(key): []}
        head = to_bytes(hollow, Limits())[:-2]  # the list is the last field and is still open
        return head + b",".join([line.span for line in lines]) + b"]}"

    def shown(self, state: FitState, messages: Sequence[M]) -> list[M]:
        """Return the messages to send: the framework's objects except for edited ones."""
        client_messages, sent_messages = state.asked.messages, state.sent.messages
        if sent_messages is client_messages or sent_messages == client_messages:
            return list(messages)
        owners = [n for n, line in enumerate(self._lines) for _ in range(line.count)]
        result: list[M] = []
        edited_by_id: dict[int, tuple[Message, list[M]]] = {}
        first = 0
        for n, (_, stop) in enumerate(state.origins):
            if 0 < stop < len(owners) and owners[stop] == owners[stop - 1]:
                continue  # the next one is a part of the same message
            start = state.origins[first][0]
            group = sent_messages[first : n + 1]
            if group == client_messages[start:stop]:
                result.extend(messages[owners[start] : owners[stop - 1] + 1])
            else:
                cached = self._shown.get(id(group[0]))
                edited = (
                    cached[1] if cached else self._edited(state, first, n + 1, owners, messages)
                )
                edited_by_id[id(group[0])] = (group[0], edited)
                result.extend(edited)
            first = n + 1
        self._shown = edited_by_id
        return result

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


class _WrittenMessage(Generic[M]):
    """A written message and the note by which a change is noticed."""

    __slots__ = ("count", "message", "note", "span")

    def __init__(self, message: M, note: object, form: Form[M]) -> None:
        self.message, self.note = message, note  # kept, so that its id stays unique
        values = form.write(message)
        self.count, self.span = len(values), span_of(values)


def span_of(values: Sequence[Mapping[str, Any]]) -> bytes:
    return b",".join([to_bytes(value, Limits()) for value in values])


def snapshot(value: Any) -> object:
    """Return a copy that later edits do not affect; if there is none, an unequal object.

    The copy shares its texts, so that comparing an unchanged history compares no characters.
    """
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - a framework's object may raise anything
        return object()


def _fields(message: Any) -> Any:
    """Return the fields that a program may edit in place, for example to redact a history."""
    if isinstance(message, dict):
        return message
    fields = getattr(message, "__dict__", None)
    return fields or getattr(message, "content", None)


def _note(message: Any) -> object:
    return id(message), snapshot(_fields(message))


def _is_unchanged(note: Any, message: Any) -> bool:
    id_, fields = note
    # A dictionary is often a new object in each call.
    is_same = isinstance(message, dict) or id_ == id(message)
    return bool(is_same and fields == _fields(message))


BY_OBJECT: Memo[Any] = Memo(_note, _is_unchanged)
