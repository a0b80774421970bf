"""Holdfast: cite, expand, fit and assemble over one store.

holdfast: the last word of the engine, which all surfaces use. An original is stored before its
citation is shown; what may take long is done off the event loop: see workers/.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self
from weakref import proxy

import msgspec

from holdfast.answer_cache import AnswerPolicy, Answers
from holdfast.assemble import (
    AssembleContextInput,
    AssembledContext,
    AssembleOptions,
    Assembler,
    Intent,
    ToolIntent,
)
from holdfast.assemble.context import PLAIN
from holdfast.cite import Citation, CitingRules
from holdfast.cite import count as count_text
from holdfast.engine.content_reader import ContentReader
from holdfast.engine.finding import Chains, SessionFinder
from holdfast.engine.identity import UNKNOWN, OpenRequest, Sender
from holdfast.engine.live import LiveSessions, RemovalWatch
from holdfast.engine.options import assemble_options, fit_options, work_limits
from holdfast.engine.remembering import Histories
from holdfast.engine.session import (
    Session,
    fit_and_store,
    longer_refs,
    size_of,
    with_limit,
)
from holdfast.errors import DamagedContentError, RefCollisionError, StoreError
from holdfast.expand import ExpandOptions, Expansion, missing, note_of
from holdfast.expand.tool import NAME
from holdfast.facts import FactIndexCache, Ledger, fact_jobs
from holdfast.facts.fact_reader import fact_job, is_long_enough
from holdfast.facts.values import MOST_BYTES
from holdfast.faults import logged_faults
from holdfast.fitting import FitOptions, Fitted, plan
from holdfast.jobs import (
    FoldSummaries,
    SummaryQueue,
    Worker,
    background,
    fold_summaries,
    summary_queue,
)
from holdfast.memory import ArrayCache, RecallResult
from holdfast.models.embedding import open_embedder, recall_embedder, tool_embedder
from holdfast.settings import Settings
from holdfast.store import Content, Scope, Store, Turn, open_store
from holdfast.store.deadline import without_deadline
from holdfast.store.records import StoreStats, UsageTotal
from holdfast.store.turn_store import Remembered
from holdfast.tokens import Calibration
from holdfast.wire import Conversation
from holdfast.workers import Workers, WorkLimits

if TYPE_CHECKING:
    from holdfast.memory.memory import Memory
    from holdfast.toolbox.toolbox import Toolbox

_SAVE_EVERY = 50
_LOGGER = "holdfast.engine"


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
        self.store = store
        self.scope = scope or Scope()
        self.options = options or FitOptions(cites=True, opens=True)
        """How requests are made to fit, unless a call says otherwise."""
        self.calibration = calibration or Calibration()
        self._clock = clock
        self.live = LiveSessions()
        """Sessions that are kept in memory; others come back from the store."""
        self.workers = workers or Workers(WorkLimits(processes=0))
        """Who is_long_enough large contents; without any, this process does."""
        indexes, privacy = FactIndexCache(store, open_embedder()), self.options.rules.privacy
        self.facts = Ledger(store, self.scope, indexes, privacy=privacy, clock=clock)
        """What was said, as statements that stand on their own."""
        self.titles = True
        """Whether sessions are called by their first question."""
        self.learns = False
        """Whether facts are taken from what is cited."""
        self.reading: Settings | None = None
        """By which a model is_long_enough results for facts in the background; None: none does."""
        self._learning: set[asyncio.Task[None]] = set()
        self.summary_queue: SummaryQueue | None = None
        """Has contents summarised that are read again; None if no model is named for that."""
        self.summaries: FoldSummaries | None = None
        """Who has messages summarised that its sessions fold; None if nobody does."""
        self.jobs: Worker | None = None
        """Who does the jobs of the queue beside this; None if nobody was asked to."""
        self._finder = SessionFinder(self)
        self.chains = Chains(store, self.scope)
        """Sessions whose history a provider holds."""
        self.held = ArrayCache()
        """What recall keeps in memory of scopes that were asked lately."""
        self.embedder = open_embedder()
        """By which meaning what was said is recalled; None: by words alone."""
        self.tool_embedder = open_embedder()
        """By which meaning tools are searched; None: by words alone."""
        self.assembling = AssembleOptions()
        """What turns are assembled of, as whoever assembles the first begins with."""
        self.answers = Answers(store, self.scope, answers, clock=clock)
        """Answers that may be given again."""
        self._observed = 0
        self._saved = self.calibration.dump()

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
        """Open a store and close it in the end.

        `memory:`, `sqlite:///path` or `postgresql://…`; without a URL, the one in the settings,
        else a file in the user's data folder.
        """
        settings = settings or Settings.load()
        scope = scope or Scope()
        store = await open_store(
            url or settings.store_url, folder=settings.data_folder, clock=clock
        )
        workers = Workers(work_limits(settings))
        try:
            reading = fact_jobs(store, settings)
            async with background(store, settings, clock=clock, more=reading) as worker:
                engine = cls(
                    store,
                    scope,
                    options=fit_options(settings),
                    calibration=await _learnt(store, scope),
                    clock=clock,
                    workers=workers,
                    answers=AnswerPolicy.of(settings),
                )
                engine.titles = settings.session_titles
                engine.learns = settings.enable_facts_ledger
                engine.reading = settings if reading else None
                engine.summary_queue = summary_queue(store, settings)
                engine.summaries = fold_summaries(store, settings)
                engine.jobs = worker
                engine.assembling = assemble_options(settings)
                engine.embedder = recall_embedder(settings)
                engine.tool_embedder = tool_embedder(settings)
                watch = asyncio.create_task(RemovalWatch(store, engine.live, workers).run())
                try:
                    yield engine
                    await engine.settle()
                finally:
                    watch.cancel()
                    await asyncio.wait([watch])
        finally:
            workers.close()
            await store.close()

    async def of(self, scope: Scope) -> Self:
        """The engine of another scope over the same store; neither knows what the other does."""
        engine = type(self)(
            self.store,
            scope,
            options=self.options,
            calibration=await _learnt(self.store, scope),
            clock=self._clock,
            workers=self.workers,
            answers=self.answers.policy,
        )
        engine.facts, engine.learns = self.facts.of(scope), self.learns
        engine.titles, engine.reading = self.titles, self.reading
        engine.summary_queue = self.summary_queue
        engine.summaries = self.summaries
        engine.live = self.live  # one bound for the memory of all
        engine.held, engine.embedder = self.held, self.embedder
        engine.tool_embedder = self.tool_embedder
        engine.assembling = self.assembling
        return engine

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
        """Store a content and return the citation that takes its place.

        With `learns_later` the facts in it are taken behind the answer (004-54).
        """
        rules = rules or self.options.rules

        def made_with(rules: CitingRules) -> Citation:
            return self.workers.citer()(
                content, kind=kind, question=question, source_url=source_url, tool=tool, rules=rules
            )

        while True:
            made = await self.workers.off_loop(size_of(content), partial(made_with, rules))
            if made.content is None:
                return made
            try:
                await self.store.put(self._scope(session), [made.content])
            except RefCollisionError:
                rules = longer_refs(rules)
            else:
                if learns_later:
                    self._learn_soon(self._scope(session), [made.content])
                else:
                    await self._learn(self._scope(session), made.content)
                return made

    async def _learn(self, scope: Scope, content: Content) -> None:
        """Take the facts from a result that was stored (004-33); that is no reason to fail."""
        if not self.learns:
            return
        with logged_faults(_LOGGER).caught("facts"), suppress(StoreError):
            if len(content.data) <= MOST_BYTES:
                text, tool = content.data.decode("utf-8", "replace"), content.meta.get("tool", "")
                await self.facts.extract(
                    text, session=scope.session, source_ref=content.ref_id, tool=tool
                )
            if self.reading is not None and is_long_enough(content):
                await self.store.jobs.enqueue(scope, [fact_job(content)])

    def _learn_soon(self, scope: Scope, contents: Sequence[Content]) -> None:
        """Take the facts from the results of a request, which does not wait for that."""
        # A fold may be as long as the body: it is not held for nobody.
        asks = self.reading is not None
        legible = deque(each for each in contents if asks or len(each.data) <= MOST_BYTES)
        if self.learns and legible:
            learning = self._learn_in_turn(scope, legible)
            task = asyncio.create_task(learning, context=without_deadline())
            self._learning.add(task)
            task.add_done_callback(self._end_learning)

    def _end_learning(self, task: asyncio.Task[None]) -> None:
        """Forget a task; asyncio itself would log the text of its error, which may be content."""
        self._learning.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logged_faults(_LOGGER).add("facts", error)

    async def _learn_in_turn(self, scope: Scope, contents: deque[Content]) -> None:
        """One result after the other, each let go once it is read: they may be a whole body."""
        while contents:
            await self._learn(scope, contents.popleft())

    async def expand_ref(
        self,
        ref_id: str,
        options: Mapping[str, Any] | ExpandOptions | None = None,
        *,
        opener: str = NAME,
        peek: bool = False,
    ) -> Expansion:
        """Open a part of a stored content, exactly; what cannot be opened says why.

        `opener` is what the tool is called with which the rest can be opened. With `peek` it does
        not count as an opening: a person looks at it, and no model needed it.
        """
        wanted = ExpandOptions.parse(options)
        try:
            stored = await self.store.get(self.scope, ref_id, peek=peek)
        except DamagedContentError:
            stored = None
        if stored is None:
            known = await self.store.info(self.scope, ref_id)
            privacy = self.options.rules.privacy
            return missing(ref_id, known, count=count_text, privacy=privacy)
        info, data = stored.info, stored.data
        if self.summary_queue is not None and not peek:
            await self.summary_queue.opened(self.scope, info)
        note = note_of(info)
        work = partial(self.workers.expand, info.ref_id, data, info.kind, wanted)
        return await self.workers.off_loop(len(data), partial(work, note=note, opener=opener))

    # --- what was said ---------------------------------------------------------------------------

    @property
    def memory(self) -> Memory:
        """What was said in this scope, to be recalled."""
        from holdfast.memory.memory import Memory  # noqa: PLC0415 - numpy takes 80 ms to load

        return Memory(
            self.store,
            self.scope,
            count=count_text,
            embedder=self.embedder,
            arrays=self.held,
            clock=self._clock,
        )

    async def remember(
        self, session: str, messages: Sequence[Mapping[str, Any] | Remembered]
    ) -> list[str]:
        """Keep messages of a session to be recalled, and their facts: see `Memory.remember`."""
        ids = await self.memory.remember(session, messages)
        if self.learns:
            said = [{**_plain(each), "id": id_} for each, id_ in zip(messages, ids, strict=True)]
            with suppress(StoreError):  # that is no reason to fail
                await self.facts.extract(said, session=session)
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
        """What was said that a question needs, in so many tokens: see `Memory.recall`."""
        return await self.memory.recall(
            query, session=session, k=k, token_budget=token_budget, now=now
        )

    async def recent(self, session: str, pairs: int = 4) -> list[Remembered]:
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
    ) -> list[Remembered]:
        """Forget what was remembered, without a trace: see `Memory.forget_turns`."""
        return await self.memory.forget_turns(
            ids=ids, session=session, before=before, since=since, preview=preview
        )

    # --- tools -----------------------------------------------------------------------------------

    @cached_property
    def toolbox(self) -> Toolbox:
        """The tools of this scope: their pinned definitions, a directory, a search."""
        from holdfast.toolbox.toolbox import Toolbox  # noqa: PLC0415 - numpy takes 80 ms to load

        return Toolbox(self.store, self.scope, embedder=self.tool_embedder, clock=self._clock)

    # --- turns -----------------------------------------------------------------------------------

    @cached_property
    def assembler(self) -> Assembler:
        """Who assembles turns; its `options` say what their headers hold."""
        about = (self.memory, self.facts, self.store, self.scope, self.assembling)
        listed = partial(Holdfast._listed_tools, proxy(self))  # it must not hold what holds it
        return Assembler(*about, tools=listed)

    async def _listed_tools(self) -> tuple[ToolIntent, ...]:
        """The tools of the toolbox, for the directory of a header."""
        tools = await self.toolbox.all()
        return tuple(ToolIntent(tool.name, tool.intent, tool.server) for tool in tools)

    @cached_property
    def histories(self) -> Histories:
        """What clients send with their whole history, to be remembered and assembled."""
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
        """The turn in which the user says something: what matters of a session, in few tokens.

        The budget is that of the options, 3,000 tokens, unless one is given; it holds for the
        request as it is serialized in `dialect`, as `model` counts. What is said in the turn and
        answered to it is remembered only by `remember`.
        """
        wanted = AssembleContextInput(
            session_id=session,
            user_turn=user_turn,
            intent=intent,
            topic_tags=None if topic_tags is None else tuple(topic_tags),
            token_budget=self.assembler.options.tokens if token_budget is None else token_budget,
            force_refresh=force_refresh,
        )
        return await self.assembler.assemble(wanted, model=model, dialect=dialect)

    # --- requests --------------------------------------------------------------------------------

    def session(self, name: str = "") -> Session:
        """A session by its name; a new one if there is no name."""
        scope = self.scope.of(name or uuid.uuid4().hex)
        session = self.live.get(scope)
        if session is None:
            session = self.unkept(scope)
            self.live.add(session)
        return session

    async def delete_session(self, name: str) -> int:
        """Delete a session from the store and from memory; return how many refs went with it."""
        scope = self.scope.of(name)
        refs = await self.store.delete_session(scope)
        self.live.drop(scope)
        await asyncio.to_thread(self.workers.recycle)
        return refs

    def unkept(self, scope: Scope) -> Session:
        """A session that is not kept in memory."""
        how = (self.options, self.calibration, self._clock, self.workers)
        session = Session(self.store, scope, *how)
        session.summaries = self.summaries
        session.told = self._learn_soon
        session.titles = self.titles
        return session

    async def session_of(
        self,
        conversation: Conversation,
        sender: Sender = UNKNOWN,
        request: OpenRequest | None = None,
    ) -> Session:
        """Return the session that a request continues: see `SessionFinder.session_of`."""
        return await self._finder.session_of(conversation, sender, request)

    async def look_up(
        self, conversation: Conversation, name: str = "", sender: Sender = UNKNOWN
    ) -> Session:
        """Return the session that a request would continue, without beginning one."""
        return await self._finder.look_up(conversation, name, sender)

    async def fit(
        self,
        body: object,
        options: FitOptions | None = None,
        *,
        session: str | None = None,
        limit: int | None = None,
    ) -> Fitted:
        """Make a request fit, with citations; what left it is stored when this returns.

        With a session's name, its last request is remembered, so that what was sent stays the
        same. `limit` is that of the options, which are the engine's own if none are given.
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

        told, workers = self._learn_soon, self.workers
        return await fit_and_store(
            self.store, self.scope, workers, size_of(body), options, work, told=told
        )

    async def observe(
        self, session: Session, fitted: Fitted, usage: object = None, **what: Any
    ) -> Turn:
        """Write down a request that was sent, and learn from the usage that was reported.

        Other arguments are those of `Session.observe`.
        """
        turn = await session.observe(fitted, usage, **what)
        self.live.weigh(session, await session.weighed())
        self._observed += 1
        if self._observed % _SAVE_EVERY == 0:
            await self.save()
        return turn

    # --- what became of it -----------------------------------------------------------------------

    async def stats(self) -> tuple[StoreStats, list[UsageTotal]]:
        """How full the store is, and what the models used."""
        return await self.store.stats(self.scope), await self.store.usage(self.scope)

    async def save(self) -> None:
        """Keep what was learnt about counting."""
        self._saved = self.calibration.dump()
        await self.store.save_calibration(self.scope, self._saved)

    async def settle(self) -> None:
        """Keep what was learnt since it was last saved, if that can be."""
        await asyncio.gather(*self._learning, return_exceptions=True)
        if self.calibration.dump() != self._saved:
            with suppress(StoreError):  # a store that is full or gone is no reason not to end
                await self.save()

    def _scope(self, session: str | None) -> Scope:
        return self.scope if session is None else self.scope.of(session)


async def _learnt(store: Store, scope: Scope) -> Calibration:
    """What was learnt about counting in a scope."""
    with suppress(StoreError):  # what cannot be read is learnt anew
        if data := await store.calibration(scope):
            return Calibration.load(data)
    return Calibration()


def _plain(message: Mapping[str, Any] | Remembered) -> Mapping[str, Any]:
    return msgspec.structs.asdict(message) if isinstance(message, Remembered) else message
