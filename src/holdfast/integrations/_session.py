"""Fit a framework's messages into requests, with one `Session` per conversation.

A failing store does not break the agent: its call is sent unedited, and a warning is logged. Only a
call that cannot fit raises an error, before it is sent.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.engine import Holdfast
from holdfast.engine.session import Session
from holdfast.errors import (
    BudgetExceededError,
    ContextOptimizationError,
    ExpandError,
    HoldfastError,
    StoreError,
)
from holdfast.expand.calls import parse_call
from holdfast.expand.expansion import refusal
from holdfast.fitting import FitOptions, Fitted
from holdfast.integrations._host import Host, log
from holdfast.integrations._thread import BY_OBJECT, Form, Memo, Thread, span_of
from holdfast.quoting import NO_STORE
from holdfast.wire import Conversation, read

M = TypeVar("M")
_MOST_THREADS = 64
"""Maximum conversations whose written messages are cached; others are written again."""
_MOST_READ = 100_000
"""Bytes read on the event loop, which takes a millisecond."""
_PAUSE_SECONDS = 10.0
"""Seconds without edits after the store has failed."""
_OPENED_SHARE = 4
"""An expansion gets at most this fraction of the limit, since it is never cited."""


class Fit(msgspec.Struct, Generic[M], frozen=True):
    """A call that fits."""

    messages: list[M]
    """The messages to send: the framework's own objects except for edited ones."""
    fitted: Fitted | None = None
    """The edits and their reasons; None if the engine could not be used and nothing was edited."""
    session: Session | None = None

    @property
    def tools(self) -> frozenset[str] | None:
        """Return the names of the tools to offer if some are withheld; None for all."""
        if self.fitted is None or not self.fitted.state.frame_edits:
            return None
        return frozenset(tool.name for tool in self.fitted.state.sent.tools)


