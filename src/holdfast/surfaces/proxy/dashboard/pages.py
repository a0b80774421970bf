"""The dashboard's routes: names from addresses, answers with their headers.

pages: after gathering; the last word of the dashboard. Whatever comes in an address is a
stranger's: it is looked up or refused, never believed. No page runs a script, and none may.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.errors import DamagedContentError, HoldfastError, StoreUnavailableError
from holdfast.surfaces.proxy import safety
from holdfast.surfaces.proxy.dashboard.contents import content_page
from holdfast.surfaces.proxy.dashboard.gathering import Gathering
from holdfast.surfaces.proxy.dashboard.html import a, p
from holdfast.surfaces.proxy.dashboard.inspection import CLIENT, SENT
from holdfast.surfaces.proxy.dashboard.inspector import message_page, turn_page
from holdfast.surfaces.proxy.dashboard.layout import page
from holdfast.surfaces.proxy.dashboard.links import from_path, within
from holdfast.surfaces.proxy.dashboard.login_page import login_routes
from holdfast.surfaces.proxy.dashboard.overview import overview_page, session_page
from holdfast.surfaces.proxy.dashboard.standing import FixedTokens
from holdfast.surfaces.proxy.dashboard.tenants_page import tenants_page
from holdfast.surfaces.proxy.service import Service
from holdfast.surfaces.proxy.viewing import view_of

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {**safety.HEADERS, "content-security-policy": POLICY}
_STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
_LONGEST_OPTION = 500

MOST_TENANTS = 100
"""On the first page: those who were there last."""

Handler = Callable[[Request], Awaitable[Response]]


class UnknownTenantError(HoldfastError):
    """There is no such tenant, or it is another's: who asks is told the same."""


def routes(service: Service) -> list[BaseRoute]:
    """The dashboard of a running proxy: of the viewer's tenant, and of each that may be seen."""
    pages = Pages(service)
    turn = "/sessions/{name}/turns/{number}"
    wanted: list[tuple[str, Handler]] = [
        ("/sessions/{name}", pages.session),
        (turn, pages.turn),
        (turn + "/{side}/{index}", pages.message),
        ("/refs/{ref}", pages.content),
        ("/refs/{ref}/raw", pages.raw),
        ("/sessions/{rest:path}", _missing),
        ("/refs/{rest:path}", _missing),
    ]
    files = [
        Route(f"/static/{file.name}", _static(file), methods=["GET"])
        for file in sorted(_STATIC.iterdir())
    ]
    named = "/tenants/{tenant}"
    paths: list[tuple[str, Handler]] = [
        ("/", pages.first),
        (named, pages.overview),
        *((prefix + path, handle) for prefix in ("", named) for path, handle in wanted),
    ]
    return [
        *(Route(path, _careful(handle, service), methods=["GET"]) for path, handle in paths),
        *login_routes(service, HEADERS),
        *files,
    ]


