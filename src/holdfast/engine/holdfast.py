"""Holdfast: cite, expand, fit and assemble over one store.

holdfast: after all other files of the engine; every surface uses it. An original is stored before
its citation is shown. Long work runs outside the event loop: see workers/.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self
from weakref import proxy

import msgspec

from holdfast.answer_cache import AnswerPolicy, Answers
from holdfast.assemble import (
    AssembleContextInput,
    AssembledContext,
    Assembler,
    Intent,
    ToolIntent,
)
from holdfast.assemble.context import PLAIN
from holdfast.cite import Citation, CitingRules
from holdfast.cite import count as count_text
from holdfast.engine.content_reader import ContentReader
from holdfast.engine.fact_learner import FactLearner
from holdfast.engine.histories import Histories
from holdfast.engine.identity import UNKNOWN, OpenRequest, Sender
from holdfast.engine.live import LiveSessions, RemovalWatch
from holdfast.engine.observation import Observation
from holdfast.engine.options import work_limits
from holdfast.engine.parts import EngineParts, parts_of
from holdfast.engine.session import (
    Session,
    fit_and_store,
    longer_refs,
    size_of,
    with_limit,
)
from holdfast.engine.sessions import Sessions
from holdfast.errors import DamagedContentError, RefCollisionError, StoreError
from holdfast.expand import ExpandOptions, Expansion, missing, note_of
from holdfast.expand.tool import NAME
from holdfast.facts import Ledger, fact_jobs
from holdfast.fitting import FitOptions, Fitted, plan
from holdfast.jobs import background
from holdfast.memory import RecallResult
from holdfast.settings import Settings
from holdfast.store import Scope, Store, Turn, open_store
from holdfast.store.records import StoreStats, UsageTotal
from holdfast.store.turn_store import RememberedTurn
from holdfast.tokens import Calibration
from holdfast.wire import Conversation
from holdfast.workers import Workers

if TYPE_CHECKING:
    from holdfast.memory.memory import Memory
    from holdfast.toolbox.toolbox import Toolbox


class Holdfast:
    """Cite, expand and fit over one store, for one user and workspace."""

    def __init__(  # noqa: PLR0913 - named arguments, of which most calls need none
        self,
        store: Store,
        scope: Scope | None = None,
        *,
        options: FitOptions | None = None,
        calibration: Calibration | None = None,
        clock: Callable[[], float] = time.time,
        workers: Workers | None = None,
        answers: AnswerPolicy | None = None,
    ) -> None:
        arguments = {"options": options, "workers": workers, "answer_policy": answers}
        chosen: dict[str, Any] = {
            name: value for name, value in arguments.items() if value is not None
        }
        parts = EngineParts(store=store, clock=clock, **chosen)
        self._begin(parts, scope or Scope(), calibration or Calibration())

    def _begin(self, parts: EngineParts, scope: Scope, calibration: Calibration) -> None:
        self.parts = parts
        """The parts shared by the engines of all scopes."""
        self.scope = scope
        self.calibration = calibration
        privacy = parts.options.rules.privacy
        self.facts = Ledger(parts.store, scope, parts.indexes, privacy=privacy, clock=parts.clock)
        """Facts extracted from contents and turns, each understandable alone."""
        self._learner = FactLearner(parts, self.facts)
        self.sessions = Sessions(parts, scope, calibration, self._learner.learn_later)
        """The sessions of this scope."""
        self.answers = Answers(parts.store, scope, parts.answer_policy, clock=parts.clock)
        """Answers that may be given again."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str | None = None,
        *,
        scope: Scope | None = None,
        settings: Settings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> AsyncIterator[Self]:
        """Open a store, and close it at the end of the block.

        `memory:`, `sqlite:///path` or `postgresql://…`; without a URL, the one in the settings,
        else a file in the user's data folder.
        """
        settings = settings or Settings.load()
        store = await open_store(
            url or settings.store_url, folder=settings.data_folder, clock=clock
        )
        workers = Workers(work_limits(settings))
        try:
            reading = fact_jobs(store, settings)
            async with background(store, settings, clock=clock, more=reading) as jobs:
                parts = parts_of(
                    settings,
                    store,
                    clock=clock,
                    workers=workers,
                    jobs=jobs,
                    reads_facts=bool(reading),
                )
                engine = await cls._with(parts, scope or Scope())
                watch = asyncio.create_task(RemovalWatch(store, parts.live, workers).run())
                try:
                    yield engine
                    await engine.settle()
                finally:
                    watch.cancel()
                    await asyncio.wait([watch])
        finally:
            workers.close()
            await store.close()

    @classmethod
    async def _with(cls, parts: EngineParts, scope: Scope) -> Self:
        engine = cls.__new__(cls)
        engine._begin(parts, scope, await _learnt(parts.store, scope))
        return engine

    async def of(self, scope: Scope) -> Self:
        """Return the engine of another scope of the same store; neither sees the other's data."""
        return await self._with(self.parts, scope)

    def with_parts(self, **changes: Any) -> Self:
        """Return an engine of the same scope with other `EngineParts`."""
        engine = type(self).__new__(type(self))
        engine._begin(replace(self.parts, **changes), self.scope, self.calibration)
        return engine

    @property
    def store(self) -> Store:
        """The store."""
        return self.parts.store

    @property
    def options(self) -> FitOptions:
        """How requests are fitted, unless a call gives other options."""
        return self.parts.options

    @property
    def workers(self) -> Workers:
        """The processes that read large contents."""
        return self.parts.workers

    @property
    def live(self) -> LiveSessions:
        """Sessions in memory, of all scopes; others are read from the store."""
        return self.parts.live

    # --- contents --------------------------------------------------------------------------------

    async def cite(  # noqa: PLR0913 - named arguments, of which most calls need none
        self,
        content: Any,
        *,
        kind: str | None = None,
        question: str | None = None,
        source_url: str | None = None,
        tool: str = "",
        session: str | None = None,
        rules: CitingRules | None = None,
        learns_later: bool = False,
    ) -> Citation:
        """Store a content and return the citation that replaces it.

        With `learns_later` its facts are extracted after the answer (004-54).
        """
        rules = rules or self.options.rules

        def made_with(rules: CitingRules) -> Citation:
            return self.workers.citer()(
                content, kind=kind, question=question, source_url=source_url, tool=tool, rules=rules
            )

        while True:
            citation = await self.workers.off_loop(size_of(content), partial(made_with, rules))
            if citation.content is None:
                return citation
            try:
                await self.store.put(self._scope(session), [citation.content])
            except RefCollisionError:
                rules = longer_refs(rules)
            else:
                if learns_later:
                    self._learner.learn_later(self._scope(session), [citation.content])
                else:
                    await self._learner.learn(self._scope(session), citation.content)
                return citation

    async def expand_ref(
        self,
        ref_id: str,
        options: Mapping[str, Any] | ExpandOptions | None = None,
        *,
        opener: str = NAME,
        peek: bool = False,
    ) -> Expansion:
        """Open a part of a stored content, exactly; explain why if it cannot be opened.

        `opener` is the name of the tool that opens the rest. With `peek` the call does not count as
        an opening, because a person made it and no model needed the part.
        """
        parsed = ExpandOptions.parse(options)
        try:
            stored = await self.store.get(self.scope, ref_id, peek=peek)
        except DamagedContentError:
            stored = None
        if stored is None:
            known = await self.store.info(self.scope, ref_id)
            privacy = self.options.rules.privacy
            return missing(ref_id, known, count=count_text, privacy=privacy)
        info, data = stored.info, stored.data
        if self.parts.summary_queue is not None and not peek:
            await self.parts.summary_queue.opened(self.scope, info)
        note = note_of(info)
        work = partial(self.workers.expand, info.ref_id, data, info.kind, parsed)
        return await self.workers.off_loop(len(data), partial(work, note=note, opener=opener))

    # --- what was said ---------------------------------------------------------------------------

    @property
    def memory(self) -> Memory:
        """The remembered turns of this scope."""
        from holdfast.memory.memory import Memory  # noqa: PLC0415 - numpy takes 80 ms to load

        return Memory(
            self.store,
            self.scope,
            count=count_text,
            embedder=self.parts.embedder,
            arrays=self.parts.arrays,
            clock=self.parts.clock,
        )

    async def remember(
        self, session: str, messages: Sequence[Mapping[str, Any] | RememberedTurn]
    ) -> list[str]:
        """Keep messages of a session to be recalled, and their facts: see `Memory.remember`."""
        ids = await self.memory.remember(session, messages)
        if self.parts.learns:
            messages_with_ids = [
                {**_plain(each), "id": id_} for each, id_ in zip(messages, ids, strict=True)
            ]
            with suppress(StoreError):  # that is no reason to fail
                await self.facts.extract(messages_with_ids, session=session)
        return ids

    async def recall(
        self,
        query: str,
        *,
        session: str | None = None,
        k: int | None = None,
        token_budget: int = 1000,
        now: float | None = None,
    ) -> RecallResult:
        """Return the turns that a question needs, within a token budget: see `Memory.recall`."""
        return await self.memory.recall(
            query, session=session, k=k, token_budget=token_budget, now=now
        )

    async def recent(self, session: str, pairs: int = 4) -> list[RememberedTurn]:
        """The last messages of a session in order: see `Memory.recent`."""
        return await self.memory.recent(session, pairs)

    async def forget_turns(
        self,
        *,
        ids: Sequence[str] | None = None,
        session: str | None = None,
        before: float | None = None,
        since: float | None = None,
        preview: bool = False,
    ) -> list[RememberedTurn]:
        """Erase remembered turns: see `Memory.forget_turns`."""
        return await self.memory.forget_turns(
            ids=ids, session=session, before=before, since=since, preview=preview
        )

    # --- tools -----------------------------------------------------------------------------------

    @cached_property
    def toolbox(self) -> Toolbox:
        """The tools of this scope: their pinned definitions, a directory, a search."""
        from holdfast.toolbox.toolbox import Toolbox  # noqa: PLC0415 - numpy takes 80 ms to load

        return Toolbox(
            self.store, self.scope, embedder=self.parts.tool_embedder, clock=self.parts.clock
        )

    # --- turns -----------------------------------------------------------------------------------

    @cached_property
    def assembler(self) -> Assembler:
        """Assembles turns; its `options` choose the contents of their headers."""
        about = (self.memory, self.facts, self.store, self.scope, self.parts.assembling)
        list_tools = partial(Holdfast._listed_tools, proxy(self))  # it must not hold what holds it
        return Assembler(*about, tools=list_tools)

    async def _listed_tools(self) -> tuple[ToolIntent, ...]:
        """The tools of the toolbox, for the directory of a header."""
        tools = await self.toolbox.all()
        return tuple(ToolIntent(tool.name, tool.intent, tool.server) for tool in tools)

    @cached_property
    def histories(self) -> Histories:
        """Remembers the histories that clients send, and assembles turns from them."""
        return Histories(self)

    async def assemble(  # noqa: PLR0913 - named arguments, of which most calls need two
        self,
        *,
        session: str,
        user_turn: str,
        intent: Intent | None = None,
        topic_tags: Sequence[str] | None = None,
        token_budget: int | None = None,
        force_refresh: bool = False,
        model: str = "",
        dialect: str = PLAIN,
    ) -> AssembledContext:
        """Return a turn with the user's words and the relevant parts of the session.

        The budget is that of the options, 3,000 tokens, unless one is given; it holds for the
        request as it is serialized in `dialect`, as `model` counts. Only `remember` stores the
        user's words and the answer.
        """
        inputs = AssembleContextInput(
            session_id=session,
            user_turn=user_turn,
            intent=intent,
            topic_tags=None if topic_tags is None else tuple(topic_tags),
            token_budget=self.assembler.options.tokens if token_budget is None else token_budget,
            force_refresh=force_refresh,
        )
        return await self.assembler.assemble(inputs, model=model, dialect=dialect)

    # --- requests --------------------------------------------------------------------------------

    def session(self, name: str = "") -> Session:
        """Return a session by its name; a new one without a name."""
        return self.sessions.get(name)

    async def delete_session(self, name: str) -> int:
        """Delete a session from the store and from memory; return the number of its refs."""
        return await self.sessions.delete(name)

    async def session_of(
        self,
        conversation: Conversation,
        sender: Sender = UNKNOWN,
        request: OpenRequest | None = None,
    ) -> Session:
        """Return the session that a request continues: see `Sessions.find`."""
        return await self.sessions.find(conversation, sender, request)

    async def fit(
        self,
        body: object,
        options: FitOptions | None = None,
        *,
        session: str | None = None,
        limit: int | None = None,
    ) -> Fitted:
        """Make a request fit, with citations; hidden content is stored before this returns.

        With a session's name, its last request is remembered, so that sent bytes stay the same.
        `limit` defaults to that of the options, and the options to the engine's own.
        """
        options = with_limit(options or self.options, limit)
        name = self.scope.session if session is None else session
        if name:
            known = self.session(name)
            fitted = await known.fit(body, options)
            self.live.weigh(known, await known.weighed())
            return fitted

        def work(options: FitOptions, reader: ContentReader) -> Fitted:
            return reader.finish(plan(body, options, calibration=self.calibration))

        learn, workers = self._learner.learn_later, self.workers
        return await fit_and_store(
            self.store, self.scope, workers, size_of(body), options, work, told=learn
        )

    async def observe(
        self, session: Session, fitted: Fitted, usage: object = None, **outcome: Any
    ) -> Turn:
        """Record a request that was sent, and calibrate counting with the reported usage.

        Other arguments are the fields of `Observation`.
        """
        return await self.sessions.record(session, fitted, Observation(usage=usage, **outcome))

    # --- figures ---------------------------------------------------------------------------------

    async def stats(self) -> tuple[StoreStats, list[UsageTotal]]:
        """Return the size of the store, and the usage by model."""
        return await self.store.stats(self.scope), await self.store.usage(self.scope)

    async def save(self) -> None:
        """Store the calibration of counting."""
        await self.sessions.save_calibration()

    async def settle(self) -> None:
        """Wait for the extraction of facts, and store the calibration if it has changed."""
        await self._learner.settle()
        if self.sessions.has_unsaved_calibration:
            # a store that is full or missing must not prevent the shutdown
            with suppress(StoreError):
                await self.save()

    def _scope(self, session: str | None) -> Scope:
        return self.scope if session is None else self.scope.of(session)


async def _learnt(store: Store, scope: Scope) -> Calibration:
    """Return the stored calibration of a scope."""
    with suppress(StoreError):  # what cannot be read is learnt anew
        if data := await store.calibration(scope):
            return Calibration.load(data)
    return Calibration()


def _plain(message: Mapping[str, Any] | RememberedTurn) -> Mapping[str, Any]:
    return msgspec.structs.asdict(message) if isinstance(message, RememberedTurn) else message
