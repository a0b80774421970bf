"""A framework's messages as a request that fits, and back, over one `Session` for a conversation.

session: after host and thread, before the adapters. A store that fails does not break the agent:
its call goes out as it is, and the log says so. Only what fits in no way is an error, before
anything is sent.
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
"""Conversations whose messages are held as they are written; others are written anew."""
_MOST_READ = 100_000
"""Bytes that are read on the event loop: a millisecond."""
_PAUSE_SECONDS = 10.0
"""How long a store that failed is left alone."""
_OPENED_SHARE = 4
"""An expansion takes at most this part of the limit: it is never cited again."""


class Fit(msgspec.Struct, Generic[M], frozen=True):
    """A call that fits."""

    messages: list[M]
    """What to send: the framework's own objects, but for what was edited."""
    fitted: Fitted | None = None
    """What was done, and why; None if the engine could not be asked, and nothing was."""
    session: Session | None = None

    @property
    def tools(self) -> frozenset[str] | None:
        """Names of the tools that may still be offered, where some were withheld; None: all."""
        if self.fitted is None or not self.fitted.state.frame_edits:
            return None
        return frozenset(tool.name for tool in self.fitted.state.sent.tools)


class Threads(Generic[M]):
    """The conversations of a framework's agents, each over a session of its own."""

    def __init__(
        self,
        host: Host,
        form: Form[M],
        *,
        limit: int | None = None,
        options: FitOptions | None = None,
        memo: Memo[M] = BY_OBJECT,
    ) -> None:
        """Fit what agents are about to send.

        `limit` is the most input tokens of a call; without one, it is what the model takes.
        `options` are those of the engine if none are given. `memo` is for frameworks that copy
        their messages for each call.
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

        The session is known by its name; without one, by what the conversation begins with. No ref
        is shown unless it `opens`: `expand_ref` is among the tools of the call.
        """
        if not messages or self._pauses():
            return Fit(list(messages))
        try:
            return self.host.run(self._fitting(messages, around, name, opens=opens))
        except (BudgetExceededError, ContextOptimizationError):
            raise  # nothing that could be sent would be taken
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
        """Make a call fit, as `fit` does."""
        if not messages or self._pauses():
            return Fit(list(messages))
        try:
            return await self.host.wait(self._fitting(messages, around, name, opens=opens))
        except (BudgetExceededError, ContextOptimizationError):
            raise
        except HoldfastError as error:
            return self._unedited(messages, error)

    def _pauses(self) -> bool:
        return time.monotonic() < self._resumes_at

    def _unedited(self, messages: Sequence[M], error: HoldfastError) -> Fit[M]:
        """A call as it is. A store that fails is left alone for a while.

        What cannot be stored would else be cited anew with every call: a minute for sixty results.
        """
        log.warning("a call goes out as it is: %s", error)
        if isinstance(error, StoreError):
            self._resumes_at = time.monotonic() + _PAUSE_SECONDS
        return Fit(list(messages))

    def observe(self, fit: Fit[M], usage: Mapping[str, Any] | None = None) -> None:
        """Have a call that was answered written down, and learn from the usage it reported.

        `usage` has the names that the dialect's provider gives it. Nobody waits for this.
        """
        fitted, session = fit.fitted, fit.session
        if fitted is not None and session is not None:
            self.host.soon(lambda engine: engine.observe(session, fitted, usage))

    def expand(self, arguments: object) -> str:
        """What a call of `expand_ref` is answered: never silence, never an error."""
        try:
            return self.host.run(self._opening(arguments))
        except HoldfastError as error:
            return _refusal(error)

    async def aexpand(self, arguments: object) -> str:
        """What a call of `expand_ref` is answered, as `expand` says it."""
        try:
            return await self.host.wait(self._opening(arguments))
        except HoldfastError as error:
            return _refusal(error)

    async def acite(self, content: str, tool: str) -> str:
        """A citation of what a tool gave, or the content itself where it is short or not stored."""
        try:
            citation = await self.host.wait(lambda engine: engine.cite(content, tool=tool))
        except HoldfastError as error:
            log.warning("a result stays as it is: %s", error)
            return content
        return citation.text

    def _fitting(
        self, messages: Sequence[M], around: Mapping[str, Any], name: str, *, opens: bool
    ) -> Callable[[Holdfast], Awaitable[Fit[M]]]:
        async def work(engine: Holdfast) -> Fit[M]:
            thread, key, body = self._written(messages, around, name)
            options = self._how(engine, opens=opens)
            if name:
                session = engine.session(name)
                fitted = await engine.fit(self._read(thread, body), options, session=name)
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

    def _read(self, thread: Thread[M], body: bytes) -> Conversation | bytes:
        """A request of which little is new: read here, that costs less than a thread to read it in.

        Any other is read by the engine, off the event loop.
        """
        known = thread.asked
        if known is None or len(body) - len(known.source or b"") > _MOST_READ:
            return body
        return read(body, self._form.dialect, previous=known)

    def _written(
        self, messages: Sequence[M], around: Mapping[str, Any], name: str
    ) -> tuple[Thread[M], str, bytes]:
        """The request, and what is held of its conversation: by its name, else by how it begins.

        Who works on a conversation has it alone: a call beside it writes its messages anew.
        """
        key = name or "\0" + sha256(span_of(self._form.write(messages[0]))).hexdigest()
        thread = self._threads.pop(key, None) or Thread(self._form, self._memo)
        return thread, key, thread.body(messages, around)

    def _how(self, engine: Holdfast, *, opens: bool) -> FitOptions:
        """How a call is to be made to fit: nothing is cited that could not be opened."""
        options = self._options or engine.options
        # Frameworks send the tool that opens refs with each call: it is counted from the first on.
        offer = "always" if options.offer_expand == "auto" else options.offer_expand
        return msgspec.structs.replace(
            options,
            dialect=self._form.dialect,
            limit=options.limit if self._limit is None else self._limit,
            cites=options.cites and opens,
            opens=options.opens and opens,
            offer_expand=offer,
        )

    def _opening(self, arguments: object) -> Callable[[Holdfast], Awaitable[str]]:
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
