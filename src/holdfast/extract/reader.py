"""Extract a file's text, title and date from its bytes."""

from __future__ import annotations

import msgspec

from holdfast.errors import ExtractError
from holdfast.extract.bounds import READ_SECONDS, ExtractedText
from holdfast.extract.epub import read_epub
from holdfast.extract.html import read_web
from holdfast.extract.kinds import FileKind, decode
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


def extract(
    data: bytes, kind: FileKind, url: str = "", seconds: float = READ_SECONDS
) -> ExtractedText:
    """Return the text of a file; `url` helps to find the main content of a web page.

    After `seconds` the text extracted so far is returned, with a note.

    Raises:
        ExtractError: the file has no readable text; the error suggests what would help.
        MemoryError: there is not enough memory.
    """
    try:
        extracted = _read(data, kind, url, seconds)
    except (ExtractError, MemoryError):
        raise
    except Exception as error:
        # Parsers raise arbitrary exceptions for a damaged file: XMLSyntaxError of lxml,
        # RecursionError, OverflowError of a date. Their messages quote the file, so they are not
        # passed on.
        raise ExtractError(f"the {_NAMES[kind]} is damaged", fix="Save it anew.") from error
    if not extracted.text.strip():
        raise ExtractError("the file has no text")
    return msgspec.structs.replace(extracted, title=" ".join(extracted.title.split())[:_MOST_TITLE])


def _read(data: bytes, kind: FileKind, url: str, seconds: float) -> ExtractedText:
    match kind:
        case "pdf":
            return read_pdf(data, seconds)
        case "docx":
            return read_word(data, seconds)
        case "epub":
            return read_epub(data, seconds)
        case "html":
            text, note = decode(data)
            return msgspec.structs.replace(read_web(text, url), note=note)
        case "text":
            text, note = decode(data)
            return ExtractedText(text=text, note=note)
        case "binary":
            raise ExtractError("the file is binary", fix="Give its text.")
