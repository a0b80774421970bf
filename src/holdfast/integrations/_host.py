"""The engine of an adapter, for callers that await and callers that do not.

host: the first word of integrations, before session. Frameworks call their hooks from any thread
and any event loop, and an engine belongs to one. So it gets a loop in a thread of its own, opened
with the first call; an engine that the user has opened stays on the loop it was opened in.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AsyncExitStack
from typing import Any, Self, TypeVar

from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError, StoreError
from holdfast.settings import Settings
from holdfast.store import Scope

_T = TypeVar("_T")
log = logging.getLogger("holdfast.integrations")
_CLOSE_SECONDS = 10.0


class Host:
    """Where an engine runs. Close it, or use it in a `with`; the end of the program closes it."""

    def __init__(
        self,
        store: Holdfast | str | None = None,
        *,
        settings: Settings | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Run an engine: over the store at an address, that of the settings, or one that is open.

        An open engine is used on the event loop that runs now.
        """
        self._store, self._settings, self._scope = store, settings, scope
        self._engine: Holdfast | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stack = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._opening: asyncio.Lock | None = None
        self._closed = False
        if isinstance(store, Holdfast):
            self._engine, self._loop = store, asyncio.get_running_loop()
        _OPEN.add(self)

    # --- calls -----------------------------------------------------------------------------------

    def run(self, work: Callable[[Holdfast], Awaitable[_T]]) -> _T:
        """Have something done by the engine, and wait for it."""
        if _running() is self._loop is not None:
            raise HoldfastError(
                "the engine is on the event loop that would wait for it",
                fix="Call the framework's asynchronous method, or give the adapter a store's URL.",
            )
        return self._submit(work).result()

    async def wait(self, work: Callable[[Holdfast], Awaitable[_T]]) -> _T:
        """Have something done by the engine, while the caller's own loop goes on."""
        if asyncio.get_running_loop() is self._loop:
            return await self._done(work)
        return await asyncio.wrap_future(self._submit(work))

    def soon(self, work: Callable[[Holdfast], Awaitable[Any]]) -> None:
        """Have something done behind the caller's back: what fails there is only logged."""
        if self._closed:
            return
        self._started().call_soon_threadsafe(self._begin, work)

    def _begin(self, work: Callable[[Holdfast], Awaitable[Any]]) -> None:
        task = asyncio.ensure_future(self._unattended(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _unattended(self, work: Callable[[Holdfast], Awaitable[Any]]) -> None:
        try:
            await self._done(work)
        except HoldfastError as error:
            log.warning("not written down: %s", error)

    def settle(self) -> None:
        """Wait for what is done behind the caller's back."""
        self.run(lambda _: self._settled())

    async def asettle(self) -> None:
        """Wait for what is done behind the caller's back."""
        await self.wait(lambda _: self._settled())

    async def _settled(self) -> None:
        await asyncio.gather(*self._tasks)

    # --- the loop --------------------------------------------------------------------------------

    def _submit(self, work: Callable[[Holdfast], Awaitable[_T]]) -> Future[_T]:
        if self._closed:
            raise StoreError("the adapter is closed", fix="Make another one.")
        return asyncio.run_coroutine_threadsafe(self._done(work), self._started())

    async def _done(self, work: Callable[[Holdfast], Awaitable[_T]]) -> _T:
        return await work(self._engine or await self._open())

    async def _open(self) -> Holdfast:
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:  # the calls that come meanwhile wait for the same store
            if self._engine is None:
                url = self._store if isinstance(self._store, str) else None
                engine = Holdfast.open(url, scope=self._scope, settings=self._settings)
                self._engine = await self._stack.enter_async_context(engine)
            return self._engine

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(loop,), daemon=True)
                self._thread.start()
            return self._loop

    # --- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Write down what is still to be written, and let the store and the thread go."""
        if self._closed:
            return
        self._closed = True
        if self._thread is not None and self._loop is not None:
            ending = asyncio.run_coroutine_threadsafe(self._ended(), self._loop)
            try:
                ending.result(_CLOSE_SECONDS)
            finally:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join(_CLOSE_SECONDS)

    async def _ended(self) -> None:
        await self._settled()
        await self._stack.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


_OPEN: weakref.WeakSet[Host] = weakref.WeakSet()


def _close_all() -> None:
    """A program that ends without closing its adapters still has its last turns written down."""
    for host in list(_OPEN):
        try:
            host.close()
        except (HoldfastError, TimeoutError) as error:
            log.warning("not closed: %s", error)


# Before the interpreter ends its pools of threads, which stores are closed with; `atexit` is later.
getattr(threading, "_register_atexit", atexit.register)(_close_all)
