"""Strict JSON: bytes in, values and spans out, and an exact place when it is not JSON.

strict: the first step of the wire layer; knows nothing about dialects.

A provider rejects what lenient parsers let through (NaN, lone surrogates, duplicate keys), so
this reader does too. Spans are `msgspec.Raw`: windows on the caller's buffer, not copies.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from holdfast.errors import BadJSONError, LimitError

_TYPE_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}

Place = tuple[str | int, ...]
"""Where a value stands: the keys and indices that lead to it."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How large a body may be before it is refused unread."""

    max_body_bytes: int = 33_554_432
    """Bytes of one body; the default is the smallest limit a provider documents (rule A16)."""
    max_keys: int = 800_000
    """Object keys in one body; a request of 100,000 tool-calling messages has about 550,000."""


encode = msgspec.json.encode
decode = msgspec.json.Decoder().decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def json_type(value: object) -> str:
    """Name the JSON type of a value, for error texts."""
    return _TYPE_NAMES.get(type(value), "number")


def dotted(place: Place, root: str = "$") -> str:
    """Write a place as a JSONPath: `$.messages[3].content[0]`."""
    steps = (
        f"[{step}]"
        if isinstance(step, int)
        else f".{step}"
        if _PLAIN_KEY.fullmatch(step)
        else f"[{json.dumps(step[:40])}]"
        for step in place
    )
    return root + "".join(steps)


_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


# --- from whatever the caller holds to bytes ---------------------------------------------------


def to_bytes(body: object, limits: Limits) -> bytes:
    """Bring a body (bytes, text or a JSON value) into bytes that are not too many."""
    if isinstance(body, str):
        raw = _encode_text(body)
    elif isinstance(body, (bytes, bytearray, memoryview, msgspec.Raw)):
        raw = bytes(body)
    else:
        raw = _encode_value(body)
    if len(raw) > limits.max_body_bytes:
        raise LimitError(
            f"the body has {len(raw):,} bytes; at most {limits.max_body_bytes:,} are read",
            where="$",
            fix="Send less, or raise the setting max_body_bytes.",
        )
    return raw


def to_checked_bytes(body: object, limits: Limits) -> bytes:
    """Like `to_bytes`, for a body that will be read whole."""
    raw = to_bytes(body, limits)
    check_keys(raw, limits)
    return raw


def check_keys(raw: bytes, limits: Limits) -> None:
    """Refuse a body with more keys than the limits allow, before memory is spent on them."""
    # A pair takes at least six bytes, so small bodies need no count.
    if len(raw) > limits.max_keys * 6:
        # An escaped quote before a colon stands inside a string; all other `":` end a key or
        # open a string with a colon, so this is the number of keys, give or take a few strings.
        keys = raw.count(b'":') - raw.count(b'\\":')
        if keys > limits.max_keys:
            raise LimitError(
                f"the body has about {keys:,} object keys; at most {limits.max_keys:,} are read",
                where="$",
                fix="Send less, or raise the setting max_json_keys.",
            )


