"""A server behind the gateway: started at its first call and restarted after it has died.

A server runs in its own task, shared by the calls of many hosts. When it dies, its open calls fail
with a typed error, since nobody knows which of them took effect. A request of the server (sampling,
elicitation, roots) is forwarded to the host whose call it is processing; with calls of two hosts it
is refused, because it might be for the other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, Protocol, TypeVar

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.client import ConnectMode
from pydantic import BaseModel, TypeAdapter, ValidationError

from holdfast.errors import HoldfastError, ToolServerError
from holdfast.surfaces.mcp import server_errors
from holdfast.surfaces.mcp.cards import ServerCard
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.link import ServerLink, read_card
from holdfast.surfaces.mcp.pipe import FORGOTTEN, Way, open_way

State = Literal["idle", "starting", "ready", "failed", "off"]

START_SECONDS = 30.0
_LEVEL_SECONDS = 5.0

_LIST_CHANGES = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)
_T = TypeVar("_T", bound=BaseModel)
_EMPTY = TypeAdapter(types.EmptyResult)
CALL_RESULT: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)
PROMPT_RESULT: TypeAdapter[types.GetPromptResult | types.InputRequiredResult] = TypeAdapter(
    types.GetPromptResult | types.InputRequiredResult
)
READ_RESULT: TypeAdapter[types.ReadResourceResult | types.InputRequiredResult] = TypeAdapter(
    types.ReadResourceResult | types.InputRequiredResult
)


class RequestHost(Protocol):
    """The host of a request."""

    identity: str
    """Equal for all requests of one host."""
    capabilities: types.ClientCapabilities | None

    @property
    def is_modern(self) -> bool:
        """Return whether it is asked by results that require input, not during a call."""

    async def ask(self, request: types.ServerRequest, result: type[Any]) -> Any:
        """Forward a server's request; return `ErrorData` if it cannot be asked."""

    async def tell(self, notification: types.ServerNotification) -> None:
        """Forward a server's notification."""


class Listener(Protocol):
    """Receives the changes of a server."""

    async def update_card(self, upstream: McpUpstream, card: ServerCard) -> None:
        """Update the server's card after its start or after a change of its lists."""

    async def forward_notification(
        self, upstream: McpUpstream, notification: types.ServerNotification
    ) -> None:
        """Forward a notification that is not about a list."""


