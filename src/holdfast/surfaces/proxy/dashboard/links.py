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
_sees_all: ContextVar[bool] = ContextVar("sees_all", default=False)


@contextmanager
def within(named: str, *, logged_in: bool = False) -> Iterator[None]:
    """Make pages of a tenant that the address names; of the viewer's own if it names none."""
    tokens = _tenant.set(named), _logged_in.set(logged_in), _sees_all.set(False)
    try:
        yield
    finally:
        _tenant.reset(tokens[0])
        _logged_in.reset(tokens[1])
        _sees_all.reset(tokens[2])


def may_log_out() -> bool:
    """Whether the page is for someone who has logged in."""
    return _logged_in.get()


def sees_all() -> bool:
    """Whether the page is for someone who may see every tenant, and the settings."""
    return _sees_all.get()


def note_view(*, everything: bool) -> None:
    """Note what the one may see for whom a page is made; only `within` it."""
    _sees_all.set(everything)


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


def overview(*, period: str = "") -> str:
    """The first page, with the figures of a period."""
    return _with("/" if not _tenant.get() else "", period=period)


def sessions(**options: str | int) -> str:
    """The list of sessions: `q` are words to look for, `show` which of them."""
    return _with("/sessions", **options)


def refs(**options: str | int) -> str:
    """The list of what is hidden and can be opened."""
    return _with("/refs", **options)


def tools() -> str:
    """The tools that are registered."""
    return _with("/tools")


def lost() -> str:
    """The proof that nothing was lost."""
    return _with("/lost")


def live() -> str:
    """What is new, as a stream of events."""
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


def delete(name: str) -> str:
    """Where a form asks to delete a session."""
    return _with(f"/sessions/{in_path(name)}/delete")


def put_back(name: str) -> str:
    """Where a form asks to have something whole."""
    return _with(f"/sessions/{in_path(name)}/put-back")


def _with(path: str, **options: str | int) -> str:
    if named := _tenant.get():
        path = tenant(named) + path
    said = {key: value for key, value in options.items() if value and (key, value) != ("page", 1)}
    return f"{path}?{urlencode(said, errors='replace')}" if said else path
