"""Quote untrusted content so that it cannot imitate Holdfast's own lines in a conversation.

A tool result may be a page written to manipulate a model and may contain any line that Holdfast
writes. Content therefore appears in one of three forms: as a list item (`item`), between fences
(`fenced`), or escaped within a line (`inline`, `bracketed`); text that was only cut keeps its
lines, but lines that look like Holdfast's are indented (`set_in`).
"""

from __future__ import annotations

import re

STORED = "[Stored as "
READ_MORE = "[Read more: "
FOLDED = "[Folded: "
MEMORY = "[Memory: "
CUT = "[… "
CUT_AGAIN = "[…]"
"""Follows lines that were selected from the cut part."""
NO_MORE = "[No more can be opened in this turn: {why}. Continue with what you have.]"
SHOWN_ABOVE = (
    "[Already shown above: the same call returns the same part. Answer with what you have, or open "
    "another part.]"
)
NO_STORE = "[The store is not available. Answer with what you have.]"
NOT_OPENED = "[Opening failed: internal error. Answer with what you have.]"
NOTHING_SAID = "[No earlier messages match. Answer with what you have.]"
WAS = "It was: "
HEADINGS = {
    "key": "Key lines:",
    "alert": "Errors and warnings:",
    "outline": "Outline:",
    "ends": "Beginning and end:",
    "sample": "Samples:",
    "other": "Other matches:",
    "answer": "Best matches:",
}
"""The order in which a citation shows them. Small models answer from the last heading: a 1.5B model
answered from an outline below the matching line.
"""

_SHAPES = (
    re.escape("[ref:"),  # the first line of a citation, of a page, and of why there is none
    r"\[[\d,.]{1,20} \w{1,20} remains?: ",
    r"\[stale - ",
    *(re.escape(words.rstrip()) for words in (STORED, READ_MORE, FOLDED, MEMORY, CUT, WAS)),
    *map(re.escape, HEADINGS.values()),
    *(
        re.escape(" ".join(words.split()[:2]))
        for words in (NO_MORE, SHOWN_ABOVE, NO_STORE, NOT_OPENED, NOTHING_SAID)
    ),
)
"""Regular expressions for the start of Holdfast's lines; a truncated start matches too."""

# Every character that a model or program may treat as a line end: those of Unicode, and the control
# characters at which `str.splitlines` splits.
_END = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_LINE_END = re.compile(f"\r\n|[{_END}]")
# Invisible characters may precede the first visible one of a line. Line ends are excluded, so that
# no character is scanned twice.
_UNSEEN = f"(?:(?![{_END}])\\s|[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff])*"
_LIKE_OURS = re.compile(f"(\\A|[{_END}])(?={_UNSEEN}(?:{'|'.join(_SHAPES)}))", re.IGNORECASE)
_BRACKET_LIKE_OURS = re.compile(
    f"\\[(?={'|'.join(shape[2:] for shape in _SHAPES if shape.startswith(chr(92)))})", re.IGNORECASE
)
_BACKTICKS = re.compile("`+")
_LEAST_FENCE = 3
_BRACKETS = str.maketrans({"[": "(", "]": ")", "【": "(", "】": ")", "［": "(", "］": ")"})  # noqa: RUF001
INDENT = "  "


def item(text: str) -> str:
    """Return a content as a list item, none of whose further lines can look like Holdfast's."""
    return f"- {indented(text)}"


def indented(text: str) -> str:
    """Return a content with two spaces before each line except the first.

    Removing two spaces after each line end restores the content exactly.
    """
    return _LINE_END.sub(rf"\g<0>{INDENT}", text)


def fenced(text: str) -> str:
    """Return a content between Markdown fences longer than any run of backticks inside."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(_LEAST_FENCE, longest + 1)
    gap = "" if text.endswith("\n") else "\n"
    return f"{fence}\n{text}{gap}{fence}"


def set_in(text: str) -> str:
    """Return an untrusted text with its lines that look like Holdfast's indented."""
    return _LIKE_OURS.sub(rf"\1{INDENT}", text)


def in_one_line(text: str) -> str:
    """Return an untrusted text as one line; brackets that look like Holdfast's become round."""
    return _BRACKET_LIKE_OURS.sub("(", " ".join(text.split()))


def inline(text: str) -> str:
    """Return a name or position from a content with invisible characters escaped.

    The escapes are those of JSON, so that a copied path still resolves.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def bracketed(text: str) -> str:
    """Return a name or position for use inside Holdfast's brackets, which it cannot close."""
    return inline(text).translate(_BRACKETS)


def _escaped(character: str) -> str:
    code = ord(character)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
