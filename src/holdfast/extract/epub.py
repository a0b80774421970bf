"""Extract the text of an e-book: the pages in the order of its spine, each read as a web page.

An EPUB is a zip file of web pages with an XML list of items and their order (the spine). The list
is parsed as a stream, because an HTML parser needs quadratic time for a tree of 100,000 nested
elements.
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator, Mapping
from urllib.parse import unquote
from xml.parsers import expat

from holdfast.errors import ExtractError
from holdfast.extract.bounds import NOT_READ, READ_SECONDS, ExtractedText, open_archive, read_parts
from holdfast.extract.html import by_blocks
from holdfast.extract.kinds import decode
from holdfast.extract.pdf import PAGE_END

MOST_PAGES = 5_000
MOST_PAGE_BYTES = 10_000_000
"""Maximum bytes of one unpacked page. Chapters have some hundred kilobytes."""
_PACKAGES = (".opf",)
_TITLE = "dc:title"
_MOST_TITLE = 1_000


class _Package:
    """The list of an e-book's pages, filled during parsing."""

    def __init__(self) -> None:
        self.hrefs: dict[str, str] = {}
        self.order: list[str] = []
        """Page ids, each once: the format forbids repetitions, and attacks use them."""
        self.title = ""
        self._seen: set[str] = set()
        self._in_title = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        tag = name.rpartition(":")[2]
        if tag == "item":
            self.hrefs.setdefault(attributes.get("id", ""), attributes.get("href", ""))
        elif tag == "itemref":
            page = attributes.get("idref", "")
            if page not in self._seen:
                self._seen.add(page)
                self.order.append(page)
        self._in_title = name == _TITLE and not self.title

    def end(self, _: str) -> None:
        self._in_title = False

    def text(self, text: str) -> None:
        if self._in_title and len(self.title) < _MOST_TITLE:
            self.title += text


def read_epub(data: bytes, seconds: float = READ_SECONDS) -> ExtractedText:
    """Return the text of all chapters.

    Raises:
        ExtractError: the file is damaged, encrypted, a bomb or without text.
    """
    with open_archive(data, "e-book") as archive:
        members = {member.filename: member.file_size for member in archive.infolist()}
        package_name = next((n for n in members if n.lower().endswith(_PACKAGES)), "")
        if not package_name:
            raise ExtractError("the e-book has no list of its pages")
        package = _read_package(_unpack(archive, package_name))
        folder = posixpath.dirname(package_name)
        hrefs = [package.hrefs.get(page, "") for page in package.order]
        names = dict.fromkeys(  # two items may have the same name
            posixpath.normpath(posixpath.join(folder, unquote(href))) for href in hrefs if href
        )
        readable = [n for n in names if members.get(n, MOST_PAGE_BYTES + 1) <= MOST_PAGE_BYTES]
        pages, is_cut, is_late = read_parts(_pages(archive, readable[:MOST_PAGES]), seconds)
    if not any(page.strip() for page in pages):
        raise ExtractError("the e-book has no text", fix="If it is protected, give a free copy.")
    text = PAGE_END.join(pages)
    missing = len(package.order) - len(pages)
    note = f"{missing:,} of {len(package.order):,} parts could not be read" if missing else ""
    if is_cut:
        note = NOT_READ.format(len(text))
    title = " ".join(package.title.split())
    return ExtractedText(text=text, title=title, note=note, is_late=is_late)


def _pages(archive: zipfile.ZipFile, names: list[str]) -> Iterator[str]:
    for name in names:
        yield by_blocks(decode(_unpack(archive, name))[0]).text


def _read_package(data: bytes) -> _Package:
    """Parse the list of pages; if it is damaged, return the part before the damage."""
    package = _Package()
    parser = expat.ParserCreate()
    parser.StartElementHandler = package.start
    parser.EndElementHandler = package.end
    parser.CharacterDataHandler = package.text
    parser.EntityDeclHandler = _refuse_entity
    try:
        parser.Parse(data, True)
    except expat.ExpatError:
        if not package.order:
            raise ExtractError("the e-book's list of pages is damaged") from None
    return package


def _refuse_entity(*_: object) -> None:
    # Ten levels of entities that repeat each other expand to gigabytes; no e-book needs its own.
    raise ExtractError("the e-book's list of pages declares entities")


def _unpack(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError) as error:
        # RuntimeError: a member has a password. NotImplementedError: an unknown compression.
        raise ExtractError("a part of the e-book cannot be unpacked") from error
