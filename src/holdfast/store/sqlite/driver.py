"""driver: connections to the file, its schema, and its failures in our words.

driver: the first of this folder. A connection is used by one thread at a time.
"""

from __future__ import annotations

import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import TypeVar

import apsw

from holdfast.errors import StoreError, StoreUnavailableError
from holdfast.store import rules

APPLICATION_ID = 0x484F4C44
"""`HOLD`: marks our files."""
KEY_SUFFIX = ".key"
"""Behind the name of the file: where the key of a store is kept."""
BUSY_SECONDS = 10.0
"""How long to wait for another process that writes."""

_Failure = tuple[tuple[type[apsw.Error], ...], type[StoreError], str, str]
_FAILURES: tuple[_Failure, ...] = (
    (
        (apsw.FullError,),
        StoreUnavailableError,
        "the disk is full; nothing was stored",
        "Make room, or run `holdfast store gc`.",
    ),
    (
        (apsw.BusyError, apsw.LockedError),
        StoreUnavailableError,
        "another process holds the store locked; nothing was stored",
        "Wait for it to finish, or end it; then try again.",
    ),
    (
        (apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError),
        StoreUnavailableError,
        "the store may not be written to",
        "Give yourself the right to write the file and its folder.",
    ),
    (
        (apsw.CantOpenError,),
        StoreUnavailableError,
        "the store cannot be opened",
        "Check that the folder exists and that you may write in it.",
    ),
    (
        (apsw.NotADBError,),
        StoreUnavailableError,
        "the file is no store",
        "Choose another file with store_url.",
    ),
    (
        (apsw.CorruptError,),
        StoreUnavailableError,
        "the file of the store is damaged",
        "Restore it from a backup; `holdfast store export` may still save a part.",
    ),
    (
        (apsw.TooBigError,),
        StoreError,
        "a content is too large to be stored",
        "Store it in parts.",
    ),
    (
        (apsw.ConstraintError,),
        StoreError,
        "a record lacks what it must have",
        "Use numbers, not NaN.",
    ),
)

_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY
_PAUSE_SECONDS = 0.01
_T = TypeVar("_T")


@contextmanager
def in_our_words(where: str) -> Iterator[None]:
    """Raise failures of the driver and of the system as ours; their texts never hold content."""
    try:
        yield
    except apsw.Error as error:
        raise _translated(error, where) from error
    except OSError as error:
        raise StoreUnavailableError(
            f"the store cannot be used: {error.strerror}",
            where=where,
            fix="Check that the folder exists and that you may write in it.",
        ) from error
    except OverflowError as error:
        raise StoreError(
            "a number is too large to be stored", where=where, fix="Use numbers of 63 bits."
        ) from error
    except UnicodeEncodeError as error:
        # Not chained: its text quotes what could not be written.
        raise StoreError(
            "a name holds a character that cannot be stored",
            where=where,
            fix="Use names of valid Unicode.",
        ) from error.__cause__


def _translated(error: apsw.Error, where: str) -> StoreError:
    for kinds, ours, what, fix in _FAILURES:
        if isinstance(error, kinds):
            return ours(what, where=where, fix=fix)
    return StoreUnavailableError(
        f"the store failed ({type(error).__name__})", where=where, fix="Check the disk, try again."
    )


_making = threading.Lock()


def prepare(path: Path) -> None:
    """Make folder and file for their owner alone.

    SQLite gives its other files (-wal, -shm) the rights of this one, so that at no moment anyone
    else can open any of them.
    """
    real = Path(os.path.realpath(path))  # a link to a file that is not there yet is followed
    real.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Closing a descriptor drops every lock of this process on the file, those of SQLite too
    # (https://sqlite.org/howtocorrupt.html, 2.2). So a file that is there is never opened here,
    # and while one is made no other thread gets as far as connecting to it.
    with _making, suppress(FileExistsError):
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        os.close(os.open(real, flags, 0o600))
    if stat.S_IMODE(real.stat().st_mode) & 0o077:
        real.chmod(0o600)


def secret_beside(path: Path) -> bytes:
    """Return the key of a store, from a separate file with owner-only access; create it if missing.

    It is not in the store's file: a copy of that must not reveal the owners of records.
    """
    file = path.resolve().with_name(path.resolve().name + KEY_SUFFIX)
    with in_our_words(str(file)):
        if not file.exists():
            fresh = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
            try:
                with os.fdopen(os.open(fresh, _NEW, 0o600), "wb") as out:
                    out.write(secrets.token_bytes(rules.SECRET_BYTES))
                    out.flush()
                    os.fsync(out.fileno())
                with suppress(FileExistsError):  # another process was first: its key counts
                    os.link(fresh, file)
            finally:
                fresh.unlink(missing_ok=True)
        key = file.read_bytes()
    if len(key) != rules.SECRET_BYTES:
        raise StoreError(
            "the key of the store is damaged",
            where=str(file),
            fix="Restore it from a backup, or remove it: then all clients begin anew.",
        )
    return key


