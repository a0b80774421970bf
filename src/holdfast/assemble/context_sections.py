"""The sections of a session's context as pieces: history, recalled turns, facts, results.

With the privacy policy "mask", quoted text is masked. How much of it is sent is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from holdfast.assemble.working_set import LOW_SIMILARITY, ContextPiece, make_piece
from holdfast.expand import stale_line
from holdfast.facts import Ledger, RankedFact
from holdfast.facts.dates import insert_dates
from holdfast.facts.names import ROLES
from holdfast.memory.array_cache import run_in_thread_if
from holdfast.memory.passages import Passage, day_heading
from holdfast.privacy import Policy, find, mask
from holdfast.quoting import bracketed
from holdfast.store import RefInfo, Scope, Store
from holdfast.store.turn_store import RememberedTurn
from holdfast.summarise.fidelity import Rung

if TYPE_CHECKING:
    from holdfast.memory.memory import Memory

_SPEAKERS = ("user", "assistant")
_NEWEST_REFS = 50
"""Number of newest refs among which the most used are chosen."""
_INTERNAL_KINDS = frozenset({"fold", "message", "tools", "text"})
"""Kinds of contents that trimming stores; nobody asks for one by name."""
_KIND_PREFIXES = {"decision": "decided: ", "task": "to do: "}
"""Text before facts of some kinds; the others need none."""

_ON_LOOP_TOKENS = 4_000
"""Maximum tokens of quoted turns that are rendered on the event loop."""

_CONTRADICTED = " (somebody else says otherwise)"


class SessionSections:
    """The context of one session, as pieces."""

    def __init__(
        self,
        memory: Memory,
        facts: Ledger | None,
        store: Store | None,
        scope: Scope,
        *,
        opener: str,
        privacy: Policy = "allow",
    ) -> None:
        """`scope` names the session. Without a ledger there are no facts, without a store no refs.

        `opener` is the name of the tool that opens refs.
        """
        self._memory = memory
        self._facts = facts
        self._store = store
        self._scope = scope
        self._opener = opener
        self._privacy = privacy

    async def recent(self, pairs: int) -> list[ContextPiece]:
        """Return the last pairs of user and assistant; tool results are left to recall."""
        turns = await self._memory.recent(self._scope.session, pairs)
        return [
            self._history_piece(turn)
            for turn in turns
            if turn.role in _SPEAKERS and turn.content.strip()
        ]

    async def facts(self, query: str, tags: Sequence[str] | None, most: int) -> list[ContextPiece]:
        """Return the facts relevant to a question, those about a name in it first."""
        if self._facts is None or not most:
            return []
        ranked = await self._facts.top(query, session=self._scope.session, tags=tags, k=most)
        return [self._fact_piece(each) for each in drop_unrelated_speakers(ranked)]

    async def refs(self, most: int) -> list[ContextPiece]:
        """Return the stored results that were opened most, then the newest."""
        if self._store is None or not most:
            return []
        infos = [
            info
            for info in await self._store.refs(self._scope, limit=_NEWEST_REFS)
            if info.kind not in _INTERNAL_KINDS and info.state in ("fresh", "stale")
        ]
        infos.sort(key=lambda info: (-info.accesses, -info.created_at, info.ref_id))
        return [self._ref_piece(info) for info in infos[:most]]

    async def recalled(self, query: str, tokens: int) -> list[ContextPiece]:
        """Return earlier turns relevant to a question, in time order."""
        result = await self._memory.recall(query, session=self._scope.session, token_budget=tokens)
        year = self._memory.today().year
        # Masking and dates take up to 2 µs per character: a large budget must not block the event
        # loop.
        return await run_in_thread_if(
            tokens > _ON_LOOP_TOKENS,
            lambda: [self._passage_piece(passage, year) for passage in result.passages],
        )

    def _history_piece(self, turn: RememberedTurn) -> ContextPiece:
        speaker = f"{bracketed(turn.name)}: " if turn.name else ""
        words = self._masked(speaker + turn.content)
        return make_piece("history", turn.id, words, role=turn.role, original=words)

    def _fact_piece(self, ranked: RankedFact) -> ContextPiece:
        fact = ranked.fact
        rival = _CONTRADICTED if ranked.contradicts else ""
        text = self._masked(f"{_KIND_PREFIXES.get(fact.kind, '')}{fact.text}{rival}")
        # A standing fact has little to do with the question and must not be trimmed first.
        score = 1.0 if fact.standing else ranked.similarity
        return make_piece("fact", fact.id, text, score=score)

    def _ref_piece(self, info: RefInfo) -> ContextPiece:
        text = f"{info.ref_id} {self._masked(stale_line(info, self._opener))}"
        summary = make_piece("summary", info.ref_id, text, stale=info.state == "stale")
        return msgspec.structs.replace(
            summary, whole=max(info.tokens, summary.tokens), level=Rung.HEADLINE
        )

    def _passage_piece(self, passage: Passage, year: int) -> ContextPiece:
        """Return a quoted turn; the dates added to it have their year unless it is `year`."""
        speaker = bracketed(passage.name or passage.role)
        words = self._masked(passage.text)
        if passage.role in _SPEAKERS:  # tool results are data, not speech
            words = insert_dates(words, passage.at, year)
        text = f"{speaker}: {words}"
        level = Rung.RAW if passage.whole else Rung.CONDENSED
        day = day_heading(passage.at)
        return make_piece(
            "recalled", passage.turn_id, text, score=passage.score, heading=day, level=level
        )

    def _masked(self, text: str) -> str:
        return mask(text, find(text)) if self._privacy == "mask" else text


def drop_unrelated_speakers(ranked: Sequence[RankedFact]) -> list[RankedFact]:
    """Return facts without those of people other than the question names.

    Facts are kept if the question names nobody, if they are at least half as relevant as the best
    one, or if no person is named as their speaker. Measured: small models answered with any fact in
    the list.
    """
    if not any(each.named for each in ranked):
        return list(ranked)
    least = LOW_SIMILARITY * max(each.similarity for each in ranked)
    return [
        each
        for each in ranked
        if each.named or each.similarity >= least or each.fact.said_by.lower() in ("", *ROLES)
    ]
