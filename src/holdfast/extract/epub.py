"""The text of an e-book: its pages in the order of its spine, each read as a web page.

epub: after html and word. An EPUB is a zip of web pages with two lists: where the package is, and
in which order its pages are read. Both are XML, and read by the parser of HTML, which resolves no
entity of a document's own.
"""

from __future__ import annotations

import posixpath
import zipfile
from typing import NamedTuple
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser

from holdfast.errors import ExtractError
from holdfast.extract.html import by_blocks
from holdfast.extract.pdf import PAGE_END
from holdfast.extract.plain import decoded
from holdfast.extract.word import opened

MOST_PAGES = 5_000
_PACKAGES = (".opf",)


class Book(NamedTuple):
    """What an e-book says."""

    text: str
    title: str
    note: str


def read_epub(data: bytes) -> Book:
    """The text of all chapters.

    Raises:
        ExtractError: the file is damaged, a bomb, encrypted or without text.
    """
    with opened(data, "e-book") as archive:
        package = next((n for n in archive.namelist() if n.lower().endswith(_PACKAGES)), "")
        if not package:
            raise ExtractError("the e-book has no list of its pages")
        tree = LexborHTMLParser(_read(archive, package))
        hrefs = {
            node.attributes.get("id") or "": node.attributes.get("href") or ""
            for node in tree.css("item")
        }
        order = [hrefs.get(node.attributes.get("idref") or "", "") for node in tree.css("itemref")]
        folder = posixpath.dirname(package)
        names = [
            posixpath.normpath(posixpath.join(folder, unquote(href))) for href in order if href
        ]
        there = set(archive.namelist())
        pages = [by_blocks(_read(archive, n)).text for n in names[:MOST_PAGES] if n in there]
        title = next((node.text() for node in tree.css("*") if _is_title(node.tag)), "")
    if not any(page.strip() for page in pages):
        raise ExtractError("the e-book has no text", fix="If it is protected, give a free copy.")
    missing = len(order) - len(pages)
    note = f"{missing:,} of {len(order):,} parts could not be read" if missing else ""
    return Book(PAGE_END.join(pages), " ".join(title.split()), note)


def _is_title(tag: str | None) -> bool:
    return tag == "dc:title"


def _read(archive: zipfile.ZipFile, name: str) -> str:
    try:
        return decoded(archive.read(name))[0]
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError) as error:
        # RuntimeError: a member has a password; NotImplementedError: a compression nobody knows.
        raise ExtractError("a part of the e-book cannot be unpacked") from error
