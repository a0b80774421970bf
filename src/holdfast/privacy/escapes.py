"""Find secrets and personal data in JSON as it is written, whatever its escapes hide.

escapes: after detectors. Messages are stored as the client's bytes, in which a line ends with a
backslash and an `n`: a token that a tool printed at the start of a line then stands behind a
letter, and no detector takes it for a word. So the text is looked at as it is written, and once
more without its escapes. For the second look too many boundaries do no harm, too few would.
"""

from __future__ import annotations

from holdfast.privacy.detectors import find, flags

_LEVELS = 2
"""A tool's arguments are JSON in a text of JSON; deeper ones are not met."""
_ASCII = {f"{code:04x}".encode(): bytes([code]) for code in range(32, 127)}
_SIGNS = ((b"\\n", b"\n"), (b"\\r", b"\r"), (b"\\t", b"\t"), (b'\\"', b'"'), (b"\\/", b"/"))


def flags_in_json(data: bytes) -> tuple[str, ...]:
    """The kinds found in some JSON, sorted."""
    return flags(finding for text in _readings(data) for finding in find(text))


def secrets_in_json(data: bytes) -> set[str]:
    """The secrets and data themselves: to be compared, never to be logged or stored."""
    return {text[f.start : f.stop] for text in _readings(data) for f in find(text)}


def _readings(data: bytes) -> list[str]:
    """A text as it is written, and without its escapes if it has any."""
    texts = [data]
    if b"\\" in data:
        plain = data
        for _ in range(_LEVELS):
            plain = plain.replace(b"\\\\", b"\\")
        first, *escaped = plain.split(b"\\u")
        plain = b"".join([first, *map(_unescaped, escaped)])
        for escape, sign in _SIGNS:
            plain = plain.replace(escape, sign)
        texts.append(plain)
    return [text.decode("utf-8", "replace") for text in texts]


def _unescaped(part: bytes) -> bytes:
    """A sign and what stands behind it; what is searched for is ASCII, others leave a gap."""
    return _ASCII.get(part[:4].lower(), b" ") + part[4:]
