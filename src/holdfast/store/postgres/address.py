"""address: a URL of PostgreSQL as it may be shown.

It knows nothing of connections. What looks like a password goes, even where the URL is written
wrongly: better to hide too much than a part of a password.
"""

from __future__ import annotations

import re

_LOGIN = re.compile(r"://([^:/@]*):.*", re.DOTALL)
_OPTION = re.compile(r"(?i)(?<=[?&])(?:ssl)?pass(?:word|file)=[^&]*&?")


def without_password(url: str) -> str:
    """The URL without what it says of a password."""
    login, at, place = url.rpartition("@")  # a password may hold one, too
    shown = _LOGIN.sub(r"://\1", login) + at + place if at else url
    return _OPTION.sub("", shown).rstrip("?&")
