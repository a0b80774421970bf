"""Detect a file's kind from its first bytes, and decode its text.

The name only decides between kinds of text, because a `report.pdf` may be a login page. UTF-8 stays
byte for byte, so that a quotation of the text is a quotation of the file.
"""

from __future__ import annotations

import codecs
from typing import Literal

from holdfast.condense import html
from holdfast.condense.source import Source

FileKind = Literal["text", "html", "pdf", "docx", "epub", "binary"]

HEAD_BYTES = 8_192
"""Number of bytes examined; git and grep examine as many for a zero byte."""
_HTML_NAMES = (".html", ".htm", ".xhtml")
_BOMS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\x1b\x08"))
"""Control bytes that text does not contain; tabs, line and page ends and terminal codes are
allowed.
"""
_MOST_CONTROLS = 0.02


def kind_of_file(name: str, head: bytes) -> FileKind:
    """Return the kind of a file from its first bytes."""
    head = head[:HEAD_BYTES]
    if b"%PDF-" in head[:1024]:  # viewers accept this many bytes before it
        return "pdf"
    if head.startswith(b"PK\x03\x04"):
        return _kind_of_zip(name, head)
    if not head.startswith(_BOMS) and _is_binary(head):
        return "binary"
    if name.lower().endswith(_HTML_NAMES) or html.sniff(Source(head)) > 0.9:
        return "html"
    return "text"


def _kind_of_zip(name: str, head: bytes) -> FileKind:
    """Return the kind of a zip file: an e-book by its first member, a Word file by its parts."""
    if b"application/epub+zip" in head[:200] or name.lower().endswith(".epub"):
        return "epub"
    is_word = b"word/" in head or (b"[Content_Types].xml" in head and name.lower().endswith("docx"))
    return "docx" if is_word or name.lower().endswith(".docx") else "binary"


def _is_binary(head: bytes) -> bool:
    if b"\0" in head:
        return True
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return controls > _MOST_CONTROLS * len(head)


_ENCODING_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    # before UTF-16, whose byte order mark is a prefix of this one
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode(data: bytes) -> tuple[str, str]:
    """Return the text, and a note on how it was decoded; the note is empty for valid UTF-8."""
    for mark, encoding in _ENCODING_BOMS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding, "replace")
            return text, "" if encoding == "utf-8" else f"read as {encoding.upper()}"
    try:
        return data.decode(), ""
    except UnicodeDecodeError as error:
        # A stray invalid byte in UTF-8 is damage; many of them mean another encoding.
        if error.start > len(data) // 2 or data.count(b"\xc3") > 4:
            return data.decode(
                "utf-8", "replace"
            ), "bytes that are no UTF-8 show as \N{REPLACEMENT CHARACTER}"
        return data.decode("cp1252", "replace"), "read as Windows-1252"
