"""Parse and write strict JSON, with exact error locations.

Providers reject input that lenient parsers accept (NaN, lone surrogates, duplicate keys), so this
parser does too. Spans are `msgspec.Raw`: windows on the caller's buffer instead of copies.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any, TypeVar

import msgspec
import orjson

from holdfast.errors import BadJSONError, LimitError
from holdfast.wire import long_strings
from holdfast.wire.json_places import Place, dotted, duplicate_place, place_at

_WHITE = b" \t\r\n"
_TYPE_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the size of a body, checked before it is parsed."""

    max_body_bytes: int = 33_554_432
    """Maximum bytes of a body; the default is Anthropic's documented limit, the smallest one."""
    max_keys: int = 800_000
    """Maximum object keys in a body, and a quarter of its values; a request with 100,000
    tool-calling messages has about 550,000.
    """


# JSON from this size on is parsed in steps: a parser needs 3 ms for as many escapes, and holds the
# GIL, which blocks every other request.
_LARGE_BYTES = 1_000_000

_T = TypeVar("_T")
_encode = msgspec.json.encode
_decode = msgspec.json.Decoder().decode


def _within_depth(
    function: Callable[[Any], _T], in_steps: Callable[[memoryview], _T] | None = None
) -> Callable[[Any], _T]:
    """Convert Python's error for deep nesting; the depth limit depends on the caller's stack."""

    def guarded(value: Any) -> _T:
        try:
            if in_steps is not None and _is_large(value):
                return in_steps(memoryview(value))
            return function(value)
        except RecursionError:
            raise _too_deep(()) from None

    return guarded


def _is_large(value: object) -> bool:
    return isinstance(value, (bytes, memoryview, msgspec.Raw)) and len(value) > _LARGE_BYTES


encode = _within_depth(_encode)
decode = _within_depth(_decode, long_strings.decode)
fields = _within_depth(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode, long_strings.fields)
"""Split an object into the spans of its values."""
items = _within_depth(msgspec.json.Decoder(list[msgspec.Raw]).decode, long_strings.items)
"""Split an array into the spans of its elements."""


def sha256_of(value: Any, size: int) -> bytes:
    """Return the SHA-256 of a value's JSON, computed in steps if its `size` is large."""
    if size <= _LARGE_BYTES:
        return sha256(encode(value)).digest()
    summed = sha256()
    for part in long_strings.write_in_parts(value):
        summed.update(part)
    return summed.digest()


def json_type(value: object) -> str:
    """Return the JSON type of a value, for error texts."""
    return _TYPE_NAMES.get(type(value), "number")


# --- input to bytes ------------------------------------------------------------------------------


def to_bytes(body: object, limits: Limits) -> bytes:
    """Convert a body (bytes, text or a JSON value) to bytes; raise if there are too many."""
    if isinstance(body, str):
        raw = _encode_text(body)
    elif isinstance(body, (bytes, bytearray, memoryview, msgspec.Raw)):
        raw = bytes(body)
    else:
        raw = _encode_value(body)
    if len(raw) > limits.max_body_bytes:
        raise LimitError(
            f"the body has more than {limits.max_body_bytes:,} bytes",
            where="$",
            fix="Send less, or raise the setting max_body_bytes.",
        )
    return raw


def to_checked_bytes(body: object, limits: Limits) -> bytes:
    """Convert a body to bytes and check the number of its keys and values."""
    raw = to_bytes(body, limits)
    check_keys(raw, limits)
    return raw


def check_keys(raw: bytes, limits: Limits) -> None:
    """Raise if a body has more keys or values than allowed, before they cost memory."""
    # A pair takes at least five bytes and one colon, so few bodies need the exact count.
    if len(raw) > limits.max_keys * 5 and _count(b":", raw) > limits.max_keys:
        # Without white space and escapes, `":` ends a key or starts a string with a colon, so this
        # count is nearly exact.
        keys = sum(part.translate(None, _WHITE).count(b'":') for part in _without_escapes(raw))
        _refuse_over(limits.max_keys, keys, "object keys")
    max_values = limits.max_keys * _VALUES_PER_KEY
    if len(raw) > max_values and sum(_count(sign, raw) for sign in (b",", b"[", b"{")) > max_values:
        _refuse_over(max_values, _count_values(raw), "values")


_VALUES_PER_KEY = 4
_ORDINARY = bytes(set(range(256)) - set(b'",[{'))


def _count_values(raw: bytes) -> int:
    """Return the number of values in JSON, by the signs before them outside of strings."""
    values, is_inside = 0, False
    for part in _without_escapes(raw):
        # alternately outside and inside of strings
        runs = part.translate(None, _ORDINARY).split(b'"')
        values += sum(map(len, runs[is_inside::2]))
        is_inside ^= len(runs) % 2 == 0
    return values


