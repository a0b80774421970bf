"""store: how commands open the store that the settings name, and tell how far they are."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from holdfast.settings import Settings
from holdfast.store import Scope, Store, open_store

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="memory:, sqlite:///path or postgresql://…; else the setting store_url.",
    ),
]
UserOption = Annotated[str, typer.Option("--user", help="Whose records.")]
WorkspaceOption = Annotated[
    str, typer.Option("--workspace", "--tenant", help="In which workspace: the proxy's tenants.")
]
TenantOption = Annotated[
    str, typer.Option("--tenant", "--workspace", help="Of which tenant of the proxy; else of all.")
]

DEFAULT = Scope()

_T = TypeVar("_T")
_SHOWN_AFTER_SECONDS = 1.0
_SHOWN_EVERY_SECONDS = 0.1


async def scopes_of(store: Store, user: str, tenant: str) -> list[Scope]:
    """The tenant that is named, else all that a user has here, who used it last first."""
    if tenant:
        return [Scope(user, tenant)]
    return [scope for scope in await store.scopes() if scope.user == user] or [Scope(user)]


def with_store(
    settings: Settings, work: Callable[[Store], Awaitable[_T]], *, creates: bool = False
) -> _T:
    """Open the store, work with it, close it; only commands that store something create one."""

    async def main() -> _T:
        store = await open_store(settings.store_url, folder=settings.data_folder, creates=creates)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(main())


class Progress:
    """A line on the terminal's error stream that counts, once the work takes over a second."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._next = time.monotonic() + _SHOWN_AFTER_SECONDS
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done, and of how much."""
        if not sys.stderr.isatty() or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _SHOWN_EVERY_SECONDS
        self._shown = True
        sys.stderr.write(f"\r\x1b[K{self._doing} {done:,} of {max(done, total):,} …")
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
