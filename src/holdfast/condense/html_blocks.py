"""An HTML page as blocks of visible text, in document order.

A block is a paragraph, a heading, an item of a list or a cell. It has its links, and a flag for the
page's frame (menus, footers, side columns) or main text. Tags, names, links and nearness to prose
decide, not trafilatura: on recorded pages the two agree on nine words of ten, in a tenth of the
time and without its import of half a second; and trafilatura does not return the positions of its
text.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec
import re2  # type: ignore[import-untyped]

from holdfast.condense.source import Source, once
from holdfast.condense.spans import line_spans

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

# Both in `re`, for a page can have a tag in every three bytes, and RE2 takes ten times as long for
# each match. They are linear: a match begins at `<`, and nothing in it can be another `<`.
_TAG = re.compile(rb"<(/?)([a-z][a-z0-9]*)")
_ANY_TAG = re.compile(r"<[^<>]*>")
# As HTML reads them, so that quotes and signs in odd places hide none; possessive throughout.
_ATTRIBUTE = (
    rb"""[\s/]*+(?:=[^\s/>=]*+|[^\s/>=]++)(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)?+)?+"""
)
_MANY_ATTRIBUTES = re.compile(rb"(?:%b){250}" % _ATTRIBUTE)
_ATTRIBUTES = re.compile(rb"(?:%b){0,250}+" % _ATTRIBUTE)
_FEWEST_BYTES = 400
"""Below as many, 250 attributes have no room."""
_CLOSED_BY_THEMSELVES = frozenset(
    b"area base br col embed hr img input link meta source track wbr param path p li td th tr dt dd"
    b" option tbody thead tfoot".split()
)
_FORMATTING = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
_HIDDEN = frozenset(
    "script style noscript template svg head iframe object math -comment _comment -doctype"
    " !doctype".split()
)
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img input ins kbd label mark"
    " q ruby rt s samp small span strike strong sub sup time tt u var wbr nobr".split()
)
_FRAME = frozenset("nav footer aside form button select dialog menu".split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_FRAME_NAME = re2.compile(
    r"(?i)(?:^|[\s_-])(?:nav(?:bar|igation)?|menu|footer|side-?bar|breadcrumbs?|cookies?|share|social"
    r"|comments?|respond|related|recommend\w*|newsletter|promo|advert\w*|ads?|banner|popup|modal"
    r"|pagination|tags|widget|login|toolbar|masthead)(?:$|[\s_-])"
)

PROSE = 100
"""Characters from which a block is taken for prose."""
DEEPEST = 1000
"""With more tags open at once, a page is read as text without tags."""
DEEPEST_FORMATTING = 64
MOST_TAGS = 50_000
"""So is one with more tags: a parser takes half a kilobyte for each, of three bytes."""
_LINK_CHARS = 200
"""Maximum characters of a link's text: links can be nested, and each shows the text of all inner
ones."""
NEAR = 3
"""Short lines within this number of blocks from prose belong to the main text."""


class Link(msgspec.Struct, frozen=True):
    """A link in a block."""

    shown: str
    """The beginning of its visible text."""
    href: str
    """The address, exactly as in the page."""
    at: int
    """Its offset in the text of its block."""


class HtmlBlock(msgspec.Struct, frozen=True):
    """A block of visible text."""

    text: str
    level: int
    """1 to 6 for a heading, else 0."""
    frame: bool
    """Whether it belongs to the page's frame rather than to its matter."""
    links: list[Link]


class Page(msgspec.Struct, frozen=True):
    """The blocks and links of a page."""

    title: str
    description: str
    blocks: list[HtmlBlock]


