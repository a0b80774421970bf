"""One server behind the gateway: started when it is first needed, and again when it has died.

upstream: after link and failing. A server lives in a task of its own, which the calls of many hosts
share. When it dies, the calls that it was at end with a typed error, for nobody knows how much of
them was done; the next call starts it anew, later each time that it fails at once. What a server
asks of its host (sampling, elicitation, roots) goes to the host whose call it is at, if that is
plain: with calls of two hosts under way it is refused, for it might be the other's.
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
from holdfast.surfaces.mcp import failing
from holdfast.surfaces.mcp.cards import ServerCard
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.link import Link, card_of
from holdfast.surfaces.mcp.pipe import FORGOTTEN, Way, way_to

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


class Host(Protocol):
    """Whoever is at the other end of the gateway, for the length of a request."""

    identity: str
    """Told apart by it: two requests of one host have the same."""
    capabilities: types.ClientCapabilities | None

    @property
    def is_modern(self) -> bool:
        """Whether it is asked by results that require input, not in the middle of a call."""

    async def ask(self, request: types.ServerRequest, result: type[Any]) -> Any:
        """Ask what a server asks; an `ErrorData` if that cannot be asked here."""

    async def tell(self, notification: types.ServerNotification) -> None:
        """Hand on what a server tells."""


class Listener(Protocol):
    """Who hears of a server."""

    async def learnt(self, upstream: Upstream, learnt: ServerCard) -> None:
        """The server has started, or its lists have changed: this is to be its card now."""

    async def told(self, upstream: Upstream, notification: types.ServerNotification) -> None:
        """It tells something that is about no list."""


class Upstream:
    """A server, and what is known of it."""

    def __init__(
        self,
        spec: ServerSpec,
        listener: Listener,
        *,
        way: Way = way_to,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`way` leads to the server."""
        self.spec = spec
        self.card: ServerCard | None = None
        self.state: State = "off" if spec.fault else "idle"
        self.reason = spec.fault
        """Why it is off or failed."""
        self.starts = 0
        self._listener = listener
        self._backoff = failing.Backoff(clock)
        self._way = way
        self._lock = asyncio.Lock()
        self._link: Link | None = None
        self._asking: list[Host] = []
        """Hosts whose calls the server is at, or for whom it starts."""
        self._has_worked = False
        """Whether it was called since it started."""
        self._level: types.SetLevelRequestParams | None = None
        self._learning = asyncio.Lock()
        self._is_stale = False
        """Whether the lists are to be read again, and nobody has begun to."""

    async def call(
        self,
        request: types.ClientRequest,
        result: TypeAdapter[_T],
        host: Host,
        *,
        on_progress: Any = None,
    ) -> _T:
        """Ask the server something for a host; it is started if it does not run."""
        try:
            return await self._send(request, result, host, on_progress)
        except MCPError as error:
            if not await self._is_forgotten(error):
                raise self._judged(error) from error
        try:
            return await self._send(request, result, host, on_progress)
        except MCPError as error:
            raise self._judged(error) from error

    async def _send(
        self, request: types.ClientRequest, result: TypeAdapter[_T], host: Host, on_progress: Any
    ) -> _T:
        client = await self.started(host)
        self._has_worked = True
        self._asking.append(host)
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
            self._asking.remove(host)

    async def _is_forgotten(self, error: MCPError) -> bool:
        """Whether a server at an address knows our session no more: then nothing was done.

        It was started anew, or its sessions end; the protocol wants a new one to be opened.
        """
        if error.code != FORGOTTEN or self._link is None:
            return False
        await self._link.close()
        return True

    async def tell_level(self, params: types.SetLevelRequestParams) -> None:
        """How much the server shall tell, now and whenever it starts."""
        self._level = params
        if self._link is not None and self._link.is_open:
            await self._set_level(self._link.client)

    @property
    def is_busy(self) -> bool:
        """Whether it is at a call."""
        return bool(self._asking)

    @property
    def is_startable(self) -> bool:
        """Whether a start may be tried now."""
        return self.state != "off" and self._backoff.seconds <= 0

    async def started(self, host: Host | None) -> Client:
        """The connection to the server, which is opened if there is none."""
        if self._link is not None and self._link.is_open and self._suits(self._link, host):
            return self._link.client
        async with self._lock:
            if self._link is not None and self._link.is_open and self._suits(self._link, host):
                return self._link.client
            return await self._start(host)

    def _suits(self, link: Link, host: Host | None) -> bool:
        """Whether a host can be asked over a connection all that it can be asked.

        One that was opened for a list is opened anew for the first call of a host that can be
        asked more. After a call it stays as it is: a server may hold what a restart would lose.
        """
        if host is None or self._has_worked:
            return True
        return link.can_ask(host.capabilities) and (host.is_modern or not link.is_modern)

    async def close(self) -> None:
        """End the server, if it runs."""
        if self._link is not None:
            await self._link.close()
            self._link = None
        if self.state != "off":
            self.state = "idle"

    # --- starting --------------------------------------------------------------------------------

    async def _start(self, host: Host | None) -> Client:
        self._refuse_if_useless()
        if self._link is not None:
            await self._link.close()
        self.state, self.starts = "starting", self.starts + 1
        self._is_stale = self._has_worked = False
        hosts = [] if host is None else [host]
        self._asking += hosts  # server-filesystem asks for roots as soon as it is spoken to
        try:
            client = await self._opened(host)
        except TimeoutError:
            raise self._failed(f"it did not start within {START_SECONDS:.0f} seconds") from None
        except Exception as error:
            raise self._failed(failing.why(error)) from error
        finally:
            for each in hosts:
                self._asking.remove(each)
        self.state, self.reason = "ready", ""
        await self._set_level(client)
        return client

    async def _opened(self, host: Host | None) -> Client:
        """A connection in the era of the host that waits for it, else in the server's newest.

        A server that speaks both asks a host in the middle of a call in the older era alone, and
        a host of that era can be asked in no other way.
        """
        if host is None or host.is_modern:
            return await self._link_in("auto", host)
        try:
            return await self._link_in("legacy", host)
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                raise
            return await self._link_in("auto", host)  # it speaks but the newer one

    async def _link_in(self, era: ConnectMode, host: Host | None) -> Client:
        link = self._link = Link(self, host.capabilities if host is not None else None, era)
        try:
            # Shielded: a host that gives up must not end the start that others wait for.
            return await asyncio.wait_for(asyncio.shield(link.opened), START_SECONDS)
        except TimeoutError:
            await link.close()
            raise

    async def _set_level(self, client: Client) -> None:
        """Tell the server how much it shall tell, if it tells anything."""
        if self._level is None or client.server_capabilities.logging is None:
            return
        request = types.SetLevelRequest(params=self._level)
        with suppress(MCPError, ValidationError):  # it may know of levels and not of this one
            await client.session.send_request(
                request, _EMPTY, request_read_timeout_seconds=_LEVEL_SECONDS
            )

    def _refuse_if_useless(self) -> None:
        if self.state == "off":
            raise failing.off(self.spec, self.reason)
        if (seconds := self._backoff.seconds) > 0:
            raise failing.left_alone(self.spec, self.reason, seconds)

    def _failed(self, why: str) -> ToolServerError:
        self.state, self.reason = "failed", why
        return failing.not_started(self.spec, why, self._backoff.failed())

    def died(self, lived_seconds: float) -> None:
        """Note that the connection is over, though nobody closed it."""
        if self.state == "ready":
            self.state, self.reason = "failed", "it stopped"
            self._backoff.died(lived_seconds)

    def _judged(self, error: MCPError) -> Exception:
        if error.code == types.CONNECTION_CLOSED and self._link is not None:
            self._link.over()
        return failing.not_answered(self.spec, error)

    # --- what the server says by itself ----------------------------------------------------------

    async def heard(self, message: Any) -> None:
        """Take a notification."""
        if isinstance(message, Exception):
            return
        if isinstance(message, _LIST_CHANGES):
            self.relearn_soon()
            return
        host = self._only_host()
        if isinstance(message, types.LoggingMessageNotification) and host is not None:
            await host.tell(message)
        elif not isinstance(message, types.LoggingMessageNotification):
            await self._listener.told(self, message)

    def relearn_soon(self) -> None:
        """Read the lists again: beside the connection, which must go on meanwhile.

        However often it is told of changes, one reading is under way and one may wait.
        """
        if self._link is not None and not self._is_stale:
            self._is_stale = True
            self._link.beside(self._relearn(self._link))

    async def _relearn(self, link: Link) -> None:
        await asyncio.wait([link.opened])  # server-everything tells of changes while it starts
        async with self._learning:
            self._is_stale = False  # what changes from here on is read once more
            if link.is_open:
                with suppress(MCPError, ValidationError, HoldfastError):
                    await self.learn(link.client)

    async def learn(self, client: Client) -> None:
        """Read all lists of the server."""
        await self._listener.learnt(self, await card_of(client, self.spec))

    async def forward(self, request: types.ServerRequest, result: type[Any]) -> Any:
        """Put what the server asks to the host whose call it is at."""
        host = self._only_host()
        if host is None:
            return types.ErrorData(
                code=types.INVALID_REQUEST, message="No host can be asked: its call is not plain."
            )
        return await host.ask(request, result)

    def _only_host(self) -> Host | None:
        hosts = {host.identity: host for host in self._asking}
        return next(iter(hosts.values())) if len(hosts) == 1 else None

    def opening(self) -> Any:
        """The way to the server, to be entered."""
        return self._way(self.spec)
