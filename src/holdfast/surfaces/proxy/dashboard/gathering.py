"""What pages need of the store, asked for in bounded steps.

gathering: after the pages' values, before pages. Of the dashboard only this file, inspecting.py,
live.py, actions.py and pages.py wait; what takes long to work out is done in a thread, so that
requests of clients go on.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.engine import Holdfast
from holdfast.engine.tool_calls import reported
from holdfast.errors import ExpandError, HoldfastError
from holdfast.expand import Expansion
from holdfast.store.records import SessionRecord, UsageTotal
from holdfast.store.refs import digest
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.contents import ContentShown, RefsShown
from holdfast.surfaces.proxy.dashboard.layout import day
from holdfast.surfaces.proxy.dashboard.lost_page import Proof
from holdfast.surfaces.proxy.dashboard.overview import Overview
from holdfast.surfaces.proxy.dashboard.pulse import MOST_LIVE, Pulse
from holdfast.surfaces.proxy.dashboard.sessions_page import SessionsShown
from holdfast.surfaces.proxy.dashboard.tools_page import ToolsShown
from holdfast.surfaces.proxy.dashboard.views import (
    SessionRow,
    TenantRow,
    TurnRow,
    by_kind,
    chosen,
    days_of,
    failed,
    latest,
    totals,
    turn_rows,
    warned,
)
from holdfast.surfaces.proxy.seen import Refused

SESSIONS = 10
"""Sessions on the first page, and sessions looked through for warnings."""
LISTED = 50
"""Sessions on a page of their list, and refs on a page of theirs."""
MOST_SEARCHED = 2_000
"""Sessions that a search looks through, the last used first."""
PROVED = 10
"""Sessions whose last request is rebuilt to prove that nothing was lost."""
_LATELY = 20
"""Turns of a session that the first page looks at."""
_BARS = 60
_DAYS = 60
_WARNINGS = 5
_FAILURES = 5
_REFS = 300
_LARGEST = 10
_PAGE_TOKENS = 4_000


class Gathering:
    """Asks the store of a running proxy for what one tenant has there."""

    def __init__(self, engine: Holdfast) -> None:
        self.engine = engine
        self.store = engine.store
        self.scope = engine.scope

    async def tenant(self) -> TenantRow:
        """A line about the tenant."""
        newest = await self.store.sessions(self.scope, limit=1)
        return TenantRow(
            name=self.scope.workspace,
            sessions=(await self.store.stats(self.scope)).sessions,
            totals=totals(await self.store.usage(self.scope)),
            updated_at=newest[0].updated_at if newest else None,
        )

    # --- the first page --------------------------------------------------------------------------

    async def changed_at(self) -> float:
        """When anything was last written down of any session."""
        newest = await self.store.sessions(self.scope, limit=1)
        return newest[0].updated_at if newest else 0.0

    async def pulse(self, period: str, now: float) -> Pulse:
        """What changes while one looks at it."""
        newest = await self.store.sessions(self.scope, limit=MOST_LIVE)
        rows = await self._lately(newest, MOST_LIVE)
        days = await self.store.usage(self.scope, by="day")
        stored = await self.store.stats(self.scope)
        return Pulse(
            period=period,
            totals=totals(days_of(period, days, day(now))),
            sessions=stored.sessions,
            refs=stored.refs,
            damaged=stored.damaged,
            size=stored.size,
            rows=latest(rows, MOST_LIVE)[::-1],
        )

    async def overview(
        self, url: str, *, period: str, now: float, refused: Sequence[Refused] = ()
    ) -> Overview:
        """The first page; `refused` are requests that failed without a turn."""
        newest = await self.store.sessions(self.scope, limit=SESSIONS)
        recent = await self._lately(newest, _LATELY)
        refs = await self.store.refs(self.scope, limit=_REFS)
        queue = (await self.store.jobs.figures()).depths
        return Overview(
            url=url,
            pulse=await self.pulse(period, now),
            days=(await self.store.usage(self.scope, by="day"))[-_DAYS:],
            recent=latest(recent, _BARS),
            warned=warned(recent, _WARNINGS),
            failed=failed(recent, _FAILURES),
            refused=sorted(refused, key=lambda each: -each.at)[:_FAILURES],
            sessions=await self._with_totals(newest),
            largest=sorted(refs, key=lambda info: -info.tokens)[:_LARGEST],
            kinds=by_kind(refs, await self.store.audit(self.scope, limit=2 * _REFS)),
            queue=queue,
        )

    async def _lately(self, records: Sequence[SessionRecord], most: int) -> list[TurnRow]:
        rows: list[TurnRow] = []
        for record in records:
            after = max(0, record.turns - most)
            scope = self.scope.of(record.session)
            rows += turn_rows(record, await self.store.turns(scope, after=after, limit=most))
        return rows

    async def _with_totals(self, records: Sequence[SessionRecord]) -> list[SessionRow]:
        return [
            SessionRow(record=record, totals=totals(await self.usage(record))) for record in records
        ]

    async def usage(self, record: SessionRecord) -> list[UsageTotal]:
        """What a session used."""
        return await self.store.usage(self.scope.of(record.session), by="session")

    # --- lists -----------------------------------------------------------------------------------

    async def sessions(self, words: str, show: str, page: int) -> SessionsShown:
        """The sessions that are looked for; page 1 holds those last used."""
        records = await self.store.sessions(self.scope, limit=MOST_SEARCHED)
        by_name = {total.name: total for total in await self.store.usage(self.scope, by="session")}
        rows = [
            SessionRow(
                record=record,
                totals=totals([by_name[record.session]] if record.session in by_name else []),
            )
            for record in records
        ]
        matches = chosen(rows, words, show)
        page = min(page, max(1, -(-len(matches) // LISTED)))
        asked = {"q": words, "show": show if show != "all" else ""}
        more = len(matches) > page * LISTED
        return SessionsShown(
            rows=matches[(page - 1) * LISTED : page * LISTED],
            words=words,
            show=show,
            matches=len(matches),
            looked_at=len(rows),
            newer=links.sessions(**asked, page=page - 1) if page > 1 else "",
            older=links.sessions(**asked, page=page + 1) if more else "",
        )

    async def refs(self, kind: str, before: str) -> RefsShown:
        """What is hidden; `before` is the ref to go on behind."""
        refs = await self.store.refs(self.scope, kind=kind, limit=LISTED + 1, before=before)
        shown = refs[:LISTED]
        more = len(refs) > LISTED
        return RefsShown(
            refs=shown,
            kinds=(await self.store.stats(self.scope)).by_kind,
            kind=kind,
            newest=links.refs(kind=kind) if before else "",
            older=links.refs(kind=kind, before=shown[-1].ref_id) if more else "",
        )

    async def tools(self, gateway: Holdfast) -> ToolsShown:
        """The tools that are registered, and how requests went that had some set aside.

        A gateway keeps its tools under the name of who started it, not under a client's key.
        """
        engines = {self.scope: self.engine, gateway.scope: gateway}.values()
        return ToolsShown(
            tools=[tool for each in engines for tool in await each.toolbox.all()],
            servers=[one for each in engines for one in await reported(self.store, each.scope)],
            totals=totals(await self.store.usage(self.scope)),
        )

    # --- what was lost ---------------------------------------------------------------------------

    async def proofs(self) -> tuple[list[Proof], int]:
        """The last requests of some sessions, rebuilt; and how many originals are damaged."""
        records = await self.store.sessions(self.scope, limit=PROVED)
        proofs = [await self.proof(record, record.turns) for record in records if record.turns]
        return proofs, (await self.store.stats(self.scope)).damaged

    async def proof(self, record: SessionRecord, number: int) -> Proof:
        """Rebuild a request: what could not be says why."""
        proof = Proof(session=record.session, title=record.title, number=number)
        try:
            body = await self.asked(record.session, number)
        except HoldfastError as error:
            return msgspec.structs.replace(proof, why=error.what)
        return msgspec.structs.replace(proof, size=len(body), sha256=digest(body))

    async def asked(self, name: str, number: int) -> bytes:
        """The client's request of a turn, byte for byte; raises if it cannot be rebuilt."""
        return await self.engine.unkept(self.scope.of(name)).rebuild(number)

    # --- contents --------------------------------------------------------------------------------

    async def content(
        self, ref: str, options: dict[str, str], page: int, *, agreed: bool
    ) -> ContentShown | None:
        """What is stored behind a ref, and the part asked for, if it may be shown."""
        info = await self.store.info(self.scope, ref)
        if info is None:
            return None
        visible = agreed or not info.flags
        opened: Expansion | None = None
        refused = ""
        if visible and info.state in ("fresh", "stale"):
            asked = {**options, "page": page, "max_tokens": _PAGE_TOKENS}
            try:
                opened = await self.engine.expand_ref(info.ref_id, asked, peek=True)
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
        stored = await self.store.get(self.scope, ref, peek=True)
        return None if stored is None else (stored.info.ref_id, stored.data)