class McpUpstream:
    """A server and its state."""

    def __init__(
        self,
        spec: ServerSpec,
        listener: Listener,
        *,
        way: Way = open_way,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`way` connects to the server."""
        self.spec = spec
        self.card: ServerCard | None = None
        self.state: State = "off" if spec.fault else "idle"
        self.reason = spec.fault
        """Why it is off or failed."""
        self.starts = 0
        self._listener = listener
        self._backoff = server_errors.Backoff(clock)
        self._way = way
        self._lock = asyncio.Lock()
        self._link: ServerLink | None = None
        self._calling_hosts: list[RequestHost] = []
        """Hosts whose calls are in progress, or for which it starts."""
        self._has_worked = False
        """Whether it was called since its start."""
        self._level: types.SetLevelRequestParams | None = None
        self._learning = asyncio.Lock()
        self._is_stale = False
        """Whether the lists must be read again and no task has begun to."""

    async def call(
        self,
        request: types.ClientRequest,
        result: TypeAdapter[_T],
        host: RequestHost,
        *,
        on_progress: Any = None,
    ) -> _T:
        """Send a host's request to the server, which is started if it does not run."""
        try:
            return await self._send(request, result, host, on_progress)
        except MCPError as error:
            if not await self._close_if_forgotten(error):
                raise self._call_error(error) from error
        try:
            return await self._send(request, result, host, on_progress)
        except MCPError as error:
            raise self._call_error(error) from error

    async def _send(
        self,
        request: types.ClientRequest,
        result: TypeAdapter[_T],
        host: RequestHost,
        on_progress: Any,
    ) -> _T:
        client = await self.started(host)
        self._has_worked = True
        self._calling_hosts.append(host)
        try:
            return await client.session.send_request(
                request,
                result,
                request_read_timeout_seconds=self.spec.timeout_seconds,
                progress_callback=on_progress,
            )
        except ValidationError as error:
            raise ToolServerError(
                f"the server {self.spec.name!r} answered with something that is no answer",
                fix="Tell whoever wrote it.",
            ) from error
        finally:
            self._calling_hosts.remove(host)

    async def _close_if_forgotten(self, error: MCPError) -> bool:
        """Close the connection if a remote server has forgotten the session; return whether it has.

        It was restarted, or its sessions expire. The request had no effect, and the protocol
        requires a new session.
        """
        if error.code != FORGOTTEN or self._link is None:
            return False
        await self._link.close()
        return True

    async def set_level(self, params: types.SetLevelRequestParams) -> None:
        """Set the server's log level, now and at every start."""
        self._level = params
        if self._link is not None and self._link.is_open:
            await self._set_level(self._link.client)

    @property
    def is_busy(self) -> bool:
        """Return whether calls are in progress."""
        return bool(self._calling_hosts)

    @property
    def is_startable(self) -> bool:
        """Return whether a start may be tried now."""
        return self.state != "off" and self._backoff.seconds <= 0

    async def started(self, host: RequestHost | None) -> Client:
        """Return the connection to the server, opened if there is none."""
        if self._link is not None and self._link.is_open and self._suits(self._link, host):
            return self._link.client
        async with self._lock:
            if self._link is not None and self._link.is_open and self._suits(self._link, host):
                return self._link.client
            return await self._start(host)

    def _suits(self, link: ServerLink, host: RequestHost | None) -> bool:
        """Return whether a connection supports all requests that a host can answer.

        A connection opened for a list is reopened for the first call of a host with more abilities.
        After a call it is kept, since a restart would lose the server's state.
        """
        if host is None or self._has_worked:
            return True
        return link.can_ask(host.capabilities) and (host.is_modern or not link.is_modern)

    async def close(self) -> None:
        """Stop the server if it runs."""
        if self._link is not None:
            await self._link.close()
            self._link = None
        if self.state != "off":
            self.state = "idle"

    # --- starting --------------------------------------------------------------------------------

    async def _start(self, host: RequestHost | None) -> Client:
        self._raise_if_not_startable()
        if self._link is not None:
            await self._link.close()
        self.state, self.starts = "starting", self.starts + 1
        self._is_stale = self._has_worked = False
        hosts = [] if host is None else [host]
        self._calling_hosts += hosts  # server-filesystem requests roots during its start
        try:
            client = await self._open(host)
        except TimeoutError:
            raise self._start_error(
                f"it did not start within {START_SECONDS:.0f} seconds"
            ) from None
        except Exception as error:
            raise self._start_error(server_errors.start_failure(error)) from error
        finally:
            for each in hosts:
                self._calling_hosts.remove(each)
        self.state, self.reason = "ready", ""
        await self._set_level(client)
        return client

    async def _open(self, host: RequestHost | None) -> Client:
        """Return a connection in the era of the waiting host, or in the server's newest.

        A server that supports both eras asks a host during a call only in the older one, and a host
        of that era can be asked in no other way.
        """
        if host is None or host.is_modern:
            return await self._link_in("auto", host)
        try:
            return await self._link_in("legacy", host)
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                raise
            return await self._link_in("auto", host)  # the server supports only the newer era

    async def _link_in(self, era: ConnectMode, host: RequestHost | None) -> Client:
        link = self._link = ServerLink(self, host.capabilities if host is not None else None, era)
        try:
            # Shielded: a host that gives up must not cancel the start for others.
            return await asyncio.wait_for(asyncio.shield(link.opened), START_SECONDS)
        except TimeoutError:
            await link.close()
            raise

    async def _set_level(self, client: Client) -> None:
        """Send the log level to the server if it supports logging."""
        if self._level is None or client.server_capabilities.logging is None:
            return
        request = types.SetLevelRequest(params=self._level)
        with suppress(MCPError, ValidationError):  # it may not know this level
            await client.session.send_request(
                request, _EMPTY, request_read_timeout_seconds=_LEVEL_SECONDS
            )

    def _raise_if_not_startable(self) -> None:
        if self.state == "off":
            raise server_errors.unusable(self.spec, self.reason)
        if (seconds := self._backoff.seconds) > 0:
            raise server_errors.backing_off(self.spec, self.reason, seconds)

    def _start_error(self, why: str) -> ToolServerError:
        self.state, self.reason = "failed", why
        return server_errors.not_started(self.spec, why, self._backoff.record_start_failure())

    def connection_lost(self, lived_seconds: float) -> None:
        """Record the end of a connection that nobody closed."""
        if self.state == "ready":
            self.state, self.reason = "failed", "it stopped"
            self._backoff.record_death(lived_seconds)

    def _call_error(self, error: MCPError) -> Exception:
        if error.code == types.CONNECTION_CLOSED and self._link is not None:
            self._link.mark_dead()
        return server_errors.call_error(self.spec, error)

    # --- messages from the server
    # ---------------------------------------------------------------------

    async def handle_message(self, message: Any) -> None:
        """Handle a notification."""
        if isinstance(message, Exception):
            return
        if isinstance(message, _LIST_CHANGES):
            self.relearn_soon()
            return
        host = self._only_host()
        if isinstance(message, types.LoggingMessageNotification) and host is not None:
            await host.tell(message)
        elif not isinstance(message, types.LoggingMessageNotification):
            await self._listener.forward_notification(self, message)

    def relearn_soon(self) -> None:
        """Read the lists again in another task, since the connection must keep running.

        However many changes it announces, at most one reading is running and one is waiting.
        """
        if self._link is not None and not self._is_stale:
            self._is_stale = True
            self._link.run_beside(self._relearn(self._link))

    async def _relearn(self, link: ServerLink) -> None:
        await asyncio.wait([link.opened])  # server-everything announces changes while it starts
        async with self._learning:
            self._is_stale = False  # later changes are read again
            if link.is_open:
                with suppress(MCPError, ValidationError, HoldfastError):
                    await self.learn(link.client)

    async def learn(self, client: Client) -> None:
        """Read all lists of the server."""
        await self._listener.update_card(self, await read_card(client, self.spec))

    async def forward(self, request: types.ServerRequest, result: type[Any]) -> Any:
        """Forward a server's request to the host whose call is in progress."""
        host = self._only_host()
        if host is None:
            return types.ErrorData(
                code=types.INVALID_REQUEST, message="No host can be asked: its call is not plain."
            )
        return await host.ask(request, result)

    def _only_host(self) -> RequestHost | None:
        hosts = {host.identity: host for host in self._calling_hosts}
        return next(iter(hosts.values())) if len(hosts) == 1 else None

    def opening(self) -> Any:
        """Return the server's streams as a context manager."""
        return self._way(self.spec)
