"""The conductor: what the pure parts decide, done in the right order with the store.

engine: after everything but the surfaces, which all use it. An original is stored before its
citation is shown; content is worked on in a thread where it is large.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self, TypeVar

import msgspec

from holdfast.cite import Citation, CitingRules
from holdfast.cite import cite as make_citation
from holdfast.cite import count as count_text
from holdfast.errors import DamagedContentError, RefCollisionError
from holdfast.expand import ExpandOptions, Expansion, missing, note_of
from holdfast.expand import expand as open_content
from holdfast.fitting import FitState, Fitted
from holdfast.fitting import fit as make_fit
from holdfast.settings import Settings
from holdfast.store import Scope, Store, open_store

_LARGE_BYTES = 200_000
_MOST_STATES = 1_000
_T = TypeVar("_T")


class Holdfast:
    """Cite, expand and fit over one store, for one user and workspace."""

    def __init__(
        self,
        store: Store,
        scope: Scope | None = None,
        *,
        citing: CitingRules | None = None,
    ) -> None:
        self.store = store
        self.scope = scope or Scope()
        self.citing = citing or CitingRules()
        self._states: OrderedDict[Scope, FitState] = OrderedDict()

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
        store = await open_store(
            url or settings.store_url, folder=settings.data_folder, clock=clock
        )
        try:
            yield cls(store, scope, citing=citing_rules(settings))
        finally:
            await store.close()

    def session(self, name: str) -> Scope:
        """This user and workspace, in a session."""
        return self.scope.of(name)

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
        rules = self.citing

        def made_with(rules: CitingRules) -> Citation:
            return make_citation(
                content, kind=kind, question=question, source_url=source_url, tool=tool, rules=rules
            )

        while True:
            made = await _in_thread_if_large(content, partial(made_with, rules))
            if made.content is None:
                return made
            try:
                await self.store.put(self._scope(session), [made.content])
            except RefCollisionError:
                rules = _longer_refs(rules)
            else:
                return made

    async def expand_ref(
        self, ref_id: str, options: Mapping[str, Any] | ExpandOptions | None = None
    ) -> Expansion:
        """Open a part of a stored content, exactly; what cannot be opened says why."""
        wanted = ExpandOptions.parse(options)
        try:
            stored = await self.store.get(self.scope, ref_id)
        except DamagedContentError:
            stored = None
        if stored is None:
            info = await self.store.info(self.scope, ref_id)
            return missing(ref_id, info, count=count_text)
        info, data = stored.info, stored.data
        return await _in_thread_if_large(
            data,
            lambda: open_content(
                info.ref_id, data, info.kind, wanted, count=count_text, note=note_of(info)
            ),
        )

    async def fit(self, body: object, *, session: str | None = None, **how: Any) -> Fitted:
        """Make a request fit, with citations; what left it is stored when this returns.

        The named session's last request is remembered, so that what was sent stays the same.
        Other arguments are those of `holdfast.fit`.
        """
        scope = self._scope(session)
        state = how.pop("state", None) or (self._states.get(scope) if scope.session else None)
        rules: CitingRules | None = how.pop("citing", self.citing)
        while True:
            fitted = make_fit(body, state=state, citing=rules, **how)
            try:
                await self.store.put(scope, fitted.contents)
            except RefCollisionError:
                rules = _longer_refs(rules or self.citing)
            else:
                break
        if scope.session:
            self._remember(scope, fitted.state)
        return fitted

    def _remember(self, scope: Scope, state: FitState) -> None:
        self._states[scope] = state
        self._states.move_to_end(scope)
        while len(self._states) > _MOST_STATES:
            self._states.popitem(last=False)

    def _scope(self, session: str | None) -> Scope:
        return self.scope if session is None else self.scope.of(session)


def citing_rules(settings: Settings) -> CitingRules:
    """The rules for citations that the settings give."""
    hours = settings.content_ttl_hours
    return CitingRules(
        threshold=settings.cite_threshold,
        most_tokens=settings.cite_max_tokens,
        privacy=settings.privacy_policy,
        ttl_seconds=hours * 3600 if hours else None,
    )


def _longer_refs(rules: CitingRules) -> CitingRules:
    return msgspec.structs.replace(rules, ref_digits=min(64, rules.ref_digits * 2))


async def _in_thread_if_large(content: object, work: Callable[[], _T]) -> _T:
    if isinstance(content, (str, bytes)) and len(content) < _LARGE_BYTES:
        return work()
    return await asyncio.to_thread(work)
