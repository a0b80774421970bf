"""URLs of PostgreSQL without their password.

Anything like a password is removed, even from a malformed URL: hiding too much is better than
showing a part of a password.
"""

from __future__ import annotations

import re

_LOGIN = re.compile(r"://([^:/@]*):.*", re.DOTALL)
_OPTION = re.compile(r"(?i)(?<=[?&])(?:ssl)?pass(?:word|file)=[^&]*&?")


def without_password(url: str) -> str:
    """Return the URL without its password."""
    login, at, place = url.rpartition("@")  # a password may hold one, too
    safe_url = _LOGIN.sub(r"://\1", login) + at + place if at else url
    return _OPTION.sub("", safe_url).rstrip("?&")
