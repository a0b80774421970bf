"""ledger: facts of one user and workspace: added, extracted, found, superseded and forgotten.

ledger: the last of facts but for the jobs. It decides what may be stored: nothing without a source,
and nothing that opens something: a text with a key or a password in it is refused, whatever the
settings say of privacy.
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
from holdfast.facts.extracting import Candidate, from_messages, from_result
from holdfast.facts.indexes import Indexes
from holdfast.facts.question import Question
from holdfast.privacy import Policy, apply, find
from holdfast.privacy.credentials import CREDENTIALS
from holdfast.store import Scope, Store
from holdfast.store.fact_shelf import Fact, FactFilter, FactKind, FactSource, NewFact

DEFAULT_LIMIT = 12
LEAST_LIMIT, MOST_LIMIT = 8, 20
"""Of `get_top_facts` (C39)."""
_LONG_CHARACTERS = 20_000
"""Of a result that is read in a thread: some 5 ms."""
_MANY_MESSAGES = 20
SECRETS = frozenset({detector.kind for detector in CREDENTIALS} | {"credit_card", "iban", "us_ssn"})
"""What is never a fact."""


class RankedFact(msgspec.Struct, frozen=True, kw_only=True):
    """A current fact that was found, and why."""

    fact: Fact
    score: float
    """What facts are ordered by: 4 for a person whom the question names, 2 for another name, then
    similarity in steps of 0.05, then tags, then recency."""
    similarity: float
    """To the question, from 0 to 1."""
    named: bool = False
    """It is about a person, project or thing that the question names."""
    contradicts: tuple[str, ...] = ()
    """Ids of current facts in which others say something else of the same subject."""


class Ledger:
    """The facts of one user in one workspace."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        indexes: Indexes,
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
        """The ledger of another scope of the same store."""
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
        """Add a fact, as it is afterwards: merged with one that says the same.

        With a subject, it takes the place of what the same speaker said of it before.

        Raises:
            PrivacyError: it holds a secret, or what the policy refuses.
            StoreError: it has no source, or is too long.
        """
        new = self.new(
            Candidate(text, kind, source_ref, place, subject, said_by, standing, at),
            self._session(session),
            tags=tags,
            decay_weight=decay_weight,
        )
        return (await self._store.facts.add(self._scope, [new]))[0]

    async def supersede(self, old_id: str, text: str, *, source_ref: str, **more: Any) -> Fact:
        """Put a fact in the place of another, which stays as its history.

        What is not given is as it was with the old one. Other arguments are those of `add`.

        Raises:
            StoreConflictError: the old one is not current, or there is none.
        """
        known = await self._store.facts.get(self._scope, [old_id])
        earlier = known[0] if known else None
        candidate = Candidate(
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
        """Store the facts of messages, or of one tool result with its ref; those that came of it.

        A message has `role` and `content`, and may have `name`, `at` and `id`. No model is asked.
        """
        here = self._session(session)
        if isinstance(content, str):
            if not source_ref:
                raise StoreError(
                    "a result has no ref to which its facts could lead",
                    where="source_ref",
                    fix="Give the ref of the stored content, or the message it came with.",
                )
            work = partial(from_result, content, source_ref, tool, at)
            is_long = len(content) > _LONG_CHARACTERS
        else:
            work = partial(from_messages, content, here)
            is_long = len(content) > _MANY_MESSAGES
        news = []
        for candidate in await asyncio.to_thread(work) if is_long else work():
            with suppress(PrivacyError):  # a secret is no fact, and no reason to lose the others
                news.append(self.new(candidate, here, tags=tags))
        return await self._store.facts.add(self._scope, news) if news else []

    def new(
        self,
        candidate: Candidate,
        session: str,
        *,
        tags: Iterable[str] = (),
        decay_weight: float = 1.0,
    ) -> NewFact:
        """A candidate as a fact that can be stored.

        Raises:
            PrivacyError: it holds a secret, or what the policy refuses.
        """
        text = self._allowed(candidate.text.strip())
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
        return self._indexes.with_vector(fact)

    def _allowed(self, text: str) -> str:
        """A text without what may not be stored."""
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
        """Return the current facts that have most to do with a question, best first.

        Facts of the people and things that it names come first, then by similarity, tags and
        recency with decay. Standing instructions and preferences have up to a third of the places,
        whatever is asked. Without a session, those of all.
        """
        question = Question(
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
                contradicts=index.rivals(fact.subject, fact.id) if fact.subject else (),
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
        """The facts said last."""
        scope = self._scope.of(session or "")
        return await self._store.facts.latest(
            scope, kind=kind, tag=tag, limit=limit, current=current
        )

    async def starting_with(self, beginning: str) -> list[Fact]:
        """Up to two facts whose ids begin so: one that is meant, or two that could be."""
        page = await self._store.facts.page(self._scope, beginning, 2)
        near = [*await self._store.facts.get(self._scope, [beginning]), *page]
        meant = {fact.id: fact for fact in near if fact.id.startswith(beginning)}
        return list(meant.values())[:2]

    async def history(self, fact_id: str) -> list[Fact]:
        """A fact, what it superseded and what superseded it, the oldest first."""
        return await self._store.facts.history(self._scope, fact_id)

    # --- forgetting ------------------------------------------------------------------------------

    async def forget(
        self, which: Iterable[str] | FactFilter, *, preview: bool = False
    ) -> list[Fact]:
        """Remove facts without a trace, those they superseded only if they are meant too.

        With `preview` nothing is removed: what would be, is returned.

        Raises:
            StoreError: the filter is empty, and would mean all.
        """
        meant = which if isinstance(which, FactFilter) else FactFilter(ids=tuple(which))
        if meant.is_empty:
            if not isinstance(which, FactFilter):
                return []
            raise StoreError(
                "the filter is empty: it would mean every fact",
                where="filter",
                fix="Say which facts: by id, session, ref, kind, tag or words.",
            )
        facts = await self._store.facts.matching(self._scope, meant)
        if not preview and facts:
            await self._store.facts.remove(self._scope, [fact.id for fact in facts])
        return facts


def _tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are compared, sorted."""
    return tuple(sorted({" ".join(tag.casefold().split()) for tag in tags} - {""}))


async def get_top_facts(
    ledger: Ledger,
    query: str,
    session_id: str,
    tags: Sequence[str] | None = None,
    k: int = DEFAULT_LIMIT,
) -> list[Fact]:
    """The facts of a session that have most to do with a question (004-30); 8 to 20 of them."""
    limit = min(max(k, LEAST_LIMIT), MOST_LIMIT)
    return [ranked.fact for ranked in await ledger.top(query, session_id, tags, limit)]
