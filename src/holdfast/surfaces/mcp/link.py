"""A connection to a server in its own task, and the server's lists.

The SDK's contexts must be left in the task that entered them. So this task lives as long as the
connection, while the calls of many hosts use its session.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Protocol

import mcp_types as types
from mcp import Client, MCPError
from mcp.client.client import ConnectMode
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

import holdfast
from holdfast.surfaces.mcp.cards import MOST_DEFINITIONS, ServerCard, card
from holdfast.surfaces.mcp.config import ServerSpec

OPTIONAL_LIST_SECONDS = 5.0
"""For prompts, resources and templates each; all within the time that a server has to start."""
_MOST_PAGES = 100


class Owner(Protocol):
    """The owner of a connection."""

    def opening(self) -> Any:
        """Return the server's streams as a context manager."""

    async def learn(self, client: Client) -> None:
        """Read the lists of the connected server."""

    async def handle_message(self, message: Any) -> None:
        """Handle a message of the server."""

    async def forward(self, request: types.ServerRequest, result: type[Any]) -> Any:
        """Answer a request of the server."""

    def relearn_soon(self) -> None:
        """Read the lists again."""

    def connection_lost(self, lived_seconds: float) -> None:
        """Handle the end of a connection that nobody closed."""


class ServerLink:
    """A connection in its own task."""

    def __init__(
        self,
        owner: Owner,
        abilities: types.ClientCapabilities | None,
        era: ConnectMode = "auto",
    ) -> None:
        self._owner = owner
        self._era = era
        self._abilities = abilities or types.ClientCapabilities()
        self._over = asyncio.Event()
        self._since = time.monotonic()
        self._beside: set[asyncio.Task[None]] = set()
        self._closing = False
        self.opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())

    @property
    def is_open(self) -> bool:
        """Return whether calls can be sent."""
        return self.opened.done() and not self._over.is_set() and not self._task.done()

    @property
    def client(self) -> Client:
        """Return the session of the open connection."""
        return self.opened.result()

    @property
    def is_modern(self) -> bool:
        """Return whether the server asks by its results; the connection must be open."""
        return self.client.protocol_version in MODERN_PROTOCOL_VERSIONS

    def can_ask(self, abilities: types.ClientCapabilities | None) -> bool:
        """Return whether the server knows all abilities of a host."""
        return _askable(abilities or types.ClientCapabilities()) <= _askable(self._abilities)

    def mark_dead(self) -> None:
        """Mark the connection as dead."""
        self._over.set()

    def run_beside(self, work: Any) -> None:
        """Run work during the connection; it is cancelled at its end."""
        task = asyncio.ensure_future(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def close(self) -> None:
        """Close the connection and end the server's program."""
        self._closing = True
        self._over.set()
        if not self.opened.done():
            self._task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            async with (
                _watch(self._owner.opening(), self._over) as streams,
                self._session(streams) as client,
            ):
                await self._owner.learn(client)
                self.opened.set_result(client)
                await self._until_over(client)
        except asyncio.CancelledError:
            if not self.opened.done():
                self.opened.cancel()
            raise

        except BaseException as error:  # noqa: BLE001 - passed to the tasks that wait
            if not self.opened.done():
                self.opened.set_exception(_first(error))
                self.opened.exception()  # no task may be waiting any more
        finally:
            self._over.set()
            for task in self._beside:
                task.cancel()
            if not self._closing and self.opened.done():
                self._owner.connection_lost(time.monotonic() - self._since)

    def _session(self, streams: Any) -> Client:
        """Return a session with the host's abilities."""
        has, forward = self._abilities, self._owner.forward

        async def sample(context: Any, params: types.CreateMessageRequestParams) -> Any:
            del context
            kind = types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult
            return await forward(types.CreateMessageRequest(params=params), kind)

        async def elicit(context: Any, params: types.ElicitRequestParams) -> Any:
            del context
            return await forward(types.ElicitRequest(params=params), types.ElicitResult)

        async def roots(context: Any) -> Any:
            del context
            return await forward(types.ListRootsRequest(), types.ListRootsResult)

        return Client(
            _OpenTransport(streams),
            mode=self._era,
            cache=None,  # the gateway has its own, which outlives the connection
            message_handler=self._owner.handle_message,
            sampling_callback=sample if has.sampling is not None else None,
            sampling_capabilities=has.sampling,
            elicitation_callback=elicit if has.elicitation is not None else None,
            list_roots_callback=roots if has.roots is not None else None,
            client_info=types.Implementation(name="holdfast", version=holdfast.__version__),
        )

    async def _until_over(self, client: Client) -> None:
        """Wait for the end of the connection; newer servers send changes over a subscription."""
        if not self.is_modern:
            await self._over.wait()
            return
        listening = asyncio.ensure_future(self._listen(client))
        try:
            await self._over.wait()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self, client: Client) -> None:
        with suppress(MCPError, RuntimeError, TimeoutError):
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as events:
                async for event in events:
                    if isinstance(
                        event, (ToolsListChanged, PromptsListChanged, ResourcesListChanged)
                    ):
                        self._owner.relearn_soon()


