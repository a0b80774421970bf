"""What surrounds every page: the person who looks, the tenant that is shown, the others to choose.

frame: after links, before layout. Set once for each request, before its page is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec


class Choice(msgspec.Struct, frozen=True):
    """A tenant in the list to choose from."""

    tenant: str
    name: str
    """The display name, such as `Anthropic …a3f9 · Claude Code`."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """The data around the content of a page."""

    logged_in: bool = False
    sees_all: bool = False
    """Whether the person may see every tenant, and the settings."""
    tenant: str = ""
    """The tenant that the address names; empty if it names none."""
    name: str = ""
    """The display name of that tenant."""
    choices: Sequence[Choice] = ()
    """The tenants last used; none if the person can see only one."""
    count: int = 0
    """How many tenants the person can see."""
    is_personal: bool = False
    """Whether all tenants belong to one person."""

    @property
    def noun(self) -> str:
        """Return the word for a tenant that suits the viewer."""
        return "key" if self.is_personal else "tenant"

    @property
    def everything(self) -> str:
        """What all tenants together are called."""
        return f"All {self.noun}s"


_BARE = Frame()
_current: ContextVar[Frame] = ContextVar("frame", default=_BARE)


def current() -> Frame:
    """Return the frame of the page that is being made."""
    return _current.get()


@contextmanager
def within(frame: Frame) -> Iterator[None]:
    """Make pages inside a frame."""
    token = _current.set(frame)
    try:
        yield
    finally:
        _current.reset(token)
