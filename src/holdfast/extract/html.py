"""The matter of a web page as text, with its title and date.

html: beside plain. trafilatura where it is installed: it knows the dates and the frames of many
sites. Else our own reader of blocks, which finds nine words of ten of the same.
"""

from __future__ import annotations

import importlib.util
from datetime import UTC, datetime
from typing import Any

from holdfast.condense.html_blocks import is_too_rich, read_page
from holdfast.condense.source import Source
from holdfast.extract.bounds import Extracted

_PACKAGE = "trafilatura"
_MOST_CHARACTERS = 2_000_000
"""For trafilatura, whose trees take fifty times their text; longer pages are read by our own."""
_HEADING = "#"


def read_web(page: str, url: str = "") -> Extracted:
    """The matter of a page: headings, paragraphs, lists and tables, without menus and footers."""
    if _is_for_trafilatura(page) and importlib.util.find_spec(_PACKAGE) is not None:
        web = _by_trafilatura(page, url)
        if web.text:
            return web
    return by_blocks(page)


def _is_for_trafilatura(page: str) -> bool:
    # A row of 400,000 cells or a tag of 100,000 attributes takes it minutes.
    return len(page) <= _MOST_CHARACTERS and not is_too_rich(page.encode("utf-8", "replace"))


def by_blocks(page: str) -> Extracted:
    """The same by our own reader; all visible text, if nothing in it looks like matter."""
    shown = read_page(Source(page.encode("utf-8", "replace")))
    matter = [block for block in shown.blocks if not block.frame] or shown.blocks
    lines = [
        f"{_HEADING * block.level} {block.text}" if block.level else block.text for block in matter
    ]
    return Extracted(text="\n\n".join(lines), title=shown.title)


def _by_trafilatura(page: str, url: str) -> Extracted:
    import trafilatura  # type: ignore[import-untyped,unused-ignore] # noqa: PLC0415 - optional, slow

    try:
        document: Any = trafilatura.bare_extraction(
            page, url=url or None, with_metadata=True, include_tables=True, output_format="markdown"
        )
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - five parsers below it; our own reader takes any page
        document = None
    if document is None:
        return Extracted(text="")
    return Extracted(
        text=document.text or "", title=document.title or "", published=_seconds(document.date)
    )


def _seconds(date: str | None) -> float | None:
    try:
        return datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp() if date else None
    except ValueError:
        return None
