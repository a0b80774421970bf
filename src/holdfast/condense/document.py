"""The JSON that a content holds, wherever it stands in it, with every number as it was written.

document: after source, before the condensers of structured content. Tools wrap what they answer:
as JSON lines, as JSON inside a string of JSON, with a sentence before and after it, or as Python
prints it. `document` finds the values in all of these. Paths begin at `$`, the outermost value
found, and a string that holds JSON counts as that JSON: `$.content[0].text.items[3]`.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec
from msgspec import structs

from holdfast.condense.once import once
from holdfast.condense.python_values import as_json
from holdfast.condense.source import Source

Form = Literal["json", "lines", "embedded", "python"]

_OPEN_LEVELS = 4
"""How deep a string is looked at for JSON inside; wrappers are shallow."""
_WORTH_OPENING = 40
"""Shorter strings are left alone, whatever they hold."""
_FEW = 24
"""Larger containers hold data and are no wrappers."""
_AROUND = 2_000
"""Characters of prose that may stand before JSON, and after it."""
_JSON_SHARE = 0.6
"""Below this share of a text, JSON is an illustration, not the content."""


class Number(str):
    """A number with a fraction or an exponent, as it was written: `1.10` stays `1.10`."""

    __slots__ = ()


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Values found in a content."""

    value: Any
    form: Form
    around: tuple[str, ...] = ()
    """The prose before and after the JSON, if there is any."""
    text: str = ""
    """The text of the values, if it is not the whole content."""
    begin: int = 0
    """Where that begins in the content, or in the string that the content is."""
    in_string: bool = False
    """Whether the content is one string of JSON."""
    sealed: tuple[tuple[str | int, ...], ...] = ()
    """Steps to strings that hold prose too, so that no path can be opened inside."""


_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)
_decoder = msgspec.json.Decoder(float_hook=Number)


@once
def document(source: Source) -> Document | None:
    """The JSON of a content, read once; None if there is none worth the name."""
    data = source.data.removeprefix(b"\xef\xbb\xbf")
    start = data[:200].lstrip()[:1]
    if start in (b"{", b"["):
        return _json(data) or _json_lines(data) or _python(data)
    if start == b'"':
        return _string(_decode(data))
    return _embedded(source.text)


def _string(text: Any) -> Document | None:
    found = _in_text(text) if isinstance(text, str) else None
    if found is None or found.form not in ("json", "embedded", "python"):
        return None
    inner = found.text or text
    form = "embedded" if found.form == "json" else found.form
    return structs.replace(found, form=form, text=inner, in_string=True)


def _decode(data: bytes | str) -> Any:
    try:
        return _decoder.decode(data)
    except _UNREADABLE:
        return None


def _json(data: bytes | str) -> Document | None:
    value = _decode(data)
    if value is None:
        return None
    around: list[str] = []
    sealed: list[tuple[str | int, ...]] = []
    opened = _unwrapped(value, (), around, sealed)
    return Document(value=opened, form="json", around=tuple(around), sealed=tuple(sealed))


def _json_lines(data: bytes) -> Document | None:
    if b"\n" not in data.strip():
        return None
    for text in (data, data.rstrip().rpartition(b"\n")[0]):  # the last line may be cut off
        try:
            rows = _decoder.decode_lines(text)
        except _UNREADABLE:
            continue
        rest = data[len(text) :].decode("utf-8", "replace").strip()
        if len(rows) > 1 and isinstance(rows[0], dict):
            return Document(value=rows, form="lines", around=(rest,) if rest else ())
    return None


def _python(data: bytes | str) -> Document | None:
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    value = _decode(as_json(text))
    return None if value is None else Document(value=value, form="python", text=text)


def _in_text(text: str) -> Document | None:
    """JSON in a string that a tool gave: all of it, or with prose around it."""
    start = text[:200].lstrip()[:1]
    if start and start in "{[":
        found = _json(text) or _python(text)
        return found if found and isinstance(found.value, (dict, list)) else None
    return _embedded(text)


_OPENING = re.compile(r"^[ \t]*([\[{])", re.MULTILINE)


def _embedded(text: str) -> Document | None:
    opening = _OPENING.search(text, 0, _AROUND)
    if opening is None:
        return None
    begin = opening.start(1)
    close = "]" if opening[1] == "[" else "}"
    end = text.rfind(close, max(begin, len(text) - _AROUND)) + 1
    if end - begin < len(text) * _JSON_SHARE:
        return None
    value = _decode(text[begin:end])
    form: Form = "embedded"
    if value is None and (found := _python(text[begin:end])):
        value, form = found.value, found.form
    if not isinstance(value, (dict, list)):
        return None
    around = tuple(part for part in (text[:begin].strip(), text[end:].strip()) if part)
    return Document(value=value, form=form, around=around, text=text[begin:end], begin=begin)


def _unwrapped(
    value: Any,
    steps: tuple[str | int, ...],
    around: list[str],
    sealed: list[tuple[str | int, ...]],
) -> Any:
    """The same value with strings that are JSON replaced by what they hold, near the top."""
    if isinstance(value, str):
        found = _in_text(value) if type(value) is str and len(value) >= _WORTH_OPENING else None
        if found is None:
            return value
        around.extend(found.around)
        if found.form != "json":
            sealed.append(steps)
        return found.value
    if len(steps) == _OPEN_LEVELS or not isinstance(value, (dict, list)) or len(value) > _FEW:
        return value
    if isinstance(value, list):
        return [_unwrapped(item, (*steps, n), around, sealed) for n, item in enumerate(value)]
    return {key: _unwrapped(item, (*steps, key), around, sealed) for key, item in value.items()}
