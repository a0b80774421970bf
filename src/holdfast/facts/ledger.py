"""The facts of one user and workspace: add, extract, search, supersede, forget.

The ledger decides what may be stored. It refuses a fact without a source, and a text with a key or
a password whatever the privacy settings are.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from holdfast.errors import PrivacyError, StoreError
from holdfast.facts.extraction import FactCandidate, extract_from_messages, extract_from_result
from holdfast.facts.fact_query import FactQuery
from holdfast.facts.index_cache import FactIndexCache
from holdfast.privacy import Policy, apply, find
from holdfast.privacy.credentials import CREDENTIALS
from holdfast.store import Scope, Store
from holdfast.store.fact_store import Fact, FactFilter, FactKind, FactSource, NewFact

DEFAULT_LIMIT = 12
LEAST_LIMIT, MOST_LIMIT = 8, 20
"""Limits of `get_top_facts`."""
_LONG_CHARACTERS = 20_000
"""Characters above which a result is read in a thread: about 5 ms."""
_MANY_MESSAGES = 20
SECRETS = frozenset({detector.kind for detector in CREDENTIALS} | {"credit_card", "iban", "us_ssn"})
"""Kinds of private data that are never stored as facts."""


class RankedFact(msgspec.Struct, frozen=True, kw_only=True):
    """A current fact and its rank for a question."""

    fact: Fact
    score: float
    """The ranking order: 4 for a person whom the question names, 2 for another name, then
    similarity in steps of 0.05, then tags, then recency."""
    similarity: float
    """Similarity to the question, from 0 to 1."""
    named: bool = False
    """Whether it is about a person, project or thing that the question names."""
    contradicts: tuple[str, ...] = ()
    """Ids of current facts in which other speakers contradict it."""


class Ledger:
    """The facts of one user in one workspace."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        indexes: FactIndexCache,
        *,
        privacy: Policy = "allow",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._scope = scope
        self._indexes = indexes
        self._privacy: Policy = privacy
        self._clock = clock

    def of(self, scope: Scope) -> Ledger:
        """Return the ledger of another scope of the same store."""
        return Ledger(self._store, scope, self._indexes, privacy=self._privacy, clock=self._clock)

    # --- adding ----------------------------------------------------------------------------------

    async def add(  # noqa: PLR0913 - the fields of a fact
        self,
        text: str,
        *,
        source_ref: str,
        place: str = "",
        kind: FactKind = "fact",
        session: str | None = None,
        tags: Iterable[str] = (),
        subject: str = "",
        said_by: str = "",
        standing: bool = False,
        at: float | None = None,
        decay_weight: float = 1.0,
    ) -> Fact:
        """Add a fact and return it as stored: merged with an existing one that has the same text.

        A fact with a subject supersedes the speaker's earlier fact about that subject.

        Raises:
            PrivacyError: if it holds a secret, or something that the policy refuses.
            StoreError: if it has no source or is too long.
        """
        new = self.new(
            FactCandidate(text, kind, source_ref, place, subject, said_by, standing, at),
            self._session(session),
            tags=tags,
            decay_weight=decay_weight,
        )
        return (await self._store.facts.add(self._scope, [new]))[0]

    async def supersede(self, old_id: str, text: str, *, source_ref: str, **more: Any) -> Fact:
        """Replace a fact with a new one; the old one stays as its history.

        Fields that are not given are copied from the old fact. Other arguments are those of `add`.

        Raises:
            StoreConflictError: if the old fact is not current or does not exist.
        """
        matches = await self._store.facts.get(self._scope, [old_id])
        earlier = matches[0] if matches else None
        candidate = FactCandidate(
            text,
            more.pop("kind", earlier.kind if earlier else "fact"),
            source_ref,
            more.pop("place", ""),
            more.pop("subject", earlier.subject if earlier else ""),
            more.pop("said_by", earlier.said_by if earlier else ""),
            more.pop("standing", earlier.standing if earlier else False),
            more.pop("at", None),
        )
        session = self._session(more.pop("session", None))
        tags = more.pop("tags", earlier.tags if earlier else ())
        new = self.new(candidate, session, tags=tags, **more)
        new = msgspec.structs.replace(new, supersedes=(old_id,))
        return (await self._store.facts.add(self._scope, [new]))[0]

    async def extract(
        self,
        content: str | Sequence[Mapping[str, Any]],
        *,
        session: str | None = None,
        source_ref: str = "",
        tool: str = "",
        tags: Iterable[str] = (),
        at: float | None = None,
    ) -> list[Fact]:
        """Extract facts from messages, or from one tool result with its ref; store and return them.

        A message has `role` and `content`, and may have `name`, `at` and `id`. No model is used.
        """
        session_id = self._session(session)
        if isinstance(content, str):
            if not source_ref:
                raise StoreError(
                    "a tool result has no ref as the source of its facts",
                    where="source_ref",
                    fix="Give the ref of the stored content, or the message it came with.",
                )
            work = partial(extract_from_result, content, source_ref, tool, at)
            is_long = len(content) > _LONG_CHARACTERS
        else:
            work = partial(extract_from_messages, content, session_id)
            is_long = len(content) > _MANY_MESSAGES
        news = []
        for candidate in await asyncio.to_thread(work) if is_long else work():
            with suppress(PrivacyError):  # a secret is not stored, and the other facts are
                news.append(self.new(candidate, session_id, tags=tags))
        return await self._store.facts.add(self._scope, news) if news else []

    def new(
        self,
        candidate: FactCandidate,
        session: str,
        *,
        tags: Iterable[str] = (),
        decay_weight: float = 1.0,
    ) -> NewFact:
        """Return a candidate as a fact that can be stored.

        Raises:
            PrivacyError: if it holds a secret, or something that the policy refuses.
        """
        text = self._without_private_data(candidate.text.strip())
        fact = Fact(
            id=uuid.uuid4().hex,
            kind=candidate.kind,
            text=text,
            sources=(FactSource(candidate.ref, candidate.place, session),),
            subject=" ".join(candidate.subject.casefold().split()),
            said_by=candidate.said_by,
            tags=_tags((*candidate.tags, *tags)),
            standing=candidate.standing,
            created_at=self._clock() if candidate.at is None else candidate.at,
            decay_weight=decay_weight,
        )
        return self._indexes.add_vector(fact)

    def _without_private_data(self, text: str) -> str:
        """Return a text without data that may not be stored."""
        findings = find(text)
        if secrets := SECRETS.intersection(finding.kind for finding in findings):
            raise PrivacyError(
                f"The fact holds {', '.join(sorted(secrets))}, which is never stored as a fact",
                where="fact",
                fix="Leave it out: a fact may say where a secret is, not what it is.",
            )
        return apply(self._privacy, text, findings)

    def _session(self, session: str | None) -> str:
        return self._scope.session if session is None else session

    # --- finding ---------------------------------------------------------------------------------

    async def top(
        self,
        query: str,
        session: str | None = None,
        tags: Iterable[str] | None = None,
        k: int = DEFAULT_LIMIT,
        *,
        now: float | None = None,
    ) -> list[RankedFact]:
        """Return the current facts that are most relevant to a question, best first.

        Facts about the people and things that it names come first, then by similarity, tags and
        recency with decay. Up to a third of the places go to standing instructions and preferences,
        for every question. Without a session, all sessions are searched.
        """
        question = FactQuery(
            text=query,
            session=session or "",
            tags=frozenset(_tags(tags or ())),
            limit=k,
            now=self._clock() if now is None else now,
        )
        return [
            RankedFact(
                fact=fact,
                score=hit.score,
                similarity=hit.similarity,
                named=hit.named,
                contradicts=index.contradictions(fact.subject, fact.id) if fact.subject else (),
            )
            for hit, fact, index in await self._indexes.search(self._scope, question)
        ]

    async def latest(
        self,
        session: str | None = None,
        *,
        kind: str = "",
        tag: str = "",
        limit: int = 100,
        current: bool = True,
    ) -> list[Fact]:
        """Return the newest facts."""
        scope = self._scope.of(session or "")
        return await self._store.facts.latest(
            scope, kind=kind, tag=tag, limit=limit, current=current
        )

    async def starting_with(self, beginning: str) -> list[Fact]:
        """Return up to two facts whose ids begin with `beginning`; two if it is ambiguous."""
        page = await self._store.facts.page(self._scope, beginning, 2)
        candidates = [*await self._store.facts.get(self._scope, [beginning]), *page]
        matches = {fact.id: fact for fact in candidates if fact.id.startswith(beginning)}
        return list(matches.values())[:2]

    async def history(self, fact_id: str) -> list[Fact]:
        """Return a fact, its predecessors and its successors, oldest first."""
        return await self._store.facts.history(self._scope, fact_id)

    # --- forgetting ------------------------------------------------------------------------------

    async def forget(
        self, which: Iterable[str] | FactFilter, *, preview: bool = False
    ) -> list[Fact]:
        """Delete facts; those they superseded are deleted only if they match too.

        With `preview` nothing is deleted: the facts that would be are returned.

        Raises:
            StoreError: if the filter is empty, which would match every fact.
        """
        fact_filter = which if isinstance(which, FactFilter) else FactFilter(ids=tuple(which))
        if fact_filter.is_empty:
            if not isinstance(which, FactFilter):
                return []
            raise StoreError(
                "the filter is empty: it would mean every fact",
                where="filter",
                fix="Select facts by id, session, ref, kind, tag or words.",
            )
        facts = await self._store.facts.matching(self._scope, fact_filter)
        if not preview and facts:
            await self._store.facts.remove(self._scope, [fact.id for fact in facts])
        return facts


def _tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags in the form in which they are compared, sorted."""
    return tuple(sorted({" ".join(tag.casefold().split()) for tag in tags} - {""}))


async def get_top_facts(
    ledger: Ledger,
    query: str,
    session_id: str,
    tags: Sequence[str] | None = None,
    k: int = DEFAULT_LIMIT,
) -> list[Fact]:
    """Return the facts of a session that are most relevant to a question: 8 to 20 of them."""
    limit = min(max(k, LEAST_LIMIT), MOST_LIMIT)
    return [ranked.fact for ranked in await ledger.top(query, session_id, tags, limit)]
