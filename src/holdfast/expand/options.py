"""What part of a content an expansion asks for, read from the JSON that a model writes.

options: the first word of expand; it knows no content. Reading is forgiving where the meaning is
plain (`"40"` for 40, `lines` in any of the usual forms, null for what is not given) and strict
where it is not: an unknown option or two that contradict each other are refused, by name. Values
are never quoted in an error: they may be text of a conversation.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from holdfast.errors import ExpandError

DEFAULT_TOKENS = 1000
MOST_TOKENS = 8000
LEAST_TOKENS = 100
"""Minimum of `max_tokens`, so that the first and last line of a page leave room for content."""

_LINES = re.compile(r"\D*?(\d+)?\s*(?:(-|\.\.+|:|,|–|to)\s*\D??(\d+)?)?\s*", re.IGNORECASE)  # noqa: RUF001 a dash is a dash
_ENDS = (("start", "end"), ("first", "last"), ("from", "to"))
_LARGEST = 10**12


class Slice(msgspec.Struct, frozen=True):
    """A run of rows, lines or characters."""

    offset: int = 0
    limit: int | None = None
    """Maximum number; None for all."""


class ExpandOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a content to open; without options, the content from its beginning."""

    lines: tuple[int, int | None] | None = None
    """The first and last line, counted from 1. A negative first number means the last lines."""
    page: int = 1
    """Number of the page, in pages of `max_tokens`."""
    path: str = ""
    """A place in JSON: `$.items[3].name`."""
    fields: tuple[str, ...] = ()
    """These columns of every row, or these keys of an object."""
    slice: Slice | None = None
    """Rows where there are rows, else lines, else characters."""
    pattern: str = ""
    """A regular expression (RE2)."""
    query: str = ""
    """A question; the passages that answer it are opened."""
    around: str = ""
    """A line number, a place as in citations, or words of the content, opened with context."""
    max_tokens: int = DEFAULT_TOKENS
    otherwise: tuple[ExpandOptions, ...] = ()
    """Options to try in order if nothing is found, because a call may have several meanings."""
    question: str = ""
    """The user's question, answered if the options only copy the example in a citation."""

    @classmethod
    def parse(cls, value: object) -> ExpandOptions:
        """Parse the options that a model or a program wrote."""
        if isinstance(value, ExpandOptions):
            return value
        values = _given(value)
        flat = {name: values.pop(name) for name in ("offset", "limit") if name in values}
        unknown = [name for name in values if name not in READERS]
        if unknown:
            raise ExpandError(
                "an option is unknown", where="options", fix=f"Use {', '.join(READERS)}."
            )
        read = {name: READERS[name](name, raw) for name, raw in values.items()}
        if flat:
            if "slice" in read:
                raise _contradiction("slice", *flat)
            read["slice"] = _slice("slice", flat)
        options = cls(**read)
        options.check()
        return options

    def check(self) -> None:
        """Raise ExpandError if options contradict each other."""
        shape = [name for name in ("path", "fields", "slice") if getattr(self, name)]
        ways = [name for name in ("lines", "pattern", "query", "around") if getattr(self, name)]
        if len(ways) > 1 or (ways and shape):
            raise _contradiction(*ways, *shape)
        if self.around and self.page > 1:
            raise _contradiction("around", "page")

    def to_dict(self) -> dict[str, Any]:
        """Return the options as a model would write them, without defaults."""
        values: dict[str, Any] = msgspec.to_builtins(self)
        values.pop("otherwise", None)
        values.pop("question", None)
        if self.lines is not None:
            values["lines"] = _written(self.lines)
        if self.fields:
            values["fields"] = list(self.fields)
        return values


def _given(value: object) -> dict[str, Any]:
    """Return the options without null, "" and [], which models write for omitted options."""
    if isinstance(value, str | bytes) and value.strip():
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            raise ExpandError(
                "the options are no JSON", where="options", fix="Give an object."
            ) from None
    if not value:
        return {}
    if not isinstance(value, dict):
        raise ExpandError("the options are no object", where="options", fix="Give an object.")
    return {
        str(name): raw for name, raw in value.items() if raw is not None and raw not in ("", [], {})
    }


