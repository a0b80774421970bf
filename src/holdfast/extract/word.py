"""Extract the text of a Word file with python-docx: paragraphs and tables in order.

Table cells are read from the XML, because python-docx repeats a cell for each column it spans and a
file may declare a billion columns.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.errors import ExtractError
from holdfast.extract.bounds import NOT_READ, READ_SECONDS, ExtractedText, open_archive, read_parts
from holdfast.extras import how_to_install

_PACKAGE = "docx"
_HEADING = "Heading "
_LEVELS = frozenset("123456789")
_BLOCK_END = "\n\n"
_ROW_END = "\n"
_MOST_CARRIED = 200
"""Maximum characters of a vertically merged cell that are repeated in the rows below."""
_MOST_COLUMNS = 64
"""Maximum columns in which merged cells are tracked; Word allows 63."""


def read_word(data: bytes, seconds: float = READ_SECONDS) -> ExtractedText:
    """Return the text of the document's body.

    Raises:
        ExtractError: the package is missing, or the file is a bomb or has no text.
    """
    if importlib.util.find_spec(_PACKAGE) is None:
        raise ExtractError(
            "Word files need the package python-docx", fix=how_to_install("research")
        )
    import docx  # noqa: PLC0415 - optional

    open_archive(data, "Word file").close()
    document = docx.Document(io.BytesIO(data))
    parts, is_cut, is_late = read_parts(_parts(document), seconds)
    text = "".join(parts).removeprefix(_BLOCK_END)
    if not text.strip():
        raise ExtractError("the Word file has no text")
    properties = document.core_properties
    date = properties.modified or properties.created
    note = NOT_READ.format(len(text)) if is_cut else ""
    published = date.timestamp() if date else None
    return ExtractedText(
        text=text, title=properties.title or "", published=published, note=note, is_late=is_late
    )


def _parts(document: Any) -> Iterator[str]:
    """Yield paragraphs and rows, each preceded by its separator from the previous part."""
    # Read once, because python-docx searches all styles for each paragraph.
    styles = {style.style_id: style.name or "" for style in document.styles}
    for block in document.iter_inner_content():
        if hasattr(block, "rows"):
            separator = _BLOCK_END
            for row in _rows(block):
                yield separator + row
                separator = _ROW_END
        elif text := _paragraph(block, styles):
            yield _BLOCK_END + text


def _paragraph(paragraph: Any, styles: Mapping[str, str]) -> str:
    text: str = paragraph.text
    style = styles.get(paragraph._p.style or "", "")
    level = style.removeprefix(_HEADING)
    is_heading = style != level and level in _LEVELS and text.strip()
    return f"{'#' * int(level)} {text}" if is_heading else text


def _rows(table: Any) -> Iterator[str]:
    """Yield the text of each row; merged columns appear once, merged rows repeat."""
    above: dict[int, str] = {}
    for row in table._tbl.tr_lst:
        cells: list[str] = []
        column = 0
        for cell in row.tc_lst:
            if cell.vMerge == "continue":
                text = above.get(column, "")
            else:
                text = " ".join(" ".join(p.text for p in cell.p_lst).split())
                above[column] = text[:_MOST_CARRIED]
            cells.append(text)
            column = min(column + max(cell.grid_span, 1), _MOST_COLUMNS)
        yield " | ".join(cells)
