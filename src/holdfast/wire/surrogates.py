"""Find and replace lone surrogates: halves of characters, left where text was cut or corrupted.

This is the only step that accepts a body that is not valid Unicode.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.errors import BadJSONError, LimitError
from holdfast.wire.json_places import Place, dotted, places_at
from holdfast.wire.strict import encode

# An escape counts only after an even number of backslashes; a high half is complete if a low half
# follows. Escaped backslashes are matched first, so that they are skipped.
_ESCAPED = re.compile(
    rb"\\(?:\\|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2}))"
)
# A half as bytes, as careless encoders write it. Two patterns, because a pattern with a literal
# first byte is searched many times faster.
_ENCODED = re.compile(rb"\xed([\xa0-\xbf][\x80-\xbf])")
_FORMS = ((_ESCAPED, (b"\\ud", b"\\uD")), (_ENCODED, (b"\xed",)))
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"  # Unicode's replacement character


def replace_surrogates(body: object) -> tuple[object, list[str]]:
    """Replace lone surrogates by U+FFFD; return the body and the paths of the replacements."""
    if isinstance(body, (bytes, bytearray, memoryview)):
        return _replace_in_bytes(bytes(body))
    if isinstance(body, str):
        return _replace_in_bytes(body.encode(errors="surrogatepass"))
    if isinstance(body, Mapping) and _may_have_surrogates(body):
        places: list[Place] = []
        try:
            return _replace_in_value(body, (), places), [dotted(place) for place in places]
        except RecursionError:
            pass  # the parser will report it
    return body, []


def _replace_in_bytes(raw: bytes) -> tuple[bytes, list[str]]:
    paths: list[str] = []
    for pattern, hints in _FORMS:
        if any(hint in raw for hint in hints):
            raw, replaced_paths = _replace_halves(raw, pattern)
            paths.extend(replaced_paths)
    return raw, list(dict.fromkeys(paths))


def _replace_halves(raw: bytes, pattern: re.Pattern[bytes]) -> tuple[bytes, list[str]]:
    lone: list[int] = []

    def mend(match: re.Match[bytes]) -> bytes:
        if match[1] is None:
            return match[0]
        lone.append(match.start())
        return b"\\ufffd"

    replaced = pattern.sub(mend, raw)
    return replaced, [dotted(place) for place in places_at(raw, lone)] if lone else []


def _may_have_surrogates(value: object) -> bool:
    try:
        encode(value)
    except UnicodeEncodeError:
        return True
    except (TypeError, ValueError, LimitError):
        pass  # not JSON for another reason, which the parser will report
    return False


def _replace_in_value(value: Any, place: Place, mended: list[Place]) -> Any:
    if isinstance(value, Mapping):
        replaced = {
            _replace_in_value(key, place, mended): _replace_in_value(
                item, (*place, str(key)), mended
            )
            for key, item in value.items()
        }
        if len(replaced) < len(value):
            raise BadJSONError(
                "two keys of an object differ only in lone surrogates",
                where=dotted(place),
                fix="Send valid Unicode.",
            )
        return replaced
    if isinstance(value, (list, tuple)):
        return [_replace_in_value(item, (*place, n), mended) for n, item in enumerate(value)]
    if isinstance(value, str) and _SURROGATE.search(value):
        mended.append(place)
        return _SURROGATE.sub(_REPLACEMENT, value)
    return value
