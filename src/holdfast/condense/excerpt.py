"""excerpt: the window of a long text that answers a question, with both ends between words."""

from __future__ import annotations

from holdfast.condense.cutting import MARK, first_break, last_break
from holdfast.search.passages import best_window


def excerpt(text: str, question: str, most_characters: int) -> tuple[str, int, int]:
    """Return the window of a text that answers best, and its start and end in the text.

    No URL, path, number or word is cut at the ends of the window; `…` marks omitted text. With the
    marks it has at most `most_characters` characters.
    """
    if len(text) <= most_characters:
        return text, 0, len(text)
    room = max(0, most_characters - 2 * len(MARK))
    start = best_window(text, question, room)
    end = min(len(text), start + room)
    start = first_break(text, start, end)
    end = last_break(text, start, end)
    before = MARK if start > 0 else ""
    after = MARK if end < len(text) else ""
    return (before + text[start:end] + after)[: max(0, most_characters)], start, end
