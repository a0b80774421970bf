"""What pages need of the store, asked for in bounded steps.

gathering: after the pages' values, before pages. Only this file of the dashboard and pages.py
wait; what takes long to work out is done in a thread, so that requests of clients go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from holdfast.engine import Holdfast
from holdfast.engine.record import Sides, last_sides
from holdfast.errors import ExpandError, StoreError
from holdfast.expand import Expansion
from holdfast.store.records import SessionRecord, Turn, UsageTotal
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.contents import ContentShown
from holdfast.surfaces.proxy.dashboard.inspection import (
    CLIENT,
    SENT,
    Inspected,
    Reader,
    aligned,
    needed,
    rows,
)
from holdfast.surfaces.proxy.dashboard.inspector import MessageShown, TurnShown
from holdfast.surfaces.proxy.dashboard.layout import day
from holdfast.surfaces.proxy.dashboard.overview import Overview, SessionShown
from holdfast.surfaces.proxy.dashboard.standing import FixedTokens
from holdfast.surfaces.proxy.dashboard.views import (
    SessionRow,
    TenantRow,
    TurnRow,
    beginnings,
    latest,
    totals,
    turn_rows,
    turns_of_edits,
    warned,
)

SESSIONS = 25
"""Sessions on a page, and sessions looked through for warnings."""
TURNS = 50
"""Turns on the page of a session."""
ROWS = 40
"""Pairs of messages on a page of the inspector."""
_UNKNOWN = Sides((), {}, "", (), "")
_BARS = 60
_DAYS = 60
_WARNINGS = 5
_AT_ONCE = 1_000
_PAGE_TOKENS = 4_000
_MESSAGE_CHARACTERS = 50_000


class Gathering:
    """Asks the store of a running proxy for what one tenant has there."""

    def __init__(self, engine: Holdfast, standing: FixedTokens) -> None:
        self._engine = engine
        self._store = engine.store
        self._scope = engine.scope
        self._standing = standing

    async def tenant(self) -> TenantRow:
        """A line about the tenant."""
        newest = await self._store.sessions(self._scope, limit=1)
        return TenantRow(
            name=self._scope.workspace,
            sessions=(await self._store.stats(self._scope)).sessions,
            totals=totals(await self._store.usage(self._scope)),
            updated_at=newest[0].updated_at if newest else None,
        )

    async def overview(self, url: str, *, before: str, now: float) -> Overview:
        """The first page; `before` is the session to go on behind."""
        days = await self._store.usage(self._scope, by="day")
        listed = await self._store.sessions(self._scope, limit=SESSIONS + 1, before=before)
        newest = listed if not before else await self._store.sessions(self._scope, limit=SESSIONS)
        recent: list[TurnRow] = []
        for record in newest[:SESSIONS]:
            recent += await self._turns(record, max(0, record.turns - TURNS), TURNS)
        shown = listed[:SESSIONS]
        sessions = [
            SessionRow(record=record, totals=totals(await self._usage(record))) for record in shown
        ]
        stored = await self._store.stats(self._scope)
        return Overview(
            url=url,
            refs=stored.refs,
            damaged=stored.damaged,
            today=totals(one for one in days if one.name == day(now)),
            ever=totals(days),
            days=days[-_DAYS:],
            recent=latest(recent, _BARS),
            warned=warned(recent, _WARNINGS),
            sessions=sessions,
            older=links.overview(before=shown[-1].session) if len(listed) > SESSIONS else "",
            first=not before,
        )

    async def session(self, name: str, page: int) -> SessionShown | None:
        """The page of a session; page 1 holds its newest turns."""
        record = await self._store.session(self._scope.of(name))
        if record is None:
            return None
        stop = record.turns - (page - 1) * TURNS
        start = max(0, stop - TURNS)
        turns = await self._turns(record, start, stop - start) if stop > 0 else []
        return SessionShown(
            record=record,
            usage=await self._usage(record),
            rows=turns,
            newer=links.session(name, page=page - 1) if page > 1 else "",
            older=links.session(name, page=page + 1) if start > 0 else "",
        )

    async def turn(self, name: str, number: int, page: int) -> TurnShown | None:
        """The inspector of a turn."""
        record = await self._store.session(self._scope.of(name))
        turns = await self._turns_up_to(record, number)
        if record is None or not turns:
            return None
        both = last_sides(turns) or _UNKNOWN
        pairs = aligned(len(both.client), both.origins)
        pages = max(1, -(-len(pairs) // ROWS))
        page = min(page, pages)
        here = pairs[(page - 1) * ROWS : page * ROWS]
        stored = await self._store.messages(self._scope, needed(both, here))
        inspected = Inspected(
            dialect=record.dialect, sides=both, stored=stored, turns=turns_of_edits(turns)
        )
        shown_rows = await asyncio.to_thread(rows, inspected, here)
        refs = {ref for row in shown_rows for ref in row.refs}
        return TurnShown(
            session=name,
            turn=turns[-1],
            last=record.turns,
            around=(inspected.around(CLIENT), inspected.around(SENT)),
            rows=shown_rows,
            flags=await self._flags(sorted(refs)),
            counts=(len(both.client), len(both.sent)),
            page=page,
            pages=pages,
        )

    async def message(
        self, name: str, number: int, side: str, index: int, page: int
    ) -> MessageShown | None:
        """One message of a turn, counted from 0."""
        record = await self._store.session(self._scope.of(name))
        turns = await self._turns_up_to(record, number)
        if record is None or not turns:
            return None
        both = last_sides(turns) or _UNKNOWN
        names = both.client if side == CLIENT else both.sent
        if not 0 <= index < len(names):
            return None
        stored = await self._store.messages(self._scope, [names[index], both.frame])
        inspected = Inspected(dialect=record.dialect, sides=both, stored=stored)
        shown = await asyncio.to_thread(Reader(inspected, side).show, index)
        said = "\n\n".join(one.text or f"[{one.kind} {one.name}]" for one in shown.pieces)
        pages = max(1, -(-len(said) // _MESSAGE_CHARACTERS))
        page = min(page, pages)
        start = (page - 1) * _MESSAGE_CHARACTERS
        return MessageShown(
            session=name,
            number=number,
            side=side,
            message=msgspec.structs.replace(shown, pieces=()),
            text=said[start : start + _MESSAGE_CHARACTERS],
            page=page,
            pages=pages,
        )

    async def content(
        self, ref: str, options: dict[str, str], page: int, *, agreed: bool
    ) -> ContentShown | None:
        """What is stored behind a ref, and the part asked for, if it may be shown."""
        info = await self._store.info(self._scope, ref)
        if info is None:
            return None
        visible = agreed or not info.flags
        opened: Expansion | None = None
        refused = ""
        if visible and info.state in ("fresh", "stale"):
            asked = {**options, "page": page, "max_tokens": _PAGE_TOKENS}
            try:
                opened = await self._engine.expand_ref(info.ref_id, asked)
            except ExpandError as error:
                refused = f"This cannot be opened: {error}"
        return ContentShown(
            info=info,
            options=options,
            page=page,
            opened=opened,
            refused=refused,
            shown=visible,
        )

    async def raw(self, ref: str) -> tuple[str, bytes] | None:
        """The name and the very bytes of a content."""
        stored = await self._store.get(self._scope, ref)
        return None if stored is None else (stored.info.ref_id, stored.data)

    # --- steps -----------------------------------------------------------------------------------

    async def _usage(self, record: SessionRecord) -> list[UsageTotal]:
        return await self._store.usage(self._scope.of(record.session), by="session")

    async def _turns(self, record: SessionRecord, after: int, limit: int) -> list[TurnRow]:
        scope = self._scope.of(record.session)
        turns = await self._store.turns(scope, after=after, limit=limit)
        first = turns[:1] if after == 0 else await self._store.turns(scope, limit=1)
        if not turns or not first:
            return []
        begun = beginnings(first[0], turns)
        wanted = sorted({name for names in begun.values() for name in names} - {""})
        stored = await self._store.messages(self._scope, wanted)
        return await asyncio.to_thread(self._with_standing, record, turns, begun, stored)

    def _with_standing(
        self,
        record: SessionRecord,
        turns: Sequence[Turn],
        begun: dict[int, tuple[str, str]],
        stored: dict[str, bytes],
    ) -> list[TurnRow]:
        tokens = {
            turn.number: self._standing.tokens(
                record.dialect, turn.model, begun[turn.number], stored
            )
            for turn in turns
            if turn.number in begun
        }
        return turn_rows(record.session, turns, tokens)

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
