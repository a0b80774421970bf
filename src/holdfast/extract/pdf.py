"""The text of a PDF, page after page, through pypdf.

pdf: beside html. Pages are parted by form feeds, as `pdftotext` parts them, so that a place in the
text has a page. A file without text, such as a scan, has none that we could make up.
"""

from __future__ import annotations

import importlib.util
import io
import logging
from typing import Any, NamedTuple

from holdfast.errors import ExtractError
from holdfast.extras import how_to_install

PAGE_END = "\f"
MOST_PAGES = 5_000
_PACKAGE = "pypdf"


class Pdf(NamedTuple):
    """What a PDF says."""

    text: str
    title: str
    published: float | None
    note: str


def read_pdf(data: bytes) -> Pdf:
    """The text of all pages.

    Raises:
        ExtractError: the package is missing, or the file is encrypted, damaged or without text.
    """
    if importlib.util.find_spec(_PACKAGE) is None:
        raise ExtractError("PDF files need the package pypdf", fix=how_to_install("research"))
    import pypdf  # noqa: PLC0415 - optional
    from pypdf.errors import PyPdfError  # noqa: PLC0415

    logging.getLogger(_PACKAGE).setLevel(logging.CRITICAL)  # it quotes the file
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise ExtractError("the PDF is encrypted", fix="Give a copy without a password.")
        pages = [_text(page) for page in reader.pages[:MOST_PAGES]]
        left = len(reader.pages) - len(pages)
        title, published = _about(reader)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # Beside its own errors, pypdf lets through whatever a damaged tree makes it stumble on.
        raise ExtractError("the PDF is damaged", fix="Print it to a new PDF.") from error
    if not any(page.strip() for page in pages):
        raise ExtractError("the PDF has no text: a scan?", fix="Run it through OCR first.")
    note = f"{left:,} pages behind the first {MOST_PAGES:,} were not read" if left else ""
    return Pdf(PAGE_END.join(pages), title, published, note)


def _text(page: Any) -> str:
    return (page.extract_text() or "").replace(PAGE_END, "\n").rstrip()


def _about(reader: Any) -> tuple[str, float | None]:
    about = reader.metadata
    if about is None:
        return "", None
    date = about.modification_date or about.creation_date
    return str(about.title or ""), date.timestamp() if date else None
