"""The gate before every route: who may not ask is refused before anything is read.

gate: after safety, before server. It is wrapped around the whole application, so that a route
cannot be forgotten.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.settings import Settings
from holdfast.surfaces.proxy.app import dialect_of
from holdfast.surfaces.proxy.safety import TOKEN_MISSING, refusal
from holdfast.wire.answers import error_body

HEALTH = "/healthz"
"""The one path that needs no token: it tells nothing but that the proxy runs."""


class Gate:
    """Lets a request in, or refuses it."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge a request by its headers alone."""
        if scope["type"] != "http":
            return
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        refused = refusal(headers, self.settings)
        if refused is None or (refused[0] == TOKEN_MISSING and scope["path"] == HEALTH):
            await self.app(scope, receive, send)
            return
        status, why = refused
        body = error_body(dialect_of(scope["method"], scope["path"], headers), status, why)
        answer = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        if status == TOKEN_MISSING:
            answer.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status, "headers": answer})
        await send({"type": "http.response.body", "body": body})
