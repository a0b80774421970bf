"""Requests that pass through: the call to the upstream as the client wrote it, or checked first.

passing_calls: after upstream_calls and dispatch, before app.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import quote

from holdfast.errors import LimitError
from holdfast.surfaces.proxy.dispatch import CREATING
from holdfast.surfaces.proxy.encodings import unpacked
from holdfast.surfaces.proxy.incoming_request import Upload
from holdfast.surfaces.proxy.provider_objects import shared_path
from holdfast.surfaces.proxy.request_facts import is_free
from holdfast.surfaces.proxy.routes import Route, normal_path
from holdfast.surfaces.proxy.seen import RequestSeen
from holdfast.surfaces.proxy.service import Service
from holdfast.surfaces.proxy.tenants import own_tokens
from holdfast.surfaces.proxy.translated import SAFE
from holdfast.surfaces.proxy.upstream_calls import UpstreamCall, UpstreamCalls
from holdfast.surfaces.proxy.upstreams import address, outgoing_headers, signature_of
from holdfast.upstream.upstreams import Upstream

ASGIScope = MutableMapping[str, Any]


class ClientRequest(NamedTuple):
    """A request whose headers have come; ASGI gives their names in lower case."""

    scope: ASGIScope
    headers: tuple[tuple[str, str], ...]
    by_name: dict[str, str]
    """Of a header that comes twice, the last."""
    route: Route | None
    """None where it only passes through."""
    upload: Upload
    seen: RequestSeen

    @property
    def query(self) -> str:
        """The query of the path, with its bytes."""
        query: bytes = self.scope.get("query_string", b"")
        return query.decode("latin-1")

    def calls(self, service: Service) -> UpstreamCalls:
        """Return the way to upstreams for this request."""
        return UpstreamCalls(service, self.headers, self.query, self.seen)


def passing_call(service: Service, request: ClientRequest, upstream: Upstream) -> UpstreamCall:
    """Return a call that passes as it comes, of any size."""
    scope, names = request.scope, request.by_name
    url = address(upstream, raw_path(scope), request.query)
    out = outgoing_headers(upstream, request.headers, own_tokens(service.settings).values())
    length = names.get("content-length", "")
    has_body = length not in ("", "0") or "transfer-encoding" in names
    if has_body and length:
        out["content-length"] = length  # without it the upstream would get chunks
    pieces = request.upload.pieces() if has_body else b""
    return UpstreamCall(upstream, scope["method"], scope["path"], url, out, pieces)


async def guarded_call(
    service: Service, request: ClientRequest, upstream: Upstream, calls: UpstreamCalls
) -> UpstreamCall:
    """Return a call with its whole body, which is read before it is sent; forms are forwarded.

    Raises:
        NotSharedError: the settings' key is sent, and the path is not open to its tenants.
    """
    route = request.route
    call = passing_call(service, request, upstream)
    call = call._replace(path=normal_path(call.path))
    is_form = request.by_name.get("content-type", "").lower().startswith("multipart/")
    passes = is_form and is_free(call.method, call.path, has_body=True)
    if calls.is_shared(upstream):
        passes = False
        if route is None:
            shared = shared_path(call.method, call.path, upstream.family)
            passes = is_form and shared.takes_forms
            call = call._replace(own=shared.own, creates=shared.creates)
        # The checked path is sent, in its only spelling.
        url = address(upstream, quote(call.path, safe=SAFE), request.query)
        call = call._replace(url=url)
    if route is not None:
        creates = route.dialect in CREATING
        call = call._replace(model=route.model, dialect=route.dialect, creates=creates)
    return call if passes else await _with_body(service, request, call)


async def _with_body(service: Service, request: ClientRequest, call: UpstreamCall) -> UpstreamCall:
    """Return a call with the whole body, unpacked."""
    most = service.settings.max_body_bytes
    body = b"" if isinstance(call.body, bytes) else await _whole(call.body, most)
    out = {name: value for name, value in call.headers.items() if name != "content-length"}
    if "content-encoding" in request.by_name:
        encodings = (value for name, value in request.headers if name == "content-encoding")
        body = await asyncio.to_thread(unpacked, body, ",".join(encodings), most)
        del out["content-encoding"]
    if not signature_of(request.headers):
        out["accept-encoding"] = "identity"  # the answer is read on its way
    return call._replace(headers=out, body=body)


async def _whole(pieces: AsyncIterator[bytes], most: int) -> bytes:
    """Return a body in one piece; after an internal error, a part of it was read before."""
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > most:
            raise LimitError(f"the body is larger than {most:,} bytes", fix="Send less at once.")
    return bytes(body)


def raw_path(scope: ASGIScope) -> str:
    """A path as the client wrote it."""
    raw: bytes = scope.get("raw_path", scope["path"].encode())
    return raw.decode("latin-1")
