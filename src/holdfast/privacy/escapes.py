"""Find secrets and personal data in JSON as it is written, whatever its escapes hide.

escapes: after detectors. Messages are stored as the client's bytes, in which a line ends with a
backslash and an `n`: a token that a tool printed at the start of a line then stands behind a
letter, and no detector takes it for a word. So the text is looked at as it is written, and once
more without its escapes. For the second look too many boundaries do no harm, too few would.
"""

from __future__ import annotations

import re

from holdfast.privacy.detectors import find, flags

_LEVELS = 2
"""A tool's arguments are JSON in a text of JSON; deeper ones are not met."""
_ASCII = re.compile(r"\\u00([2-7][0-9a-fA-F])")
_OTHERS = re.compile(r"\\u[0-9a-fA-F]{4}")
_SIGNS = (("\\n", "\n"), ("\\r", "\r"), ("\\t", "\t"), ('\\"', '"'), ("\\/", "/"))


def flags_in_json(data: bytes) -> tuple[str, ...]:
    """The kinds found in some JSON, sorted."""
    return flags(finding for text in _readings(data) for finding in find(text))


def secrets_in_json(data: bytes) -> set[str]:
    """The secrets and data themselves: to be compared, never to be logged or stored."""
    return {text[f.start : f.stop] for text in _readings(data) for f in find(text)}


def _readings(data: bytes) -> list[str]:
    """A text as it is written, and without its escapes if it has any."""
    written = data.decode("utf-8", "replace")
    if "\\" not in written:
        return [written]
    plain = written
    for _ in range(_LEVELS):
        plain = plain.replace("\\\\", "\\")
    plain = _ASCII.sub(_character, plain)
    plain = _OTHERS.sub(" ", plain)  # what is searched for is ASCII
    for escape, sign in _SIGNS:
        plain = plain.replace(escape, sign)
    return [written, plain]


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16))
