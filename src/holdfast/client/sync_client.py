"""The client for programs without asyncio: a separate event loop in a separate thread.

blocking: after client. The thread lives from `with` to its end; calls may come from any thread.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar

from holdfast.errors import SettingsError

if TYPE_CHECKING:
    from holdfast.budget import TokenBudgetSnapshot
    from holdfast.client.client import Client, Messages
    from holdfast.client.replies import ClientReport, Reply, ReplyPart
    from holdfast.fitting import Fitted

_T = TypeVar("_T")


class BlockingClient:
    """`with holdfast.Client(…).sync as client: client.chat(messages)`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="holdfast-client", daemon=True
        )
        self._thread.start()
        self._run(self._client.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        try:
            self._run(self._client.__aexit__(None, None, None))
        finally:
            self._loop = None
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        if self._loop is None:
            work.close()
            raise SettingsError("the client is not open", where="Client", fix="Use it in `with`.")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def chat(self, messages: Messages, **how: Any) -> Reply:
        """See `Client.chat`."""
        return self._run(self._client.chat(messages, **how))

    def stream(self, messages: Messages, **how: Any) -> Iterator[ReplyPart]:
        """See `Client.stream`."""
        parts: queue.Queue[ReplyPart | BaseException | None] = queue.Queue()

        async def pump(put: Callable[[ReplyPart | BaseException | None], None]) -> None:
            try:
                async for part in self._client.stream(messages, **how):
                    put(part)
                put(None)
            except BaseException as error:
                put(error)
                raise

        if self._loop is None:
            raise SettingsError("the client is not open", where="Client", fix="Use it in `with`.")
        pumping = asyncio.run_coroutine_threadsafe(pump(parts.put), self._loop)
        try:
            while (part := parts.get()) is not None:
                if isinstance(part, BaseException):
                    raise part
                yield part
        finally:
            pumping.cancel()  # a caller that stops early leaves nothing running

    def get_token_usage(self) -> TokenBudgetSnapshot:
        """See `Client.get_token_usage`."""
        return self._client.get_token_usage()

    def set_token_budget(self, budget: Any) -> None:
        """See `Client.set_token_budget`."""
        self._client.set_token_budget(budget)

    def trim_context(self, target_tokens: int | None = None) -> Fitted | None:
        """See `Client.trim_context`."""
        return self._run(self._client.trim_context(target_tokens))

    def report(self) -> ClientReport:
        """See `Client.report`."""
        return self._client.report()