class Pages:
    """A handler for each page."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._standing = FixedTokens()

    async def _of(self, request: Request) -> Gathering:
        """What the tenant has whose pages are asked for, if the viewer may see it."""
        view = await view_of(self._service, request)
        named = from_path(request.path_params.get("tenant", ""))
        tenant = await view.chosen(named)
        if tenant is None:
            raise UnknownTenantError("Nothing is known under this address")
        return Gathering(await self._service.tenants.engine(tenant), self._standing)

    async def first(self, request: Request) -> Response:
        """The overview of the one tenant there is to be seen, or the list of them."""
        view = await view_of(self._service, request)
        tenants = await view.tenants()
        if len(tenants) < 2:
            return await self.overview(request)
        rows = []
        for tenant in tenants[:MOST_TENANTS]:
            engine = await self._service.tenants.engine(tenant)
            rows.append(await Gathering(engine, self._standing).tenant())
        return _html(tenants_page(rows, len(tenants)))

    async def overview(self, request: Request) -> Response:
        """Totals, charts, warnings, sessions."""
        url = str(request.base_url).rstrip("/")
        before = request.query_params.get("before", "")
        gathering = await self._of(request)
        return _html(overview_page(await gathering.overview(url, before=before, now=time.time())))

    async def session(self, request: Request) -> Response:
        """A session's turns."""
        shown = await (await self._of(request)).session(_name(request), _page(request))
        return _html(session_page(shown)) if shown is not None else await _missing(request)

    async def turn(self, request: Request) -> Response:
        """The inspector."""
        number = _number(request.path_params["number"])
        shown = await (await self._of(request)).turn(_name(request), number, _page(request))
        return _html(turn_page(shown)) if shown is not None else await _missing(request)

    async def message(self, request: Request) -> Response:
        """One message in full."""
        side = request.path_params["side"]
        number, index = (_number(request.path_params[key]) for key in ("number", "index"))
        if side not in (CLIENT, SENT):
            return await _missing(request)
        gathering = await self._of(request)
        shown = await gathering.message(_name(request), number, side, index, _page(request))
        return _html(message_page(shown)) if shown is not None else await _missing(request)

    async def content(self, request: Request) -> Response:
        """What is stored behind a ref."""
        asked = request.query_params
        options = {
            key: asked[key][:_LONGEST_OPTION]
            for key in ("query", "lines", "path")
            if asked.get(key, "").strip()
        }
        ref = from_path(request.path_params["ref"])
        agreed = asked.get("show") == "yes"
        gathering = await self._of(request)
        shown = await gathering.content(ref, options, _page(request), agreed=agreed)
        if shown is None:
            return await _missing(request)
        return _html(content_page(shown), 400 if shown.refused else 200)

    async def raw(self, request: Request) -> Response:
        """The very bytes, to be saved."""
        original = await (await self._of(request)).raw(from_path(request.path_params["ref"]))
        if original is None:
            return await _missing(request)
        name, data = original
        headers = {
            **HEADERS,
            "content-type": "text/plain; charset=utf-8",
            "content-disposition": f'attachment; filename="{name.replace(":", "-")}.txt"',
        }
        return Response(data, headers=headers)


def _careful(handle: Handler, service: Service) -> Handler:
    """Answer with a page whatever happens; an error's text holds no content."""

    async def answer(request: Request) -> Response:
        logged_in = service.logins.token_of(request.headers.get("cookie", "")) is not None
        try:
            with within(from_path(request.path_params.get("tenant", "")), logged_in=logged_in):
                return await handle(request)
        except UnknownTenantError:
            return await _missing(request)
        except StoreUnavailableError as error:
            return _told("The store is unavailable", str(error), 503)
        except DamagedContentError as error:
            return _told("This content is damaged", str(error), 410)
        except HoldfastError as error:
            return _told("There is no such page", str(error), 404)

    return answer


async def _missing(_: Request) -> Response:
    return _told("There is no such page", "Nothing is known under this address.", 404)


def _told(title: str, why: str, status: int) -> Response:
    return _html(page(title, p(why), p(a("To the dashboard", href="/"))), status)


def _html(markup: str, status: int = 200) -> Response:
    return HTMLResponse(markup, status, headers=HEADERS)


def _static(file: Path) -> Handler:
    data, kind = file.read_bytes(), _TYPES[file.suffix]

    async def answer(_: Request) -> Response:
        return Response(
            data, headers={**HEADERS, "cache-control": "no-cache", "content-type": kind}
        )

    return answer


def _name(request: Request) -> str:
    return from_path(request.path_params["name"])


def _page(request: Request) -> int:
    return max(1, _number(request.query_params.get("page", "1")))


def _number(said: str) -> int:
    """A whole number from an address; -1, which nothing has, if it is none."""
    return int(said) if said.isascii() and said.isdigit() and len(said) < 10 else -1
