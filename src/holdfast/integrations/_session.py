"""A framework's messages as a request that fits, and back, over one `Session` for a conversation.

session: after host, before the adapters. A message that was not edited stays the framework's own
object; what was edited is made once and shown again with every later call. A store that fails does
not break the agent: its call goes out as it is, and the log says so. Only what fits in no way is
an error, before anything is sent.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Generic, Protocol, TypeVar

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
from holdfast.expand.tool import parse_call
from holdfast.fitting import FitOptions, Fitted
from holdfast.fitting.state import FitState
from holdfast.integrations._host import Host, log
from holdfast.trim.standing import STAND
from holdfast.voice import NO_STORE
from holdfast.wire import DIALECTS, Conversation, Message, read
from holdfast.wire.strict import Limits, to_bytes

M = TypeVar("M")
_MOST_THREADS = 64
"""Conversations whose messages are held as they are written; others are written anew."""
_PAUSE_SECONDS = 10.0
"""How long a store that failed is left alone."""
_OPENED_SHARE = 4
"""An expansion takes at most this part of the limit: it is never cited again."""


Mark = Callable[[M], object]
"""What a message is known by: it is written anew only if its mark is not equal to the last one."""


class Form(Protocol[M]):
    """How a framework's messages are written in a dialect, and read back."""

    @property
    def dialect(self) -> str:
        """The dialect's name, such as `openai-chat`."""

    def write(self, message: M) -> Sequence[Mapping[str, Any]]:
        """A message as messages of the dialect: mostly one."""

    def read(self, parts: Sequence[tuple[Any, M | None]]) -> Sequence[M]:
        """Messages for what goes out in the place of others.

        Each part is a value of the dialect and the framework's message that it is an edit of; None
        if it is a digest, or was added. There are several parts only where `write` gives several.
        """


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
        mark: Mark[M] | None = None,
    ) -> None:
        """Fit what agents are about to send.

        `limit` is the most input tokens of a call; without one, it is what the model takes.
        `options` are those of the engine if none are given. `mark` is for frameworks that copy
        their messages for each call.
        """
        self.host = host
        self._form = form
        self._mark = mark or _mark
        self._limit = limit
        self._options = options
        self._threads: OrderedDict[str, _Thread[M]] = OrderedDict()
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
                fitted = await engine.fit(body, options, session=name)
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

    def _written(
        self, messages: Sequence[M], around: Mapping[str, Any], name: str
    ) -> tuple[_Thread[M], str, bytes]:
        """The request, and what is held of its conversation: by its name, else by how it begins.

        Who works on a conversation has it alone: a call beside it writes its messages anew.
        """
        key = name or "\0" + sha256(_span(self._form.write(messages[0]))).hexdigest()
        thread = self._threads.pop(key, None) or _Thread(self._form, self._mark)
        return thread, key, thread.body(messages, around)

    def _how(self, engine: Holdfast, *, opens: bool) -> FitOptions:
        """How a call is to be made to fit: nothing is cited that could not be opened."""
        options = self._options or engine.options
        return msgspec.structs.replace(
            options,
            dialect=self._form.dialect,
            limit=options.limit if self._limit is None else self._limit,
            cites=options.cites and opens,
            opens=options.opens and opens,
        )

    def _opening(self, arguments: object) -> Callable[[Holdfast], Awaitable[str]]:
        async def work(engine: Holdfast) -> str:
            ref, options = parse_call(arguments)
            if self._limit is not None:
                most = min(options.max_tokens, self._limit // _OPENED_SHARE)
                options = msgspec.structs.replace(options, max_tokens=most)
            return (await engine.expand_ref(ref, options)).text

        return work


class _Thread(Generic[M]):
    """The messages of one conversation, as they were written and shown last."""

    def __init__(self, form: Form[M], mark: Mark[M]) -> None:
        self._form, self._mark = form, mark
        self.asked: Conversation | None = None
        """What a conversation without a name was last: the next is read as what was added."""
        self._lines: list[_Line[M]] = []
        self._shown: dict[int, tuple[Message, list[M]]] = {}
        """By the message that goes out, which is held so that its id stays its own."""

    def body(self, messages: Sequence[M], around: Mapping[str, Any]) -> bytes:
        """The request, of messages that are written once."""
        lines = self._lines
        marks = [self._mark(message) for message in messages]
        pairs = enumerate(zip(lines, marks, strict=False))
        same = next((n for n, (line, mark) in pairs if line.mark != mark), len(lines))
        added = zip(messages[same:], marks[same:], strict=True)
        lines[same:] = [_Line(message, mark, self._form) for message, mark in added]
        [key] = DIALECTS[self._form.dialect].LISTS[0]
        hollow: dict[str, Any] = {**around, str(key): []}
        head = to_bytes(hollow, Limits())[:-2]  # the list stands last, and is still open
        return head + b",".join([line.span for line in lines]) + b"]}"

    def shown(self, state: FitState, messages: Sequence[M]) -> list[M]:
        """What goes out, in the framework's own objects but for what was edited."""
        asked, sent = state.asked.messages, state.sent.messages
        if sent is asked or sent == asked:
            return list(messages)
        owners = [n for n, line in enumerate(self._lines) for _ in range(line.count)]
        shown: list[M] = []
        held: dict[int, tuple[Message, list[M]]] = {}
        first = 0
        for n, (_, stop) in enumerate(state.origins):
            if 0 < stop < len(owners) and owners[stop] == owners[stop - 1]:
                continue  # the next one is a part of the same message
            start = state.origins[first][0]
            group = sent[first : n + 1]
            if group == asked[start:stop]:
                shown.extend(messages[owners[start] : owners[stop - 1] + 1])
            else:
                known = self._shown.get(id(group[0]))
                edited = known[1] if known else self._edited(state, first, n + 1, owners, messages)
                held[id(group[0])] = (group[0], edited)
                shown.extend(edited)
            first = n + 1
        self._shown = held
        return shown

    def _edited(
        self, state: FitState, first: int, last: int, owners: list[int], messages: Sequence[M]
    ) -> list[M]:
        parts: list[tuple[Any, M | None]] = []
        for message, (start, stop) in zip(
            state.sent.messages[first:last], state.origins[first:last], strict=True
        ):
            stand = STAND.get(message)
            is_digest = stand is not None and stand.fold is not None
            own = start if stand is None else start + stand.own
            like = None if is_digest or start == stop else messages[owners[own]]
            parts.append((message.value, like))
        return list(self._form.read(parts))


class _Line(Generic[M]):
    """A message as it was written, and what tells that it has not changed since."""

    __slots__ = ("count", "mark", "message", "span")

    def __init__(self, message: M, mark: object, form: Form[M]) -> None:
        self.message, self.mark = message, mark  # it is held, so that its id stays its own
        values = form.write(message)
        self.count, self.span = len(values), _span(values)


def _span(values: Sequence[Mapping[str, Any]]) -> bytes:
    return b",".join([to_bytes(value, Limits()) for value in values])


def _mark(message: Any) -> object:
    """A message is itself until its content is replaced; dictionaries are made anew each time."""
    if isinstance(message, dict):
        return message
    return id(message), getattr(message, "content", None)


def _refusal(error: HoldfastError) -> str:
    if isinstance(error, ExpandError):
        return f"[{error}]"
    log.warning("nothing could be opened: %s", error)
    return NO_STORE if isinstance(error, StoreError) else f"[{error}]"