class Threads(Generic[M]):
    """The conversations of a framework's agents, each with its own session."""

    def __init__(
        self,
        host: Host,
        form: Form[M],
        *,
        limit: int | None = None,
        options: FitOptions | None = None,
        memo: Memo[M] = BY_OBJECT,
    ) -> None:
        """Set the limits for calls.

        `limit` is the maximum input tokens of a call; by default the model's. `options` default to
        those of the engine. `memo` is for frameworks that copy their messages for each call.
        """
        self.host = host
        self._form = form
        self._memo = memo
        self._limit = limit
        self._options = options
        self._threads: OrderedDict[str, Thread[M]] = OrderedDict()
        self._resumes_at = 0.0

    def fit(
        self,
        messages: Sequence[M],
        around: Mapping[str, Any],
        name: str = "",
        *,
        opens: bool = True,
    ) -> Fit[M]:
        """Make a call fit; `around` is the rest of the body: model, tools, system text.

        The session has the given name; without one, it is identified by the beginning of the
        conversation. `opens` is false if `expand_ref` is not among the call's tools; then no refs
        are shown.
        """
        if not messages or self._is_pausing():
            return Fit(list(messages))
        try:
            return self.host.run(self._fit_work(messages, around, name, opens=opens))
        except (BudgetExceededError, ContextOptimizationError):
            raise  # no request would be accepted
        except HoldfastError as error:
            return self._unedited(messages, error)

    async def afit(
        self,
        messages: Sequence[M],
        around: Mapping[str, Any],
        name: str = "",
        *,
        opens: bool = True,
    ) -> Fit[M]:
        """Make a call fit, like `fit`."""
        if not messages or self._is_pausing():
            return Fit(list(messages))
        try:
            return await self.host.wait(self._fit_work(messages, around, name, opens=opens))
        except (BudgetExceededError, ContextOptimizationError):
            raise
        except HoldfastError as error:
            return self._unedited(messages, error)

    def _is_pausing(self) -> bool:
        return time.monotonic() < self._resumes_at

    def _unedited(self, messages: Sequence[M], error: HoldfastError) -> Fit[M]:
        """Return a call unedited. After a store failure, calls are unedited for a while.

        Otherwise contents that cannot be stored would be cited again in every call: a minute for
        sixty results.
        """
        log.warning("a call goes out as it is: %s", error)
        if isinstance(error, StoreError):
            self._resumes_at = time.monotonic() + _PAUSE_SECONDS
        return Fit(list(messages))

    def observe(self, fit: Fit[M], usage: Mapping[str, Any] | None = None) -> None:
        """Record an answered call and learn from its usage, in the background.

        `usage` has the names of the dialect's provider.
        """
        fitted, session = fit.fitted, fit.session
        if fitted is not None and session is not None:
            self.host.soon(lambda engine: engine.observe(session, fitted, usage))

    def expand(self, arguments: object) -> str:
        """Return the answer to a call of `expand_ref`; errors become a text for the model."""
        try:
            return self.host.run(self._expand_work(arguments))
        except HoldfastError as error:
            return _refusal(error)

    async def aexpand(self, arguments: object) -> str:
        """Return the answer to a call of `expand_ref`, like `expand`."""
        try:
            return await self.host.wait(self._expand_work(arguments))
        except HoldfastError as error:
            return _refusal(error)

    async def acite(self, content: str, tool: str) -> str:
        """Return a citation of a tool's result; a short or unstored result is unchanged."""
        try:
            citation = await self.host.wait(lambda engine: engine.cite(content, tool=tool))
        except HoldfastError as error:
            log.warning("a result stays as it is: %s", error)
            return content
        return citation.text

    def _fit_work(
        self, messages: Sequence[M], around: Mapping[str, Any], name: str, *, opens: bool
    ) -> Callable[[Holdfast], Awaitable[Fit[M]]]:
        async def work(engine: Holdfast) -> Fit[M]:
            thread, key, body = self._write_request(messages, around, name)
            options = self._fit_options(engine, opens=opens)
            if name:
                session = engine.session(name)
                fitted = await engine.fit(self._read_small(thread, body), options, session=name)
            else:
                conversation = read(body, self._form.dialect, previous=thread.asked)
                session = await engine.session_of(conversation)
                fitted = await session.fit(conversation, options)
            thread.asked = fitted.state.asked
            self._threads[key] = thread
            if len(self._threads) > _MOST_THREADS:
                self._threads.popitem(last=False)
            return Fit(thread.shown(fitted.state, messages), fitted, session)

        return work

    def _read_small(self, thread: Thread[M], body: bytes) -> Conversation | bytes:
        """Read a request with little new content here, which is faster than using a thread.

        The engine reads other requests off the event loop.
        """
        previous = thread.asked
        if previous is None or len(body) - len(previous.source or b"") > _MOST_READ:
            return body
        return read(body, self._form.dialect, previous=previous)

    def _write_request(
        self, messages: Sequence[M], around: Mapping[str, Any], name: str
    ) -> tuple[Thread[M], str, bytes]:
        """Return the request and the cached messages of its conversation, by name or first message.

        The cache is taken out meanwhile: a concurrent call of the conversation writes its messages
        again.
        """
        key = name or "\0" + sha256(span_of(self._form.write(messages[0]))).hexdigest()
        thread = self._threads.pop(key, None) or Thread(self._form, self._memo)
        return thread, key, thread.body(messages, around)

    def _fit_options(self, engine: Holdfast, *, opens: bool) -> FitOptions:
        """Return the options for a call; nothing is cited that the model could not open."""
        options = self._options or engine.options
        # Frameworks send the tool that opens refs with each call, so it is counted from the first
        # call on.
        offer = "always" if options.offer_expand == "auto" else options.offer_expand
        return msgspec.structs.replace(
            options,
            dialect=self._form.dialect,
            limit=options.limit if self._limit is None else self._limit,
            cites=options.cites and opens,
            opens=options.opens and opens,
            offer_expand=offer,
        )

    def _expand_work(self, arguments: object) -> Callable[[Holdfast], Awaitable[str]]:
        async def work(engine: Holdfast) -> str:
            ref, options = parse_call(arguments)
            if self._limit is not None:
                most = min(options.max_tokens, self._limit // _OPENED_SHARE)
                options = msgspec.structs.replace(options, max_tokens=most)
            return (await engine.expand_ref(ref, options)).text

        return work


def _refusal(error: HoldfastError) -> str:
    if isinstance(error, ExpandError):
        return refusal(error)
    log.warning("nothing could be opened: %s", error)
    return NO_STORE if isinstance(error, StoreError) else f"[{error}]"
