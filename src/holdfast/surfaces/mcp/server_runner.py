"""Run the server or the gateway over standard input and output or over HTTP.

Over HTTP it listens on this machine only, unless it has a token. It accepts only known host names
and origins (otherwise a page in a browser could reach it by DNS rebinding), and limits request
sizes.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from holdfast.engine import Holdfast
from holdfast.errors import SettingsError
from holdfast.settings import Settings
from holdfast.store import Scope
from holdfast.surfaces.mcp import pipe
from holdfast.surfaces.mcp.catalog import Listing
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.gateway import Gateway, GatewayOptions, model_window
from holdfast.surfaces.mcp.handlers import gateway_server, own_server
from holdfast.surfaces.mcp.host import HostServer

_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_LOCAL_ADDRESSES = ("127.0.0.1", "localhost", "::1")


@asynccontextmanager
async def open_server(
    settings: Settings, specs: Sequence[ServerSpec] | None, scope: Scope, listing: Listing
) -> AsyncIterator[HostServer]:
    """Yield the server or, with servers behind it, the gateway."""
    async with Holdfast.open(scope=scope, settings=settings) as engine:
        if specs is None:
            yield own_server(engine)
            return
        options = GatewayOptions(listing=listing, window=model_window(settings))
        gateway = Gateway(engine, specs, options)
        await gateway.open()
        try:
            yield gateway_server(gateway)
        finally:
            await gateway.close()


async def serve_pipe(
    settings: Settings, specs: Sequence[ServerSpec] | None, scope: Scope, listing: Listing = "auto"
) -> None:
    """Serve the host that started this process until it closes the pipe."""
    async with (
        open_server(settings, specs, scope, listing) as server,
        stdio_server() as (read, write),
    ):
        await server.run(read, write, server.create_initialization_options())


async def serve_http(
    settings: Settings,
    specs: Sequence[ServerSpec] | None,
    scope: Scope,
    listing: Listing = "auto",
    *,
    host: str,
    port: int,
) -> None:
    """Serve hosts over streamable HTTP at /mcp until interrupted.

    Raises:
        SettingsError: if other machines could use it without a token.
    """
    import uvicorn  # noqa: PLC0415 - a host that uses a pipe need not wait for it

    check_address(host, settings)
    async with open_server(settings, specs, scope, listing) as server:
        app = http_app(server, settings)
        config = uvicorn.Config(app, host=host, port=port, log_level="warning")
        await uvicorn.Server(config).serve()


def check_address(host: str, settings: Settings) -> None:
    """Raise `SettingsError` if other machines could connect without a token."""
    if host not in _LOCAL_ADDRESSES and not _tokens(settings):
        raise SettingsError(
            "the gateway would be open to other machines",
            where="--host",
            fix="Set serve_token (HOLDFAST_SERVE_TOKEN), or listen on 127.0.0.1.",
        )


def _tokens(settings: Settings) -> list[str]:
    return [token for token in (settings.serve_token, *settings.serve_tokens.values()) if token]


def http_app(server: HostServer, settings: Settings) -> Any:
    """Return the server as an ASGI application with checks of host, origin and token."""
    names = [*_LOCAL, *settings.serve_names]
    hosts = [name if ":" in name.rpartition("]")[2] else f"{name}:*" for name in names]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*hosts, *names],
        allowed_origins=[f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")],
    )
    app = server.streamable_http_app(
        transport_security=security, max_request_body_size=pipe.MOST_BYTES
    )
    tokens = _tokens(settings)
    return TokenCheck(app, tokens) if tokens else app


class TokenCheck:
    """An application that requires one of the tokens, compared in constant time."""

    def __init__(self, app: Any, tokens: Sequence[str]) -> None:
        self._app = app
        self._tokens = [token.encode() for token in tokens]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Check the header of a request."""
        headers = dict(scope.get("headers", ()))
        # The scheme may have any case (RFC 9110, 11.1).
        scheme, _, token_bytes = headers.get(b"authorization", b"").strip().partition(b" ")
        matches = [hmac.compare_digest(token_bytes.strip(), token) for token in self._tokens]
        if scope["type"] != "http" or (scheme.lower() == b"bearer" and any(matches)):
            await self._app(scope, receive, send)
            return
        head = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 401, "headers": head})
        await send({"type": "http.response.body", "body": b""})