class _Open:
    """A block that is being read."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.links: list[tuple[int, str, str]] = []
        """Each link: the number of parts before it, its text and its address."""
        self.linked = 0

    def closed(self, level: int, frame: float, exact: bool) -> tuple[HtmlBlock, float] | None:
        """The block, and how surely it is frame: 1 by its tags or links, 0.5 by a name, 0 not."""
        raw = "".join(self.parts)
        text = raw.strip("\r\n") if exact else " ".join(raw.split())
        if not text or text.isspace():
            return None
        # Text that is mostly links leads elsewhere; a heading may be a link and still be matter.
        leads = self.linked > 0.6 * len(text) and not level
        links = []
        if self.links:
            ends = list(_plain_ends(self.parts) if exact else _joined_ends(self.parts))
            links = [Link(label, href, ends[behind]) for behind, label, href in self.links]
        return HtmlBlock(text, level, frame > 0, links), 1.0 if leads else frame


def _plain_ends(parts: list[str]) -> Iterator[int]:
    return accumulate(map(len, parts), initial=0)


def _joined_ends(parts: list[str]) -> Iterator[int]:
    """Where each part ends in the text of all, in which every run of white space is one space."""
    length, is_apart = 0, False
    yield 0
    for part in parts:
        words = part.split()
        if words:
            is_apart = is_apart or part[0].isspace()
            length += (is_apart and length > 0) + sum(map(len, words)) + len(words) - 1
            is_apart = part[-1].isspace()
        else:
            is_apart = is_apart or bool(part)
        yield length


@once
def read_page(source: Source) -> Page:
    """Parse a page; invalid HTML never raises."""
    if is_too_rich(source.data):
        return Page("", "", list(_without_tags(source.text)))
    # 1.3 MB that a process without web pages never needs.
    from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415

    tree = LexborHTMLParser(source.text)
    title = tree.css_first("title")
    meta = tree.css_first('meta[name="description"], meta[property="og:description"]')
    described = (meta.attributes.get("content") or "") if meta else ""
    root = tree.body or tree.root
    return Page(
        title=" ".join(title.text().split()) if title else "",
        description=" ".join(described.split()),
        blocks=_blocks(root) if root else [],
    )


def _without_tags(text: str) -> Iterator[HtmlBlock]:
    """A page as text between tags, short lines together: there may be one in each four bytes."""
    plain = html.unescape(_ANY_TAG.sub("\n", text))
    lines: list[str] = []
    length = 0
    for begin, end in line_spans(plain, 0, len(plain)):
        line = " ".join(plain[begin:end].split())
        if line:
            lines.append(line)
            length += len(line)
        if length >= PROSE:
            yield HtmlBlock("\n".join(lines), 0, False, [])
            lines, length = [], 0
    if lines:
        yield HtmlBlock("\n".join(lines), 0, False, [])


def is_too_rich(data: bytes) -> bool:
    """Return whether a parser would take minutes for the tags of a page, or the attributes of one.

    Parsers need time by the square of the depth, and repeat every open tag of formatting in each
    paragraph that follows; they compare each attribute with all before it in its tag.
    """
    opened: Counter[bytes] = Counter()
    depth = formatting = end = count = 0
    for tag in _TAG.finditer(data := data.lower()):
        closes, name = tag.groups()
        count += not closes
        if count > MOST_TAGS:
            return True
        if tag.start() >= end and not closes:
            end = _ATTRIBUTES.match(data, tag.end()).end()  # type: ignore[union-attr] # or empty
            if end - tag.end() > _FEWEST_BYTES and _MANY_ATTRIBUTES.match(data, tag.end()):
                return True
        if name in _CLOSED_BY_THEMSELVES or (closes and not opened[name]):
            continue
        step = -1 if closes else 1
        opened[name] += step
        depth += step
        formatting += step if name in _FORMATTING else 0
        if depth > DEEPEST or formatting > DEEPEST_FORMATTING:
            return True
    return False


def _blocks(root: LexborNode) -> list[HtmlBlock]:
    """Walk the tree without recursion: pages may be nested as deep as they like."""
    blocks: list[tuple[HtmlBlock, float]] = []
    current = _Open()
    level = pre = 0
    frames = [0.0]

    def close() -> None:
        nonlocal current
        if block := current.closed(level, frames[-1], pre > 0):
            blocks.append(block)
        if current.parts or current.links:
            current = _Open()

    judged: dict[str, float] = {}
    for node, tag in _walk(root):
        if tag in _INLINE:
            if tag == "a" and node is not None:
                _link(node, current)
        elif tag in ("-text", "br"):
            if node is not None:
                current.parts.append(_seen(node) if tag == "-text" else "\n")
        elif node is None:
            close()
            frames.pop()
            level = 0 if tag in _HEADINGS else level
            pre -= tag == "pre"
        else:
            close()
            frames.append(max(frames[-1], _framing(node, tag, judged)))
            level = _HEADINGS.get(tag, level)
            pre += tag == "pre"
    close()
    return _judged(blocks)


def _walk(root: LexborNode) -> Iterator[tuple[LexborNode | None, str]]:
    """Every node that may be seen with its tag, and the tag alone where it ends.

    Neither recursion nor lists of children: pages may be as deep and as wide as they like.
    """
    opened: list[tuple[LexborNode, str]] = []
    node: LexborNode | None = root
    while node is not None:
        tag = node.tag or ""
        if tag in _HIDDEN:
            node = node.next
        else:
            yield node, tag
            opened.append((node, tag))
            node = node.first_child
        while node is None and opened:
            closed_node, tag = opened.pop()
            yield None, tag
            node = closed_node.next if opened else None


def _seen(node: LexborNode) -> str:
    return (node.text_content or "").replace("\xad", "")  # a soft hyphen is not seen


def _framing(node: LexborNode, tag: str, judged: dict[str, float]) -> float:
    """Whether an element opens a part of the frame: 1 by its tag, 0.5 by its names, else 0.

    The same few names come again and again, so that each is judged once for a page.
    """
    if tag in _FRAME:
        return 1.0
    if tag in ("body", "html", "article", "main"):
        return 0.0
    attributes = node.attributes
    if not attributes:
        return 0.0
    names = " ".join(attributes.get(name) or "" for name in ("class", "id", "role"))
    if names not in judged:
        judged[names] = 0.5 if _FRAME_NAME.search(names) else 0.0
    return judged[names]


def _judged(made: list[tuple[HtmlBlock, float]]) -> list[HtmlBlock]:
    """Decide which blocks are frame, from all blocks."""
    likely = sum(len(block.text) for block, frame in made if frame == 0)
    possible = sum(len(block.text) for block, frame in made if frame < 1)
    # A page that would be nearly all frame has merely named its matter strangely.
    least = 0.5 if likely > 0.1 * possible else 1.0
    sure = [frame < least and len(block.text) >= PROSE for block, frame in made]
    judged = []
    for n, (block, frame) in enumerate(made):
        # Short lines belong to the matter if prose is near.
        matter = frame < least and True in sure[max(n - NEAR, 0) : n + NEAR + 1]
        if block.frame == matter:
            block = HtmlBlock(block.text, block.level, not matter, block.links)  # noqa: PLW2901
        judged.append(block)
    return judged


def _link(node: LexborNode, current: _Open) -> None:
    href = (node.attributes.get("href") or "").strip()
    text = " ".join(node.text().split())
    current.linked += len(text)
    if href and not href.startswith(("#", "javascript:")):
        current.links.append((len(current.parts), text[:_LINK_CHARS], href))
