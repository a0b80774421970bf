"""Figures and lists over one tenant or several, read from the store in bounded steps.

reports: after the pages' values, before live and visits. A page over several tenants costs as many
queries as a page over one; every row of it names its tenant, for the links.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import TypeVar

from msgspec.structs import replace

from holdfast.store import Scope, Store
from holdfast.store.records import AuditEntry, SessionRecord, UsageTotal
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.contents import RefsShown
from holdfast.surfaces.proxy.dashboard.layout import day
from holdfast.surfaces.proxy.dashboard.overview import Overview
from holdfast.surfaces.proxy.dashboard.pulse import MOST_LIVE, Pulse
from holdfast.surfaces.proxy.dashboard.sessions_page import SessionsShown
from holdfast.surfaces.proxy.dashboard.trouble import Failures
from holdfast.surfaces.proxy.dashboard.views import (
    SIDE,
    RefRow,
    SessionRow,
    TurnRow,
    by_kind,
    chosen,
    days_of,
    latest,
    span_of,
    totals,
    turn_rows,
    warned,
)
from holdfast.surfaces.proxy.report import SessionGroup, group_sessions
from holdfast.surfaces.proxy.seen import Refusal

SESSIONS = 10
"""Sessions on the first page, and sessions searched for warnings."""
_GROUPED = 200
"""Sessions that the first page joins by client session: one may have dozens of side requests."""
LISTED = 50
"""Number of sessions, or refs, on a page of their list."""
MOST_SEARCHED = 2_000
"""Sessions that a search covers, the last used first."""
_LATELY = 20
"""Turns of a session that the first page covers."""
_BARS = 60
_DAYS = 60
_WARNINGS = 5
_FAILURES = 5
_REFS = 300
_LARGEST = 10

_Row = TypeVar("_Row", SessionRow, RefRow)
Namer = Callable[[str], Awaitable[str]]
"""Returns the display name of a tenant."""


class Reports:
    """Reads what some tenants of one store have."""

    def __init__(self, store: Store, scopes: Sequence[Scope], namer: Namer) -> None:
        self.store = store
        self.scopes = scopes
        self._namer = namer

    def tenant_of(self, scope: Scope) -> str:
        """Return the tenant that a row names; empty if all rows are of the same."""
        return scope.workspace if len(self.scopes) > 1 else ""

    # --- the first page --------------------------------------------------------------------------

    async def newest(self, limit: int) -> list[tuple[Scope, SessionRecord]]:
        """Return the sessions last used."""
        if len(self.scopes) == 1:  # an index has them in order
            scope = self.scopes[0]
            records = await self.store.sessions(scope, limit=limit)
            return [(scope.of(record.session), record) for record in records]
        return await self.store.across.sessions(self.scopes, limit=limit)

    async def changed_at(self) -> float:
        """Return when a session was last written."""
        newest = await self.newest(1)
        return newest[0][1].updated_at if newest else 0.0

    async def days(self) -> list[UsageTotal]:
        """Return the usage of each day."""
        return await self.store.across.usage_by_day(self.scopes)

    async def pulse(self, period: str, now: float, refused: Sequence[Refusal] = ()) -> Pulse:
        """Return the part of the first page that changes while a person looks at it."""
        return await self._pulse(await self.days(), period, now, refused)

    async def _pulse(
        self, days: Sequence[UsageTotal], period: str, now: float, refused: Sequence[Refusal]
    ) -> Pulse:
        rows = await self._lately(await self.newest(MOST_LIVE), MOST_LIVE)
        stored = await self.store.across.stats(self.scopes)
        sums = totals(days_of(period, days, day(now)))
        return Pulse(
            period=period,
            totals=sums,
            sessions=stored.sessions,
            refs=stored.refs,
            damaged=stored.damaged,
            size=stored.size,
            rows=latest(rows, MOST_LIVE)[::-1],
            failures=await self._failures(sums.failed, period, now, refused),
        )

    async def _failures(
        self, count: int, period: str, now: float, refused: Sequence[Refusal]
    ) -> Failures:
        """Return the failures of a period: as many as the sums count, the last of them in full."""
        span = span_of(period, day(now))
        within = [each for each in refused if span.start <= each.at < span.stop]
        rows: list[TurnRow] = []
        if count:
            turns = await self.store.across.failures(self.scopes, limit=_FAILURES, within=span)
            for scope, turn in turns:
                record = await self.store.session(scope) or SessionRecord(session=scope.session)
                rows += turn_rows(record, [turn], self.tenant_of(scope))
        return Failures(
            count=count,
            rows=rows,
            refused_count=len(within),
            refused=sorted(within, key=lambda each: -each.at)[:_FAILURES],
            many=len(self.scopes) > 1,
        )

    async def overview(
        self, url: str, *, period: str, now: float, refused: Sequence[Refusal] = ()
    ) -> Overview:
        """Return the first page; `refused` are requests that failed without a turn."""
        newest = await self.newest(_GROUPED)
        recent = await self._lately(newest[:SESSIONS], _LATELY)
        refs = await self._refs(limit=_REFS)
        days = await self.days()
        return Overview(
            url=url,
            pulse=await self._pulse(days, period, now, refused),
            days=days[-_DAYS:],
            recent=latest(recent, _BARS),
            warned=warned(recent, _WARNINGS, span_of(period, day(now))),
            sessions=await self._named(await self._rows(group_sessions(newest)[:SESSIONS])),
            largest=await self._named(sorted(refs, key=lambda row: -row.info.tokens)[:_LARGEST]),
            kinds=by_kind([row.info for row in refs], await self._audit(refs)),
        )

    async def _lately(
        self, sessions: Sequence[tuple[Scope, SessionRecord]], most: int
    ) -> list[TurnRow]:
        rows: list[TurnRow] = []
        for scope, record in sessions:
            after = max(0, record.turns - most)
            turns = await self.store.turns(scope, after=after, limit=most)
            rows += turn_rows(record, turns, self.tenant_of(scope))
        return rows

    async def _rows(self, groups: Sequence[SessionGroup]) -> list[SessionRow]:
        """Return a row for each client session, with the usage of all its members."""
        members = [scope for group in groups for scope, _ in group.members]
        usage = iter(await self.store.across.usage_of_sessions(members))
        return [
            SessionRow(
                record=group.record,
                totals=totals(islice(usage, len(group.members))),
                tenant=self.tenant_of(group.scope),
                turns=group.turns,
                side_requests=group.side_requests,
            )
            for group in groups
        ]

    async def _side_rows(self, sessions: Sequence[tuple[Scope, SessionRecord]]) -> list[SessionRow]:
        """Return a row for each side request, which is named by its purpose."""
        sides = [(scope, record) for scope, record in sessions if record.purpose]
        usage = await self.store.across.usage_of_sessions([scope for scope, _ in sides])
        return [
            SessionRow(
                record=replace(record, title=f"{record.purpose}: {record.title or record.session}"),
                totals=totals([total]),
                tenant=self.tenant_of(scope),
                side_requests=record.turns,
            )
            for (scope, record), total in zip(sides, usage, strict=True)
        ]

    async def _named(self, rows: Sequence[_Row]) -> list[_Row]:
        """Return rows with the display names of their tenants."""
        tenants = {row.tenant for row in rows if row.tenant}
        names = {tenant: await self._namer(tenant) for tenant in tenants}
        return [replace(row, owner=names.get(row.tenant, "")) for row in rows]

    async def _audit(self, refs: Sequence[RefRow]) -> list[AuditEntry]:
        """Return the newest entries of the tenants to whom refs belong."""
        counts: dict[Scope, int] = {}
        for row in refs:
            scope = Scope(self.scopes[0].user, row.tenant or self.scopes[0].workspace)
            counts[scope] = counts.get(scope, 0) + 1
        entries = await asyncio.gather(
            *(self.store.audit(scope, limit=2 * count) for scope, count in counts.items())
        )
        return [entry for some in entries for entry in some]

    # --- lists -----------------------------------------------------------------------------------

    async def sessions(self, words: str, show: str, page: int) -> SessionsShown:
        """Return the sessions that a search finds; page 1 holds those last used."""
        newest = await self.newest(MOST_SEARCHED)
        if show == SIDE:
            listed = await self._side_rows(newest)
        else:
            listed = await self._rows(group_sessions(newest))
        rows = chosen(listed, words, show)
        page = min(page, max(1, -(-len(rows) // LISTED)))
        query = {"q": words, "show": show if show != "all" else ""}
        more = len(rows) > page * LISTED
        return SessionsShown(
            rows=await self._named(rows[(page - 1) * LISTED : page * LISTED]),
            words=words,
            show=show,
            matches=len(rows),
            looked_at=len(listed),
            newer=links.sessions(**query, page=page - 1) if page > 1 else "",
            older=links.sessions(**query, page=page + 1) if more else "",
        )

    async def _refs(
        self, *, kind: str = "", limit: int, before: tuple[Scope, str] | None = None
    ) -> list[RefRow]:
        if len(self.scopes) == 1:  # an index has them in order
            scope = self.scopes[0]
            infos = await self.store.refs(
                scope, kind=kind, limit=limit, before=before[1] if before else ""
            )
            return [RefRow(info) for info in infos]
        refs = await self.store.across.refs(self.scopes, kind=kind, limit=limit, before=before)
        return [RefRow(info, scope.workspace) for scope, info in refs]

    async def refs(self, kind: str, before: str, of: str) -> RefsShown:
        """Return hidden contents, older ones than the ref `before` of the tenant `of`."""
        user = self.scopes[0].user
        behind = (Scope(user, of or self.scopes[0].workspace), before) if before else None
        rows = await self._refs(kind=kind, limit=LISTED + 1, before=behind)
        page_rows, last = rows[:LISTED], rows[LISTED - 1 : LISTED]
        older = ""
        if len(rows) > LISTED:
            older = links.refs(kind=kind, before=last[0].info.ref_id, of=last[0].tenant)
        return RefsShown(
            refs=await self._named(page_rows),
            kinds=(await self.store.across.stats(self.scopes)).by_kind,
            kind=kind,
            newest=links.refs(kind=kind) if before else "",
            older=older,
        )
