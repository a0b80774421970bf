"""The dashboard's routes: which page stands where, and who may see it.

pages: after answering and actions; the last word of the dashboard. Whatever comes in an address is
a stranger's: it is looked up or refused, never believed. The one script is a file of ours, and no
other may run.
"""

from __future__ import annotations

import asyncio
import time

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from holdfast.errors import DamagedContentError, HoldfastError, StoreUnavailableError
from holdfast.fitting import shared_engine
from holdfast.surfaces.proxy.dashboard import actions, exports, links
from holdfast.surfaces.proxy.dashboard.about import accuracy_page, settings_page
from holdfast.surfaces.proxy.dashboard.answering import (
    HEADERS,
    LONGEST_OPTION,
    STATIC,
    Handler,
    elsewhere,
    html_page,
    missing,
    name_in,
    number_in,
    page_in,
    period_of,
    saved_file,
    static_file,
    told,
)
from holdfast.surfaces.proxy.dashboard.comparing import Compared, compared, comparing_page, ways_in
from holdfast.surfaces.proxy.dashboard.contents import content_page, refs_page
from holdfast.surfaces.proxy.dashboard.gathering import Gathering
from holdfast.surfaces.proxy.dashboard.inspecting import Inspecting
from holdfast.surfaces.proxy.dashboard.inspection import CLIENT, SENT
from holdfast.surfaces.proxy.dashboard.inspector import turn_page
from holdfast.surfaces.proxy.dashboard.links import from_path, note_view, within
from holdfast.surfaces.proxy.dashboard.live import Watchers
from holdfast.surfaces.proxy.dashboard.login_page import login_routes
from holdfast.surfaces.proxy.dashboard.lost_page import lost_page
from holdfast.surfaces.proxy.dashboard.message_page import message_page
from holdfast.surfaces.proxy.dashboard.overview import overview_page
from holdfast.surfaces.proxy.dashboard.sessions_page import session_page, sessions_page
from holdfast.surfaces.proxy.dashboard.tenants_page import tenants_page
from holdfast.surfaces.proxy.dashboard.tools_page import tools_page
from holdfast.surfaces.proxy.dashboard.views import SHOWN
from holdfast.surfaces.proxy.service import Service
from holdfast.surfaces.proxy.viewing import view_of

MOST_TENANTS = 100
"""On the first page: those who were there last."""


class UnknownTenantError(HoldfastError):
    """There is no such tenant, or it is another's: who asks is told the same."""


def routes(service: Service) -> list[BaseRoute]:
    """The dashboard of a running proxy: of the viewer's tenant, and of each that may be seen."""
    pages = Pages(service)
    session = "/sessions/{name}"
    turn = session + "/turns/{number}"
    wanted: list[tuple[str, Handler]] = [
        ("/live", pages.live),
        ("/tools", pages.tools),
        ("/export.{form}", pages.export_days),
        (session, pages.session),
        (session + "/export.{form}", pages.export_session),
        (session + "/compare", pages.compare),
        (turn, pages.turn),
        (turn + "/asked", pages.asked),
        (turn + "/{side}/{index}", pages.message),
        ("/refs/{ref}", pages.content),
        ("/refs/{ref}/raw", pages.raw),
        ("/sessions/{rest:path}", missing),
        ("/refs/{rest:path}", missing),
    ]
    menu: list[tuple[str, Handler, str]] = [
        ("/sessions", pages.sessions, "Sessions"),
        ("/refs", pages.refs, "Hidden"),
        ("/lost", pages.lost, "Lost"),
        ("/accuracy", pages.accuracy, "Accuracy"),
    ]
    changing = [(session + "/delete", pages.delete), (session + "/put-back", pages.put_back)]
    files = [
        Route(f"/static/{file.name}", static_file(file), methods=["GET"])
        for file in sorted(STATIC.iterdir())
    ]
    named = "/tenants/{tenant}"
    paths: list[tuple[str, Handler]] = [
        ("/", pages.chosen(pages.overview, "Overview")),
        ("/settings", pages.settings),
        (named, pages.overview),
        *((path, pages.chosen(handle, name)) for path, handle, name in menu),
        *((named + path, handle) for path, handle, _ in menu),
        *((prefix + path, handle) for prefix in ("", named) for path, handle in wanted),
    ]
    posts = [(prefix + path, handle) for prefix in ("", named) for path, handle in changing]
    return [
        *(Route(path, _careful(handle, service), methods=["POST"]) for path, handle in posts),
        *(Route(path, _careful(handle, service), methods=["GET"]) for path, handle in paths),
        *login_routes(service, HEADERS),
        *files,
    ]


