"""Limits on the text of one file and on the archives that are unpacked.

A few hundred bytes can describe terabytes: a page list that names one page 5,000 times, a table
cell that spans a billion columns, a zip file of zeros. Readers therefore yield text in parts, and
`read_parts` stops them at a total of characters or time.
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
"""Maximum characters read from one file. The longest novels have four million."""
MOST_PARTS = 1_000_000
"""Maximum parts read from one file; empty paragraphs take memory as well."""
MOST_UNPACKED = 200_000_000
"""Maximum bytes of all members of an archive, unpacked."""
# Time limit for the parts of one file. It ends before the worker's deadline, at which the worker is
# killed and all text is lost.
READ_SECONDS = 27.0
NOT_READ = "the text after the first {:,} characters was not read"


class ExtractedText(msgspec.Struct, frozen=True, kw_only=True, tag="extracted"):
    """The text of a file with its title, date and notes."""

    text: str
    """Form feeds separate the pages of a PDF or e-book."""
    title: str = ""
    published: float | None = None
    """The date stated in the file, in seconds since 1970."""
    note: str = ""
    """Note on parts that could not be read, or on the encoding."""
    is_late: bool = False
    """Whether pages are missing because of the time limit; another run may read more."""

    def __repr__(self) -> str:
        return f"<Extracted {len(self.text)} characters>"


class ReadParts(NamedTuple):
    """The parts read from a file."""

    texts: list[str]
    is_cut: bool = False
    """Whether parts are missing."""
    is_late: bool = False
    """Whether parts are missing because of the time limit; another run may read more."""


def read_parts(parts: Iterable[str], seconds: float = READ_SECONDS) -> ReadParts:
    """Return the first parts within the limits, and at least one, however slow the file is."""
    texts: list[str] = []
    remaining = MOST_TEXT
    deadline = time.monotonic() + seconds
    for part in parts:
        if len(part) > remaining:
            return ReadParts([*texts, part[:remaining]], is_cut=True)
        if len(texts) >= MOST_PARTS:
            return ReadParts(texts, is_cut=True)
        if texts and time.monotonic() >= deadline:
            return ReadParts(texts, is_cut=True, is_late=True)
        texts.append(part)
        remaining -= len(part)
    return ReadParts(texts)


def open_archive(data: bytes, name: str) -> zipfile.ZipFile:
    """Open a zip file after checking its unpacked size.

    The declared sizes suffice, because `zipfile` reads no more of a member than its header
    declares.

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
