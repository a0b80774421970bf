"""A file's bytes → its text, title and date; the last word of extract."""

from __future__ import annotations

import msgspec

from holdfast.errors import ExtractError
from holdfast.extract.bounds import READ_SECONDS
from holdfast.extract.epub import read_epub
from holdfast.extract.html import read_web
from holdfast.extract.kinds import FileKind, decoded
from holdfast.extract.pdf import read_pdf
from holdfast.extract.word import read_word

_MOST_TITLE = 200
_NAMES: dict[FileKind, str] = {
    "pdf": "PDF",
    "docx": "Word file",
    "epub": "e-book",
    "html": "web page",
    "text": "file",
    "binary": "file",
}


class Extracted(msgspec.Struct, frozen=True, kw_only=True, tag="extracted"):
    """What a file says."""

    text: str
    """Of a PDF and an e-book, pages are parted by form feeds."""
    title: str = ""
    published: float | None = None
    """When it says that it was written, in seconds since 1970."""
    note: str = ""
    """What of it could not be read, or was read otherwise than it stands."""

    is_late: bool = False
    """Whether pages are missing because the time was over: another run may read more."""

    def __repr__(self) -> str:
        return f"<Extracted {len(self.text)} characters>"


def extract(data: bytes, kind: FileKind, url: str = "", seconds: float = READ_SECONDS) -> Extracted:
    """Return the text of a file; `url` helps to find the matter of a web page.

    After `seconds` the text that was read by then is returned, with a note.

    Raises:
        ExtractError: it has no text that we could read; the error says what would help.
        MemoryError: there is not enough memory for it.
    """
    try:
        extracted = _read(data, kind, url, seconds)
    except (ExtractError, MemoryError):
        raise
    except Exception as error:
        # Parsers raise whatever a damaged file makes them stumble on: XMLSyntaxError of lxml,
        # RecursionError, OverflowError of a date. Their messages quote the file.
        raise ExtractError(f"the {_NAMES[kind]} is damaged", fix="Save it anew.") from error
    if not extracted.text.strip():
        raise ExtractError("the file has no text")
    return msgspec.structs.replace(extracted, title=" ".join(extracted.title.split())[:_MOST_TITLE])


def _read(data: bytes, kind: FileKind, url: str, seconds: float) -> Extracted:
    match kind:
        case "pdf":
            pdf = read_pdf(data, seconds)
            return Extracted(
                text=pdf.text,
                title=pdf.title,
                published=pdf.published,
                note=pdf.note,
                is_late=pdf.is_late,
            )
        case "docx":
            word = read_word(data, seconds)
            return Extracted(
                text=word.text,
                title=word.title,
                published=word.published,
                note=word.note,
                is_late=word.is_late,
            )
        case "epub":
            book = read_epub(data, seconds)
            return Extracted(text=book.text, title=book.title, note=book.note, is_late=book.is_late)
        case "html":
            text, note = decoded(data)
            web = read_web(text, url)
            return Extracted(text=web.text, title=web.title, published=web.published, note=note)
        case "text":
            text, note = decoded(data)
            return Extracted(text=text, note=note)
        case "binary":
            raise ExtractError("the file is binary", fix="Give its text.")
