"""address: a URL of PostgreSQL as it may be shown.

It knows nothing of connections. What looks like a password goes, even where the URL is written
wrongly: better to hide too much than a part of a password.
"""

from __future__ import annotations

import re

_LOGIN = re.compile(r"(?<=://)([^:/@]*):.*@", re.DOTALL)
_OPTION = re.compile(r"(?i)(?<=[?&])(?:ssl)?pass(?:word|file)=[^&]*&?")


def without_password(url: str) -> str:
    """The URL without what it says of a password."""
    return _OPTION.sub("", _LOGIN.sub(r"\1@", url)).rstrip("?&")
