"""Our own lines in a conversation, and content beside them that cannot pass for one of ours.

voice: beneath all that writes into a conversation; it knows no message and no kind. A tool's result
may be a page that somebody wrote to be read by a model, and such a page may hold any line that we
write. So content is quoted in one of three ways, each the same for the same content:

    excerpts   `- ` before each, two spaces before its further lines: see `item`
    pages      between two fences that are longer than any run of backticks within: see `fenced`
    a word     in one line, without what would end a bracket of ours: see `inline` and `bracketed`

Whatever else stands in a citation, a digest or a page, is ours. A text that was only cut keeps its
lines as they are, for it may be the user's; those that look like ours are set in: see `set_in`.
"""

from __future__ import annotations

import re

STORED = "[Stored as "
READ_MORE = "[Read more: "
FOLDED = "[Folded: "
MEMORY = "[Memory: "
CUT = "[… "
CUT_AGAIN = "[…]"
"""Behind lines that were picked from what was cut."""
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
"""In the order in which a citation shows them: small models take what comes last for the answer. A
1.5B model answered from an outline below the right line (issue 28)."""

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
"""How our lines begin, as regular expressions; one that a cut has shortened is like ours too."""

# All that a model or a program may take for the end of a line: those of Unicode, and the control
# characters at which Python's splitlines parts too.
_END = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_LINE_END = re.compile(f"\r\n|[{_END}]")
# Between the end of a line and its first visible character may stand what nobody sees. No end of a
# line is among it, so that no character is looked at twice.
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
    """A content as an item of a list, of which no further line begins where ours do."""
    return f"- {indented(text)}"


def indented(text: str) -> str:
    """A content with two spaces before each line but its first, which stands behind words of ours.

    Whoever takes away two spaces behind each end of a line has the content as it was.
    """
    return _LINE_END.sub(rf"\g<0>{INDENT}", text)


def fenced(text: str) -> str:
    """A content as it stands, between fences as Markdown has them: nothing within can end it."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(_LEAST_FENCE, longest + 1)
    gap = "" if text.endswith("\n") else "\n"
    return f"{fence}\n{text}{gap}{fence}"


def set_in(text: str) -> str:
    """A text of somebody else's with two spaces before those of its lines that look like ours."""
    return _LIKE_OURS.sub(rf"\1{INDENT}", text)


def in_one_line(text: str) -> str:
    """The same where all is one line, ours among it: brackets that look like ours are rounded."""
    return _BRACKET_LIKE_OURS.sub("(", " ".join(text.split()))


def inline(text: str) -> str:
    """A name or a place of the content in a line of ours: what is no visible character is escaped.

    Escaped as in JSON, so that a path with such a key can be copied back and leads there.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def bracketed(text: str) -> str:
    """The same inside a bracket of ours, which it cannot end."""
    return inline(text).translate(_BRACKETS)


def _escaped(character: str) -> str:
    code = ord(character)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
