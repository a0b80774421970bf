"""Store conversation turns and recall the ones that answer a question, within a token budget.

A turn is durable and found by the next question as soon as `remember` returns. Every turn of the
user and workspace is ranked, unless the scope is too large for the cache.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date
from functools import partial
from typing import Any

import msgspec
import numpy as np

from holdfast.errors import HoldfastError
from holdfast.memory import dates
from holdfast.memory.array_cache import MOST_TURNS, ArrayCache, run_in_thread_if
from holdfast.memory.arrays import ScopeArrays
from holdfast.memory.passages import RecallResult
from holdfast.memory.question import read_question
from holdfast.memory.ranking import PieceScores, score_pieces
from holdfast.memory.selection import (
    RecallLimits,
    TurnSelection,
    build_passages,
    fit_passages,
    select_turns,
)
from holdfast.memory.turn_index import TurnText, build_indexes, index_maker
from holdfast.memory.weights import weights_of
from holdfast.models.protocol import Embedder
from holdfast.search.arrays import Floats
from holdfast.search.words import words_of
from holdfast.store import Scope, Store
from holdfast.store.turn_store import MOST_AT_ONCE, NewTurn, RememberedTurn, TurnFilter, print_of

_CANDIDATES = 2_000
"""Turns ranked in a scope that is too large for the cache."""
_READ_ON_LOOP = 4_000
"""Characters indexed on the event loop, in a millisecond or two."""
_MANY_TURNS = 200
"""Messages above which turns are built in a thread; 200 take a millisecond."""
_RANKED_ON_LOOP = 5_000
"""Pieces ranked on the event loop; for more, ranking takes longer than waking a thread."""


class Memory:
    """The turns of one user in one workspace, over all sessions."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        *,
        count: Callable[[str], int],
        embedder: Embedder | None = None,
        arrays: ArrayCache | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store.remembered
        self._scope = scope.of("")
        self._count = count
        self._embedder = embedder
        self._cache = arrays or ArrayCache()
        self._clock = clock
        self._embeds_in_thread = embedder is not None and not embedder.is_quick
        """Whether even short texts are embedded in a thread."""

    async def remember(
        self, session: str, messages: Sequence[Mapping[str, Any] | RememberedTurn]
    ) -> list[str]:
        """Store messages of a session and return their ids in the same order.

        Each message has `role` and `content`, and may have `name`, `at` (seconds since 1970) and
        `id`. A message stored before, recognised by its id or its place in the history, is not
        stored again.
        """
        now = self._clock()
        is_many = len(messages) > _MANY_TURNS  # 40,000 messages took half a second
        turns = await run_in_thread_if(
            is_many, lambda: [_new_turn(message, now) for message in messages]
        )
        scope = self._scope.of(session)
        stored = await self._store.known(scope, turns)
        new = [
            msgspec.structs.replace(turn, id=match.id)
            for turn, match in zip(turns, stored, strict=True)
            if not match.is_here
        ]
        for start in range(0, len(new), MOST_AT_ONCE):
            batch = new[start : start + MOST_AT_ONCE]
            is_long = (
                self._embeds_in_thread or sum(len(turn.content) for turn in batch) > _READ_ON_LOOP
            )
            await self._store.add(
                scope, await run_in_thread_if(is_long, partial(self._indexed, batch))
            )
        return [match.id for match in stored]

    def _indexed(self, turns: Sequence[NewTurn]) -> list[NewTurn]:
        counts = [self._count(turn.content) for turn in turns]
        readable = [
            TurnText(turn.content, turn.at, tokens)
            for turn, tokens in zip(turns, counts, strict=True)
        ]
        indexes = build_indexes(readable, self._count, self._embedder)
        maker = index_maker(self._embedder)
        return [
            msgspec.structs.replace(turn, tokens=tokens, index=index, maker=maker)
            for turn, tokens, index in zip(turns, counts, indexes, strict=True)
        ]

    async def recall(
        self,
        query: str,
        *,
        session: str | None = None,
        k: int | None = None,
        token_budget: int = 1000,
        now: float | None = None,
    ) -> RecallResult:
        """Recall the turns that a question needs, as a text of at most `token_budget` tokens.

        `session` limits recall to one session, `k` to a number of turns. Relative dates in the
        question are resolved against `now`.
        """
        today = dates.day_of(self._clock() if now is None else now)
        limits = RecallLimits(max(token_budget, 0), k, session)
        async with self._arrays(query, session) as arrays:
            work = partial(self._select, arrays, query, today, limits)
            is_long = self._embeds_in_thread or len(arrays.turn) > _RANKED_ON_LOOP
            ranked, selections = await run_in_thread_if(is_long, work)
        places = [int(arrays.place.all[each.turn]) for each in selections]
        turns = await self._store.turns(self._scope, places)
        passages = build_passages(arrays, ranked, selections, turns)
        ordered, text, tokens = fit_passages(passages, limits.budget, self._count)
        return RecallResult(
            passages=tuple(ordered),
            text=text,
            tokens=tokens,
            budget=token_budget,
            turns=len(arrays),
        )

    @asynccontextmanager
    async def _arrays(self, query: str, session: str | None) -> AsyncIterator[ScopeArrays]:
        """Yield the arrays to rank: of the whole scope or, if it is too large, of likely turns."""
        changes = await self._store.changes(self._scope)
        if changes.added <= MOST_TURNS:
            async with self._cache.of(self._store, self._scope, self._embedder) as arrays:
                yield arrays
        else:
            scope = self._scope.of(session or "")
            likely = await self._store.with_words(scope, words_of(query), limit=_CANDIDATES)
            dimensions = 0 if self._embedder is None else self._embedder.dimensions
            arrays = ScopeArrays(index_maker(self._embedder), dimensions)
            await run_in_thread_if(
                True, partial(arrays.add, sorted(likely, key=lambda turn: turn.place))
            )
            yield arrays

    def _select(
        self, arrays: ScopeArrays, query: str, today: int, limits: RecallLimits
    ) -> tuple[PieceScores, list[TurnSelection]]:
        """Score every piece and select the best."""
        question = read_question(query, arrays.names, today)
        vector: Floats | None = None
        if self._embedder is not None:
            vector = np.asarray(self._embedder.embed([question.text])[0], np.float32)
        ranked = score_pieces(arrays, question, vector, weights_of(self._embedder))
        return ranked, select_turns(arrays, ranked, limits, self._count)

    def today(self) -> date:
        """Return the current day in UTC."""
        return date.fromordinal(dates.day_of(self._clock()))

    async def reindex(self) -> int:
        """Index turns again that another version or embedder indexed; return how many.

        Until then they are recalled by their words alone.
        """
        maker, after, count = index_maker(self._embedder), 0, 0
        while part := await self._store.indexed(self._scope, after=after):
            after = part[-1].place
            outdated = [turn.place for turn in part if turn.maker != maker]
            turns_by_place = await self._store.turns(self._scope, outdated)
            sessions: dict[str, list[NewTurn]] = {}
            for turn in turns_by_place.values():
                new_turn = _new_turn(turn, turn.at)
                sessions.setdefault(turn.session, []).append(new_turn)
            for session, turns in sessions.items():
                indexed = await run_in_thread_if(True, partial(self._indexed, turns))
                await self._store.add(self._scope.of(session), indexed)
            count += len(turns_by_place)
        return count

    async def recent(self, session: str, pairs: int = 4) -> list[RememberedTurn]:
        """Return the last `pairs` user messages of a session with the replies, in order."""
        turns: list[RememberedTurn] = []
        users = 0
        while users < pairs:
            before = turns[0].number if turns else 0
            scope = self._scope.of(session)
            part = await self._store.recent(scope, limit=2 * pairs + 2, before=before)
            if not part:
                break
            turns = part + turns
            users = sum(turn.role == "user" for turn in turns)
        starts = [at for at, turn in enumerate(turns) if turn.role == "user"]
        return turns[starts[-pairs] :] if 0 < pairs <= len(starts) else turns

    async def forget_turns(
        self,
        *,
        ids: Sequence[str] | None = None,
        session: str | None = None,
        before: float | None = None,
        since: float | None = None,
        preview: bool = False,
    ) -> list[RememberedTurn]:
        """Delete the turns that match all given conditions, and return them.

        With `preview` nothing is deleted.

        Raises:
            HoldfastError: if no condition is given, which would match every turn.
        """
        if ids is None and session is None and before is None and since is None:
            raise HoldfastError(
                "no condition selects the turns to forget",
                fix="Give ids, a session, or a time.",
            )
        turn_filter = TurnFilter(
            ids=None if ids is None else tuple(ids), session=session, before=before, since=since
        )
        matches: list[RememberedTurn] = []
        after = 0
        while part := await self._store.select(
            self._scope, turn_filter, limit=MOST_AT_ONCE, after=after
        ):
            matches += [turn for _, turn in part]
            after = part[-1][0]
            if not preview:
                await self._store.forget(self._scope, [place for place, _ in part])
        return matches


def _new_turn(message: Mapping[str, Any] | RememberedTurn, now: float) -> NewTurn:
    if isinstance(message, RememberedTurn):
        message = msgspec.structs.asdict(message)
    content = text_of(message.get("content"))
    role, name = str(message.get("role") or ""), str(message.get("name") or "")
    at = message.get("at")
    if at is not None and (isinstance(at, bool) or not isinstance(at, int | float)):
        raise HoldfastError(
            "the time of a message is not a number", where="at", fix="Give seconds since 1970."
        )
    said_at = None if at is None else float(at)
    return NewTurn(
        role=role,
        content=content,
        at=now if said_at is None else said_at,
        name=name,
        id=str(message.get("id") or ""),
        print=print_of(role, name, content, said_at),
    )


def text_of(content: Any) -> str:
    """Return the text of a message's content: a string, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [part if isinstance(part, str) else part.get("text") for part in content]
        return "\n".join(part for part in parts if isinstance(part, str))
    return ""
