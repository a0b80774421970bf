"""Find and mend lone surrogates: halves of characters, left where text was cut or mangled.

surrogates: before strict; the only step that accepts a body which is not valid Unicode.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.wire.strict import Place, dotted, encode, places_at

# An escape counts only behind an even number of backslashes; a high half is whole if a low
# half follows it. Escaped backslashes are matched first, so that they are passed over.
_ESCAPES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"  # Unicode's own sign for a character that was lost


def mend_surrogates(body: object) -> tuple[object, list[str]]:
    """Replace lone surrogates by U+FFFD; give the mended body and the paths of what was mended."""
    if isinstance(body, (bytes, bytearray, memoryview)):
        return _mend_bytes(bytes(body))
    if isinstance(body, str):
        whole = _SURROGATE.sub(_REPLACEMENT, body) if _SURROGATE.search(body) else body
        mended, paths = _mend_bytes(whole.encode())
        return mended, paths or (["$"] if whole is not body else [])
    if isinstance(body, Mapping) and _may_have_surrogates(body):
        places: list[Place] = []
        return _mend_value(body, (), places), [dotted(place) for place in places]
    return body, []


def _mend_bytes(raw: bytes) -> tuple[bytes, list[str]]:
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return raw, []
    lone = [match.start() for match in _ESCAPES.finditer(raw) if match[1]]
    if not lone:
        return raw, []
    mended = _ESCAPES.sub(lambda match: b"\\ufffd" if match[1] else match[0], raw)
    return mended, list(dict.fromkeys(map(dotted, places_at(raw, lone))))


def _may_have_surrogates(value: object) -> bool:
    try:
        encode(value)
    except UnicodeEncodeError:
        return True
    except (TypeError, ValueError, RecursionError):
        pass  # not JSON for another reason, which the reader will name
    return False


def _mend_value(value: Any, place: Place, mended: list[Place]) -> Any:
    if isinstance(value, Mapping):
        return {
            _mend_value(key, place, mended): _mend_value(item, (*place, str(key)), mended)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_mend_value(item, (*place, n), mended) for n, item in enumerate(value)]
    if isinstance(value, str) and _SURROGATE.search(value):
        mended.append(place)
        return _SURROGATE.sub(_REPLACEMENT, value)
    return value
