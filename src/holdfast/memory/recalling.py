"""Remember what is said, and recall by a question what matters of it, under a budget of tokens.

recalling: the last of memory. A turn is read when it is remembered, and durable and found by the
next question when that returns. A question is compared with everything of its user and workspace:
no candidate is left out before it is ranked, unless the scope is too large to be held.
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
from holdfast.memory.arrays import ScopeArrays
from holdfast.memory.held import MOST_TURNS, HeldArrays, off_loop
from holdfast.memory.indexing import Readable, indexes_of, maker_of
from holdfast.memory.packing import Chosen, Room, choose, packed, passages_of
from holdfast.memory.passages import Recalled
from holdfast.memory.question import read_question
from holdfast.memory.ranking import Ranked, rank
from holdfast.memory.weights import weights_of
from holdfast.models.protocol import Embedder
from holdfast.search.arrays import Floats
from holdfast.search.words import words_of
from holdfast.store import Scope, Store
from holdfast.store.turn_shelf import MOST_AT_ONCE, NewTurn, Remembered, TurnFilter, print_of

_CANDIDATES = 2_000
"""Turns that are ranked of a scope too large to be held."""
_READ_ON_LOOP = 4_000
"""Characters that are read on the spot, in a millisecond or two."""
_MANY_TURNS = 200
"""Messages that are not made into turns on the spot: a millisecond of work."""
_RANKED_ON_LOOP = 5_000
"""Pieces that are ranked on the spot; of more it takes longer than to wake a thread."""


class Memory:
    """What one user said and was told in a workspace, over all sessions."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        *,
        count: Callable[[str], int],
        embedder: Embedder | None = None,
        held: HeldArrays | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._shelf = store.remembered
        self._scope = scope.of("")
        self._count = count
        self._embedder = embedder
        self._held = held or HeldArrays()
        self._clock = clock
        self._waits = embedder is not None and not embedder.is_quick
        """Even a short text is embedded in a thread."""

    async def remember(
        self, session: str, messages: Sequence[Mapping[str, Any] | Remembered]
    ) -> list[str]:
        """Keep messages of a session, durable and indexed; their ids, in their order.

        Each has `role` and `content`, and may have `name`, `at` (seconds since 1970) and `id`. What
        was remembered before is known again, by its id or as the history that the session has.
        """
        now = self._clock()
        is_many = len(messages) > _MANY_TURNS  # 40,000 took half a second
        turns = await off_loop(is_many, lambda: [_new_turn(message, now) for message in messages])
        scope = self._scope.of(session)
        known = await self._shelf.known(scope, turns)
        new = [
            msgspec.structs.replace(turn, id=known_as.id)
            for turn, known_as in zip(turns, known, strict=True)
            if not known_as.is_here
        ]
        for start in range(0, len(new), MOST_AT_ONCE):
            part = new[start : start + MOST_AT_ONCE]
            is_long = self._waits or sum(len(turn.content) for turn in part) > _READ_ON_LOOP
            await self._shelf.add(scope, await off_loop(is_long, partial(self._indexed, part)))
        return [known_as.id for known_as in known]

    def _indexed(self, turns: Sequence[NewTurn]) -> list[NewTurn]:
        counts = [self._count(turn.content) for turn in turns]
        readable = [
            Readable(turn.content, turn.at, tokens)
            for turn, tokens in zip(turns, counts, strict=True)
        ]
        indexes = indexes_of(readable, self._count, self._embedder)
        maker = maker_of(self._embedder)
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
    ) -> Recalled:
        """What was said that a question needs, in a text of at most so many tokens.

        Of one session if it is named, else of all; at most `k` turns. `now` is what "yesterday"
        in the question is reckoned from.
        """
        today = dates.day_of(self._clock() if now is None else now)
        room = Room(max(token_budget, 0), k, session)
        async with self._arrays(query, session) as arrays:
            work = partial(self._chosen, arrays, query, today, room)
            is_long = self._waits or len(arrays.turn) > _RANKED_ON_LOOP
            ranked, chosen = await off_loop(is_long, work)
        places = [int(arrays.place.all[each.turn]) for each in chosen]
        opened = await self._shelf.turns(self._scope, places)
        passages = passages_of(arrays, ranked, chosen, opened)
        ordered, text, tokens = packed(passages, room.budget, self._count)
        return Recalled(
            passages=tuple(ordered),
            text=text,
            tokens=tokens,
            budget=token_budget,
            turns=len(arrays),
        )

    @asynccontextmanager
    async def _arrays(self, query: str, session: str | None) -> AsyncIterator[ScopeArrays]:
        """What is to be ranked."""
        changes = await self._shelf.changes(self._scope)
        if changes.added <= MOST_TURNS:
            async with self._held.of(self._shelf, self._scope, self._embedder) as arrays:
                yield arrays
        else:
            scope = self._scope.of(session or "")
            likely = await self._shelf.with_words(scope, words_of(query), limit=_CANDIDATES)
            dimensions = 0 if self._embedder is None else self._embedder.dimensions
            arrays = ScopeArrays(maker_of(self._embedder), dimensions)
            await off_loop(True, partial(arrays.add, sorted(likely, key=lambda turn: turn.place)))
            yield arrays

    def _chosen(
        self, arrays: ScopeArrays, query: str, today: int, room: Room
    ) -> tuple[Ranked, list[Chosen]]:
        """Score every piece of what is held, and choose."""
        question = read_question(query, arrays.names, today)
        vector: Floats | None = None
        if self._embedder is not None:
            vector = np.asarray(self._embedder.embed([question.text])[0], np.float32)
        ranked = rank(arrays, question, vector, weights_of(self._embedder))
        return ranked, choose(arrays, ranked, room, self._count)

    def today(self) -> date:
        """Return the current day in UTC."""
        return date.fromordinal(dates.day_of(self._clock()))

    async def reindex(self) -> int:
        """Read turns again that another version or embedder has read; how many there were.

        Until then they are recalled by their words alone.
        """
        maker, after, anew = maker_of(self._embedder), 0, 0
        while part := await self._shelf.indexed(self._scope, after=after):
            after = part[-1].place
            others = [turn.place for turn in part if turn.maker != maker]
            opened = await self._shelf.turns(self._scope, others)
            sessions: dict[str, list[NewTurn]] = {}
            for turn in opened.values():
                again = _new_turn(turn, turn.at)
                sessions.setdefault(turn.session, []).append(again)
            for session, turns in sessions.items():
                indexed = await off_loop(True, partial(self._indexed, turns))
                await self._shelf.add(self._scope.of(session), indexed)
            anew += len(opened)
        return anew

    async def recent(self, session: str, pairs: int = 4) -> list[Remembered]:
        """The last messages of a session in order: so many of the user's, and what followed."""
        turns: list[Remembered] = []
        users = 0
        while users < pairs:
            before = turns[0].number if turns else 0
            scope = self._scope.of(session)
            part = await self._shelf.recent(scope, limit=2 * pairs + 2, before=before)
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
    ) -> list[Remembered]:
        """Forget turns without a trace: those that all that is given means; which went.

        With `preview` none goes.

        Raises:
            HoldfastError: nothing is given, which would mean all.
        """
        if ids is None and session is None and before is None and since is None:
            raise HoldfastError(
                "nothing says which turns are to be forgotten",
                fix="Give ids, a session, or a time.",
            )
        wanted = TurnFilter(
            ids=None if ids is None else tuple(ids), session=session, before=before, since=since
        )
        meant: list[Remembered] = []
        after = 0
        while part := await self._shelf.select(
            self._scope, wanted, limit=MOST_AT_ONCE, after=after
        ):
            meant += [turn for _, turn in part]
            after = part[-1][0]
            if not preview:
                await self._shelf.forget(self._scope, [place for place, _ in part])
        return meant


def _new_turn(message: Mapping[str, Any] | Remembered, now: float) -> NewTurn:
    if isinstance(message, Remembered):
        message = msgspec.structs.asdict(message)
    content = text_of(message.get("content"))
    role, name = str(message.get("role") or ""), str(message.get("name") or "")
    at = message.get("at")
    if at is not None and (isinstance(at, bool) or not isinstance(at, int | float)):
        raise HoldfastError(
            "the time of a message is no number", where="at", fix="Give seconds since 1970."
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
    """What a message says: its text, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [part if isinstance(part, str) else part.get("text") for part in content]
        return "\n".join(part for part in parts if isinstance(part, str))
    return ""
