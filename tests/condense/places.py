"""Open a place that a condenser names, as an expansion would."""

from __future__ import annotations

import re

from holdfast.condense.condenser import Condenser
from holdfast.condense.source import Source


def opened(source: Source, place: str, condenser: Condenser | None = None) -> str:
    """The text at a place; for paragraphs the condenser is needed that counted them."""
    if found := re.search(r"characters (\d+)-(\d+)\)?$", place):
        return source.text[int(found[1]) : int(found[2])]
    if found := re.search(r"lines (\d+)-(\d+)\)?$", place):
        first, last = int(found[1]), int(found[2])
        assert 1 <= first <= last <= source.line_count, place
        return source.lines(first, last)
    found = re.fullmatch(r"paragraphs? (\d+)(?:-(\d+))?", place)
    assert found, place
    assert condenser is not None
    first, last = int(found[1]), int(found[2] or found[1])
    parts = condenser.passages(source)[first - 1 : last]
    assert len(parts) == last - first + 1, place
    return "\n".join(part.text for part in parts)


def words(text: str) -> set[str]:
    """Return the words that fit in a passage completely."""
    return {word for word in text.split() if len(word) < 300}
