"""opening: a store by its URL. The last word of the store: it knows every kind, none knows it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from holdfast.errors import StoreError
from holdfast.extras import extra_with, how_to_install
from holdfast.store.postgres.address import without_password
from holdfast.store.protocol import Store

FILE_NAME = "holdfast.db"
FORMS = "memory:, sqlite:///path or postgresql://user@host/database"


async def open_store(
    url: str | None = None,
    *,
    folder: Path | None = None,
    clock: Callable[[], float] = time.time,
    creates: bool = True,
) -> Store:
    """Open the store that a URL names; without one, the default file in `folder`.

    Who only reads does not create one: a file that is named must be there, and without the default
    file there is an empty store in memory.

    Raises:
        StoreError: the URL names no store, or the store cannot be opened.
    """
    if not url:
        if folder is None:
            raise StoreError(
                "there is no folder for the store", where="store_url", fix="Set data_dir."
            )
        default = folder / FILE_NAME
        if not creates and not default.exists():
            return open_memory(clock=clock)
        return await _sqlite(default, clock)
    scheme, _, location = url.partition(":")
    match scheme.lower():
        case "memory" if not location.strip("/"):
            return open_memory(clock=clock)
        case "sqlite" if path := _path(location):
            if not creates and not path.exists():
                raise StoreError(
                    "there is no store",
                    where=str(path),
                    fix="Check the path; commands that store something, such as `serve`, make it.",
                )
            return await _sqlite(path, clock)
        case "postgresql" | "postgres" if location.startswith("//"):
            return await _postgres(url, clock)
        case _:
            raise _no_store(url)


def open_memory(*, clock: Callable[[], float] = time.time) -> Store:
    """Return an empty store that keeps nothing beyond its process."""
    from holdfast.store.sqlite import SqliteStore  # noqa: PLC0415 - only who needs it pays

    return SqliteStore.in_memory(clock=clock)


def check_url(url: str) -> None:
    """Raise StoreError if a URL has none of the forms that `open_store` takes; open nothing."""
    scheme, _, location = url.partition(":")
    match scheme.lower():
        case "memory" if not location.strip("/"):
            return
        case "sqlite" if _path(location):
            return
        case "postgresql" | "postgres" if location.startswith("//"):
            return
    raise _no_store(url)


def _no_store(url: str) -> StoreError:
    return StoreError(
        "the URL names no store", where=without_password(url)[:200], fix=f"Use {FORMS}."
    )


def _path(rest: str) -> Path | None:
    """`///relative`, `////absolute` and plain paths; `//host/…` is none."""
    if rest.startswith("///"):
        rest = rest[3:]
    elif rest.startswith("//"):
        return None
    return Path(rest).expanduser() if rest else None


async def _sqlite(path: Path, clock: Callable[[], float]) -> Store:
    from holdfast.store.sqlite import SqliteStore  # noqa: PLC0415 - only who needs it pays

    return await SqliteStore.open(path, clock=clock)


async def _postgres(url: str, clock: Callable[[], float]) -> Store:
    try:
        from holdfast.store.postgres.store import PostgresStore  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if extra_with(error.name) != "postgres":
            raise
        raise StoreError(
            "stores on PostgreSQL need a driver that is not installed",
            where=without_password(url)[:200],
            fix=how_to_install("postgres"),
        ) from error
    return await PostgresStore.open(url, clock=clock)
