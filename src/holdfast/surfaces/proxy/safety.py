"""Who may ask: the right host, no foreign page, and the token where one is needed.

safety: before gate, which asks here about every request, whatever its path.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from holdfast.settings import Settings

TOKEN_MISSING = 401
_LOOPBACK_NAMES = frozenset({"localhost"})


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def refusal(headers: Mapping[str, str], settings: Settings) -> tuple[int, str] | None:
    """The status and the reason of a refusal; None if the request may be answered."""
    host = _host_of(headers.get("host", ""))
    allowed = {settings.serve_host, *settings.serve_names}
    if not (is_loopback(host) or host in allowed):
        return 403, "This host name is not one that the proxy answers to; see serve_names."
    origin = headers.get("origin", "")
    site = origin.partition("://")[2]
    if origin and site != headers.get("host") and _host_of(site) not in settings.serve_names:
        return 403, "Pages of other sites may not use the proxy."
    if settings.serve_token and not _has_token(headers, settings.serve_token):
        why = "The proxy's token is missing: send it as x-holdfast-token, or as the API key."
        return TOKEN_MISSING, why
    return None


def _host_of(netloc: str) -> str:
    """The name in `name:port`; nothing where it is no such thing, which no rule allows."""
    try:
        return (urlsplit(f"//{netloc}").hostname or "").lower()
    except ValueError:
        return ""


def _has_token(headers: Mapping[str, str], token: str) -> bool:
    given = (
        headers.get("x-holdfast-token", ""),
        headers.get("authorization", "").removeprefix("Bearer ").strip(),
        headers.get("x-api-key", ""),
        headers.get("x-goog-api-key", ""),
    )
    return any(hmac.compare_digest(value.encode(), token.encode()) for value in given if value)
