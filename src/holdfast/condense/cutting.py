"""Positions where a text may be cut without splitting a URL, path, id, number or word.

Half a URL cannot be opened, and half a number is another number, so an item that does not fit is
omitted and `…` marks the gap. Work is linear in the length that is searched.
"""

from __future__ import annotations

MARK = "…"

_HARD = ' \n\t\r"<>`'
"""URLs, paths without spaces, ids and numbers never contain these characters."""
_SOFT = ",;|)}]"
"""Ends of cells and of values: good where nothing better is there, but URLs and paths have them."""
_IDEOGRAPHS = "\u2e80"
"""First code point of the scripts without spaces between words."""
_BLOB = 500
"""A longer run without a break is no name of anything, but base64 or minified code."""
_LONGEST_PATH = 300
_PATH_STARTS = ("/", "~/", "./", "../", "\\\\")


def shortened(text: str, most: int, *, goes_on: bool = False) -> str:
    """Return the text, or its beginning with a mark, in at most `most` characters.

    `goes_on` means that the original text is longer, so that its last word may be incomplete.
    """
    if len(text) <= most and not goes_on:
        return text
    high = max(0, min(most - 2, len(text) - 1))
    beginning = text[: last_break(text, 0, high)].rstrip()
    return f"{beginning} {MARK}" if beginning else MARK


def last_break(text: str, low: int, high: int) -> int:
    """Return the last position up to `high` where the text may end, or `low` if there is none.

    `high` is inside the text: the character there shows whether a word would be split.
    """
    if high >= len(text):
        return len(text)
    hard = max(text.rfind(sign, low, high + 1) for sign in _HARD)
    at = max(low, hard, _last_soft(text, max(low, hard + 1), high))
    return _before_quoted_path(text, low, at)


def first_break(text: str, low: int, high: int) -> int:
    """The first place from `low` on where a quote may begin; `high` if there is none before it."""
    if low <= 0 or text[low - 1] in _HARD:
        return max(0, low)
    ends = [at for sign in _HARD if (at := text.find(sign, low, high)) >= 0]
    hard = min(ends, default=high)
    begin = _run_begin(text, low)
    if not _is_named(text, begin, hard):
        soft = next((at for at in range(low, hard) if _is_soft(text, at)), None)
        if soft is not None:
            return soft
        if hard - begin > _BLOB:
            return low
    return min(hard + 1, high) if ends else high


def _last_soft(text: str, begin: int, high: int) -> int:
    """The last break inside a run without hard breaks; -1 if the run must stay whole."""
    end = min(
        (at for sign in _HARD if (at := text.find(sign, high, high + _BLOB)) >= 0), default=-1
    )
    end = end if end >= 0 else min(len(text), high + _BLOB)
    start = _run_begin(text, begin)
    if _is_named(text, start, end):
        return -1
    at = _last_sign(text, begin, high)
    if at > begin:
        return at
    return high if end - start > _BLOB else -1


def _last_sign(text: str, begin: int, high: int) -> int:
    """Return the last position in (`begin`, `high`] that follows a sign where the text may end.

    Searches for signs instead of testing every character: a megabyte of base64 has none.
    """
    if not text[begin : high + 1].isascii():
        return next((at for at in range(high, begin, -1) if _is_soft(text, at)), begin)
    at = max(text.rfind(sign, begin, high) + 1 for sign in _SOFT if sign != ",")
    comma = text.rfind(",", begin, high) + 1
    while comma > max(at, begin) and not _is_soft(text, comma):
        comma = text.rfind(",", begin, comma - 1) + 1
    return max(at, comma)


def _run_begin(text: str, at: int) -> int:
    low = max(0, at - _BLOB)
    return max(low, *(text.rfind(sign, low, at) + 1 for sign in _HARD))


def _is_named(text: str, begin: int, end: int) -> bool:
    """Whether a run is a URL or a path, in which signs of punctuation end nothing."""
    run = text[begin:end]
    if "://" in run:
        return True
    return len(run) <= _BLOB and ("/" in run or "\\" in run)


def _is_soft(text: str, at: int) -> bool:
    """Whether the text may end before this place by its signs alone."""
    before, after = text[at - 1], text[at : at + 1]
    if before in _SOFT:
        return not (before == "," and after.isdigit() and text[at - 2 : at - 1].isdigit())
    return before >= _IDEOGRAPHS and (not after or after >= _IDEOGRAPHS)


def _before_quoted_path(text: str, low: int, at: int) -> int:
    """A path in quotes may hold spaces, as those of Windows do: it is one thing."""
    for quote in "\"'":
        start = text.rfind(quote, max(low, at - _LONGEST_PATH), at)
        if start < 0 or not _starts_path(text[start + 1 : start + 4]):
            continue
        end = text.find(quote, at, at + _LONGEST_PATH)
        if end >= 0 and "\n" not in text[start:end]:
            return max(low, start)
    return at


def _starts_path(text: str) -> bool:
    return text.startswith(_PATH_STARTS) or (text[1:3] == ":\\" and text[:1].isalpha())