def _encode_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadJSONError(
            f"character {error.start} of the body is a lone surrogate",
            where="$",
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
        raw = encode(value)
        # Equality is the cheap proof that nothing was coerced on the way (NaN becomes null,
        # a date becomes text, a number used as a key becomes text).
        if decode(raw) == value:
            return raw
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        pass
    place, reason = _first_not_json(value)
    if reason:
        raise BadJSONError(reason, where=dotted(place), fix="Pass plain JSON values only.")
    return raw  # tuples and other mappings: equal in JSON, though not in Python


def _first_not_json(root: object) -> tuple[Place, str]:
    """Find the first value that JSON cannot hold; without recursion, as it may be endless."""
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


# --- from bytes to values and spans ------------------------------------------------------------


def parse(raw: bytes | msgspec.Raw, place: Place = ()) -> Any:
    """Read one JSON value; raise BadJSONError with the exact place where it is not one."""
    raw = bytes(raw)
    try:
        value = decode(raw)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        raise _explain(raw, place) from None
    # Re-encoding the value gives the sender's bytes again, less the white space, unless he wrote
    # escapes or numbers another way: that proves that no key was given twice. What is left is
    # read once more with a slower parser that can tell.
    compact = raw if b'": ' not in raw[:24] else msgspec.json.format(raw, indent=-1)
    if encode(value) != compact:
        _refuse_duplicate_keys(raw, place)
    return value


def fields(raw: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """Split a parsed object into the spans of its values."""
    return _fields(raw)


def items(raw: bytes | memoryview | msgspec.Raw) -> list[msgspec.Raw]:
    """Split a parsed array into the spans of its elements."""
    return _items(raw)


def offsets(raw: bytes, place: Place, span: msgspec.Raw) -> tuple[int, int]:
    """Give the offsets of the value at `place` inside `raw`, of which `span` is a window.

    The value is unread so far: this is how a body is taken apart before it is parsed.
    """
    wanted = bytes(span)
    key_pattern = re.compile(re.escape(encode(place[-1])) + rb"\s*:\s*")
    for match in key_pattern.finditer(raw):
        start = match.end()
        if raw.startswith(wanted, start):
            stop = start + len(wanted)
            # The same key may stand deeper in the body too: a stand-in shows which one this is.
            if _at(raw[:start] + b"0" + raw[stop:], place) == b"0":
                return start, stop
    raise BadJSONError(
        "the key is written in an unusual way",
        where=dotted(place),
        fix="Write keys without escapes, each once.",
    )


def _at(raw: bytes, place: Place) -> bytes | None:
    span: bytes | msgspec.Raw = raw
    try:
        for key in place:
            span = _fields(span)[str(key)]
    except RecursionError:
        raise _too_deep(place) from None
    except (ValueError, KeyError, msgspec.MsgspecError):
        return None
    return bytes(span)


def splice(raw: bytes | msgspec.Raw, place: Place, new: bytes) -> bytes:
    """Put `new` at `place`; everything beside it keeps its very bytes."""
    if not place:
        return new
    step, rest = place[0], place[1:]
    if isinstance(step, int):
        elements: list[Any] = _items(raw)
        elements[step] = msgspec.Raw(splice(elements[step], rest, new))
        return encode(elements)
    members: dict[str, Any] = _fields(raw)
    members[step] = msgspec.Raw(splice(members.get(step, b"null"), rest, new))
    return encode(members)


# --- explaining what is wrong ------------------------------------------------------------------


def _refuse_duplicate_keys(raw: bytes, place: Place) -> None:
    def check(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) > 1 and len({key for key, _ in pairs}) != len(pairs):
            raise _DuplicateKeyError

    try:
        # Numbers are no concern here, and float takes any number of digits.
        json.loads(raw.decode(), object_pairs_hook=check, parse_int=float)
    except _DuplicateKeyError:
        inside = _duplicate_place(raw)
        raise BadJSONError(
            "an object has the same key twice",
            where=dotted(place + inside),
            fix="Send each key once: parsers disagree on which value counts.",
        ) from None
    except RecursionError:
        raise _too_deep(place) from None


class _DuplicateKeyError(Exception):
    pass


def _too_deep(place: Place) -> LimitError:
    return LimitError(
        "the JSON is nested too deeply", where=dotted(place), fix="No provider accepts it; flatten."
    )


def _explain(raw: bytes, place: Place) -> BadJSONError | LimitError:
    """Say why a parser refused these bytes, and where."""
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        reason, offset = error.msg.split(":")[0], len(error.doc[: error.pos].encode())
    else:  # within orjson's depth limit but not within Python's
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


_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},:]', re.DOTALL)
_SCAN_BYTES = 8_000_000


def place_at(raw: bytes, offset: int) -> Place:
    """Give the place of the value that holds `offset`, also in broken JSON.

    Only the first 8 MB are scanned, so that an error message is never slow to make.
    """
    return places_at(raw, [offset])[0] if offset <= _SCAN_BYTES else ()


def places_at(raw: bytes, offsets: list[int]) -> list[Place]:
    """Give the places of several ascending offsets in one scan."""
    stack: list[str | int] = []
    key = b""
    places: list[Place] = []
    for match in _TOKEN.finditer(raw, 0, offsets[-1] + 1):
        while len(places) < len(offsets) and offsets[len(places)] < match.end():
            places.append(_steps(stack))
        token = match.group()
        if token == b"{":
            stack.append("")
        elif token == b"[":
            stack.append(0)
        elif token in (b"]", b"}"):
            if stack:
                stack.pop()
        elif token == b",":
            if stack and isinstance(stack[-1], int):
                stack[-1] += 1
        elif token == b":":
            if stack and isinstance(stack[-1], str):
                stack[-1] = _key_text(key)
        else:
            key = token
    places.extend([_steps(stack)] * (len(offsets) - len(places)))
    return places


def _steps(stack: list[str | int]) -> Place:
    return tuple(step for step in stack if step != "")


def _duplicate_place(raw: bytes) -> Place:
    stack: list[tuple[Place, set[bytes], list[int]]] = []
    place: Place = ()
    key = b""
    for match in _TOKEN.finditer(raw):
        token = match.group()
        if token in (b"{", b"["):
            stack.append((place, set(), [0] if token == b"[" else []))
            place = (*place, 0) if token == b"[" else place
        elif token in (b"]", b"}"):
            place = stack.pop()[0]
        elif token == b"," and stack[-1][2]:
            stack[-1][2][0] += 1
            place = (*stack[-1][0], stack[-1][2][0])
        elif token == b":":
            base, seen, _ = stack[-1]
            text = _key_text(key)
            place = (*base, text)
            if text.encode() in seen:
                return place
            seen.add(text.encode())
        elif token[:1] == b'"':
            key = token
    return ()


def _key_text(token: bytes) -> str:
    try:
        return str(orjson.loads(token))
    except orjson.JSONDecodeError:
        return token.strip(b'"').decode(errors="replace")
