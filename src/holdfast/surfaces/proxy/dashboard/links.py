"""Addresses of the dashboard's pages, for names with any characters.

A server sees a path with its escapes undone, so a name is escaped twice: a slash in it stays part
of the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import quote, unquote, urlencode

_tenant: ContextVar[str] = ContextVar("tenant", default="")
"""The tenant that the address of the page names: links on the page lead to the same tenant."""


@contextmanager
def within(tenant: str) -> Iterator[None]:
    """Make links to pages of a tenant; with an empty name, to pages of all that can be seen."""
    token = _tenant.set(tenant)
    try:
        yield
    finally:
        _tenant.reset(token)


def tenant(name: str, path: str = "") -> str:
    """Return the address of a tenant's page; without a path, of its first one."""
    return f"/tenants/{in_path(name)}{path}"


def tenants(**options: str | int) -> str:
    """Return the address of the list of tenants."""
    return _with_options("/tenants", options)


def in_path(name: str) -> str:
    """A name as a part of a path."""
    once = quote(name, safe="", errors="replace")
    if not once.strip("."):
        once = once.replace(".", "%2E")  # a browser would go up a folder
    return quote(once, safe="")


def from_path(part: str) -> str:
    """The name in a path whose escapes the server has undone once."""
    return unquote(part, errors="replace")


def session(name: str, *, page: int = 1, tenant: str = "") -> str:
    """A session's page; of the tenant of this page, if none is given."""
    return _with(f"/sessions/{in_path(name)}", tenant, page=page)


def turn(name: str, number: int, *, page: int = 1, tenant: str = "") -> str:
    """The inspector of a turn; of the tenant of this page, if none is given."""
    return _with(f"/sessions/{in_path(name)}/turns/{number}", tenant, page=page)


def message(name: str, number: int, side: str, index: int, *, page: int = 1) -> str:
    """One message of a turn in full; `side` is client or sent."""
    return _with(f"/sessions/{in_path(name)}/turns/{number}/{side}/{index}", page=page)


def ref(name: str, *, tenant: str = "", **options: str | int) -> str:
    """Return the page of a ref; of the page's tenant, if none is given."""
    return _with(f"/refs/{in_path(name)}", tenant, **options)


def raw(name: str) -> str:
    """Return the address of a ref's bytes."""
    return _with(f"/refs/{in_path(name)}/raw")


def overview(*, period: str = "") -> str:
    """The first page, with the figures of a period."""
    return _with("/" if not _tenant.get() else "", period=period)


def sessions(**options: str | int) -> str:
    """The list of sessions: `q` are words to look for, `show` which of them."""
    return _with("/sessions", **options)


def refs(**options: str | int) -> str:
    """Return the list of hidden contents."""
    return _with("/refs", **options)


def tools() -> str:
    """The tools that are registered."""
    return _with("/tools")


def lost() -> str:
    """The proof that nothing was lost."""
    return _with("/lost")


def live() -> str:
    """Return the address of the stream of events."""
    return _with("/live")


def accuracy() -> str:
    """How well tokens are counted."""
    return _with("/accuracy")


def settings() -> str:
    """The settings of the proxy: they are not a tenant's."""
    return "/settings"


def export(form: str, name: str = "") -> str:
    """Figures as a file, of a session or of all days; `form` is csv or json."""
    return _with(f"/sessions/{in_path(name)}/export.{form}" if name else f"/export.{form}")


def asked(name: str, number: int) -> str:
    """The client's request of a turn, byte for byte."""
    return _with(f"/sessions/{in_path(name)}/turns/{number}/asked")


def compare(name: str, **options: str | int) -> str:
    """Two ways to make a session's requests ready, side by side."""
    return _with(f"/sessions/{in_path(name)}/compare", **options)


def delete_sessions() -> str:
    """Where a form asks to delete the sessions that are checked."""
    return _with("/sessions/delete")


def choice(name: str, tenant: str = "") -> str:
    """The value of a check box for a session; without a tenant, of that of the page."""
    return f"{quote(tenant, safe='')}/{quote(name, safe='', errors='replace')}"


def chosen(value: str) -> tuple[str, str]:
    """Return the session and the tenant of a check box."""
    tenant, _, name = value.partition("/")
    return unquote(name, errors="replace"), unquote(tenant, errors="replace")


def delete(name: str) -> str:
    """Where a form asks to delete a session."""
    return _with(f"/sessions/{in_path(name)}/delete")


def put_back(name: str) -> str:
    """Where a form asks to have something whole."""
    return _with(f"/sessions/{in_path(name)}/put-back")


def _with(path: str, named: str = "", /, **options: str | int) -> str:
    named = named or _tenant.get()
    return _with_options(tenant(named, path) if named else path, options)


def _with_options(path: str, options: Mapping[str, str | int]) -> str:
    values = {key: value for key, value in options.items() if value and (key, value) != ("page", 1)}
    return f"{path}?{urlencode(values, errors='replace')}" if values else path