def connect(path: Path, *, busy_seconds: float, read_only: bool = False) -> apsw.Connection:
    """A connection that waits for others, and after a commit loses nothing."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    db.set_busy_timeout(int(busy_seconds * 1000))
    keep_plans(db)
    db.execute("PRAGMA foreign_keys = ON")
    # Removed rows are overwritten with zeros: else `forget` would leave them in free pages.
    db.execute("PRAGMA secure_delete = ON")
    # FULL: each commit is on the disk before it is acknowledged, so that not even a power cut
    # loses it. Commits are shared (see writer), which makes that cheap enough.
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA wal_autocheckpoint = 4000")
    # Each connection keeps this much after a large content. The inner pages of a store of 10 GB
    # take less, and the system caches the others.
    db.execute("PRAGMA cache_size = -4000")
    # Forgotten data is overwritten, in freed pages too, so that it cannot be read from the file.
    db.execute("PRAGMA secure_delete = ON")
    if read_only:
        db.execute("PRAGMA query_only = ON")
    return db


def keep_plans(db: apsw.Connection) -> None:
    """Prepare each statement once.

    apsw's SQLite is built with STAT4: it plans a statement again when bound values change that the
    plan may depend on (https://sqlite.org/queryplanner-ng.html#qpsg). A store has no statistics, so
    the plan would be the same; planning takes 9 µs of a look-up of 11 µs.
    """
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def migrate(path: Path, busy_seconds: float) -> None:
    """Bring the file to this version's schema; two processes may do it at once."""
    stop = time.monotonic() + busy_seconds
    while True:
        try:
            return _migrate(path, busy_seconds)
        except apsw.BusyError:
            # Switching to WAL does not wait for others by itself.
            if time.monotonic() > stop:
                raise
            time.sleep(_PAUSE_SECONDS)


def _migrate(path: Path, busy_seconds: float) -> None:
    db = connect(path, busy_seconds=busy_seconds)
    try:
        # A transaction: another process that migrates between two of the values would make the
        # file look like one of another program, with tables but without our mark.
        db.execute("BEGIN")
        with rolled_back_on_failure(db):
            version = _version(db, path)
            db.execute("COMMIT")
        steps = _steps()
        if version == len(steps):
            return
        if version == 0:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN EXCLUSIVE")
        with rolled_back_on_failure(db):
            _take_steps(db, steps, _version(db, path))
    finally:
        db.close()


def create_schema(db: apsw.Connection) -> None:
    """Make all tables of this version in an empty database."""
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("BEGIN")
    with rolled_back_on_failure(db):
        _take_steps(db, _steps(), 0)


def _take_steps(db: apsw.Connection, steps: list[str], version: int) -> None:
    for step in steps[version:]:
        db.execute(step)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {len(steps)}")
    db.execute("COMMIT")


@contextmanager
def rolled_back_on_failure(db: apsw.Connection) -> Iterator[None]:
    """Roll back the transaction on failure."""
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _version(db: apsw.Connection, path: Path) -> int:
    """Return how far the schema is; inside of a transaction, for it reads three values."""
    version = int(db.execute("PRAGMA user_version").get)
    program = int(db.execute("PRAGMA application_id").get)
    tables = int(db.execute("SELECT count(*) FROM sqlite_schema").get)
    if program != APPLICATION_ID and (version or tables):
        raise StoreError(
            "the file is a database of another program",
            where=str(path),
            fix="Choose another file with store_url.",
        )
    if version > len(_steps()):
        raise StoreError(
            f"the store is of version {version}, newer than this Holdfast knows ({len(_steps())})",
            where=str(path),
            fix="Update Holdfast, or choose another file with store_url.",
        )
    return version


def _steps() -> list[str]:
    folder = resources.files(__package__) / "migrations"
    files = sorted((file for file in folder.iterdir()), key=lambda file: file.name)
    return [file.read_text("utf-8") for file in files if file.name.endswith(".sql")]


Job = Callable[[apsw.Connection], _T]
"""Work on a connection, inside of a transaction."""
