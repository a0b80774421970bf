"""Servers at addresses for the tests: real ones of the SDK, on ports of this machine."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer

from holdfast.surfaces.mcp.config import ServerSpec

App = Any
PATHS = {"http": "/mcp", "sse": "/sse"}


def app_of(server: MCPServer, transport: str) -> App:
    """A server as an application that speaks this transport."""
    return server.sse_app() if transport == "sse" else server.streamable_http_app()


def at(url: str, transport: str = "http", name: str = "demo", **more: Any) -> ServerSpec:
    """The entry of a server at an address."""
    return ServerSpec(name=name, transport=transport, url=url + PATHS[transport], **more)  # type: ignore[arg-type]


@asynccontextmanager
async def listening(app: App, port: int = 0) -> AsyncIterator[str]:
    """An application at a port; gives the address."""
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
        config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        serving = asyncio.ensure_future(server.serve(sockets=[bound]))
        while not server.started:
            await asyncio.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


class Seen:
    """Records the requests of an application before it gets them."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.headers: list[dict[str, str]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self.headers.append({k.decode(): v.decode() for k, v in scope["headers"]})
        await self._app(scope, receive, send)

    @property
    def values(self) -> str:
        """All headers in one text."""
        return json.dumps(self.headers)


class Forgetful:
    """Answers 404 to every session that was opened before it forgot, as the protocol wants it."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._sessions: set[bytes] = set()
        self._forgotten: set[bytes] = set()

    def forget(self) -> None:
        """Know no session any more."""
        self._forgotten |= self._sessions

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        name = dict(scope.get("headers", ())).get(b"mcp-session-id", b"")
        self._sessions.add(name)
        if name and name in self._forgotten:
            await answering(
                404,
                b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, '
                b'"message": "Session not found"}}',
            )(scope, receive, send)
            return
        await self._app(scope, receive, send)


def redirecting(target: str) -> App:
    """An application that sends everybody to another address."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _lived(receive, send)
            return
        location = (b"location", target.encode())
        await send({"type": "http.response.start", "status": 307, "headers": [location]})
        await send({"type": "http.response.body", "body": b""})

    return app


def answering(status: int, body: bytes = b"") -> App:
    """An application that answers everybody the same."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _lived(receive, send)
            return
        head = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": body})

    return app


async def _lived(receive: Any, send: Any) -> None:
    for _ in range(2):
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
