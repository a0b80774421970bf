"""Errors, failures and warnings in a JSON value, quoted verbatim.

Alerts are values of keys like `error` or `warnings`, a `message` next to a failed status,
`"isError": true`, and objects whose `status` or `level` reports a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from holdfast.condense.condenser import Note
from holdfast.condense.cutting import shortened
from holdfast.condense.pieces import Place, line, path_of
from holdfast.condense.source import Source
from holdfast.document import Document, DocumentWindow, windows

_MOST = 12
"""More alerts than this are counted, not listed."""
_QUOTED_CHARS = 400
# In `re`: it is asked about keys of at most 64 bytes.
_KEY = re.compile(
    r"(?i)(?:\w*[_-])?(?:errors?|exceptions?|faults?|failures?|warnings?|traceback|vulnerabilit\w+)"
    r"|error_?(?:message|type|code|description)|\w+[a-z](?:Error|Warning|Exception)s?"
)
_STATES = ("status", "state", "level", "severity", "conclusion", "result", "outcome")
_FAILED = frozenset(
    "error errored fail failed failure fatal critical alert emergency timed_out denied".split()
)
_FAILED_BYTES = tuple(word.encode() + quote for word in _FAILED for quote in (b'"', b"\\", b"'"))
_KEY_BYTES = 64
_CODES = ("status", "code", "statusCode", "status_code", "httpStatus")
_MESSAGES = ("message", "detail", "error_description", "reason")
_TELLING = frozenset((*_STATES, *_CODES, *_MESSAGES, "isError"))
_MOST_JUDGED = 4_000


def alerts(source: Source) -> list[Note]:
    """Return every alert of a document in document order; the last note counts the omitted ones."""
    document = source.document
    signs = _signs(source) if document is not None else None
    if document is None or signs is None or not signs.any:
        return []
    notes: list[Note] = []
    count = 0
    for part in _parts(document):
        for place, key, item in _found(part.value, part.first, signs):
            count += 1
            if count <= _MOST:
                quoted = f"{key}: {line(item)}" if key else _failure(item)
                notes.append(
                    Note("alert", shortened(quoted, _QUOTED_CHARS), path_of(place, part.path))
                )
    if count > _MOST:
        notes.append(Note("alert", f"{count - _MOST:,} more errors or warnings"))
    return notes


def _parts(document: Document) -> Iterable[DocumentWindow]:
    return [DocumentWindow("$", 0, document.value, "")] if document.is_whole else windows(document)


class _Signs(msgspec.Struct, frozen=True):
    """Signs of alerts in the raw bytes, found before any value is visited."""

    keys: tuple[str, ...]
    """The keys in use that name an alert."""
    states: tuple[str, ...]
    """Keys of a state that occur, if a word of failure occurs anywhere."""
    messages: bool
    """Whether there are messages beside codes, or an `isError`."""

    @property
    def any(self) -> bool:
        return bool(self.keys or self.states or self.messages)


def _signs(source: Source) -> _Signs:
    keys = _keys(source.data, b'"') | (_keys(source.data, b"'") if b"':" in source.data else set())
    states = tuple(key for key in _STATES if key in keys)
    if states:
        folded = source.data.lower()
        states = states if any(map(folded.__contains__, _FAILED_BYTES)) else ()
    return _Signs(
        tuple(sorted(key for key in keys if _KEY.fullmatch(key))),
        states,
        "isError" in keys or not (keys.isdisjoint(_MESSAGES) or keys.isdisjoint(_CODES)),
    )


def _keys(data: bytes, quote: bytes) -> set[str]:
    """Return the keys of alerts that occur between a quote and a quote with a colon."""
    keys: set[str] = set()
    judged: set[bytes] = set()
    end, at = quote + b":", 0
    while (at := data.find(end, at) + 1) > 0:
        # Start no earlier: if no quote begins a key, all text before it would count as one key.
        start = max(0, at - 1 - _KEY_BYTES)
        word = data[max(start, data.rfind(quote, start, at - 1) + 1) : at - 1]
        if word in judged:
            continue
        if len(judged) == _MOST_JUDGED:  # a hundred thousand keys may all differ
            judged.clear()
        judged.add(word)
        key = word.rstrip(b"\\").decode("utf-8", "replace")
        if key in _TELLING or _KEY.fullmatch(key):
            keys.add(key)
    return keys


def _failure(item: dict[str, Any]) -> str:
    """Return a failed object with its failure first, so that a cut loses the least."""
    telling = [key for key in (*_STATES, *_CODES, *_MESSAGES, "error") if key in item]
    return line({key: item[key] for key in dict.fromkeys([*telling, *item])})[1:-1]


def _found(value: Any, first: int, signs: _Signs) -> Iterator[tuple[Place, str, Any]]:
    """Places with an alert, its key and its value; no recursion, so that depth is no danger."""
    keys, states, messages = signs.keys, signs.states, signs.messages
    stack: list[tuple[Place, Any]] = [((), value)]
    while stack:
        place, item = stack.pop()
        if type(item) is dict:
            if (states and _in_failure(item, states)) or (messages and _tells_failure(item)):
                yield place, "", item
                continue
            for key in keys:
                if key in item and _reports(item[key]):
                    yield (place, key, item), key, item[key]
            stack.extend(
                [
                    ((place, key, item), child)
                    for key, child in item.items()
                    if (type(child) is dict or type(child) is list) and key not in keys
                ][::-1]
            )
        elif type(item) is list:
            stack.extend(
                [
                    ((place, index, item), child)
                    for index, child in enumerate(item, 0 if place else first)
                    if type(child) is dict or type(child) is list
                ][::-1]
            )


def _reports(value: Any) -> bool:
    """Whether it is a report and not a flag, a count, a link or the schema of such a field."""
    if isinstance(value, dict):
        return bool(value) and not ("$ref" in value or ("type" in value and "description" in value))
    if isinstance(value, list):
        return bool(value)
    return type(value) is str and bool(value) and not value.startswith("http")


def _in_failure(item: dict[str, Any], states: tuple[str, ...]) -> bool:
    for key in states:
        state = item.get(key)
        if type(state) is str and state.lower() in _FAILED:
            return True
    return False


def _tells_failure(item: dict[str, Any]) -> bool:
    if item.get("isError") is True:
        return True
    if not any(key in item for key in _MESSAGES):
        return False
    return any(_is_failure_code(item.get(key)) for key in _CODES)


def _is_failure_code(code: Any) -> bool:
    if type(code) is str and code.isdecimal() and len(code) == 3:
        code = int(code)
    return type(code) is int and 400 <= code < 600
