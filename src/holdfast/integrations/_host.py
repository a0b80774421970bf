"""Run an adapter's engine for synchronous and asynchronous callers.

Frameworks call their hooks from any thread and event loop, but an engine belongs to one loop. So it
gets its own loop in a thread, opened at the first call. An engine that the user has opened stays on
its loop.
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
    """Runs an engine.

    Close it, or use it in a `with` statement; the end of the program closes it too.
    """

    def __init__(
        self,
        store: Holdfast | str | None = None,
        *,
        settings: Settings | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Run an engine for a store URL or for the store of the settings, or use an open engine.

        An open engine is used on the current event loop.
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
        """Run a coroutine on the engine's loop and block until it finishes."""
        if _running() is self._loop is not None:
            raise HoldfastError(
                "the engine is on the event loop that would wait for it",
                fix="Call the framework's asynchronous method, or give the adapter a store's URL.",
            )
        return self._submit(work).result()

    async def wait(self, work: Callable[[Holdfast], Awaitable[_T]]) -> _T:
        """Run a coroutine on the engine's loop and await it."""
        if asyncio.get_running_loop() is self._loop:
            return await self._run_with_engine(work)
        return await asyncio.wrap_future(self._submit(work))

    def soon(self, work: Callable[[Holdfast], Awaitable[Any]]) -> None:
        """Run a coroutine in the background; its failure is only logged."""
        if self._closed:
            return
        self._ensure_loop().call_soon_threadsafe(self._begin, work)

    def _begin(self, work: Callable[[Holdfast], Awaitable[Any]]) -> None:
        task = asyncio.ensure_future(self._run_logged(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_logged(self, work: Callable[[Holdfast], Awaitable[Any]]) -> None:
        try:
            await self._run_with_engine(work)
        except HoldfastError as error:
            log.warning("not written down: %s", error)

    def wait_for_background(self) -> None:
        """Wait for background coroutines."""
        self.run(lambda _: self._gather_background())

    async def await_background(self) -> None:
        """Wait for background coroutines."""
        await self.wait(lambda _: self._gather_background())

    async def _gather_background(self) -> None:
        await asyncio.gather(*self._tasks)

    # --- the loop --------------------------------------------------------------------------------

    def _submit(self, work: Callable[[Holdfast], Awaitable[_T]]) -> Future[_T]:
        if self._closed:
            raise StoreError("the adapter is closed", fix="Make another one.")
        return asyncio.run_coroutine_threadsafe(self._run_with_engine(work), self._ensure_loop())

    async def _run_with_engine(self, work: Callable[[Holdfast], Awaitable[_T]]) -> _T:
        return await work(self._engine or await self._open())

    async def _open(self) -> Holdfast:
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:  # concurrent calls wait for the same store
            if self._engine is None:
                url = self._store if isinstance(self._store, str) else None
                engine = Holdfast.open(url, scope=self._scope, settings=self._settings)
                self._engine = await self._stack.enter_async_context(engine)
            return self._engine

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(loop,), daemon=True)
                self._thread.start()
            return self._loop

    # --- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Finish background work and close the store and the thread."""
        if self._closed:
            return
        self._closed = True
        if self._thread is not None and self._loop is not None:
            ending = asyncio.run_coroutine_threadsafe(self._close_engine(), self._loop)
            try:
                ending.result(_CLOSE_SECONDS)
            finally:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join(_CLOSE_SECONDS)

    async def _close_engine(self) -> None:
        await self._gather_background()
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
    """Close adapters at the end of the program, so that their last turns are recorded."""
    for host in list(_OPEN):
        try:
            host.close()
        except (HoldfastError, TimeoutError) as error:
            log.warning("not closed: %s", error)


# Runs before the interpreter ends thread pools, which closing a store needs; `atexit` runs later.
getattr(threading, "_register_atexit", atexit.register)(_close_all)
