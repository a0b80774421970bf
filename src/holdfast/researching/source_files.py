"""List the files behind given paths: folders are walked once, within limits, in a fixed order.

Links are followed within the given folder, and each folder is entered once, so that loops end.
Files that cannot be read are listed with the reason.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
"""Folders of generated or foreign files; name one as a source to read it."""

_LEADS_OUT = "a link out of the folder; name its target to read it"


class WalkLimits(NamedTuple):
    """Limits for walking folders."""

    files: int = 10_000
    bytes: int = 50_000_000
    """Maximum bytes per file."""
    depth: int = 40


class WalkedFile(NamedTuple):
    """A file, or the reason why it is not read."""

    path: Path
    size: int = 0
    modified: float = 0.0
    skipped: str = ""


def walk_files(path: Path, limits: WalkLimits) -> Iterator[WalkedFile]:
    """Yield the file that a path names, or all files in the folder."""
    try:
        status = path.stat()
    except OSError as error:
        yield WalkedFile(path, skipped=_why(error))
        return
    if not stat.S_ISDIR(status.st_mode):
        yield _file(path, status, limits)
        return
    for number, file in enumerate(_inside(path, status, limits)):
        if number >= limits.files:
            yield WalkedFile(path, skipped=f"the files behind the first {limits.files:,}: too many")
            return
        yield file


def _inside(folder: Path, status: os.stat_result, limits: WalkLimits) -> Iterator[WalkedFile]:
    """Yield the files in a folder, without recursion: folders may be nested very deep."""
    root = folder.resolve()
    visited = {(status.st_dev, status.st_ino)}
    waiting = [(folder, 0)]
    while waiting:
        current, depth = waiting.pop()
        try:
            paths = sorted(current.iterdir())
        except OSError as error:
            yield WalkedFile(current, skipped=_why(error))
            continue
        folders: list[tuple[Path, int]] = []
        for path in paths:
            try:
                status = path.stat()
            except OSError as error:
                yield WalkedFile(path, skipped=_why(error))
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                # The sender of a folder chooses the target, which may be a key of the recipient.
                yield WalkedFile(
                    path, skipped="a link out of the folder; name its target to read it"
                )
            elif not stat.S_ISDIR(status.st_mode):
                yield _file(path, status, limits)
            elif path.name in _SKIPPED_FOLDERS:
                continue
            elif (status.st_dev, status.st_ino) in visited:
                yield WalkedFile(path, skipped="a link to a folder that was read already")
            elif depth >= limits.depth:
                yield WalkedFile(path, skipped=f"deeper than {limits.depth} folders")
            else:
                visited.add((status.st_dev, status.st_ino))
                folders.append((path, depth + 1))
        waiting += reversed(folders)


def _file(path: Path, status: os.stat_result, limits: WalkLimits) -> WalkedFile:
    if not stat.S_ISREG(status.st_mode):  # a pipe would block, a device never ends
        return WalkedFile(path, skipped="no plain file")
    if status.st_size > limits.bytes:
        reason = f"{status.st_size:,} bytes: more than {limits.bytes:,} are not read of one file"
        return WalkedFile(path, status.st_size, status.st_mtime, reason)
    if not status.st_size:
        return WalkedFile(path, 0, status.st_mtime, "the file is empty")
    return WalkedFile(path, status.st_size, status.st_mtime)


def _why(error: OSError) -> str:
    return f"cannot be read: {error.strerror or type(error).__name__}"
