"""A person's request for a page: the tenants it shows, and its access to the store.

An address names one tenant, or none for all tenants that the person may see. Every page reads
through a visit, so that no page can show more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.requests import Request

from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError, StoreError
from holdfast.store import Scope
from holdfast.surfaces.proxy.dashboard.frame import Choice, Frame
from holdfast.surfaces.proxy.dashboard.layout import day
from holdfast.surfaces.proxy.dashboard.links import from_path
from holdfast.surfaces.proxy.dashboard.reports import Reports
from holdfast.surfaces.proxy.dashboard.tenant_reader import TenantReader
from holdfast.surfaces.proxy.dashboard.views import TenantRow, days_of, totals
from holdfast.surfaces.proxy.safety import View, view_of
from holdfast.surfaces.proxy.seen import Refusal
from holdfast.surfaces.proxy.service import Service

MOST_CHOICES = 20
"""Tenants in the list of the header; the page of all tenants has the others."""
_AT_ONCE = 50


class UnknownTenantError(HoldfastError):
    """There is no such tenant, or the person may not see it: the answer is the same."""


class Visit:
    """The access of one request for a page."""

    def __init__(self, service: Service, view: View, named: str, tenants: list[str]) -> None:
        self.service = service
        self.view = view
        self.named = named
        """The tenant that the address names; empty if it names none."""
        self.visible = tenants
        """All tenants that the person may see, the last used first."""

    @classmethod
    async def of(cls, service: Service, request: Request) -> Visit:
        """Return the visit of a request.

        Raises:
            UnknownTenantError: the address names a tenant that the person may not see.
        """
        view = await view_of(service, request)
        named = from_path(request.path_params.get("tenant", ""))
        tenants = await view.tenants()
        if named and named not in tenants:
            raise UnknownTenantError("Nothing is known under this address")
        return cls(service, view, named, tenants)

    async def refresh(self) -> None:
        """Read again which tenants there are: others may have come."""
        self.visible = await self.view.tenants()

    @property
    def is_many(self) -> bool:
        """Whether the page is about several tenants."""
        return not self.named and len(self.visible) > 1

    @property
    def tenants(self) -> list[str]:
        """The tenants that the page is about; the owner of the store if there are none yet."""
        if self.named:
            return [self.named]
        return self.visible or [self.service.engine.scope.workspace]

    def reports(self) -> Reports:
        """Return what reads figures and lists of the tenants."""
        user = self.service.engine.scope.user
        scopes = [Scope(user, tenant) for tenant in self.tenants]
        return Reports(self.service.engine.store, scopes, self.service.labels.name)

    async def engine(self, tenant: str) -> Holdfast:
        """Return the engine of one of the tenants."""
        if tenant not in self.tenants:
            raise UnknownTenantError("Nothing is known under this address")
        return await self.service.tenants.engine(tenant)

    async def gathering(self, tenant: str = "") -> TenantReader:
        """Return what reads the contents of a tenant; of the only one, if none is given."""
        return TenantReader(await self.engine(tenant or self.tenants[0]))

    def refused(self) -> list[Refusal]:
        """Return the refused requests that the person may see."""
        # A request that failed before its tenant was known concerns people who may see all.
        theirs = set(self.tenants)
        everyone = self.view.sees_all and not self.named
        return [
            each
            for each in self.service.telemetry.refused
            if each.tenant in theirs or (everyone and not each.tenant)
        ]

    # --- several tenants -------------------------------------------------------------------------

    async def frame(self, *, logged_in: bool = False) -> Frame:
        """Return what surrounds the page."""
        several = len(self.visible) > 1
        choices = await self._choices() if several else []
        return Frame(
            logged_in=logged_in,
            sees_all=self.view.sees_all,
            tenant=self.named,
            name=await self._name(self.named) if self.named and several else "",
            choices=choices,
            count=len(self.visible),
            is_personal=self.view.is_personal,
        )

    async def _choices(self) -> list[Choice]:
        some = self.visible[:MOST_CHOICES]
        names = await asyncio.gather(*map(self._name, some))
        return [Choice(*pair) for pair in zip(some, names, strict=True)]

    async def _name(self, tenant: str) -> str:
        return await self.service.labels.name(tenant)

    async def rows(
        self, start: int, stop: int, *, period: str = "all", now: float = 0.0
    ) -> list[TenantRow]:
        """Return figures of some of the tenants that the person may see, over a period."""
        some = self.visible[start:stop]
        return list(await asyncio.gather(*(self._row(each, period, now) for each in some)))

    async def _row(self, tenant: str, period: str, now: float) -> TenantRow:
        store = self.service.engine.store
        scope = Scope(self.service.engine.scope.user, tenant)
        newest = await store.sessions(scope, limit=1)
        return TenantRow(
            tenant=tenant,
            name=await self._name(tenant),
            sessions=(await store.stats(scope)).sessions,
            totals=totals(days_of(period, await store.usage(scope, by="day"), day(now))),
            updated_at=newest[0].updated_at if newest else None,
        )

    async def holders(self, *, session: str = "", ref: str = "") -> list[str]:
        """Return the visible tenants that have a session, or a ref.

        Clients know the name of their session, not that of their tenant; and an address that was
        right while there was one tenant stays right when there are several.
        """
        holders: list[str] = []
        for start in range(0, len(self.visible), _AT_ONCE):
            some = self.visible[start : start + _AT_ONCE]
            has = await asyncio.gather(*(self._has(each, session, ref) for each in some))
            holders += [tenant for tenant, is_there in zip(some, has, strict=True) if is_there]
        return holders

    async def _has(self, tenant: str, session: str, ref: str) -> bool:
        store = self.service.engine.store
        scope = Scope(self.service.engine.scope.user, tenant)
        try:
            if session:
                return await store.session(scope.of(session)) is not None
            return await store.info(scope, ref) is not None
        except StoreError:
            return False  # no name of a session or ref

    async def choices_of(self, tenants: Sequence[str]) -> list[tuple[str, str]]:
        """Return tenants with their display names."""
        return [(tenant, await self._name(tenant)) for tenant in tenants]
