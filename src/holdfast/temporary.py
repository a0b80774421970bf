"""Temporary folders that the next start removes if their process was killed.

Each folder holds a locked file, whose lock the system releases when the last process that holds it
ends. Process ids are not used, because containers that share /tmp number their processes
separately.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Windows has no such locks; there a folder is removed only by its own process.
_fcntl: Any = import_module("fcntl") if find_spec("fcntl") else None
_PREFIX = "holdfast-"
_LOCK = ".holdfast-lock"
_YOUNGEST_SECONDS = 60.0
"""Minimum age of a lock file that is examined; a younger one may not be locked yet."""


@contextmanager
def temporary_folder(purpose: str = "") -> Iterator[Path]:
    """Yield a new, empty folder that only this user can read, and remove it at the end."""
    prefix = f"{_PREFIX}{purpose}-" if purpose else _PREFIX
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        descriptor = os.open(Path(name, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if _fcntl is not None:
                with suppress(OSError):  # a file system without locks
                    _fcntl.flock(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
            folder = Path(name, "files")  # apart from the lock file: programs need it empty
            folder.mkdir(mode=0o700)
            yield folder
        finally:
            os.close(descriptor)


def remove_stale_folders() -> int:
    """Remove the folders of this user whose processes have ended; return how many there were."""
    if _fcntl is None:
        return 0
    removed = 0
    with suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with suppress(OSError):
                removed += _remove_if_stale(path)
    return removed


def _remove_if_stale(path: Path) -> bool:
    """Remove a folder whose lock file is unlocked; raise `OSError` for any other folder."""
    # Links are not followed: in a world-writable folder they may point anywhere.
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return False
    descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_mtime > time.time() - _YOUNGEST_SECONDS:
            return False
        _fcntl.flock(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)
    return True
