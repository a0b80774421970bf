"""Holdfast: cite, expand and fit over one store.

holdfast: the last word of the engine, which all surfaces use. An original is stored before its
citation is shown; content is worked on in a thread where it is large.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Self

from holdfast.cite import Citation, CitingRules
from holdfast.cite import cite as make_citation
from holdfast.cite import count as count_text
from holdfast.engine.chains import Chains
from holdfast.engine.heads import heads
from holdfast.engine.session import (
    Session,
    fit_and_store,
    in_thread_if_large,
    longer_refs,
    with_limit,
)
from holdfast.errors import DamagedContentError, RefCollisionError, StoreError
from holdfast.expand import ExpandOptions, Expansion, missing, note_of
from holdfast.expand import expand as open_content
from holdfast.expand.tool import NAME
from holdfast.fitting import FitOptions, Fitted, fit_request
from holdfast.settings import Settings
from holdfast.store import Scope, Store, Turn, open_store
from holdfast.store.records import StoreStats, UsageTotal
from holdfast.tokens import Calibration, ModelContextRegistry
from holdfast.wire import Conversation
from holdfast.wire.chained import held_under

_MOST_SESSIONS = 1_000
_MOST_BYTES = 128_000_000
_SAVE_EVERY = 50


class Holdfast:
    """Cite, expand and fit over one store, for one user and workspace."""

    def __init__(
        self,
        store: Store,
        scope: Scope | None = None,
        *,
        options: FitOptions | None = None,
        calibration: Calibration | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.scope = scope or Scope()
        self.options = options or FitOptions(cites=True, opens=True)
        """How requests are made to fit, unless a call says otherwise."""
        self.calibration = calibration or Calibration()
        self._clock = clock
        self.most_bytes = _MOST_BYTES
        """Of sessions that are kept in memory; others come back from the store."""
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._heads: dict[str, str] = {}
        self.chains = Chains(store, self.scope)
        """Sessions whose history a provider holds."""
        self._observed = 0

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
        try:
            learnt = await store.calibration(scope)
            calibration = Calibration()
            with suppress(StoreError):  # what cannot be read is learnt anew
                calibration = Calibration.load(learnt) if learnt else calibration
            before = calibration.dump()
            made = cls(
                store,
                scope,
                options=fit_options(settings),
                calibration=calibration,
                clock=clock,
            )
            yield made
            if calibration.dump() != before:
                with suppress(StoreError):  # a store that is full or gone is no reason not to end
                    await made.save()
        finally:
            await store.close()

    # --- contents --------------------------------------------------------------------------------

    async def cite(
        self,
        content: Any,
        *,
        kind: str | None = None,
        question: str | None = None,
        source_url: str | None = None,
        tool: str = "",
        session: str | None = None,
    ) -> Citation:
        """Store a content and return the citation that takes its place."""
        rules = self.options.rules

        def made_with(rules: CitingRules) -> Citation:
            return make_citation(
                content, kind=kind, question=question, source_url=source_url, tool=tool, rules=rules
            )

        while True:
            made = await in_thread_if_large(content, partial(made_with, rules))
            if made.content is None:
                return made
            try:
                await self.store.put(self._scope(session), [made.content])
            except RefCollisionError:
                rules = longer_refs(rules)
            else:
                return made

    async def expand_ref(
        self,
        ref_id: str,
        options: Mapping[str, Any] | ExpandOptions | None = None,
        *,
        opener: str = NAME,
    ) -> Expansion:
        """Open a part of a stored content, exactly; what cannot be opened says why.

        `opener` is what the tool is called with which the rest can be opened.
        """
        wanted = ExpandOptions.parse(options)
        try:
            stored = await self.store.get(self.scope, ref_id)
        except DamagedContentError:
            stored = None
        if stored is None:
            known = await self.store.info(self.scope, ref_id)
            return missing(ref_id, known, count=count_text)
        info, data = stored.info, stored.data
        return await in_thread_if_large(
            data,
            lambda: open_content(
                info.ref_id,
                data,
                info.kind,
                wanted,
                count=count_text,
                note=note_of(info),
                opener=opener,
            ),
        )

    # --- requests --------------------------------------------------------------------------------

    def session(self, name: str = "") -> Session:
        """A session by its name; a new one if there is no name."""
        name = name or uuid.uuid4().hex
        known = self._sessions.get(name)
        if known is None:
            known = Session(
                self.store, self.scope.of(name), self.options, self.calibration, self._clock
            )
            self._sessions[name] = known
        self._sessions.move_to_end(name)
        self._forget_unused()
        return known

    def _forget_unused(self) -> None:
        """Forget the sessions longest unused, so that those in memory are not too many or large."""
        total = sum(self._sizes.values())
        while len(self._sessions) > 1 and (
            len(self._sessions) > _MOST_SESSIONS or total > self.most_bytes
        ):
            name, session = self._sessions.popitem(last=False)
            session.let_go()
            total -= self._sizes.pop(name, 0)

    def _weigh(self, session: Session) -> None:
        if session is self._sessions.get(session.name):
            self._sizes[session.name] = session.size
            self._forget_unused()

    async def session_of(self, conversation: Conversation) -> Session:
        """The session whose last request a conversation goes on from; a new one if none does.

        Where the provider holds the history, only its name tells: another conversation may well
        have begun with the same few messages.
        """
        if held := held_under(conversation):
            chained = await self.session(await self.chains.session_of(held)).load()
            self.chains.remember(held, chained.name)  # should the client send it once more
            return chained
        beginnings = heads(conversation.messages)
        name = next((self._heads[head] for head in beginnings if head in self._heads), "")
        if not name and beginnings:
            known = await self.store.session_with_head(self.scope, beginnings)
            name = known.session if known is not None else ""
        session = await self.session(name).load()
        if beginnings:  # at once: the next request may come before this one is written down
            self._heads.pop(beginnings[0], None)
            self._heads[beginnings[0]] = session.name
            while len(self._heads) > _MOST_SESSIONS:
                del self._heads[next(iter(self._heads))]
        return session

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
            self._weigh(known)
            return fitted
        work = partial(fit_request, body, calibration=self.calibration)
        return await fit_and_store(self.store, self.scope, body, options, work)

    async def observe(
        self, session: Session, fitted: Fitted, usage: object = None, **what: Any
    ) -> Turn:
        """Write down a request that was sent, and learn from the usage that was reported.

        Other arguments are those of `Session.observe`.
        """
        turn = await session.observe(fitted, usage, **what)
        fitted.state.let_go()
        self._weigh(session)
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
        await self.store.save_calibration(self.scope, self.calibration.dump())

    def _scope(self, session: str | None) -> Scope:
        return self.scope if session is None else self.scope.of(session)


def fit_options(settings: Settings) -> FitOptions:
    """How requests are made to fit, as the settings say."""
    hours = settings.content_ttl_hours
    rules = CitingRules(
        threshold=settings.cite_threshold,
        most_tokens=settings.cite_max_tokens,
        privacy=settings.privacy_policy,
        ttl_seconds=hours * 3600 if hours else None,
    )
    return FitOptions(
        rules=rules,
        cites=settings.enable_content_citations,
        opens=True,
        debug=settings.context_debug,
        registry=ModelContextRegistry(settings),
    )