class Pages:
    """A handler for each page."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._watchers = Watchers(service)
        self._comparing = asyncio.Lock()

    async def _of(self, request: Request) -> Gathering:
        """What the tenant has whose pages are asked for, if the viewer may see it."""
        view = await view_of(self._service, request)
        note_view(everything=view.sees_all)
        named = from_path(request.path_params.get("tenant", ""))
        tenant = await view.chosen(named)
        if tenant is None:
            raise UnknownTenantError("Nothing is known under this address")
        return Gathering(await self._service.tenants.engine(tenant))

    def chosen(self, handle: Handler, name: str) -> Handler:
        """A page of the menu: of the one tenant there is to be seen, or a list to choose from.

        Where there are several, that of nobody in particular would be empty, and say that nothing
        was ever sent.
        """

        async def answer(request: Request) -> Response:
            view = await view_of(self._service, request)
            tenants = await view.tenants()
            if len(tenants) < 2:
                return await handle(request)
            note_view(everything=view.sees_all)
            rows = []
            for tenant in tenants[:MOST_TENANTS]:
                engine = await self._service.tenants.engine(tenant)
                rows.append(await Gathering(engine).tenant())
            return html_page(tenants_page(rows, len(tenants), name, request.url.path))

        return answer

    async def _holder(self, request: Request) -> str:
        """Of several tenants the one that has a session, where the address names none of them.

        Clients are told the name of their session, not that of their tenant.
        """
        if not request.path_params.get("tenant"):
            view = await view_of(self._service, request)
            for tenant in (await view.tenants())[:MOST_TENANTS]:
                engine = await self._service.tenants.engine(tenant)
                if await engine.store.session(engine.scope.of(name_in(request))) is not None:
                    return tenant
        return ""

    async def overview(self, request: Request) -> Response:
        """What it did, what that saved, what is hidden."""
        url = str(request.base_url).rstrip("/")
        view = await view_of(self._service, request)
        gathering = await self._of(request)
        tenant = gathering.scope.workspace
        # What failed before it was known who asks is for who may see all.
        refused = [
            each
            for each in self._service.telemetry.refused
            if each.tenant == tenant or (view.sees_all and not each.tenant)
        ]
        return html_page(
            overview_page(
                await gathering.overview(
                    url, period=period_of(request), now=time.time(), refused=refused
                )
            )
        )

    async def live(self, request: Request) -> Response:
        """What is new, as a stream of events."""
        gathering = await self._of(request)
        if self._watchers.are_many:
            return told("Too many look already", "Load the page to see what is new.", 503)
        tenant = from_path(request.path_params.get("tenant", ""))
        events = self._watchers.events(gathering, period_of(request), tenant)
        return StreamingResponse(events, headers=HEADERS, media_type="text/event-stream")

    async def lost(self, request: Request) -> Response:
        """The proof that nothing was lost."""
        return html_page(lost_page(*await (await self._of(request)).proofs()))

    async def tools(self, request: Request) -> Response:
        """The tools that are registered, and what became of those that were set aside."""
        gathering = await self._of(request)
        view = await view_of(self._service, request)
        owner = self._service.engine if view.sees_all else gathering.engine
        return html_page(tools_page(await gathering.tools(owner)))

    async def accuracy(self, request: Request) -> Response:
        """How well tokens are counted; what was trimmed is of all tenants."""
        gathering = await self._of(request)
        view = await view_of(self._service, request)
        effects = shared_engine.effects() if view.sees_all else []
        return html_page(accuracy_page(gathering.engine.calibration.accuracy(), effects))

    async def settings(self, request: Request) -> Response:
        """The settings, for who may see all."""
        view = await view_of(self._service, request)
        note_view(everything=view.sees_all)
        if not view.sees_all:
            return await missing(request)
        return html_page(settings_page(self._service.settings))

    # --- sessions --------------------------------------------------------------------------------

    async def sessions(self, request: Request) -> Response:
        """The list of sessions, searched and filtered."""
        asked = request.query_params
        words, show = asked.get("q", "")[:LONGEST_OPTION], asked.get("show", "all")
        show = show if show in SHOWN else "all"
        gathering = await self._of(request)
        return html_page(sessions_page(await gathering.sessions(words, show, page_in(request))))

    async def session(self, request: Request) -> Response:
        """A session's turns."""
        inspecting = Inspecting(await self._of(request))
        shown = await inspecting.session(name_in(request), page_in(request))
        if shown is not None:
            return html_page(session_page(shown))
        holder = await self._holder(request)
        if holder:
            return elsewhere(links.tenant(holder) + links.session(name_in(request)))
        return await missing(request)

    async def compare(self, request: Request) -> Response:
        """Two settings over one session; worked out once somebody has chosen them."""
        gathering = await self._of(request)
        record = await gathering.store.session(gathering.scope.of(name_in(request)))
        if record is None:
            return await missing(request)
        asked = {key: value[:LONGEST_OPTION] for key, value in request.query_params.items()}
        ways = ways_in(asked)
        if "a" not in asked:
            return html_page(comparing_page(Compared(record=record, ways=ways)))
        if self._comparing.locked():  # one at a time: it is work for the processor
            return told("Another comparison is under way", "Load the page in a few seconds.", 503)
        async with self._comparing:
            return html_page(comparing_page(await compared(gathering, record, ways)))

    async def turn(self, request: Request) -> Response:
        """The inspector."""
        number = number_in(request.path_params["number"])
        inspecting = Inspecting(await self._of(request))
        shown = await inspecting.turn(name_in(request), number, page_in(request))
        return html_page(turn_page(shown)) if shown is not None else await missing(request)

    async def message(self, request: Request) -> Response:
        """One message in full."""
        side = request.path_params["side"]
        number, index = (number_in(request.path_params[key]) for key in ("number", "index"))
        if side not in (CLIENT, SENT):
            return await missing(request)
        inspecting = Inspecting(await self._of(request))
        shown = await inspecting.message(name_in(request), number, side, index, page_in(request))
        return html_page(message_page(shown)) if shown is not None else await missing(request)

    async def asked(self, request: Request) -> Response:
        """The client's request of a turn, byte for byte, to be saved."""
        number = number_in(request.path_params["number"])
        body = await (await self._of(request)).asked(name_in(request), number)
        return saved_file(body, "application/json", f"turn-{number}.json")

    async def delete(self, request: Request) -> Response:
        """Delete a session."""
        return elsewhere(await actions.delete(await self._of(request), name_in(request)))

    async def put_back(self, request: Request) -> Response:
        """Have something whole from the next request on."""
        fields = await actions.fields_of(request)
        gathering = await self._of(request)
        return elsewhere(await actions.put_back(gathering, name_in(request), fields))

    async def export_session(self, request: Request) -> Response:
        """A session's figures, to be saved."""
        exported = await Inspecting(await self._of(request)).turns(name_in(request))
        form = request.path_params["form"]
        if exported is None or form not in ("csv", "json"):
            return await missing(request)
        if form == "csv":
            return saved_file(
                exports.turns_csv(exported[1]), "text/csv; charset=utf-8", "session.csv"
            )
        return saved_file(exports.turns_json(*exported), "application/json", "session.json")

    async def export_days(self, request: Request) -> Response:
        """The figures of all days, to be saved."""
        gathering = await self._of(request)
        days = await gathering.store.usage(gathering.scope, by="day")
        form = request.path_params["form"]
        if form == "csv":
            return saved_file(exports.days_csv(days), exports.CSV, "days.csv")
        if form == "json":
            return saved_file(exports.days_json(days), "application/json", "days.json")
        return await missing(request)

    # --- contents --------------------------------------------------------------------------------

    async def refs(self, request: Request) -> Response:
        """The list of what is hidden."""
        asked = request.query_params
        kind, before = (asked.get(key, "")[:LONGEST_OPTION] for key in ("kind", "before"))
        return html_page(refs_page(await (await self._of(request)).refs(kind, before)))

    async def content(self, request: Request) -> Response:
        """What is stored behind a ref."""
        asked = request.query_params
        options = {
            key: asked[key][:LONGEST_OPTION]
            for key in ("query", "lines", "path")
            if asked.get(key, "").strip()
        }
        ref = from_path(request.path_params["ref"])
        agreed = asked.get("show") == "yes"
        gathering = await self._of(request)
        shown = await gathering.content(ref, options, page_in(request), agreed=agreed)
        if shown is None:
            return await missing(request)
        return html_page(content_page(shown), 400 if shown.refused else 200)

    async def raw(self, request: Request) -> Response:
        """The very bytes, to be saved."""
        original = await (await self._of(request)).raw(from_path(request.path_params["ref"]))
        if original is None:
            return await missing(request)
        name, data = original
        return saved_file(data, "text/plain; charset=utf-8", f"{name.replace(':', '-')}.txt")


def _careful(handle: Handler, service: Service) -> Handler:
    """Answer with a page whatever happens; an error's text holds no content."""

    async def answer(request: Request) -> Response:
        logged_in = service.logins.token_of(request.headers.get("cookie", "")) is not None
        try:
            with within(from_path(request.path_params.get("tenant", "")), logged_in=logged_in):
                return await handle(request)
        except UnknownTenantError:
            return await missing(request)
        except StoreUnavailableError as error:
            return told("The store is unavailable", str(error), 503)
        except DamagedContentError as error:
            return told("This content is damaged", str(error), 410)
        except HoldfastError as error:
            return told("There is no such page", str(error), 404)

    return answer
