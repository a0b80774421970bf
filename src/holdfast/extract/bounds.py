"""The text of one file, its bounds, and the archive that may be unpacked.

bounds: after kinds. A few hundred bytes can describe terabytes: a list of pages that names one page
5,000 times, a table cell that spans a billion columns, a zip of zeros. The readers therefore yield
their text part by part, and `read_parts` stops them at a total of characters or of time.
"""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from holdfast.errors import ExtractError

MOST_TEXT = 10_000_000
"""Characters read from one file. The longest novels have four million."""
MOST_PARTS = 1_000_000
"""Parts read from one file: empty paragraphs cost memory as well."""
MOST_UNPACKED = 200_000_000
"""Bytes of all members of an archive, unpacked."""
READ_SECONDS = 27.0
"""Time for the parts of one file. A worker is killed at its deadline, and its text is then lost."""
NOT_READ = "the text after the first {:,} characters was not read"


class Extracted(msgspec.Struct, frozen=True, kw_only=True, tag="extracted"):
    """The text of a file, and what the file says about itself."""

    text: str
    """Of a PDF and an e-book, pages are parted by form feeds."""
    title: str = ""
    published: float | None = None
    """The date that the file names, in seconds since 1970."""
    note: str = ""
    """Parts that could not be read, or were read with another encoding."""
    is_late: bool = False
    """Whether pages are missing because the time was over: another run may read more."""

    def __repr__(self) -> str:
        return f"<Extracted {len(self.text)} characters>"


class Parts(NamedTuple):
    """The parts of a file that were read."""

    texts: list[str]
    is_cut: bool = False
    """Parts are missing."""
    is_late: bool = False
    """Parts are missing because the time was over: another run may read more."""


def read_parts(parts: Iterable[str], seconds: float = READ_SECONDS) -> Parts:
    """Return the first parts within the bounds, and at least one: a slow file gives some text."""
    texts: list[str] = []
    left = MOST_TEXT
    until = time.monotonic() + seconds
    for part in parts:
        if len(part) > left:
            return Parts([*texts, part[:left]], is_cut=True)
        if len(texts) >= MOST_PARTS:
            return Parts(texts, is_cut=True)
        if texts and time.monotonic() >= until:
            return Parts(texts, is_cut=True, is_late=True)
        texts.append(part)
        left -= len(part)
    return Parts(texts)


def open_archive(data: bytes, name: str) -> zipfile.ZipFile:
    """Open a zip file whose members have a bounded size.

    `zipfile` reads no more of a member than its header declares, so the declared sizes count.

    Raises:
        ExtractError: the data is not a zip file, or unpacks to more than `MOST_UNPACKED` bytes.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise ExtractError(f"the {name} is damaged") from error
    if sum(member.file_size for member in archive.infolist()) > MOST_UNPACKED:
        raise ExtractError(f"the {name} would unpack to more than {MOST_UNPACKED:,} bytes")
    return archive
