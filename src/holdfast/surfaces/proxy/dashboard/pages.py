"""The dashboard's routes: the pages with their addresses and access rights.

Values in an address are untrusted: they are looked up or refused. Only our own script may run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from holdfast.engine.tool_calls import reported
from holdfast.errors import DamagedContentError, HoldfastError, StoreUnavailableError
from holdfast.fitting import shared_engine
from holdfast.surfaces.proxy.dashboard import actions, exports, frame, links
from holdfast.surfaces.proxy.dashboard.about import AccuracyRow, accuracy_page, settings_page
from holdfast.surfaces.proxy.dashboard.comparison import (
    ComparisonValues,
    compared,
    comparing_page,
    ways_in,
)
from holdfast.surfaces.proxy.dashboard.contents import content_page, refs_page
from holdfast.surfaces.proxy.dashboard.inspection import CLIENT, SENT
from holdfast.surfaces.proxy.dashboard.inspector import turn_page
from holdfast.surfaces.proxy.dashboard.links import from_path
from holdfast.surfaces.proxy.dashboard.live import Watchers
from holdfast.surfaces.proxy.dashboard.login_page import login_routes
from holdfast.surfaces.proxy.dashboard.lost_page import lost_page
from holdfast.surfaces.proxy.dashboard.message_page import message_page
from holdfast.surfaces.proxy.dashboard.overview import overview_page
from holdfast.surfaces.proxy.dashboard.responses import (
    HEADERS,
    LONGEST_OPTION,
    STATIC,
    elsewhere,
    html_page,
    missing_page,
    name_in,
    number_in,
    page_in,
    period_of,
    saved_file,
    static_file,
    told,
)
from holdfast.surfaces.proxy.dashboard.session_reader import SessionReader
from holdfast.surfaces.proxy.dashboard.sessions_page import session_page, sessions_page
from holdfast.surfaces.proxy.dashboard.tenants_page import TenantsShown, choice_page, tenants_page
from holdfast.surfaces.proxy.dashboard.tools_page import ToolsShown, tools_page
from holdfast.surfaces.proxy.dashboard.views import SHOWN, totals
from holdfast.surfaces.proxy.dashboard.visits import UnknownTenantError, Visit
from holdfast.surfaces.proxy.service import Service
from holdfast.workers import LARGE_BYTES

_T = TypeVar("_T")
PROVED = 10
"""Sessions whose last request is rebuilt to prove that nothing was lost."""
_TENANTS = 10
"""Tenants on the first page."""
_LISTED_TENANTS = 50
"""Tenants on a page of their list."""
_WITH_ENGINES = 20
"""Tenants whose tools and calibration a page over several shows: each needs its engine."""

PageHandler = Callable[[Request, Visit], Awaitable[Response]]


def routes(service: Service) -> list[BaseRoute]:
    """Return the dashboard of a running proxy: of all tenants that may be seen, and of each."""
    pages = Pages(service)
    session = "/sessions/{name}"
    turn = session + "/turns/{number}"
    paths: list[tuple[str, PageHandler]] = [
        ("/sessions", pages.sessions),
        ("/refs", pages.refs),
        ("/lost", pages.lost),
        ("/accuracy", pages.accuracy),
        ("/live", pages.live),
        ("/tools", pages.tools),
        ("/export.{form}", pages.export_days),
        (session, pages.held(pages.session)),
        (session + "/export.{form}", pages.held(pages.export_session)),
        (session + "/compare", pages.held(pages.compare)),
        (turn, pages.held(pages.turn)),
        (turn + "/asked", pages.held(pages.asked)),
        (turn + "/{side}/{index}", pages.held(pages.message)),
        ("/refs/{ref}", pages.held(pages.content)),
        ("/refs/{ref}/raw", pages.held(pages.raw)),
        ("/sessions/{rest:path}", _missing),
        ("/refs/{rest:path}", _missing),
    ]
    changing = [
        ("/sessions/delete", pages.delete_sessions),
        (session + "/delete", pages.delete),
        (session + "/put-back", pages.put_back),
    ]
    files = [
        Route(f"/static/{file.name}", static_file(file), methods=["GET"])
        for file in sorted(STATIC.iterdir())
    ]
    named = "/tenants/{tenant}"
    gets: list[tuple[str, PageHandler]] = [
        ("/", pages.overview),
        ("/settings", pages.settings),
        ("/tenants", pages.tenants),
        (named, pages.overview),
        *((prefix + path, handle) for prefix in ("", named) for path, handle in paths),
    ]
    posts = [(prefix + path, handle) for prefix in ("", named) for path, handle in changing]
    return [
        *(Route(path, _careful(handle, service), methods=["POST"]) for path, handle in posts),
        *(Route(path, _careful(handle, service), methods=["GET"]) for path, handle in gets),
        *login_routes(service, HEADERS),
        *files,
    ]


async def _missing(_: Request, __: Visit) -> Response:
    return missing_page()


class Pages:
    """A handler for each page."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._watchers = Watchers(service)
        self._comparing = asyncio.Lock()

    async def _run(self, work: Callable[[], _T]) -> _T:
        """Write a page or a file in a thread, because the size of a session is unlimited."""
        return await self._service.engine.workers.off_loop(LARGE_BYTES, work)

    async def _page(self, write: Callable[[], str], status: int = 200) -> Response:
        return html_page(await self._run(write), status)

    def held(self, handle: PageHandler) -> PageHandler:
        """Return a page about one session or ref; without a tenant, it leads to the holder's."""

        async def answer(request: Request, visit: Visit) -> Response:
            if not visit.is_many:
                return await handle(request, visit)
            what = "session" if "name" in request.path_params else "ref"
            name = from_path(request.path_params["name" if what == "session" else "ref"])
            holders = await visit.holders(**{what: name})
            path = request.scope["raw_path"].decode("latin-1")
            query = f"?{request.url.query}" if request.url.query else ""
            if not holders:
                return missing_page()
            if len(holders) == 1:
                return elsewhere(links.tenant(holders[0], path + query))
            named = await visit.choices_of(holders)
            choices = [(name, links.tenant(tenant, path + query)) for tenant, name in named]
            return await self._page(partial(choice_page, what, choices))

        return answer

    async def overview(self, request: Request, visit: Visit) -> Response:
        """Show the edits, the savings and the hidden contents."""
        url = str(request.base_url).rstrip("/")
        period, now = period_of(request), time.time()
        values = await visit.reports().overview(
            url, period=period, now=now, refused=visit.refused()
        )
        if visit.view.sees_all and not visit.named:  # the queue is that of all tenants
            depths = (await self._service.engine.store.jobs.figures()).depths
            values = replace(values, queue=depths)
        if visit.is_many:
            rows = await visit.rows(0, _TENANTS, period=period, now=now)
            values = replace(values, tenants=rows)
        return await self._page(partial(overview_page, values))

    async def tenants(self, request: Request, visit: Visit) -> Response:
        """The list of tenants."""
        if len(visit.visible) < 2:
            return elsewhere("/")
        pages = -(-len(visit.visible) // _LISTED_TENANTS)
        page = min(page_in(request), pages)
        start = (page - 1) * _LISTED_TENANTS
        values = TenantsShown(
            rows=await visit.rows(start, start + _LISTED_TENANTS),
            newer=links.tenants(page=page - 1) if page > 1 else "",
            older=links.tenants(page=page + 1) if page < pages else "",
        )
        return await self._page(partial(tenants_page, values))

    async def live(self, request: Request, visit: Visit) -> Response:
        """Send changes as a stream of events."""
        if self._watchers.are_many:
            return told("Too many look already", "Load the page to see what is new.", 503)
        events = self._watchers.events(visit, period_of(request))
        return StreamingResponse(events, headers=HEADERS, media_type="text/event-stream")

    async def lost(self, _: Request, visit: Visit) -> Response:
        """The proof that nothing was lost."""
        reports, proofs = visit.reports(), []
        for scope, record in await reports.newest(PROVED):
            if record.turns:
                gathering = await visit.gathering(scope.workspace)
                tenant = reports.tenant_of(scope)
                proofs.append(await gathering.proof(record, record.turns, tenant))
        stored = await reports.store.across.stats(reports.scopes)
        return await self._page(partial(lost_page, proofs, stored.damaged))

    async def tools(self, _: Request, visit: Visit) -> Response:
        """Show the registered tools, and the figures of hidden ones."""
        # A gateway keeps its tools under the owner of the store, not under a client's key.
        gateway = [self._service.engine] if visit.view.sees_all else []
        some = [await visit.engine(tenant) for tenant in visit.tenants[:_WITH_ENGINES]]
        engines = {engine.scope: engine for engine in (*some, *gateway)}.values()
        store = self._service.engine.store
        values = ToolsShown(
            tools=[tool for each in engines for tool in await each.toolbox.all()],
            servers=[report for each in engines for report in await reported(store, each.scope)],
            totals=totals(await visit.reports().days()),
        )
        return await self._page(partial(tools_page, values))

    async def accuracy(self, _: Request, visit: Visit) -> Response:
        """Show the accuracy of counts; the figures on trimming cover all tenants."""
        rows = []
        for tenant in visit.tenants[:_WITH_ENGINES]:
            models = (await visit.engine(tenant)).calibration.accuracy()
            owner = await self._service.labels.name(tenant) if visit.is_many and models else ""
            rows += [AccuracyRow(model, owner) for model in models]
        effects = shared_engine.effects() if visit.view.sees_all else []
        return await self._page(partial(accuracy_page, rows, effects))

    async def settings(self, _: Request, visit: Visit) -> Response:
        """The settings, for people who may see all."""
        if not visit.view.sees_all:
            return missing_page()
        return await self._page(partial(settings_page, self._service.settings))

    # --- sessions --------------------------------------------------------------------------------

    async def sessions(self, request: Request, visit: Visit) -> Response:
        """The list of sessions, searched and filtered."""
        query = request.query_params
        words, show = query.get("q", "")[:LONGEST_OPTION], query.get("show", "all")
        show = show if show in SHOWN else "all"
        values = await visit.reports().sessions(words, show, page_in(request))
        return await self._page(partial(sessions_page, values))

    async def session(self, request: Request, visit: Visit) -> Response:
        """A session's turns."""
        inspecting = SessionReader(await visit.gathering())
        values = await inspecting.session(name_in(request), page_in(request))
        if values is None:
            return missing_page()
        return await self._page(partial(session_page, values))

    async def compare(self, request: Request, visit: Visit) -> Response:
        """Two settings over one session; worked out once somebody has chosen them."""
        gathering = await visit.gathering()
        record = await gathering.store.session(gathering.scope.of(name_in(request)))
        if record is None:
            return missing_page()
        options = {key: value[:LONGEST_OPTION] for key, value in request.query_params.items()}
        ways = ways_in(options)
        if "a" not in options:
            return await self._page(
                partial(comparing_page, ComparisonValues(record=record, ways=ways))
            )
        if self._comparing.locked():  # one at a time: it is work for the processor
            return told("Another comparison is under way", "Load the page in a few seconds.", 503)
        async with self._comparing:
            values = await compared(gathering, record, ways)
            return await self._page(partial(comparing_page, values))

    async def turn(self, request: Request, visit: Visit) -> Response:
        """The inspector."""
        number = number_in(request.path_params["number"])
        inspecting = SessionReader(await visit.gathering())
        values = await inspecting.turn(name_in(request), number, page_in(request))
        if values is None:
            return missing_page()
        return await self._page(partial(turn_page, values))

    async def message(self, request: Request, visit: Visit) -> Response:
        """One message in full."""
        side = request.path_params["side"]
        number, index = (number_in(request.path_params[key]) for key in ("number", "index"))
        if side not in (CLIENT, SENT):
            return missing_page()
        inspecting = SessionReader(await visit.gathering())
        values = await inspecting.message(name_in(request), number, side, index, page_in(request))
        if values is None:
            return missing_page()
        return await self._page(partial(message_page, values))

    async def asked(self, request: Request, visit: Visit) -> Response:
        """The client's request of a turn, byte for byte, to be saved."""
        number = number_in(request.path_params["number"])
        body = await (await visit.gathering()).asked(name_in(request), number)
        return saved_file(body, "application/json", f"turn-{number}.json")

    async def delete(self, request: Request, visit: Visit) -> Response:
        """Delete a session."""
        return elsewhere(await actions.delete(await visit.gathering(), name_in(request)))

    async def delete_sessions(self, request: Request, visit: Visit) -> Response:
        """Delete the sessions that are checked on the list."""
        for name, tenant in await actions.choices_of(request):
            await actions.delete_row(await visit.gathering(tenant), name)
        return elsewhere(links.sessions())

    async def put_back(self, request: Request, visit: Visit) -> Response:
        """Have something whole from the next request on."""
        fields = await actions.fields_of(request)
        gathering = await visit.gathering()
        return elsewhere(await actions.put_back(gathering, name_in(request), fields))

    async def export_session(self, request: Request, visit: Visit) -> Response:
        """A session's figures, to be saved."""
        exported = await SessionReader(await visit.gathering()).turns(name_in(request))
        form = request.path_params["form"]
        if exported is None or form not in ("csv", "json"):
            return missing_page()
        if form == "csv":
            data = await self._run(partial(exports.turns_csv, exported[1]))
            return saved_file(data, exports.CSV, "session.csv")
        data = await self._run(partial(exports.turns_json, *exported))
        return saved_file(data, "application/json", "session.json")

    async def export_days(self, request: Request, visit: Visit) -> Response:
        """The figures of all days, to be saved."""
        days = await visit.reports().days()
        form = request.path_params["form"]
        if form == "csv":
            data = await self._run(partial(exports.days_csv, days))
            return saved_file(data, exports.CSV, "days.csv")
        if form == "json":
            data = await self._run(partial(exports.days_json, days))
            return saved_file(data, "application/json", "days.json")
        return missing_page()

    # --- contents --------------------------------------------------------------------------------

    async def refs(self, request: Request, visit: Visit) -> Response:
        """Show the list of hidden contents."""
        query = request.query_params
        names = ("kind", "before", "of")
        kind, before, of = (query.get(name, "")[:LONGEST_OPTION] for name in names)
        if of and of not in visit.tenants:
            return missing_page()
        return await self._page(partial(refs_page, await visit.reports().refs(kind, before, of)))

    async def content(self, request: Request, visit: Visit) -> Response:
        """Show the content of a ref."""
        query = request.query_params
        options = {
            key: query[key][:LONGEST_OPTION]
            for key in ("query", "lines", "path")
            if query.get(key, "").strip()
        }
        ref = from_path(request.path_params["ref"])
        agreed = query.get("show") == "yes"
        gathering = await visit.gathering()
        values = await gathering.content(ref, options, page_in(request), agreed=agreed)
        if values is None:
            return missing_page()
        return await self._page(partial(content_page, values), 400 if values.refused else 200)

    async def raw(self, request: Request, visit: Visit) -> Response:
        """The very bytes, to be saved."""
        original = await (await visit.gathering()).raw(from_path(request.path_params["ref"]))
        if original is None:
            return missing_page()
        name, data = original
        return saved_file(data, "text/plain; charset=utf-8", f"{name.replace(':', '-')}.txt")


def _careful(handle: PageHandler, service: Service) -> Callable[[Request], Awaitable[Response]]:
    """Return a page for any error; an error's text contains no content."""

    async def answer(request: Request) -> Response:
        logged_in = service.logins.token_of(request.headers.get("cookie", "")) is not None
        try:
            visit = await Visit.of(service, request)
            around = await visit.frame(logged_in=logged_in)
            with frame.within(around), links.within(visit.named):
                return await _answered(handle(request, visit))
        except UnknownTenantError:
            return missing_page()
        except HoldfastError as error:
            return _failed(error)

    return answer


async def _answered(work: Awaitable[Response]) -> Response:
    """Answer inside the frame of the page, an error too."""
    try:
        return await work
    except UnknownTenantError:
        return missing_page()
    except HoldfastError as error:
        return _failed(error)


def _failed(error: HoldfastError) -> Response:
    match error:
        case StoreUnavailableError():
            return told("The store is unavailable", str(error), 503)
        case DamagedContentError():
            return told("This content is damaged", str(error), 410)
        case _:
            return told("There is no such page", str(error), 404)
