"""Extract the main content of a web page as text, with its title and date.

trafilatura is used if it is installed, because it knows the dates and page frames of many sites.
Otherwise Holdfast's block reader is used, which finds nine of ten words of the same content.
"""

from __future__ import annotations

import importlib.util
from datetime import UTC, datetime
from typing import Any

from holdfast.condense.html_blocks import is_too_rich, read_page
from holdfast.condense.source import Source
from holdfast.extract.bounds import ExtractedText

_PACKAGE = "trafilatura"
# Longest page for trafilatura, whose trees take fifty times the text; the block reader takes longer
# ones.
_MOST_CHARACTERS = 2_000_000
_HEADING = "#"


def read_web(page: str, url: str = "") -> ExtractedText:
    """Return the headings, paragraphs, lists and tables of a page, without menus and footers."""
    if _is_for_trafilatura(page) and importlib.util.find_spec(_PACKAGE) is not None:
        web = _by_trafilatura(page, url)
        if web.text:
            return web
    return by_blocks(page)


def _is_for_trafilatura(page: str) -> bool:
    # A row of 400,000 cells or a tag of 100,000 attributes takes trafilatura minutes.
    return len(page) <= _MOST_CHARACTERS and not is_too_rich(page.encode("utf-8", "replace"))


def by_blocks(page: str) -> ExtractedText:
    """Return the main content by the block reader, or all visible text if it finds none."""
    parsed_page = read_page(Source(page.encode("utf-8", "replace")))
    content = [block for block in parsed_page.blocks if not block.frame] or parsed_page.blocks
    lines = [
        f"{_HEADING * block.level} {block.text}" if block.level else block.text for block in content
    ]
    return ExtractedText(text="\n\n".join(lines), title=parsed_page.title)


def _by_trafilatura(page: str, url: str) -> ExtractedText:
    import trafilatura  # type: ignore[import-untyped,unused-ignore] # noqa: PLC0415 - optional, slow

    try:
        document: Any = trafilatura.bare_extraction(
            page, url=url or None, with_metadata=True, include_tables=True, output_format="markdown"
        )
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - any of five parsers fails; the block reader does not
        document = None
    if document is None:
        return ExtractedText(text="")
    return ExtractedText(
        text=document.text or "", title=document.title or "", published=_seconds(document.date)
    )


def _seconds(date: str | None) -> float | None:
    try:
        return datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp() if date else None
    except ValueError:
        return None
