"""The data that the pages of a session and of its turns need from the store."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from holdfast.engine.record import Sides, last_sides
from holdfast.errors import StoreError
from holdfast.store.records import SessionRecord, Turn
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.inspection import (
    CLIENT,
    SENT,
    InspectedRequest,
    MessageExcerpt,
    Pair,
    PairRow,
    Reader,
    aligned,
    needed,
    rows,
)
from holdfast.surfaces.proxy.dashboard.inspector import OpenedPart, TurnShown
from holdfast.surfaces.proxy.dashboard.message_page import MessageShown
from holdfast.surfaces.proxy.dashboard.sessions_page import SessionShown, Weight
from holdfast.surfaces.proxy.dashboard.tenant_reader import TenantReader
from holdfast.surfaces.proxy.dashboard.views import turn_rows, turns_of_edits
from holdfast.wire import Conversation
from holdfast.wire.responses import HiddenTurn

TURNS = 50
"""Turns on the page of a session."""
ROWS = 40
"""Pairs of messages on a page of the inspector."""
_UNKNOWN = Sides((), {}, "", (), "")
_AT_ONCE = 1_000
_BESIDE = 50
"""Sessions of the same client session that are listed."""
_LARGEST = 10
_MESSAGE_CHARACTERS = 50_000
_OPENED_CHARACTERS = 2_000
_CALL_CHARACTERS = 500
_MOST_OPENED = 50
_ANSWER_CHARACTERS = 6_000
_MOST_ANSWERS = 10


class SessionReader:
    """Reads one session of a tenant from the store."""

    def __init__(self, gathering: TenantReader) -> None:
        self._gathering = gathering
        self._store = gathering.store
        self._scope = gathering.scope

    async def session(self, name: str, page: int) -> SessionShown | None:
        """The page of a session; page 1 holds its newest turns."""
        record = await self._store.session(self._scope.of(name))
        if record is None:
            return None
        stop = record.turns - (page - 1) * TURNS
        start = max(0, stop - TURNS)
        scope = self._scope.of(name)
        turns = await self._store.turns(scope, after=start, limit=stop - start) if stop > 0 else []
        return SessionShown(
            record=record,
            usage=await self._gathering.usage(record),
            rows=turn_rows(record, turns),
            proof=await self._gathering.proof(record, record.turns),
            largest=await self._largest(record) if page == 1 else (),
            beside=await self._beside(record) if page == 1 else (),
            newer=links.session(name, page=page - 1) if page > 1 else "",
            older=links.session(name, page=page + 1) if start > 0 else "",
        )

    async def _beside(self, record: SessionRecord) -> list[SessionRecord]:
        """Return other sessions of the same client session."""
        if not record.client_session:
            return []
        records = await self._store.sessions(
            self._scope, limit=_BESIDE, client_session=record.client_session
        )
        return [each for each in records if each.session != record.session]

    async def _largest(self, record: SessionRecord) -> list[Weight]:
        """The messages of the last request that weigh most."""
        turns = await self._turns_up_to(record, record.turns)

        def sides() -> tuple[Sides, list[str]]:
            both = last_sides(turns) or _UNKNOWN
            return both, sorted({both.frame, *both.sent} - {""})

        both, names = await self._gathering.run(sides)
        stored = await self._store.messages(self._scope, names)

        def weighed() -> list[Weight]:
            sizes = {n: len(stored.get(name, b"")) for n, name in enumerate(both.sent)}
            heaviest = sorted(sizes, key=lambda n: -sizes[n])[:_LARGEST]
            reader = Reader(
                InspectedRequest(dialect=record.dialect, sides=both, stored=stored), SENT
            )
            messages = [reader.show(n, 1) for n in heaviest]
            kinds = [" ".join(filter(None, (s.pieces[0].kind, s.pieces[0].name)))
                     if s.pieces else "" for s in messages]  # fmt: skip
            return [
                Weight(index=message.index, role=message.role, kind=kind, size=message.size)
                for message, kind in zip(messages, kinds, strict=True)
            ]

        return await self._gathering.run(weighed)

    async def turn(self, name: str, number: int, page: int) -> TurnShown | None:
        """The inspector of a turn."""
        record = await self._store.session(self._scope.of(name))
        turns = await self._turns_up_to(record, number)
        if record is None or not turns:
            return None

        def sides() -> tuple[Sides, list[Pair], list[str], int]:
            both = last_sides(turns) or _UNKNOWN
            pairs = aligned(len(both.client), both.origins)
            pages = max(1, -(-len(pairs) // ROWS))
            start = (min(page, pages) - 1) * ROWS
            page_pairs = pairs[start : start + ROWS]
            return both, page_pairs, needed(both, page_pairs), pages

        both, page_pairs, names, pages = await self._gathering.run(sides)
        stored = await self._store.messages(self._scope, names)
        inspected = InspectedRequest(
            dialect=record.dialect, sides=both, stored=stored, turns=turns_of_edits(turns)
        )

        def read_sides() -> tuple[list[PairRow], tuple[Conversation | None, Conversation | None]]:
            return rows(inspected, page_pairs), (inspected.around(CLIENT), inspected.around(SENT))

        shown_rows, around = await self._gathering.run(read_sides)
        refs = {ref for row in shown_rows for ref in row.refs}
        session = self._gathering.engine.sessions.unkept(self._scope.of(name))
        opened = await self._opened(turns[-1])
        return TurnShown(
            session=name,
            title=record.title,
            turn=turns[-1],
            last=record.turns,
            around=around,
            rows=shown_rows,
            flags=await self._flags(sorted(refs)),
            counts=(len(both.client), len(both.sent)),
            page=min(page, pages),
            pages=pages,
            proof=await self._gathering.proof(record, number),
            wishes=await session.wishes.all(),
            opened=opened[:_MOST_OPENED],
            opened_in_all=len(opened),
            answer=await self._answer(record, turns),
        )

    async def _opened(self, turn: Turn) -> list[OpenedPart]:
        """Return the parts that the model opened in a turn, hidden from the client."""
        if not turn.hidden:
            return []
        stored = await self._store.messages(self._scope, [turn.hidden])
        return await self._gathering.run(partial(_opened_in, stored.get(turn.hidden, b"")))

    async def _answer(self, record: SessionRecord, turns: list[Turn]) -> list[MessageExcerpt]:
        """Return the model's answer, which the client sends back with its next request."""
        number = turns[-1].number
        following = await self._store.turns(self._scope.of(record.session), after=number, limit=1)
        sides = await self._gathering.run(partial(_answered_sides, turns, following))
        if sides is None:
            return []
        after, position, names = sides
        stored = await self._store.messages(self._scope, sorted({after.frame, *names} - {""}))
        inspected = InspectedRequest(dialect=record.dialect, sides=after, stored=stored)

        def answered() -> list[MessageExcerpt]:
            reader = Reader(inspected, CLIENT)
            answer = []
            for n in range(position, position + len(names)):
                message = reader.show(n, _ANSWER_CHARACTERS)
                if message.role != "assistant":
                    break
                answer.append(message)
            return answer

        return await self._gathering.run(answered)

    async def message(
        self, name: str, number: int, side: str, index: int, page: int
    ) -> MessageShown | None:
        """One message of a turn, counted from 0."""
        record = await self._store.session(self._scope.of(name))
        turns = await self._turns_up_to(record, number)
        if record is None or not turns:
            return None
        both = await self._gathering.run(partial(last_sides, turns)) or _UNKNOWN
        names = both.client if side == CLIENT else both.sent
        if not 0 <= index < len(names):
            return None
        stored = await self._store.messages(self._scope, [names[index], both.frame])
        inspected = InspectedRequest(dialect=record.dialect, sides=both, stored=stored)

        def shown_part() -> MessageShown:
            message = Reader(inspected, side).show(index)
            text = "\n\n".join(each.text or f"[{each.kind} {each.name}]" for each in message.pieces)
            pages = max(1, -(-len(text) // _MESSAGE_CHARACTERS))
            start = (min(page, pages) - 1) * _MESSAGE_CHARACTERS
            return MessageShown(
                session=name,
                number=number,
                side=side,
                message=msgspec.structs.replace(message, pieces=()),
                text=text[start : start + _MESSAGE_CHARACTERS],
                page=min(page, pages),
                pages=pages,
            )

        return await self._gathering.run(shown_part)

    async def turns(self, name: str) -> tuple[SessionRecord, list[Turn]] | None:
        """A session and all its turns, to be exported."""
        record = await self._store.session(self._scope.of(name))
        return None if record is None else (record, await self._turns_up_to(record, record.turns))

    async def _turns_up_to(self, record: SessionRecord | None, number: int) -> list[Turn]:
        """All turns up to one; none if there is no such turn."""
        if record is None or not 1 <= number <= record.turns:
            return []
        scope = self._scope.of(record.session)
        turns: list[Turn] = []
        while len(turns) < number:
            some = await self._store.turns(
                scope, after=len(turns), limit=min(_AT_ONCE, number - len(turns))
            )
            if not some:
                return []
            turns += some
        return turns

    async def _flags(self, refs: Sequence[str]) -> dict[str, tuple[str, ...]]:
        flags = {}
        for ref in refs[: 4 * ROWS]:
            try:
                info = await self._store.info(self._scope, ref)
            except StoreError:
                continue  # a ref that someone made up
            if info is not None:
                flags[ref] = info.flags
        return flags


def _opened_in(unseen: bytes) -> list[OpenedPart]:
    """Return the model's openings; nothing if they were not stored, or were removed."""
    try:
        hidden_turn = msgspec.json.decode(unseen, type=HiddenTurn)
    except msgspec.DecodeError:
        return []
    return [
        OpenedPart(
            call=f"{call.name} {call.arguments}"[:_CALL_CHARACTERS],
            result=text[:_OPENED_CHARACTERS],
        )
        for hop in hidden_turn.hops
        for call, text in hop.results
    ]


def _answered_sides(
    turns: list[Turn], following: list[Turn]
) -> tuple[Sides, int, tuple[str, ...]] | None:
    """Return the sides of the next request, the start of the answer in it, and its messages.

    Returns None if that is unknown, or if the client continued from another place or moved its
    cache marks.
    """
    before, after = last_sides(turns), last_sides([*turns, *following])
    if not following or before is None or after is None:
        return None
    position, client = len(before.client), after.client
    if client[:position] != before.client:
        return None
    return after, position, client[position : position + _MOST_ANSWERS]
