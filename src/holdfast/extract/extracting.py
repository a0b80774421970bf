"""A file's bytes → its text, title and date; the last word of extract."""

from __future__ import annotations

import msgspec

from holdfast.errors import ExtractError
from holdfast.extract.epub import read_epub
from holdfast.extract.html import read_web
from holdfast.extract.kinds import FileKind
from holdfast.extract.pdf import read_pdf
from holdfast.extract.plain import decoded
from holdfast.extract.word import read_word

_MOST_TITLE = 200


class Extracted(msgspec.Struct, frozen=True, kw_only=True, tag="extracted"):
    """What a file says."""

    text: str
    """Of a PDF and an e-book, pages are parted by form feeds."""
    title: str = ""
    published: float | None = None
    """When it says that it was written, in seconds since 1970."""
    note: str = ""
    """What of it could not be read, or was read otherwise than it stands."""

    def __repr__(self) -> str:
        return f"<Extracted {len(self.text)} characters>"


def extract(data: bytes, kind: FileKind, url: str = "") -> Extracted:
    """The text of a file of a kind; `url` helps to tell a page's matter.

    Raises:
        ExtractError: it has no text that we could read; the text says what would help.
    """
    match kind:
        case "pdf":
            pdf = read_pdf(data)
            extracted = Extracted(
                text=pdf.text, title=pdf.title, published=pdf.published, note=pdf.note
            )
        case "docx":
            word = read_word(data)
            extracted = Extracted(text=word.text, title=word.title, published=word.published)
        case "epub":
            book = read_epub(data)
            extracted = Extracted(text=book.text, title=book.title, note=book.note)
        case "html":
            text, note = decoded(data)
            web = read_web(text, url)
            extracted = Extracted(
                text=web.text, title=web.title, published=web.published, note=note
            )
        case "text":
            text, note = decoded(data)
            extracted = Extracted(text=text, note=note)
        case "binary":
            raise ExtractError("the file is binary", fix="Give its text.")
    if not extracted.text.strip():
        raise ExtractError("the file has no text")
    return msgspec.structs.replace(extracted, title=" ".join(extracted.title.split())[:_MOST_TITLE])
