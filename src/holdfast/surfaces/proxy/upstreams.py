"""Where requests go: chosen by path and settings alone, before any secret is attached.

upstreams: after switches, before sending.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from urllib.parse import unquote, urlsplit

from holdfast.errors import ShapeError
from holdfast.surfaces.proxy.switches import PREFIX
from holdfast.upstream.upstreams import Family, Upstream

# Hop-by-hop headers, and headers that the proxy sets itself.
_DROPPED = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding "
    "upgrade host content-length expect cookie "
    # A method that is not the one which was checked: Google's front ends obey the first.
    "x-http-method-override x-http-method x-method-override".split()
)
_NOT_RETURNED = frozenset(
    "connection keep-alive proxy-authenticate te trailer transfer-encoding upgrade "
    "set-cookie server date".split()
)
_OF_THE_BYTES = frozenset({"content-encoding", "content-length", "content-md5", "etag"})
_SECRETS = frozenset(
    {"authorization", "x-api-key", "x-goog-api-key", "api-key", "x-amz-security-token"}
)
# Keys that only one vendor knows; gateways before the others may want any header.
_OTHERS_KEYS: dict[Family, frozenset[str]] = {
    "openai": frozenset({"x-goog-api-key"}),
    "anthropic": frozenset({"x-goog-api-key"}),
    "gemini": frozenset({"x-api-key", "api-key"}),
    "bedrock": frozenset({"x-goog-api-key"}),
    "cohere": frozenset({"x-goog-api-key"}),
}
_ACCOUNTS = frozenset({"openai-organization", "openai-project", "x-goog-user-project"})
"""Which of a key's accounts is meant: with the settings' key that is not the client's to choose."""
_SIGNED = "AWS4-"
"""The beginning of a signed authorization (AWS Signature Version 4, any algorithm): it covers the
method, the path, the hash of the body, the host and other headers, and is no secret."""


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
    if not upstream.takes_clients_key:
        query = without("key", query)
    return f"{base}{path}?{query}" if query else base + path


def without(name: str, query: str) -> str:
    """A query without one of its fields; the others keep their very bytes."""
    return "&".join(pair for pair in query.split("&") if unquote(pair.partition("=")[0]) != name)


def signature_of(headers: Iterable[tuple[str, str]]) -> str:
    """Return the client's signature of the request, if any: then no byte of it can be changed."""
    fields = (value for name, value in headers if name.lower() == "authorization")
    return next((value for value in fields if value.startswith(_SIGNED)), "")


def outgoing_headers(
    upstream: Upstream, headers: Iterable[tuple[str, str]], tokens: Collection[str] = ()
) -> dict[str, str]:
    """Return the headers for an upstream: the client's, with the settings' key if there is one.

    The proxy's own tokens, if a client sent one as a key, are removed. With a signature, the host
    that it covers is sent too.
    """
    fields = [(name.lower(), value) for name, value in headers]
    dropped = _DROPPED | _OTHERS_KEYS[upstream.family]
    if upstream.takes_clients_key and signature_of(fields):
        dropped -= {"host"}
    if not upstream.takes_clients_key:
        dropped |= _ACCOUNTS
    for name, value in fields:
        if name == "connection":  # the client's value is for this hop only (RFC 9110, 7.6.1)
            dropped |= {named.strip() for named in value.lower().split(",")}
    outgoing: dict[str, str] = {}
    for name, value in fields:
        if name in dropped or name.startswith(PREFIX):
            continue
        is_ours = value.endswith(tuple(tokens))
        if name in _SECRETS and (is_ours or not upstream.takes_clients_key):
            continue
        text = value if value.isascii() else _text(value)
        # Repeated headers are joined with a comma (RFC 9110, 5.3).
        outgoing[name] = f"{outgoing[name]}, {text}" if name in outgoing else text
    return outgoing | upstream.key_header


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