def _askable(has: types.ClientCapabilities) -> set[str]:
    kinds = {"sampling": has.sampling, "elicitation": has.elicitation, "roots": has.roots}
    return {kind for kind, ability in kinds.items() if ability is not None}


class _OpenTransport:
    """Open streams as a transport for the SDK."""

    def __init__(self, streams: Any) -> None:
        self._streams = streams

    async def __aenter__(self) -> Any:
        return self._streams

    async def __aexit__(self, *_: object) -> None:
        return None


@asynccontextmanager
async def _watch(opening: Any, mark_dead: asyncio.Event) -> AsyncIterator[Any]:
    """Yield a server's streams; the event is set when the server closes its end."""
    async with AsyncExitStack() as stack:
        read, write = await stack.enter_async_context(opening)
        yield _WatchedStream(read, mark_dead), write


class _WatchedStream:
    """A message stream that reports its end, which an idle session would not notice."""

    def __init__(self, inner: Any, mark_dead: asyncio.Event) -> None:
        self._inner = inner
        self._over = mark_dead

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> _WatchedStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *what: Any) -> Any:
        return await self._inner.__aexit__(*what)

    def __aiter__(self) -> _WatchedStream:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._over.set()
            raise


async def read_card(client: Client, spec: ServerSpec) -> ServerCard:
    """Return all that a server lists, as it lists it.

    Servers advertise lists that they do not have: frameworks announce prompts and resources for
    everybody. Such a list is empty. Other errors of `tools/list` are raised, as without its tools a
    server is of no use and is tried again.
    """
    has = client.server_capabilities
    tools: list[dict[str, Any]] = []
    if has.tools is not None:
        try:
            tools = await _pages(client.list_tools, "tools")
        except MCPError as error:
            if error.error.code != types.METHOD_NOT_FOUND:
                raise
    lists: dict[str, Any] = {
        "tools": [tool for tool in tools if spec.allows(tool["name"])],
        "prompts": [],
        "resources": [],
        "templates": [],
    }
    if has.prompts is not None:
        lists["prompts"] = await _optional_pages(client.list_prompts, "prompts")
    if has.resources is not None:
        lists["resources"] = await _optional_pages(client.list_resources, "resources")
        lists["templates"] = await _optional_pages(
            client.list_resource_templates, "resource_templates"
        )
    info = client.server_info
    return card(
        lists,
        instructions=client.instructions or "",
        protocol=client.protocol_version,
        version=f"{info.name} {info.version}"[:200] if info is not None else "",
        at=time.time(),
    )


async def _optional_pages(fetch: Callable[..., Awaitable[Any]], field: str) -> list[dict[str, Any]]:
    """Return all pages of a list that a server can do without; empty if it does not answer."""
    try:
        async with asyncio.timeout(OPTIONAL_LIST_SECONDS):
            return await _pages(fetch, field)
    except (MCPError, ValidationError, TimeoutError):
        return []


async def _pages(fetch: Callable[..., Awaitable[Any]], field: str) -> list[dict[str, Any]]:
    """Return all pages of a list, cut if it is endless."""
    every: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await fetch(cursor=cursor)
        every += [
            each.model_dump(mode="json", by_alias=True, exclude_none=True)
            for each in getattr(page, field)
        ]
        cursor = page.next_cursor
        if cursor is None or len(every) > MOST_DEFINITIONS:
            break
    return every


def _first(error: BaseException) -> BaseException:
    """Return the first error of a task group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, Exception):
        return error
    return RuntimeError("the connection was given up")
