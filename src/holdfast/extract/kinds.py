"""What a file is, by how it begins; its name only decides between kinds of text.

kinds: the first word of extract. A name says little: `report.pdf` may be a page that says "log in".

Bytes as text: as they are where they are UTF-8, else by the signs of another encoding. UTF-8 stays
byte for byte, so that a quotation of the text is one of the file.
"""

from __future__ import annotations

import codecs
from typing import Literal

from holdfast.condense import html
from holdfast.condense.source import Source

FileKind = Literal["text", "html", "pdf", "docx", "epub", "binary"]

HEAD_BYTES = 8_192
"""What is looked at: git and grep look at as much for a zero byte."""
_HTML_NAMES = (".html", ".htm", ".xhtml")
_BOMS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\x1b\x08"))
"""Text has none of them, but for tabs, ends of lines and pages, and the codes of terminals."""
_MOST_CONTROLS = 0.02


def kind_of_file(name: str, head: bytes) -> FileKind:
    """The kind of a file by its first bytes."""
    head = head[:HEAD_BYTES]
    if b"%PDF-" in head[:1024]:  # viewers allow that much before it
        return "pdf"
    if head.startswith(b"PK\x03\x04"):
        return _kind_of_zip(name, head)
    if not head.startswith(_BOMS) and _is_binary(head):
        return "binary"
    if name.lower().endswith(_HTML_NAMES) or html.sniff(Source(head)) > 0.9:
        return "html"
    return "text"


def _kind_of_zip(name: str, head: bytes) -> FileKind:
    """An e-book says what it is in its first member; Word files are known by their parts."""
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
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decoded(data: bytes) -> tuple[str, str]:
    """The text, and a note on what was done to the bytes; empty if they are the text."""
    for mark, encoding in _ENCODING_BOMS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding, "replace")
            return text, "" if encoding == "utf-8" else f"read as {encoding.upper()}"
    try:
        return data.decode(), ""
    except UnicodeDecodeError as error:
        # A stray byte in a file of UTF-8 is damage; a file with many is of another encoding.
        if error.start > len(data) // 2 or data.count(b"\xc3") > 4:
            return data.decode(
                "utf-8", "replace"
            ), "bytes that are no UTF-8 show as \N{REPLACEMENT CHARACTER}"
        return data.decode("cp1252", "replace"), "read as Windows-1252"
