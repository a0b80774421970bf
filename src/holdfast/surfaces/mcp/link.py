"""A connection to a server, in a task of its own, and what the server lists over it.

link: after pipe and cards, before upstream. What the SDK enters in a task must be left in that
task: so it stays until the connection is over, while the calls of many hosts use its session.
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
"""For prompts, resources and templates each; all of them within the time a server has to start."""
_MOST_PAGES = 100


class Owner(Protocol):
    """Whose connection it is."""

    def opening(self) -> Any:
        """The way to the server, to be entered."""

    async def learn(self, client: Client) -> None:
        """Read the lists of the server that has just been reached."""

    async def heard(self, message: Any) -> None:
        """Take what the server tells."""

    async def forward(self, request: types.ServerRequest, result: type[Any]) -> Any:
        """Answer what the server asks."""

    def relearn_soon(self) -> None:
        """Read the lists again."""

    def died(self, lived_seconds: float) -> None:
        """The connection is over, though nobody closed it."""


class Link:
    """A connection in a task of its own: what was entered there must be left there."""

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
        """Whether calls may go over it."""
        return self.opened.done() and not self._over.is_set() and not self._task.done()

    @property
    def client(self) -> Client:
        """Its session, once it is open."""
        return self.opened.result()

    @property
    def is_modern(self) -> bool:
        """Whether the server asks by its answers, once it is open."""
        return self.client.protocol_version in MODERN_PROTOCOL_VERSIONS

    def can_ask(self, abilities: types.ClientCapabilities | None) -> bool:
        """Whether the server knows of all that a host can be asked."""
        return _askable(abilities or types.ClientCapabilities()) <= _askable(self._abilities)

    def over(self) -> None:
        """Let go of the connection: it is dead."""
        self._over.set()

    def beside(self, work: Any) -> None:
        """Do something while the connection goes on; it ends with it."""
        task = asyncio.ensure_future(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def close(self) -> None:
        """End the connection, and the server's program with it."""
        self._closing = True
        self._over.set()
        if not self.opened.done():
            self._task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            async with (
                _watched(self._owner.opening(), self._over) as streams,
                self._session(streams) as client,
            ):
                await self._owner.learn(client)
                self.opened.set_result(client)
                await self._until_over(client)
        except asyncio.CancelledError:
            if not self.opened.done():
                self.opened.cancel()
            raise
        except BaseException as error:  # noqa: BLE001 - whoever waits for the start is told
            if not self.opened.done():
                self.opened.set_exception(_first(error))
                self.opened.exception()  # nobody may be waiting any more
        finally:
            self._over.set()
            for task in self._beside:
                task.cancel()
            if not self._closing and self.opened.done():
                self._owner.died(time.monotonic() - self._since)

    def _session(self, streams: Any) -> Client:
        """The session, with the abilities that the host has."""
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
            _Entered(streams),
            mode=self._era,
            cache=None,  # the gateway has its own, which outlives it
            message_handler=self._owner.heard,
            sampling_callback=sample if has.sampling is not None else None,
            sampling_capabilities=has.sampling,
            elicitation_callback=elicit if has.elicitation is not None else None,
            list_roots_callback=roots if has.roots is not None else None,
            client_info=types.Implementation(name="holdfast", version=holdfast.__version__),
        )

    async def _until_over(self, client: Client) -> None:
        """Stay until the connection is over; of newer servers, hear what changes."""
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


class _Entered:
    """Streams that are open already, as the SDK wants a transport."""

    def __init__(self, streams: Any) -> None:
        self._streams = streams

    async def __aenter__(self) -> Any:
        return self._streams

    async def __aexit__(self, *_: object) -> None:
        return None


@asynccontextmanager
async def _watched(opening: Any, over: asyncio.Event) -> AsyncIterator[Any]:
    """The streams of a way; when the server's end of it closes, the event is set."""
    async with AsyncExitStack() as stack:
        read, write = await stack.enter_async_context(opening)
        yield _Watched(read, over), write


class _Watched:
    """A stream of messages that tells of its end: an idle session would not notice it."""

    def __init__(self, inner: Any, over: asyncio.Event) -> None:
        self._inner = inner
        self._over = over

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> _Watched:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *what: Any) -> Any:
        return await self._inner.__aexit__(*what)

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            self._over.set()
            raise


async def card_of(client: Client, spec: ServerSpec) -> ServerCard:
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
    """All pages of a list; one that has no end is cut."""
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
    """The first of the errors that a group of tasks ended with."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, Exception):
        return error
    return RuntimeError("the connection was given up")
