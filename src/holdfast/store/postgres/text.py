r"""text: any str as text that PostgreSQL can hold, and back.

It knows nothing of tables. PostgreSQL's text has no zero character and no lone surrogates;
what agents read does. Each is written as U+FFFF and four hex digits, and so is U+FFFF itself:
two texts never become one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_ESCAPE = "\uffff"
_UNSTORABLE = re.compile("[\0\ud800-\udfff\uffff]")
_ESCAPED = re.compile(f"{_ESCAPE}([0-9a-f]{{4}})")


def encode(text: str) -> bytes:
    """The bytes to send for a text."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return _escaped(text).encode()
    return data if b"\0" not in data and b"\xef\xbf\xbf" not in data else _escaped(text).encode()


def encoded(texts: Iterable[str]) -> list[str]:
    """Return texts for an array, inside of which the driver encodes by itself."""
    return [encode(text).decode() for text in texts]


def decode(data: bytes) -> str:
    """Return the text of received bytes."""
    return unescaped(data.decode())


def unescaped(text: str) -> str:
    """Return the text of an array element, which the driver has decoded itself."""
    if _ESCAPE not in text:
        return text
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _escaped(text: str) -> str:
    return _UNSTORABLE.sub(lambda found: f"{_ESCAPE}{ord(found[0]):04x}", text)
