"""A disk that records the order of writes and flushes.

A VFS of SQLite writes through to real files and records every write, truncation, flush and removal.
The record can replay a power cut at any moment: flushed data is there; of later writes, any subset
of sectors is. The same VFS can fail like a full or broken disk.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import apsw

SECTOR = 512
"""Bytes that a disk writes whole or not at all."""


class Written(NamedTuple):
    """Some bytes at a place of a file."""

    file: str
    at: int
    data: bytes


class Cut(NamedTuple):
    """A file made shorter or longer."""

    file: str
    size: int


class Flushed(NamedTuple):
    """All that was written to a file before is on the disk."""

    file: str


class Removed(NamedTuple):
    """A removed file, permanently if the folder was flushed."""

    file: str
    for_good: bool


class Noted(NamedTuple):
    """Something that happened outside of the disk, such as an acknowledgement."""

    what: Any


Event = Written | Cut | Flushed | Removed | Noted
Fault = Callable[[str, str], apsw.Error | None]
"""Returns the error of an operation (`write`, `sync`, `truncate`, `open`) on a file, if any."""


def _no_fault(_doing: str, _file: str) -> None:
    return None


class Disk(apsw.VFS):
    """The VFS; it is the default one inside `recording`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: list[Event] = []
        self.fault: Fault = _no_fault
        self.base = apsw.vfs_names()[0]
        self._lock = threading.Lock()
        super().__init__(name, base=self.base, makedefault=True)

    def note(self, event: Event) -> None:
        with self._lock:
            self.events.append(event)

    def check(self, doing: str, file: str) -> None:
        """Fail if the disk does."""
        if (error := self.fault(doing, file)) is not None:
            raise error

    def xOpen(  # noqa: N802 - SQLite's name
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        self.note(Removed(Path(filename).name, syncdir))


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._disk = disk
        self._name = Path(path).name if path else ""
        """Empty for a temporary file, which need not outlive anything."""
        disk.check("open", self._name)
        super().__init__(disk.base, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.check("write", self._name)
        super().xWrite(data, offset)
        self._note(Written(self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.check("truncate", self._name)
        super().xTruncate(newsize)
        self._note(Cut(self._name, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.check("sync", self._name)
        self._note(Flushed(self._name))  # the file system under us need not wait for its disk
        del flags

    def _note(self, event: Event) -> None:
        if self._name:
            self._disk.note(event)


@contextmanager
def recording(name: str) -> Iterator[Disk]:
    """A disk under every connection that is opened inside; those must be closed inside, too."""
    disk = Disk(name)
    try:
        yield disk
    finally:
        disk.unregister()


# --- power cuts ----------------------------------------------------------------------------------


@dataclass
class _Contents:
    """A file: the bytes that are certainly on the disk, and those that may be."""

    data: bytearray = field(default_factory=bytearray)
    waiting: list[Written | Cut] = field(default_factory=list)
    is_new: bool = True
    """It has not been flushed since it was made."""
    before: _Contents | None = None
    """The file of this name that was removed, as long as its removal may be undone."""

    def survivor(self, chance: random.Random, share: float) -> bytes:
        if self.before is not None and chance.random() < 0.5:
            return self.before.survivor(chance, share)
        data = bytearray(self.data)
        for waiting in self.waiting:
            for part in _parts(waiting):
                if chance.random() < share:
                    _apply(data, part)
        return bytes(data)


class Platter:
    """The state of a disk while events are replayed."""

    def __init__(self) -> None:
        self._files: dict[str, _Contents] = {}

    def take(self, event: Event) -> None:
        """Let an event happen."""
        if isinstance(event, Noted):
            return
        contents = self._files.setdefault(event.file, _Contents())
        if isinstance(event, Removed):
            self._files[event.file] = _Contents(before=None if event.for_good else contents)
        elif isinstance(event, Flushed):
            for waiting in contents.waiting:
                _apply(contents.data, waiting)
            contents.waiting.clear()
            if contents.is_new and event.file.endswith(("-wal", "-journal")):
                # With the first flush of a new log or journal SQLite flushes its folder.
                for other in self._files.values():
                    other.before = None
            contents.is_new = False
        else:
            contents.waiting.append(event)

    def lose_power(self, chance: random.Random) -> dict[str, bytes]:
        """The files that are found afterwards; nothing here changes by it."""
        share = chance.choice((0.0, 0.3, 0.5, 0.9, 1.0))
        return {
            name: contents.survivor(chance, share)
            for name, contents in self._files.items()
            if not name.endswith("-shm")  # memory that processes share: it is not on the disk
        }


def _parts(event: Written | Cut) -> Iterator[Written | Cut]:
    """Yield the atomic parts of an event."""
    if isinstance(event, Cut):
        yield event
        return
    for start in range(0, len(event.data), SECTOR):
        yield Written(event.file, event.at + start, event.data[start : start + SECTOR])


def _apply(data: bytearray, event: Written | Cut) -> None:
    end = event.size if isinstance(event, Cut) else event.at + len(event.data)
    if len(data) < end:
        data.extend(bytes(end - len(data)))
    if isinstance(event, Cut):
        del data[end:]
    else:
        data[event.at : end] = event.data