def _without_escapes(raw: bytes) -> Iterator[bytes]:
    """Yield JSON in parts, without backslashes and escaped quotes."""
    at = 0
    while part := raw[at : at + _LARGE_BYTES // 4]:
        backslashes = len(part) - len(part.rstrip(b"\\"))
        if backslashes % 2 and at + len(part) < len(raw):
            part = part[:-1]  # it escapes the first byte of the next part
        at += len(part)
        yield part.replace(b"\\\\", b"").replace(b'\\"', b"")


def holds(raw: bytes, words: bytes, start: int, stop: int) -> bool:
    """Return whether bytes occur between two offsets, searching in steps."""
    if stop - start <= _LARGE_BYTES:  # most messages; every request asks this for each of them
        return raw.find(words, start, stop) >= 0
    beyond = _LARGE_BYTES + len(words) - 1
    steps = range(start, stop, _LARGE_BYTES)
    return any(raw.find(words, at, min(stop, at + beyond)) >= 0 for at in steps)


def _count(sign: bytes, raw: bytes) -> int:
    """Return how often a byte occurs, counting in steps."""
    return sum(raw.count(sign, at, at + _LARGE_BYTES) for at in range(0, len(raw), _LARGE_BYTES))


def _refuse_over(maximum: int, number: int, what: str) -> None:
    if number > maximum:
        raise LimitError(
            f"the body has about {number:,} {what}; at most {maximum:,} are read",
            where="$",
            fix="Send less in one request.",
        )


def _encode_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raw = text.encode(errors="surrogatepass")
        offset = len(text[: error.start].encode())
        raise BadJSONError(
            f"character {error.start} of the body is a lone surrogate",
            where=dotted(place_at(raw, offset)),
            fix="Send valid Unicode; holdfast.repair replaces lone surrogates.",
        ) from None


def _encode_value(value: object) -> bytes:
    if not isinstance(value, (Mapping, list)):
        raise BadJSONError(
            f"the body is a {type(value).__name__}",
            where="$",
            fix="Pass bytes, text or a dictionary of JSON values.",
        )
    try:
        raw = _encode(value)
        # Equality proves cheaply that no value was coerced (NaN to null, a date or numeric key to
        # text).
        if _decode(raw) == value:
            return raw
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        pass
    place, reason = _first_not_json(value)
    if reason:
        raise BadJSONError(reason, where=dotted(place), fix="Pass plain JSON values only.")
    try:  # tuples and other mappings are equal as JSON, though not in Python
        text = json.dumps(value, default=dict, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise _too_deep(()) from None
    return text.encode()


def _first_not_json(root: object) -> tuple[Place, str]:
    """Return the first value that JSON cannot represent, iteratively because it may be cyclic."""
    pending: list[tuple[Place, object]] = [((), root)]
    while pending:
        place, value = pending.pop()
        if len(place) > 1000:
            return place[:3], "the value is nested more than 1,000 levels deep, or contains itself"
        if isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, str):
                    return place, f"a key is a {type(key).__name__}, not a string"
                if not _is_unicode(key):
                    return place, "a key holds a lone surrogate"
            pending.extend(((*place, key), item) for key, item in reversed(list(value.items())))
        elif isinstance(value, (list, tuple)):
            pending.extend(((*place, i), value[i]) for i in range(len(value) - 1, -1, -1))
        elif isinstance(value, str):
            if not _is_unicode(value):
                return place, "the string holds a lone surrogate"
        elif isinstance(value, float):
            if not math.isfinite(value):
                return place, "NaN and Infinity are not JSON"
        elif value is not None and not isinstance(value, (bool, int)):
            return place, f"a {type(value).__name__} is not a JSON value"
    return (), ""


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- bytes to values and spans --------------------------------------------------------------------


def parse(raw: bytes | msgspec.Raw, place: Place = ()) -> Any:
    """Parse one JSON value; raise `BadJSONError` with the exact place of an error."""
    view = memoryview(raw)  # a view, because a body of 20 MB must not be copied
    skeleton, filled = long_strings.without_long_strings(view) if _is_large(view) else (view, None)
    try:
        value = _decode(skeleton)
        proven = not isinstance(value, (dict, list)) or _is_canonical(skeleton, value)
        value = filled(value) if filled is not None else value
    except (ValueError, RecursionError, msgspec.MsgspecError):
        raise _explain(bytes(raw), place) from None
    if not proven:
        _refuse_duplicate_keys(bytes(skeleton), place)
    return value


def _is_canonical(raw: bytes | memoryview, value: Any) -> bool:
    """Return whether writing a value gives the original bytes, except for white space.

    It does not if the sender used escapes or other number formats, or repeated a key; a slower
    parser decides those cases.
    """
    rewritten = _comparable(_encode(value))
    is_spaced = b'": ' in bytes(raw[:24])
    if not is_spaced and rewritten == _comparable(raw):
        return True
    # Inside a body with indentation, a value's start may not reveal the spacing.
    if is_spaced or len(raw) < _LARGE_BYTES:
        return rewritten == _comparable(msgspec.json.format(raw, indent=-1))
    return False


def _comparable(data: bytes | memoryview) -> bytes:
    """Return bytes for comparison; a hash for large ones, so that only one side is in memory."""
    return bytes(data) if len(data) < _LARGE_BYTES else sha256(data).digest()


def offsets(
    raw: bytes, place: Place, top: Mapping[str, msgspec.Raw] | None = None
) -> tuple[int, int]:
    """Return the offsets of the value at a place of object keys in an unparsed body.

    `top` are the known spans of the body's own fields.
    """
    start, stop = 0, len(raw)
    for key in place:
        spans = fields(memoryview(raw)[start:stop]) if top is None else top
        start, stop = _member(raw, start, stop, str(key), spans)
        top = None
    return start, stop


def _member(
    raw: bytes, start: int, stop: int, key: str, spans: Mapping[str, msgspec.Raw]
) -> tuple[int, int]:
    """Return the offsets of a member's value, stepping over members of known length."""
    for name, span in spans.items():
        head = long_strings.MEMBER.match(raw, start, stop)
        size = len(memoryview(span))
        if head is None or (name == key and not raw.startswith(memoryview(span), head.end())):
            break  # the span belongs to a later member with the same name
        start = head.end() + size
        if name == key:
            return head.end(), start
    raise _same_key_twice(duplicate_place(raw))


def string_at(raw: msgspec.Raw, place: Place) -> memoryview | None:
    """Return the JSON string at a place without a copy; None for other values."""
    for step in place:
        raw = items(raw)[step] if isinstance(step, int) else fields(raw)[step]
    written = memoryview(raw)
    return written if bytes(written[:1]) == b'"' else None


def splice(raw: bytes | msgspec.Raw, place: Place, new: bytes) -> bytes:
    """Return JSON with `new` at a place; all other bytes stay unchanged."""
    if not place:
        return new
    step, remaining = place[0], place[1:]
    if isinstance(step, int):
        elements: list[Any] = items(raw)
        elements[step] = msgspec.Raw(splice(elements[step], remaining, new))
        return encode(elements)
    members: dict[str, Any] = fields(raw)
    members[step] = msgspec.Raw(splice(members.get(step, b"null"), remaining, new))
    return encode(members)


def splice_all(raw: bytes | msgspec.Raw, changes: Mapping[Place, bytes]) -> bytes:
    """Return JSON with each new value at its place, in one pass; places must not be nested."""
    if () in changes:
        return changes[()]
    inner: dict[str | int, dict[Place, bytes]] = {}
    for place, new in changes.items():
        inner.setdefault(place[0], {})[place[1:]] = new
    if any(isinstance(step, int) for step in inner):
        elements: Any = items(raw)
    else:
        elements = fields(raw)
    for step, deeper in inner.items():
        elements[step] = msgspec.Raw(splice_all(elements[step], deeper))
    return encode(elements)


# --- error messages ------------------------------------------------------------------------------


def _refuse_duplicate_keys(raw: bytes, place: Place) -> None:
    def check(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) > 1 and len({key for key, _ in pairs}) != len(pairs):
            raise _DuplicateKeyError

    try:
        # Numbers are irrelevant here, and float accepts any number of digits.
        json.loads(raw.decode(), object_pairs_hook=check, parse_int=float)
    except _DuplicateKeyError:
        raise _same_key_twice(place + duplicate_place(raw)) from None
    except RecursionError:
        raise _too_deep(place) from None


class _DuplicateKeyError(Exception):
    pass


def _same_key_twice(place: Place) -> BadJSONError:
    return BadJSONError(
        "an object has the same key twice",
        where=dotted(place),
        fix="Send each key once: parsers disagree on which value counts.",
    )


def _too_deep(place: Place) -> LimitError:
    return LimitError(
        "the JSON is nested too deeply", where=dotted(place), fix="No provider accepts it; flatten."
    )


def _explain(raw: bytes, place: Place) -> BadJSONError | LimitError:
    """Return the error that explains why a parser rejected these bytes, and where."""
    if not raw.strip(_WHITE):
        return BadJSONError("there is nothing to read", where=dotted(place), fix="Send a body.")
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        reason, offset = error.msg.split(":")[0], len(error.doc[: error.pos].encode())
    else:  # within orjson's depth limit but beyond Python's
        return _too_deep(place)
    if "depth" in reason:
        return _too_deep(place + place_at(raw, offset)[:3])
    if "UTF-8" in reason:
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            reason, offset = "the bytes are not valid UTF-8", error.start
    elif "surrogate" in reason:
        reason = f"lone surrogate ({reason})"
    return BadJSONError(
        f"not JSON at byte {offset}: {reason}",
        where=dotted(place + place_at(raw, offset)),
        fix="Send the request as UTF-8 JSON.",
    )
