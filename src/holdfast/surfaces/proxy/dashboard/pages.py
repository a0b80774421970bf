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
from holdfast.surfaces.proxy.dashboard.links import from_path
from holdfast.surfaces.proxy.dashboard.overview import overview_page, session_page
from holdfast.surfaces.proxy.service import Service

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {**safety.HEADERS, "content-security-policy": POLICY}
_STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
_LONGEST_OPTION = 500

Handler = Callable[[Request], Awaitable[Response]]


def routes(service: Service) -> list[BaseRoute]:
    """The dashboard of a running proxy."""
    pages = Pages(Gathering(service))
    turn = "/sessions/{name}/turns/{number}"
    wanted: list[tuple[str, Handler]] = [
        ("/", pages.overview),
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
    return [*(Route(path, _careful(handle), methods=["GET"]) for path, handle in wanted), *files]


class Pages:
    """A handler for each page."""

    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering

    async def overview(self, request: Request) -> Response:
        """Totals, charts, warnings, sessions."""
        url = str(request.base_url).rstrip("/")
        before = request.query_params.get("before", "")
        return _html(
            overview_page(await self._gathering.overview(url, before=before, now=time.time()))
        )

    async def session(self, request: Request) -> Response:
        """A session's turns."""
        shown = await self._gathering.session(_name(request), _page(request))
        return _html(session_page(shown)) if shown is not None else await _missing(request)

    async def turn(self, request: Request) -> Response:
        """The inspector."""
        number = _number(request.path_params["number"])
        shown = await self._gathering.turn(_name(request), number, _page(request))
        return _html(turn_page(shown)) if shown is not None else await _missing(request)

    async def message(self, request: Request) -> Response:
        """One message in full."""
        side = request.path_params["side"]
        number, index = (_number(request.path_params[key]) for key in ("number", "index"))
        if side not in (CLIENT, SENT):
            return await _missing(request)
        shown = await self._gathering.message(_name(request), number, side, index, _page(request))
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
        shown = await self._gathering.content(ref, options, _page(request), agreed=agreed)
        if shown is None:
            return await _missing(request)
        return _html(content_page(shown), 400 if shown.refused else 200)

    async def raw(self, request: Request) -> Response:
        """The very bytes, to be saved."""
        found = await self._gathering.raw(from_path(request.path_params["ref"]))
        if found is None:
            return await _missing(request)
        name, data = found
        headers = {
            **HEADERS,
            "content-type": "text/plain; charset=utf-8",
            "content-disposition": f'attachment; filename="{name.replace(":", "-")}.txt"',
        }
        return Response(data, headers=headers)


def _careful(handle: Handler) -> Handler:
    """Answer with a page whatever happens; an error's text holds no content."""

    async def answer(request: Request) -> Response:
        try:
            return await handle(request)
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


def _html(made: str, status: int = 200) -> Response:
    return HTMLResponse(made, status, headers=HEADERS)


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
