"""Where requests go: chosen by path and settings alone, before any secret is attached.

upstreams: after switches, before sending.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from holdfast.errors import SettingsError
from holdfast.settings import Settings
from holdfast.surfaces.proxy.routes import Family
from holdfast.surfaces.proxy.switches import PREFIX

OFFICIAL: dict[Family, str] = {
    "openai": "https://api.openai.com",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}

# What a hop says to the next hop only, and what the proxy says anew.
_DROPPED = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding "
    "upgrade host content-length accept-encoding expect cookie".split()
)
_NOT_RETURNED = frozenset(
    "connection keep-alive proxy-authenticate te trailer transfer-encoding upgrade "
    "content-length set-cookie server date".split()
)
_SECRETS = frozenset({"authorization", "x-api-key", "x-goog-api-key", "api-key"})


class Upstream(NamedTuple):
    """A provider's address, and the key to use there if the settings have one."""

    family: Family
    url: str
    key: str = ""

    def __repr__(self) -> str:
        return f"<Upstream {self.family}>"


def configured(settings: Settings) -> dict[Family, Upstream]:
    """The upstreams that the settings name; a family without one is answered offline.

    A key without an address means the vendor's own.
    """
    given: dict[Family, tuple[str, str]] = {
        "openai": (settings.openai_upstream, settings.openai_key),
        "anthropic": (settings.anthropic_upstream, settings.anthropic_key),
        "gemini": (settings.gemini_upstream, settings.gemini_key),
    }
    found: dict[Family, Upstream] = {}
    for family, (url, key) in given.items():
        if not url and not key:
            continue
        base = (url or OFFICIAL[family]).rstrip("/")
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise SettingsError(
                "the upstream is no HTTP address",
                where=f"{family}_upstream",
                fix=f"Give one such as {OFFICIAL[family]}, without a user name.",
            )
        found[family] = Upstream(family, base, key)
    return found


def address(upstream: Upstream, path: str, query: str) -> str:
    """The URL of a request at an upstream; a `/v1` that both have is one."""
    base = upstream.url
    last = "/" + base.rpartition("/")[2]
    if urlsplit(base).path and path.startswith(last + "/"):
        path = path[len(last) :]
    if upstream.key:
        query = urlencode([(k, v) for k, v in parse_qsl(query, True) if k != "key"])
    return f"{base}{path}?{query}" if query else base + path


def outgoing_headers(
    upstream: Upstream, headers: Iterable[tuple[str, str]], token: str = ""
) -> dict[str, str]:
    """The headers for an upstream: the client's, with the key of the settings if there is one.

    The proxy's own token, if a client sent it in the place of a key, goes nowhere.
    """
    made: dict[str, str] = {}
    for given, value in headers:
        name = given.lower()
        if name in _DROPPED or name.startswith(PREFIX):
            continue
        if name in _SECRETS and (upstream.key or (token and value.endswith(token))):
            continue
        # What a client says twice it says once, with a comma (RFC 9110, 5.3).
        made[name] = f"{made[name]}, {value}" if name in made else value
    if upstream.key:
        name, value = {
            "openai": ("authorization", f"Bearer {upstream.key}"),
            "anthropic": ("x-api-key", upstream.key),
            "gemini": ("x-goog-api-key", upstream.key),
        }[upstream.family]
        made[name] = value
    return made


def returned_headers(headers: Mapping[str, str], *, changed: bool) -> dict[str, str]:
    """The upstream's headers for the client; of a changed body, none that describe its bytes."""
    described = {"content-encoding", "content-md5", "etag"} if changed else set()
    return {
        name.lower(): value
        for name, value in headers.items()
        if name.lower() not in _NOT_RETURNED and name.lower() not in described
    }
