"""Whose sessions a person or a program may look at: in the dashboard, in /stats and /metrics.

viewing: after service, before the pages. Who has `serve_token` sees all tenants, and so does who
sits at a proxy without tokens, which only its own machine can reach; a named token, or a key that
is sent along, sees its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request

from holdfast.store import Scope
from holdfast.surfaces.proxy.tenants import Asking, asking, own_tokens

if TYPE_CHECKING:
    from holdfast.surfaces.proxy.service import Service


class View:
    """What one who looks may see."""

    def __init__(self, service: Service, own: str | None) -> None:
        self._service = service
        self.own = own
        """Their tenant; None for who sees all."""

    @property
    def sees_all(self) -> bool:
        """Whether every tenant may be looked at."""
        return self.own is None

    @property
    def is_personal(self) -> bool:
        """Whether all tenants are one person's: without tokens, only this machine gets in."""
        return not own_tokens(self._service.settings)

    async def tenants(self) -> list[str]:
        """The tenants to be seen, who was there last first."""
        return [self.own] if self.own is not None else await self._service.tenants.all()

    async def scopes(self) -> list[Scope]:
        """The same tenants as the store knows them."""
        user = self._service.engine.scope.user
        return [Scope(user, tenant) for tenant in await self.tenants()]


async def view_of(service: Service, request: Request) -> View:
    """What the one behind a request may see."""
    settings = service.settings
    who = asking(request.headers.items(), request.url.query, settings)
    login = service.logins.token_of(request.headers.get("cookie", ""))
    tokens = who.tokens if login is None else who.tokens | {login}
    if "" in tokens or not (own_tokens(settings) or who.keys):
        return View(service, None)
    return View(service, await service.tenants.name(Asking(who.keys, tokens, who.header)))
