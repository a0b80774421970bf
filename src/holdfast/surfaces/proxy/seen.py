"""The data of one request for metrics, logs and spans, collected while it is answered.

Contains ids, counts and times, and no text of the conversation.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    contextmanager,
)
from functools import lru_cache
from hashlib import sha256
from random import getrandbits
from typing import NamedTuple

from holdfast.engine import bill
from holdfast.errors import HoldfastError, StoreError
from holdfast.store import Turn
from holdfast.upstream.network import UpstreamReply
from holdfast.workers.lanes import Slot

CLIENT_LEFT = bill.CLIENT_LEFT
UNKNOWN_MODEL = "unknown"
_MODEL = re.compile(r"[A-Za-z0-9][\w.:/@+-]{0,99}", re.ASCII)
_OUR_SESSION = re.compile(r"[0-9a-f]{32}")


class Refusal(NamedTuple):
    """A request that failed before there was a turn to write down: ids and counts only."""

    at: float
    tenant: str
    session: str
    model: str
    status: int
    error: str
    """The kind of error."""


class RequestSeen:
    """A request on its way; times are in seconds."""

    def __init__(
        self, dialect: str = "openai-chat", family: str = "", traceparent: str = ""
    ) -> None:
        self.id = f"{getrandbits(64):016x}"  # for logs: unlike, but no secret
        self.dialect = dialect
        self.family = family
        self.traceparent = traceparent
        """The client's own span, if it sent one."""
        self.model = ""
        self.tenant = ""
        """Whose request it is, once that is known."""
        self.provider = ""
        """The name of the upstream that answers, such as `Anthropic`."""
        self.session = ""
        self.status = 0
        """The status sent to the client; 0 if none was sent yet."""
        self.streams = False
        self.size = 0
        """Bytes of the request, where it was read."""
        self.store_failed = False
        self.store_failure = ""
        """Why, where that is known here; else the log has it. Not the error, which leads back here:
        its traceback holds whoever handles the request."""
        self.failure = ""
        """The kind of error that ended it."""
        self.slot: Slot | None = None
        """Its place among the requests at work; None while it has none."""
        self.turn: asyncio.Task[Turn | None] | None = None
        """The engine's record of the turn, once it exists."""
        self.upstream = 0.0
        """Time spent waiting for the upstream."""
        self.client = 0.0
        """Seconds spent waiting for the client: for its body, and until it reads its response."""
        self.total = 0.0
        self.is_open = True
        """Whether the client still waits for its answer, or a part of it."""
        self.began_at = time.time_ns()
        self._began = time.perf_counter()

    @property
    def added(self) -> float:
        """The time that the proxy itself took."""
        return max(0.0, self.total - self.upstream - self.client)

    def release_slot(self) -> None:
        """Let another request be worked on: this one waits for its model, or has ended."""
        slot, self.slot = self.slot, None
        if slot is not None:
            slot.release()

    def failed_with(self, error: HoldfastError) -> None:
        """Record the kind of the error that ended the request; its text may quote the request."""
        self.failure = type(error).__name__
        if isinstance(error, StoreError):
            self.store_failed_with(error)

    def store_failed_with(self, error: StoreError) -> None:
        """Record a failure of the store."""
        self.store_failed = True
        self.store_failure = str(error)

    def ended(self) -> None:
        """The client has all it will get."""
        self.is_open = False
        self.total = time.perf_counter() - self._began

    def sends(self, message: Mapping[str, object]) -> None:
        """Note that a part of the answer is on its way to the client."""
        status = message.get("status")
        self.status = status if isinstance(status, int) else self.status
        self.streams = self.streams or bool(message.get("more_body"))

    @asynccontextmanager
    async def timed(
        self, sending: AbstractAsyncContextManager[UpstreamReply]
    ) -> AsyncIterator[UpstreamReply]:
        """Send to an upstream; the time spent waiting for its answer is noted."""
        async with AsyncExitStack() as stack:
            with self._waiting():
                reply = await stack.enter_async_context(sending)
            yield _Timed(reply, self)

    @contextmanager
    def waiting_for_client(self) -> Iterator[None]:
        """Time inside is the client's."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.client += time.perf_counter() - start

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.upstream += time.perf_counter() - start


class _Timed:
    """An upstream's answer whose reader is timed."""

    def __init__(self, reply: UpstreamReply, seen: RequestSeen) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self._reply = reply
        self._seen = seen

    async def chunks(self) -> AsyncGenerator[bytes]:
        async with aclosing(self._reply.chunks()) as pieces:
            while True:
                with self._seen._waiting():
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield piece


@lru_cache(maxsize=256)  # the few models of a proxy come with every request, twice
def model_name(name: str) -> str:
    """A model's name for logs and labels; what does not look like one might be anything."""
    if not name:
        return UNKNOWN_MODEL
    return name if _MODEL.fullmatch(name) else "other"


def session_id(name: str) -> str:
    """A session's name for logs; of one that the client chose, only its hash."""
    if not name or _OUR_SESSION.fullmatch(name):
        return name
    return "sha256:" + sha256(name.encode()).hexdigest()[:16]
