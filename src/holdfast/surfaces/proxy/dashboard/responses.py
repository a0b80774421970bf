"""How pages are answered: their headers, files to be saved, errors as pages, numbers in addresses.

answering: after layout, before actions and pages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from holdfast.surfaces.proxy import safety
from holdfast.surfaces.proxy.dashboard.html import a, p
from holdfast.surfaces.proxy.dashboard.layout import page
from holdfast.surfaces.proxy.dashboard.links import from_path
from holdfast.surfaces.proxy.dashboard.views import PERIODS

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    **safety.HEADERS,
    "content-security-policy": POLICY,
    # Without a referrer a browser sends `Origin: null` with our own forms, and the gate refuses
    # them.
    "referrer-policy": "same-origin",
}
STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".js": "text/javascript; charset=utf-8",
}
LONGEST_OPTION = 500

Handler = Callable[[Request], Awaitable[Response]]


def missing_page() -> Response:
    """The page of an address under which there is nothing."""
    return told("There is no such page", "Nothing is known under this address.", 404)


def told(title: str, why: str, status: int) -> Response:
    """Return a page that explains an error."""
    return html_page(page(title, p(why), p(a("To the dashboard", href="/"))), status)


def html_page(markup: str, status: int = 200) -> Response:
    """A page with the headers of all."""
    return HTMLResponse(markup, status, headers=HEADERS)


def saved_file(data: bytes, kind: str, name: str) -> Response:
    """Bytes to be saved, never shown: they may be anyone's. `name` is the program's own."""
    how = f'attachment; filename="{name}"'
    return Response(data, headers={**HEADERS, "content-type": kind, "content-disposition": how})


def elsewhere(path: str) -> Response:
    """Lead on with a GET, so that loading the page again does nothing twice."""
    return RedirectResponse(path, 303, headers=HEADERS)


def static_file(file: Path) -> Handler:
    """Return a handler that serves a static file."""
    data, kind = file.read_bytes(), _TYPES[file.suffix]

    async def answer(_: Request) -> Response:
        return Response(
            data, headers={**HEADERS, "cache-control": "no-cache", "content-type": kind}
        )

    return answer


def period_of(request: Request) -> str:
    """The period that an address names; all time if it names none."""
    period = request.query_params.get("period", "all")
    return period if period in PERIODS else "all"


def name_in(request: Request) -> str:
    """The session's name in an address."""
    return from_path(request.path_params["name"])


def page_in(request: Request) -> int:
    """The number of the page that an address asks for."""
    return max(1, number_in(request.query_params.get("page", "1")))


def number_in(said: str) -> int:
    """A whole number from an address; -1, which nothing has, if it is none."""
    return int(said) if said.isascii() and said.isdigit() and len(said) < 10 else -1
