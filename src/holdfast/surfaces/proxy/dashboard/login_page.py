"""The login form for a token, and its handling.

The token is sent in the body of a form, never in an address, and is only compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.surfaces.proxy.dashboard.html import element, p
from holdfast.surfaces.proxy.dashboard.layout import page, remark
from holdfast.surfaces.proxy.login import LOGIN, LOGOUT, cookie_header
from holdfast.surfaces.proxy.service import Service

_MOST_BYTES = 10_000
_WRONG = "This is no token of this proxy."
_TOO_OFTEN = "Too many wrong tokens: wait a minute, then try again."


def login_routes(service: Service, headers: Mapping[str, str]) -> list[BaseRoute]:
    """The form, and the way out again; `headers` are those of every page."""

    async def form(_: Request) -> Response:
        return HTMLResponse(login_page(), headers=dict(headers))

    async def log_in(request: Request) -> Response:
        address = request.client.host if request.client is not None else ""
        if service.logins.must_wait(address):
            wait = {**headers, "retry-after": "60"}
            return HTMLResponse(login_page(_TOO_OFTEN), 429, headers=wait)
        cookie = service.logins.begin(await _token(request), address)
        if cookie is None:
            return HTMLResponse(login_page(_WRONG), 401, headers=dict(headers))
        return _redirected("/", cookie, request)

    async def log_out(request: Request) -> Response:
        service.logins.end(request.headers.get("cookie", ""))
        return _redirected(LOGIN, "", request)

    def _redirected(path: str, cookie: str, request: Request) -> Response:
        # A TLS gateway sets this header; a client that forges it only makes its own cookie
        # stricter.
        schemes = (request.url.scheme, request.headers.get("x-forwarded-proto", ""))
        set_cookie = cookie_header(cookie, secure="https" in schemes)
        return RedirectResponse(path, 303, headers={**headers, "set-cookie": set_cookie})

    return [
        Route(LOGIN, form, methods=["GET"]),
        Route(LOGIN, log_in, methods=["POST"]),
        Route(LOGOUT, log_out, methods=["POST"]),
    ]


async def _token(request: Request) -> str:
    """The token in a form; nothing if the body is more than a form would be."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            return ""
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=10)
    except ValueError:
        return ""
    return fields.get("token", [""])[0].strip()


def login_page(why: str = "") -> str:
    """Return the form, with the error of the last attempt."""
    field = element(
        "input", type="password", name="token", required=True, autocomplete="current-password",
        maxlength=1000, autofocus=True,
    )  # fmt: skip
    return page(
        "Log in",
        p(why, class_="notice", role="alert") if why else None,
        element(
            "form",
            element("label", "Token", field),
            element("button", "Log in"),
            method="post",
            action=LOGIN,
            aria_label="Log in with a token",
        ),
        remark("Your token is the setting serve_token of the proxy, or one of serve_tokens."),
    )
