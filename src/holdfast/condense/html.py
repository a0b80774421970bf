"""Web pages: the title, the headings, the beginning of the main text, the links.

Pages have no useful line numbers, so places are paragraphs: the passages of the page, counted from
1. Passages include all visible text, menus too; notes come from the main text only. Link addresses
are exact.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec
import re2  # type: ignore[import-untyped]

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.html_blocks import HtmlBlock, Link, read_page
from holdfast.condense.source import Source, once
from holdfast.condense.spans import LONGEST, SHORTEST, cut, first_sentence, quote
from holdfast.condense.text import warning_in

kind = "html"

SNIFFED = 3000
"""Bytes of the beginning that are looked at."""
HEAD = 600
"""Characters of the matter's beginning that are quoted."""
LINKS = 12
"""Maximum number of links listed."""
SAMPLES = 8
"""Maximum number of later paragraphs shown by their first sentence."""

_PAGE = re2.compile(rb"(?i)<(?:!doctype html|html|body|head)[\s>]")
_FIRST = re2.compile(
    rb"(?i)<(?:!doctype|!--|\?xml|html|head|body|title|meta|div|p|a|span|ul|ol|li|table|h[1-6]|br|section"
    rb"|article|main|header|nav|img|b|i|em|strong|pre|form|style|script|link)[\s/>-]?"
)
_TAG = re2.compile(rb"(?i)<(?:div|p|a|span|ul|li|table|h[1-6]|br|section|article|img)[\s/>]")


class Paragraph(msgspec.Struct, frozen=True):
    """Blocks that are shown together."""

    text: str
    """Begins with the heading, if it is the first under it."""
    heading: str
    opens: int
    """The level of the heading, if it is the first paragraph under it; else 0."""
    frame: bool
    links: list[Link]


def sniff(source: Source) -> float:
    """By a document's first tags, or by many tags of HTML."""
    head = source.data[:SNIFFED].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not _FIRST.match(head):
        return 0.0
    if _PAGE.search(head):
        return 0.97
    tags = len(_TAG.findall(head))
    return 0.8 if tags >= 3 and not head.startswith(b"<?xml") else 0.0


def condense(source: Source) -> Condensed:
    """Alerts and the beginning of the matter, then headings and links."""
    page = read_page(source)
    blocks = paragraphs(source)
    matter = [(n, block) for n, block in enumerate(blocks, 1) if not block.frame]
    notes = [
        Note("alert", quote(warning, 300), f"paragraph {n}")
        for n, block in matter
        if (warning := warning_in(block.text))
    ][:10]
    if page.description:
        number = next(
            n for n, block in enumerate(blocks, 1) if page.description.startswith(block.text)
        )
        notes.append(Note("sample", quote(page.description, 300), f"paragraph {number}"))
    notes += [*_samples(matter), *_headings(blocks), *_links(matter)]
    title = f' "{quote(page.title, 120)}"' if page.title else ""
    return Condensed(
        title=f"Web page{title}, {len(blocks):,} paragraphs, {len(matter):,} of them its main text",
        unit="paragraphs",
        total=len(blocks),
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """Paragraphs under their heading, with their links, menus and footers included."""
    return [
        Passage(_quoted(block), f"paragraph {n}") for n, block in enumerate(paragraphs(source), 1)
    ]


@once
def paragraphs(source: Source) -> list[Paragraph]:
    """The blocks of a page, short ones joined and long ones cut, each with its heading.

    The title and the description are the first two, if the page has them.
    """
    page = read_page(source)
    about = [HtmlBlock(text, 0, True, []) for text in (page.title, page.description) if text]
    pieces = [piece for block in about for piece in _pieces([block], "")]
    heading = ""
    for group in _groups(page.blocks):
        if group[0].level:
            heading = group[0].text
        pieces += _pieces(group, heading)
    return pieces


def _groups(blocks: Iterable[HtmlBlock]) -> Iterator[list[HtmlBlock]]:
    """Blocks joined until they have some length; a heading begins anew."""
    group: list[HtmlBlock] = []
    length = 0
    for block in blocks:
        turns = block.frame != group[-1].frame and not group[-1].level if group else False
        if group and (block.level or turns or length >= SHORTEST):
            yield group
            group, length = [], 0
        group.append(block)
        length += len(block.text)
    if group:
        yield group


def _pieces(group: list[HtmlBlock], heading: str) -> list[Paragraph]:
    text = "\n".join(block.text for block in group)
    links = deque(_placed(group))
    frame = all(block.frame for block in group)
    level = group[0].level
    pieces = []
    for start, end in cut(text, 0, len(text), LONGEST):
        # Each link belongs to the piece in which it begins; the last piece takes links without
        # text.
        current = []
        while links and (links[0][0] < end or end == len(text)):
            current.append(links.popleft()[1])
        pieces.append(Paragraph(text[start:end].rstrip(), heading, level, frame, current))
        level = 0
    return pieces


def _placed(group: list[HtmlBlock]) -> Iterator[tuple[int, Link]]:
    """Yield the links of a group with their positions in its text."""
    start = 0
    for block in group:
        yield from ((start + link.at, link) for link in block.links)
        start += len(block.text) + 1


def _quoted(one: Paragraph) -> str:
    headed = one.text if one.opens or not one.heading else f"{quote(one.heading, 100)}\n{one.text}"
    return f"{headed}\n{_listed(one.links)}" if one.links else headed


def _listed(links: Iterable[Link]) -> str:
    return "links: " + ", ".join(f"[{quote(link.shown, 60)}]({link.href})" for link in links)


def _samples(matter: Sequence[tuple[int, Paragraph]]) -> list[Note]:
    """The beginning of the matter, and how later paragraphs begin."""
    notes = []
    length = 0
    for n, block in matter:
        if length < HEAD:
            notes.append(Note("sample", next(_heads(block.text)), f"paragraph {n}"))
            length += len(block.text)
    later = matter[len(notes) :]
    step = -(-len(later) // SAMPLES) or 1
    notes += [
        Note("sample", first_sentence(block.text), f"paragraph {n}") for n, block in later[::step]
    ]
    return notes


def _heads(text: str) -> Iterator[str]:
    return (text[start:end].rstrip() for start, end in cut(text, 0, len(text), HEAD))


def _headings(shown: Sequence[Paragraph]) -> list[Note]:
    opening = [(n, block) for n, block in enumerate(shown, 1) if block.opens]
    lasts = [n - 1 for n, _ in opening[1:]] + [len(shown)]
    return [
        Note(
            "outline", f"{'#' * block.opens} {quote(block.heading, 100)}", f"paragraphs {n}-{last}"
        )
        for (n, block), last in zip(opening, lasts[: len(opening)], strict=True)
        if not block.frame
    ]


def _links(matter: Sequence[tuple[int, Paragraph]]) -> list[Note]:
    # An address may be linked twice, by a picture and by words: the words are shown.
    links: dict[str, Link] = {}
    for _, block in matter:
        for link in block.links:
            if link.href not in links or not links[link.href].shown:
                links[link.href] = link
    if not links:
        return []
    more = f", {len(links) - LINKS:,} more" if len(links) > LINKS else ""
    return [Note("outline", _listed(islice(links.values(), LINKS)) + more)]
