"""The records of a session as pieces of a turn: what was said, facts, stored results.

shelves: after gathering. It asks the rooms beneath for what they hold and says how each is shown;
how much of it goes out is not decided here. With the policy to mask, what is quoted is masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from holdfast.assemble.working_set import LOW_SIMILARITY, Piece, piece
from holdfast.expand import stale_line
from holdfast.facts import Ledger, RankedFact
from holdfast.facts.dates import insert_dates
from holdfast.facts.names import ROLES
from holdfast.memory.array_cache import run_in_thread_if
from holdfast.memory.passages import Passage, day_heading
from holdfast.privacy import Policy, find, mask
from holdfast.quoting import bracketed
from holdfast.store import RefInfo, Scope, Store
from holdfast.store.turn_shelf import Remembered
from holdfast.summarise.fidelity import Rung

if TYPE_CHECKING:
    from holdfast.memory.memory import Memory

_SPEAKERS = ("user", "assistant")
_LOOKED_AT = 50
"""Refs stored last among which the hot ones are looked for."""
_OURS = frozenset({"fold", "message", "tools", "text"})
"""Kinds of contents that leave requests when they are trimmed: nobody asks for one by its name."""
_NAMED = {"decision": "decided: ", "task": "to do: "}
"""What is said before facts of some kinds; the others say themselves what they are."""

_ON_LOOP_TOKENS = 4_000
"""Of quoted turns that are written on the event loop."""

_CONTRADICTED = " (somebody else says otherwise)"


class SessionShelves:
    """What is known of one session, as pieces."""

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
        """`scope` names the session; without a ledger there are no facts, without a store no refs.

        `opener` is what the tool is called that opens refs.
        """
        self._memory = memory
        self._facts = facts
        self._store = store
        self._scope = scope
        self._opener = opener
        self._privacy = privacy

    async def recent(self, pairs: int) -> list[Piece]:
        """The last pairs, as the user and the assistant said them; results are left to recall."""
        turns = await self._memory.recent(self._scope.session, pairs)
        return [
            self._said(turn) for turn in turns if turn.role in _SPEAKERS and turn.content.strip()
        ]

    async def facts(self, query: str, tags: Sequence[str] | None, most: int) -> list[Piece]:
        """Return the facts that bear on a question, those of what it names first."""
        if self._facts is None or not most:
            return []
        ranked = await self._facts.top(query, session=self._scope.session, tags=tags, k=most)
        return [self._fact(each) for each in without_strangers(ranked)]

    async def refs(self, most: int) -> list[Piece]:
        """The stored results that were opened most, and then the newest."""
        if self._store is None or not most:
            return []
        infos = [
            info
            for info in await self._store.refs(self._scope, limit=_LOOKED_AT)
            if info.kind not in _OURS and info.state in ("fresh", "stale")
        ]
        infos.sort(key=lambda info: (-info.accesses, -info.created_at, info.ref_id))
        return [self._ref(info) for info in infos[:most]]

    async def recalled(self, query: str, tokens: int) -> list[Piece]:
        """Earlier turns that bear on a question, in the order of time."""
        recalled = await self._memory.recall(
            query, session=self._scope.session, token_budget=tokens
        )
        year = self._memory.today().year
        # Masking and dates take up to 2 µs a character: a large budget must not hold up the loop.
        return await run_in_thread_if(
            tokens > _ON_LOOP_TOKENS,
            lambda: [self._passage(passage, year) for passage in recalled.passages],
        )

    def _said(self, turn: Remembered) -> Piece:
        speaker = f"{bracketed(turn.name)}: " if turn.name else ""
        words = self._shown(speaker + turn.content)
        return piece("history", turn.id, words, role=turn.role, original=words)

    def _fact(self, ranked: RankedFact) -> Piece:
        fact = ranked.fact
        rival = _CONTRADICTED if ranked.contradicts else ""
        text = self._shown(f"{_NAMED.get(fact.kind, '')}{fact.text}{rival}")
        # What stands whatever is asked has little to do with the question, and must not go first.
        score = 1.0 if fact.standing else ranked.similarity
        return piece("fact", fact.id, text, score=score)

    def _ref(self, info: RefInfo) -> Piece:
        text = f"{info.ref_id} {self._shown(stale_line(info, self._opener))}"
        shown = piece("summary", info.ref_id, text, stale=info.state == "stale")
        return msgspec.structs.replace(
            shown, whole=max(info.tokens, shown.tokens), level=Rung.HEADLINE
        )

    def _passage(self, passage: Passage, year: int) -> Piece:
        """Return a quoted turn; the dates added to it have their year unless it is `year`."""
        speaker = bracketed(passage.name or passage.role)
        words = self._shown(passage.text)
        if passage.role in _SPEAKERS:  # results of tools are data, not speech
            words = insert_dates(words, passage.at, year)
        text = f"{speaker}: {words}"
        level = Rung.RAW if passage.whole else Rung.CONDENSED
        day = day_heading(passage.at)
        return piece(
            "recalled", passage.turn_id, text, score=passage.score, heading=day, level=level
        )

    def _shown(self, text: str) -> str:
        return mask(text, find(text)) if self._privacy == "mask" else text


def without_strangers(ranked: Sequence[RankedFact]) -> list[RankedFact]:
    """Return facts without those of other people than the question names.

    They stay where the question names nobody, and where they bear on it at least half as much as
    the best one: small models answered with whatever stood in the list. What nobody is named as
    the speaker of always stays.
    """
    if not any(each.named for each in ranked):
        return list(ranked)
    least = LOW_SIMILARITY * max(each.similarity for each in ranked)
    return [
        each
        for each in ranked
        if each.named or each.similarity >= least or each.fact.said_by.lower() in ("", *ROLES)
    ]
