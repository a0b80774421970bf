"""The text of a Word file, through python-docx: paragraphs and tables in their order.

word: beside pdf. A Word file is a zip: what it would unpack to is looked at before it is unpacked.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from typing import Any, NamedTuple

from holdfast.errors import ExtractError
from holdfast.extras import how_to_install

MOST_UNPACKED = 200_000_000
"""Bytes: a novel has one, a file of a few hundred kilobytes that has more is a bomb."""
_PACKAGE = "docx"
_HEADING = "Heading "


class Word(NamedTuple):
    """What a Word file says."""

    text: str
    title: str
    published: float | None


def read_word(data: bytes) -> Word:
    """The text of the document's body.

    Raises:
        ExtractError: the package is missing, or the file is damaged, a bomb or without text.
    """
    if importlib.util.find_spec(_PACKAGE) is None:
        raise ExtractError(
            "Word files need the package python-docx", fix=how_to_install("research")
        )
    import docx  # noqa: PLC0415 - optional
    from docx.opc.exceptions import OpcError  # noqa: PLC0415

    opened(data, "Word file").close()
    try:
        document = docx.Document(io.BytesIO(data))
        text = "\n\n".join(filter(None, map(_text, document.iter_inner_content())))
        about = document.core_properties
    except (OpcError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ExtractError("the Word file is damaged") from error
    if not text.strip():
        raise ExtractError("the Word file has no text")
    date = about.modified or about.created
    return Word(text, about.title or "", date.timestamp() if date else None)


def _text(block: Any) -> str:
    if hasattr(block, "rows"):
        return "\n".join(" | ".join(_cells(row)) for row in block.rows)
    style = (block.style.name or "") if block.style is not None else ""
    level = style.removeprefix(_HEADING) if style.startswith(_HEADING) else ""
    text: str = block.text
    return f"{'#' * int(level)} {text}" if level.isdigit() and text.strip() else text


def _cells(row: Any) -> list[str]:
    """A row's cells, one that spans several columns once."""
    cells = {id(cell._tc): cell.text for cell in row.cells}
    return [" ".join(text.split()) for text in cells.values()]


def opened(data: bytes, name: str) -> zipfile.ZipFile:
    """A zip whose members, unpacked, have a size that can be read.

    Raises:
        ExtractError: it is none, or would unpack to far more than it says.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise ExtractError(f"the {name} is damaged") from error
    if sum(member.file_size for member in archive.infolist()) > MOST_UNPACKED:
        raise ExtractError(f"the {name} would unpack to more than {MOST_UNPACKED:,} bytes")
    return archive