def _contradiction(*names: str) -> ExpandError:
    return ExpandError(
        f"{' and '.join(names)} contradict each other",
        where="options",
        fix="Give one of them; only path, fields and slice go together.",
    )


def _refused(name: str, form: str) -> ExpandError:
    return ExpandError(f"{name} is not understood", where=f"options.{name}", fix=f"Write {form}.")


def _whole(name: str, value: object) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9][0-9,_]{0,14}\s*", value):
        value = int(value.replace(",", "").replace("_", ""))
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _LARGEST:
        raise _refused(name, "a whole number")
    return value


def _page(name: str, value: object) -> int:
    number = _whole(name, value)
    if number < 0:
        raise _refused(name, "1 for the first page")
    return max(1, number)


def _tokens(name: str, value: object) -> int:
    number = _whole(name, value)
    if number < LEAST_TOKENS:
        raise _refused(name, f"a number from {LEAST_TOKENS} to {MOST_TOKENS}")
    return min(number, MOST_TOKENS)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _refused(name, "a text")
    return value.strip() if name != "pattern" else value


def _around(name: str, value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    return str(_whole(name, value))


def _fields(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple) or not all(isinstance(field, str) for field in value):
        raise _refused(name, 'a list of names, as in ["id", "owner.name"]')
    return tuple(dict.fromkeys(field.strip() for field in value if field.strip()))


def _slice(name: str, value: object) -> Slice:
    if isinstance(value, list | tuple) and len(value) == 2:
        value = {"offset": value[0], "limit": value[1]}
    if not isinstance(value, dict) or not value.keys() <= {"offset", "limit"}:
        raise _refused(name, '{"offset": 0, "limit": 20}')
    offset = _whole(name, value.get("offset") or 0)
    limit = value.get("limit")
    limit = None if limit is None else _whole(name, limit)
    if offset < 0 or (limit is not None and limit < 1):
        raise _refused(name, "an offset from 0 and a limit from 1")
    return Slice(offset, limit)


def _lines(name: str, value: object) -> tuple[int, int | None]:
    first: object
    last: object
    if isinstance(value, str):
        first, last = _read_lines(name, value)
    elif isinstance(value, dict):
        ends = next((ends for ends in _ENDS if value.keys() <= set(ends)), None)
        if ends is None:
            raise _refused(name, '"40-120"')
        first, last = value.get(ends[0], 1), value.get(ends[1])
    elif isinstance(value, list | tuple) and 1 <= len(value) <= 2:
        first, last = value[0], value[-1]
    else:
        first = last = value
    start = _whole(name, first)
    end = None if last is None or start < 0 else _whole(name, last)
    start = start or 1
    if end is not None and end < start:
        raise _refused(name, 'the smaller number first, as in "40-120"')
    return start, end


def _read_lines(name: str, value: str) -> tuple[int, int | None]:
    match = _LINES.fullmatch(value[:60].strip())
    if match is None or len(value) > 60 or not (match[1] or match[3]):
        raise _refused(name, '"40-120"')
    dash, first, last = match[2], match[1], match[3]
    if first is None:
        return -int(last), None
    start = int(first)
    if re.fullmatch(r"\s*-\s*\d+\s*", value):  # the lazy start of the pattern takes the minus
        return -start, None
    return start, (int(last) if last else None) if dash else start


def _written(lines: tuple[int, int | None]) -> str:
    first, last = lines
    if first < 0:
        return str(first)
    return f"{first}-{last if last is not None else ''}"


READERS: dict[str, Any] = {
    "lines": _lines,
    "page": _page,
    "path": _text,
    "fields": _fields,
    "slice": _slice,
    "pattern": _text,
    "query": _text,
    "around": _around,
    "max_tokens": _tokens,
}
