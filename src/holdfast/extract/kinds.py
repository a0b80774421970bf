"""What a file is, by how it begins; its name only decides between kinds of text.

kinds: the first word of extract. A name says little: `report.pdf` may be a page that says "log in".
"""

from __future__ import annotations

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
