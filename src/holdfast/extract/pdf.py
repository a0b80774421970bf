"""Extract the text of a PDF with pypdf, page by page.

Form feeds separate the pages, as in `pdftotext`, so that a position in the text has a page. A scan
has no text.
"""

from __future__ import annotations

import importlib.util
import io
import logging
from collections.abc import Iterator
from typing import Any

from holdfast.errors import ExtractError
from holdfast.extract.bounds import NOT_READ, READ_SECONDS, ExtractedText, read_parts
from holdfast.extras import how_to_install

PAGE_END = "\f"
MOST_PAGES = 5_000
_PACKAGE = "pypdf"
_DRAWN = ("/Contents", "/Resources")
"""Entries of a page that determine its text."""


def read_pdf(data: bytes, seconds: float = READ_SECONDS) -> ExtractedText:
    """Return the text of all pages.

    Raises:
        ExtractError: the package is missing, or the file is encrypted or without text.
    """
    if importlib.util.find_spec(_PACKAGE) is None:
        raise ExtractError("PDF files need the package pypdf", fix=how_to_install("research"))
    import pypdf  # noqa: PLC0415 - optional

    logging.getLogger(_PACKAGE).setLevel(logging.CRITICAL)  # pypdf's log messages quote the file
    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise ExtractError("the PDF is encrypted", fix="Give a copy without a password.")
    pages, is_cut, is_late = read_parts(_pages(reader), seconds)
    if not any(page.strip() for page in pages):
        raise ExtractError("the PDF has no text: a scan?", fix="Run it through OCR first.")
    unread = len(reader.pages) - len(pages)
    note = f"{unread:,} pages behind the first {len(pages):,} were not read" if unread else ""
    text = PAGE_END.join(pages)
    if is_cut and not unread:
        note = NOT_READ.format(len(text))
    title, published = _about(reader)
    return ExtractedText(text=text, title=title, published=published, note=note, is_late=is_late)


def _pages(reader: Any) -> Iterator[str]:
    """Yield the text of each page.

    Pages with the same content and fonts are read once: a file may list one page 5,000 times, or
    give 5,000 pages one long content.
    """
    texts: dict[str, str] = {}
    for page in reader.pages[:MOST_PAGES]:
        key = repr([page.raw_get(name) for name in _DRAWN if name in page])
        if key not in texts:
            texts[key] = (page.extract_text() or "").replace(PAGE_END, "\n").rstrip()
        yield texts[key]


def _about(reader: Any) -> tuple[str, float | None]:
    metadata = reader.metadata
    if metadata is None:
        return "", None
    date = metadata.modification_date or metadata.creation_date
    return str(metadata.title or ""), date.timestamp() if date else None
