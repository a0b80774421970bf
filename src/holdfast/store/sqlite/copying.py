"""Copies of the whole file while it is in use.

Each function may take long, and runs in a separate thread.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw

from holdfast.errors import StoreError
from holdfast.store.sqlite.driver import BUSY_SECONDS, connect, in_our_words


def write_whole(copy: Callable[[Path], None], target: Path) -> None:
    """Write a copy under another name, and rename it: a file of that name is a whole copy.

    Half a copy would open as a store with nothing in it, and pass for a backup.
    """
    with in_our_words(str(target)):
        if target.exists():
            raise StoreError(
                "there is a file of that name", where=str(target), fix="Choose another name."
            )
        handle, name = tempfile.mkstemp(".partial", f"{target.name}.", target.parent)
        os.close(handle)
        partial_copy = Path(name)
        try:
            copy(partial_copy)
            partial_copy.replace(target)
            _flush_folder(target.parent)
        finally:
            for suffix in ("", "-wal", "-shm", "-journal"):
                Path(f"{partial_copy}{suffix}").unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where folders can be flushed."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def copy_file(source: Path, target: Path) -> None:
    """Copy a database in small steps, so that writers are not kept waiting."""
    read = connect(source, busy_seconds=BUSY_SECONDS, read_only=True)
    try:
        write = apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            # One state of the store: without it, each write of others would start the copy anew.
            read.execute("BEGIN")
            read.execute("SELECT 1 FROM sqlite_schema").fetchone()
            with write.backup("main", read, "main") as copying:
                while not copying.done:
                    copying.step(1000)
        finally:
            write.close()
    finally:
        read.close()


def write_vacuumed(db: apsw.Connection, target: Path) -> None:
    """Write a database to an empty file, without what its free pages still hold."""
    db.execute("VACUUM INTO ?", (str(target),))
    # A database in memory has no log; a store in a file has one.
    written = connect(target, busy_seconds=BUSY_SECONDS)
    try:
        written.execute("PRAGMA journal_mode = WAL")
    finally:
        written.close()
