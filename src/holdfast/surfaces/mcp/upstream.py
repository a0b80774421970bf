"""One server behind the gateway: started when it is first needed, and again when it has died.

upstream: after link. A server lives in a task of its own, which the calls of many hosts
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
from pydantic import BaseModel, TypeAdapter, ValidationError

from holdfast.errors import HoldfastError, ToolServerError
from holdfast.surfaces.mcp.cards import ServerCard
from holdfast.surfaces.mcp.config import ServerSpec
from holdfast.surfaces.mcp.link import Link, card_of
from holdfast.surfaces.mcp.pipe import Way, way_to

State = Literal["idle", "starting", "ready", "failed", "off"]

START_SECONDS = 30.0
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 60.0
_STEADY_SECONDS = 30.0
"""A server that ran so long has not failed at once: its next start does not wait."""

_LIST_CHANGES = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)
_T = TypeVar("_T", bound=BaseModel)
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
        self._clock = clock
        self._way = way
        self._lock = asyncio.Lock()
        self._link: Link | None = None
        self._failures = 0
        self._not_before = 0.0
        self._asking: list[Host] = []
        """Hosts whose calls the server is at."""

    async def call(
        self,
        request: types.ClientRequest,
        result: TypeAdapter[_T],
        host: Host,
        *,
        on_progress: Any = None,
    ) -> _T:
        """Ask the server something for a host; it is started if it does not run."""
        client = await self.started(host)
        self._asking.append(host)
        try:
            return await client.session.send_request(
                request,
                result,
                request_read_timeout_seconds=self.spec.timeout_seconds,
                progress_callback=on_progress,
            )
        except MCPError as error:
            raise self._judged(error) from error
        except ValidationError as error:
            raise ToolServerError(
                f"the server {self.spec.name!r} answered with something that is no answer",
                fix="Tell whoever wrote it.",
            ) from error
        finally:
            self._asking.remove(host)

    @property
    def is_busy(self) -> bool:
        """Whether it is at a call."""
        return bool(self._asking)

    @property
    def is_startable(self) -> bool:
        """Whether a start may be tried now."""
        return self.state != "off" and self._clock() >= self._not_before

    async def started(self, host: Host | None) -> Client:
        """The connection to the server, which is opened if there is none."""
        if self._link is not None and self._link.is_open:
            return self._link.client
        async with self._lock:
            if self._link is not None and self._link.is_open:
                return self._link.client
            return await self._start(host)

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
        link = self._link = Link(self, host.capabilities if host is not None else None)
        try:
            # Shielded: a host that gives up must not end the start that others wait for.
            client = await asyncio.wait_for(asyncio.shield(link.opened), START_SECONDS)
        except TimeoutError:
            await link.close()
            raise self._failed(f"it did not start within {START_SECONDS:.0f} seconds") from None
        except Exception as error:
            raise self._failed(_why(error)) from error
        self.state, self.reason = "ready", ""
        return client

    def _refuse_if_useless(self) -> None:
        if self.state == "off":
            raise ToolServerError(
                f"the server {self.spec.name!r} cannot be used: {self.reason}",
                fix="Mend its entry in the list of servers.",
                kind="unavailable",
            )
        wait = self._not_before - self._clock()
        if wait > 0:
            raise ToolServerError(
                f"the server {self.spec.name!r} is not running: {self.reason}",
                fix=f"It may be tried again in {wait:.0f} seconds; use another tool meanwhile.",
                kind="unavailable",
                retry_after=round(wait, 1),
            )

    def _failed(self, why: str) -> ToolServerError:
        """Note a failure; each that follows another makes the next start wait twice as long."""
        self.state, self.reason = "failed", why
        wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2**self._failures)
        self._failures += 1
        self._not_before = self._clock() + wait
        return ToolServerError(
            f"the server {self.spec.name!r} cannot be started: {why}",
            fix=f"See `holdfast mcp test {self.spec.name}`.",
            kind="unavailable",
            retry_after=wait,
        )

    def died(self, lived_seconds: float) -> None:
        """Note that the connection is over, though nobody closed it."""
        if lived_seconds >= _STEADY_SECONDS:
            self._failures = 0
        if self.state == "ready":
            self.state, self.reason = "failed", "it stopped"
            # The first start anew is at once: most servers die seldom, and someone is waiting.
            wait = _FIRST_WAIT * 2**self._failures if self._failures else 0.0
            self._not_before = self._clock() + min(_LONGEST_WAIT, wait)
            self._failures += 1

    def _judged(self, error: MCPError) -> Exception:
        """An error of the connection is ours to tell; one of the server is handed on."""
        if error.code == types.CONNECTION_CLOSED:
            if self._link is not None:
                self._link.over()
            return ToolServerError(
                f"the server {self.spec.name!r} stopped while it worked on this",
                fix="It starts anew with the next call. Look first at what was done already.",
                kind="gone",
            )
        if error.code == types.REQUEST_TIMEOUT:
            return ToolServerError(
                f"the server {self.spec.name!r} did not answer within "
                f"{self.spec.timeout_seconds:.0f} seconds",
                fix="Ask for less, or give it a longer timeout in the list of servers.",
                kind="timeout",
            )
        return error

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
        """Read the lists again: beside the connection, which must go on meanwhile."""
        if self._link is not None:
            self._link.beside(self._relearn())

    async def _relearn(self) -> None:
        link = self._link
        if link is None:
            return
        await asyncio.wait([link.opened])  # server-everything tells of changes while it starts
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


def _why(error: Exception) -> str:
    """Why a server did not start, without its own words: they may hold anything."""
    if isinstance(error, FileNotFoundError):
        return "its program cannot be found"
    if isinstance(error, OSError):
        return f"its program or address cannot be used ({error.strerror or type(error).__name__})"
    if isinstance(error, HoldfastError):
        return error.what
    if isinstance(error, MCPError):
        return (
            "it ended at once"
            if error.code == types.CONNECTION_CLOSED
            else (f"it refused the connection (code {error.code})")
        )
    return f"it could not be spoken to ({type(error).__name__})"
