"""Where requests go: chosen by path and settings alone, before any secret is attached.

upstreams: after switches, before sending.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from holdfast.errors import SettingsError, ShapeError
from holdfast.settings import Settings
from holdfast.surfaces.proxy.routes import Family
from holdfast.surfaces.proxy.switches import PREFIX

OFFICIAL: dict[Family, str] = {
    "openai": "https://api.openai.com",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
OWNERS: dict[Family, str] = {"openai": "OpenAI's", "anthropic": "Anthropic's", "gemini": "Gemini's"}

# What a hop says to the next hop only, and what the proxy says anew.
_DROPPED = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding "
    "upgrade host content-length expect cookie".split()
)
_NOT_RETURNED = frozenset(
    "connection keep-alive proxy-authenticate te trailer transfer-encoding upgrade "
    "set-cookie server date".split()
)
_OF_THE_BYTES = frozenset({"content-encoding", "content-length", "content-md5", "etag"})
_SECRETS = frozenset({"authorization", "x-api-key", "x-goog-api-key", "api-key"})
# Keys that only one vendor knows; gateways before the others may want any header.
_OTHERS_KEYS: dict[Family, frozenset[str]] = {
    "openai": frozenset({"x-goog-api-key"}),
    "anthropic": frozenset({"x-goog-api-key"}),
    "gemini": frozenset({"x-api-key", "api-key"}),
}


class Upstream(NamedTuple):
    """A provider's address, and the key to use there if the settings have one."""

    family: Family
    url: str
    key: str = ""

    def __repr__(self) -> str:
        return f"<Upstream {self.family}>"


def configured(settings: Settings) -> dict[Family, Upstream]:
    """The upstreams that the settings name.

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
    """The URL of a request at an upstream, its bytes kept; a `/v1` that both have is one."""
    if not {".", ".."}.isdisjoint(unquote(path).replace("\\", "/").split("/")):
        raise ShapeError(
            "the path climbs", where="path", fix="Write it without segments that are dots."
        )
    base = upstream.url
    last = "/" + base.rpartition("/")[2]
    if urlsplit(base).path and path.startswith(last + "/"):
        path = path[len(last) :]
    if upstream.key:
        query = without("key", query)
    return f"{base}{path}?{query}" if query else base + path


def without(name: str, query: str) -> str:
    """A query without one of its fields; the others keep their very bytes."""
    return "&".join(one for one in query.split("&") if unquote(one.partition("=")[0]) != name)


def outgoing_headers(
    upstream: Upstream, headers: Iterable[tuple[str, str]], tokens: Collection[str] = ()
) -> dict[str, str]:
    """The headers for an upstream: the client's, with the key of the settings if there is one.

    The proxy's own tokens, if a client sent one in the place of a key, go nowhere.
    """
    fields = [(name.lower(), value) for name, value in headers]
    dropped = _DROPPED | _OTHERS_KEYS[upstream.family]
    for name, value in fields:
        if name == "connection":  # what a client says is for this hop only (RFC 9110, 7.6.1)
            dropped |= {named.strip() for named in value.lower().split(",")}
    outgoing: dict[str, str] = {}
    for name, value in fields:
        if name in dropped or name.startswith(PREFIX):
            continue
        if name in _SECRETS and (upstream.key or value.endswith(tuple(tokens))):
            continue
        text = value if value.isascii() else _text(value)
        # What a client says twice it says once, with a comma (RFC 9110, 5.3).
        outgoing[name] = f"{outgoing[name]}, {text}" if name in outgoing else text
    if upstream.key:
        name, value = {
            "openai": ("authorization", f"Bearer {upstream.key}"),
            "anthropic": ("x-api-key", upstream.key),
            "gemini": ("x-goog-api-key", upstream.key),
        }[upstream.family]
        outgoing[name] = value
    return outgoing


def _text(value: str) -> str:
    """A header as the client for upstreams writes it: in UTF-8, where it was that."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return value


def returned_headers(headers: Mapping[str, str], *, changed: bool) -> dict[str, str]:
    """The upstream's headers for the client; of a changed body, none that describe its bytes."""
    dropped = _NOT_RETURNED | _OF_THE_BYTES if changed else _NOT_RETURNED
    returned: dict[str, str] = {}
    for field, value in headers.items():
        name = field.lower()
        if name not in dropped:
            raw = value.encode("utf-8", "surrogateescape").decode("latin-1")
            returned[name] = f"{returned[name]}, {raw}" if name in returned else raw
    return returned
