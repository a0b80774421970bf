"""A file's bytes → its text, title and date; the last word of extract."""

from __future__ import annotations

import msgspec

from holdfast.errors import ExtractError
from holdfast.extract.bounds import READ_SECONDS, Extracted
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
            return read_pdf(data, seconds)
        case "docx":
            return read_word(data, seconds)
        case "epub":
            return read_epub(data, seconds)
        case "html":
            text, note = decoded(data)
            return msgspec.structs.replace(read_web(text, url), note=note)
        case "text":
            text, note = decoded(data)
            return Extracted(text=text, note=note)
        case "binary":
            raise ExtractError("the file is binary", fix="Give its text.")
