"""Addresses of the dashboard's pages: any name can stand in them, whatever it holds.

links: after html. A server sees a path with its escapes undone, so a name is escaped twice: a
slash in it stays part of the name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import quote, unquote, urlencode

_tenant: ContextVar[str] = ContextVar("tenant", default="")
"""Whose pages are being made: every address on them leads to the same tenant's."""
_logged_in: ContextVar[bool] = ContextVar("logged_in", default=False)


@contextmanager
def within(named: str, *, logged_in: bool = False) -> Iterator[None]:
    """Make pages of a tenant that the address names; of the viewer's own if it names none."""
    tokens = _tenant.set(named), _logged_in.set(logged_in)
    try:
        yield
    finally:
        _tenant.reset(tokens[0])
        _logged_in.reset(tokens[1])


def may_log_out() -> bool:
    """Whether the page is for someone who has logged in."""
    return _logged_in.get()


def tenant(name: str) -> str:
    """The first page of a tenant."""
    return f"/tenants/{in_path(name)}"


def in_path(name: str) -> str:
    """A name as a part of a path."""
    once = quote(name, safe="", errors="replace")
    if not once.strip("."):
        once = once.replace(".", "%2E")  # a browser would go up a folder
    return quote(once, safe="")


def from_path(part: str) -> str:
    """The name in a path whose escapes the server has undone once."""
    return unquote(part, errors="replace")


def session(name: str, *, page: int = 1) -> str:
    """A session's page."""
    return _with(f"/sessions/{in_path(name)}", page=page)


def turn(name: str, number: int, *, page: int = 1) -> str:
    """The inspector of a turn."""
    return _with(f"/sessions/{in_path(name)}/turns/{number}", page=page)


def message(name: str, number: int, side: str, index: int, *, page: int = 1) -> str:
    """One message of a turn in full; `side` is client or sent."""
    return _with(f"/sessions/{in_path(name)}/turns/{number}/{side}/{index}", page=page)


def ref(name: str, **options: str | int) -> str:
    """What is stored behind a ref."""
    return _with(f"/refs/{in_path(name)}", **options)


def raw(name: str) -> str:
    """The very bytes behind a ref."""
    return _with(f"/refs/{in_path(name)}/raw")


def overview(*, before: str = "") -> str:
    """The first page; `before` is the session to go on behind."""
    return _with("/" if not _tenant.get() else "", before=before)


def _with(path: str, **options: str | int) -> str:
    if named := _tenant.get():
        path = tenant(named) + path
    said = {key: value for key, value in options.items() if value and (key, value) != ("page", 1)}
    return f"{path}?{urlencode(said, errors='replace')}" if said else path
