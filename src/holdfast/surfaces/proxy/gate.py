"""The gate before every route: unauthorised requests are refused before their body is read.

It wraps the whole application, so that no route can be forgotten. It also refuses WebSockets: the
proxy reads and edits HTTP requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.faults import Faults
from holdfast.settings import Settings
from holdfast.surfaces.proxy.app import dialect_of
from holdfast.surfaces.proxy.login import LOGIN, Logins, wants_form
from holdfast.surfaces.proxy.safety import HEADERS, TOKEN_MISSING, refusal
from holdfast.surfaces.proxy.tenants import TENANT_HEADER, own_tokens, presented
from holdfast.wire.responses import error_body

HEALTH = "/healthz"
"""The one path without a token: it reports only that the proxy runs."""


UPGRADE_REQUIRED = 426
_NO_WEBSOCKETS = "The proxy speaks no WebSocket: send the request as an HTTP POST."
# A 426 names the protocol to use instead, and needs `Connection` (RFC 9110, 15.5.22, 7.8).
_PLAIN_HTTP = [(b"upgrade", b"HTTP/1.1"), (b"connection", b"upgrade")]


_BAD_REQUEST = 400
# Servers disagree about which of the two headers ends the body, which allows request smuggling (RFC
# 9112, 6.1 and 6.3).
_TWO_LENGTHS = "Send either content-length or transfer-encoding, not both."
_TENANT = TENANT_HEADER.encode()
# A gateway that adds its header to a client's, instead of replacing it: either could be meant.
_TWO_TENANTS = f"Send {TENANT_HEADER} once: the gateway has to replace what a client sends."
_TOO_MANY = 429
_WRONG_TOKENS = "Too many wrong tokens came from this address: wait a minute, then try again."

_TO_LOGIN = 303
_NOT_CHECKED = 500
_MORE = {
    _BAD_REQUEST: ((b"connection", b"close"),),
    _TOO_MANY: ((b"retry-after", b"60"),),
}
"""Headers of refusals, by status."""
_Refusal = tuple[int, str] | None
"""Status and reason."""


class Gate:
    """Lets a request in, or refuses it."""

    def __init__(
        self, app: ASGIApp, settings: Settings, logins: Logins, faults: Callable[[], Faults]
    ) -> None:
        self.app = app
        self.settings = settings
        self.logins = logins
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge a request by its headers alone; after an internal error it is refused."""
        if scope["type"] not in ("http", "websocket"):
            return
        refused: _Refusal = (_NOT_CHECKED, "Holdfast has a bug: it cannot tell who asks.")
        with self._faults().caught("gate"):
            refused = self._refusal(scope)
        if refused is None:
            await self.app(scope, receive, send)
        elif refused[0] == _TO_LOGIN:
            await _to_login(send)
        else:
            await refuse(scope, *refused, send, *_MORE.get(refused[0], ()))

    def _refusal(self, scope: Scope) -> _Refusal:
        """Return why a request is refused; None if it may be answered."""
        headers = headers_of(scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            return _BAD_REQUEST, _TWO_LENGTHS
        if sum(name == _TENANT for name, _ in scope["headers"]) > 1:
            return _BAD_REQUEST, _TWO_TENANTS
        refused = refusal(headers, self.settings)
        if (refused is None or refused[0] == TOKEN_MISSING) and self._is_guess(scope):
            return _TOO_MANY, _WRONG_TOKENS
        if refused is not None and refused[0] == TOKEN_MISSING and scope["type"] == "http":
            path, method = scope["path"], scope["method"]
            cookie = headers.get("cookie", "")
            if path == HEALTH or self.logins.lets_in(path, method, cookie):
                refused = None
            elif wants_form(path, method, headers.get("accept", "")):
                return _TO_LOGIN, ""
        upgrades = "upgrade" in headers or scope["type"] == "websocket"
        if refused is None and upgrades and wants_websocket(scope["type"], headers):
            refused = (UPGRADE_REQUIRED, _NO_WEBSOCKETS)
        return refused

    def _is_guess(self, scope: Scope) -> bool:
        """Return whether a token is one guess too many; public paths need no token."""
        if not own_tokens(self.settings):
            return False
        path, method = scope["path"], scope.get("method", "")
        if path == HEALTH or self.logins.lets_in(path, method, ""):
            return False
        client = scope.get("client") or ("",)
        return self.logins.refuses_guess(client[0], presented(scope["headers"]))


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers of a request, by their names in lower case."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def wants_websocket(kind: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request asks for a WebSocket: Codex tries that first, at /v1/responses.

    Some servers report it by the kind of the scope; ours, which has no WebSockets, leaves the
    headers. As a plain GET it would list or fetch something at the upstream, and the client would
    retry for minutes; after a 426 it continues over HTTP at once.
    """
    offers = headers.get("upgrade", "").lower().split(",")
    return kind == "websocket" or "websocket" in [offer.strip() for offer in offers]


async def _to_login(send: Send) -> None:
    """Lead a person to the form; no address is carried along that could lead elsewhere."""
    location = [(b"location", LOGIN.encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 303, "headers": location})
    await send({"type": "http.response.body", "body": b""})


async def refuse(
    scope: Scope, status: int, why: str, send: Send, *more: tuple[bytes, bytes]
) -> None:
    """Answer instead of the application, in the client's dialect; `more` are headers."""
    headers = headers_of(scope)
    is_websocket = scope["type"] == "websocket"
    if is_websocket and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close"})  # before it is accepted: the server answers 403
        return
    method = "POST" if is_websocket else scope["method"]
    body = error_body(dialect_of(method, scope["path"], headers), status, why)
    own = {**HEADERS, "content-type": "application/json", "content-length": str(len(body))}
    answer = [*((name.encode(), value.encode()) for name, value in own.items()), *more]
    if status == TOKEN_MISSING:
        answer.append((b"www-authenticate", b"Bearer"))
    if status == UPGRADE_REQUIRED:
        answer += _PLAIN_HTTP
    event = "websocket.http.response" if is_websocket else "http.response"
    await send({"type": f"{event}.start", "status": status, "headers": answer})
    await send({"type": f"{event}.body", "body": body})
