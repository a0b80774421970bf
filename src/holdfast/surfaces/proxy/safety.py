"""Access checks: the host, the origin, and the token if one is needed.

gate calls them for every request, on any path. They also decide which sessions a person or a
program may see, in the dashboard, in /stats and /metrics. The holder of `serve_token` sees all
tenants, and so does the user of a proxy without tokens, which only its own machine can reach; a
named token, or a key, sees its own tenant.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import Request

from holdfast.settings import Settings
from holdfast.store import Scope
from holdfast.surfaces.proxy.tenants import RequestCredentials, asking, own_tokens

if TYPE_CHECKING:
    from holdfast.surfaces.proxy.service import Service

TOKEN_MISSING = 401
_LOOPBACK_NAMES = frozenset({"localhost"})
_OWN_SITES = frozenset({"", "none", "same-origin"})
"""`Sec-Fetch-Site` of the browser's address bar and of the proxy's own pages. `same-site` is
another port of the same machine, which may be any program's page."""

_LONGEST_HOST = 300
"""Characters of a host that are looked at: DNS allows 253, and a port is five."""

HEADERS = {
    "content-security-policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Of every answer that is the proxy's own: no page may run, frame, sniff or keep it."""


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def refusal(headers: Mapping[str, str], settings: Settings) -> tuple[int, str] | None:
    """The status and the reason of a refusal; None if the request may be answered."""
    netloc = headers.get("host", "")[:_LONGEST_HOST]
    if not _answers_to(netloc, settings.serve_host, tuple(settings.serve_names)):
        return 403, "This host name is not one that the proxy answers to; see serve_names."
    foreign = "origin" in headers and not _is_own(headers, settings)
    if foreign or headers.get("sec-fetch-site", "") not in _OWN_SITES:
        return 403, "Pages of other sites may not use the proxy."
    if own_tokens(settings) and not asking(headers.items(), "", settings).tokens:
        why = "The proxy's token is missing: send it as x-holdfast-token, or as the API key."
        return TOKEN_MISSING, why
    return None


@lru_cache(maxsize=64)  # clients of one proxy call it by a few names, and with every request
def _answers_to(netloc: str, own_host: str, names: tuple[str, ...]) -> bool:
    """Whether the host that a client asks for is this proxy."""
    host = _host_of(netloc)
    return is_loopback(host) or host in {own_host, *map(_host_of, names)}


def _is_own(headers: Mapping[str, str], settings: Settings) -> bool:
    """Return whether a page is the proxy's own: at the same host and the same port.

    The name of a gateway is in `serve_names`, with its port if that is not the default, because
    browsers write an origin in that form.
    """
    origin = headers.get("origin", "").lower()
    site = origin.partition("://")[2]
    return not origin or site in {headers.get("host", "").lower(), *settings.serve_names}


def _host_of(netloc: str) -> str:
    """The name in `name:port`; nothing where it is no such thing, which no rule allows."""
    try:
        return (urlsplit(f"//{netloc}").hostname or "").lower()
    except ValueError:
        return ""


class View:
    """The access of a viewer."""

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
        """Return the visible tenants, most recently used first."""
        return [self.own] if self.own is not None else await self._service.tenants.all()

    async def scopes(self) -> list[Scope]:
        """The same tenants as the store knows them."""
        user = self._service.engine.scope.user
        return [Scope(user, tenant) for tenant in await self.tenants()]


async def view_of(service: Service, request: Request) -> View:
    """Return the access of the sender of a request."""
    settings = service.settings
    who = asking(request.headers.items(), request.url.query, settings)
    login = service.logins.token_of(request.headers.get("cookie", ""))
    tokens = who.tokens if login is None else who.tokens | {login}
    if "" in tokens or not (own_tokens(settings) or who.keys):
        return View(service, None)
    return View(
        service, await service.tenants.name(RequestCredentials(who.keys, tokens, who.header))
    )
