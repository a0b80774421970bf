"""Parts of texts that can be shown alone: cut between words, and unable to imitate our lines.

Works on text, not on messages. A cut never splits a URL, a path, an id, a number or a character of
several code points: half of one is worse than none, because it still looks complete. Each search
has a bounded window, so a cut costs as much as the text that it shows.
"""

from __future__ import annotations

import unicodedata

import re2  # type: ignore[import-untyped]

from holdfast.condense.severity import alert_lines, level, rank
from holdfast.condense.source import Source
from holdfast.quoting import CUT, CUT_AGAIN, in_one_line, set_in

_ENDS_WORD = frozenset(" \t\r\n\v\f\"'`<>[]{}|")
"""What no URL, path or number holds."""
_ENDS_PART = frozenset(",;()=&!")
"""What ends a word too, unless the word is a URL: there they are its own."""
_LONGEST_URL = 4096
"""Signed URLs have up to some 2,000 characters."""
_LONGEST_WORD = 512
"""Keys and paths are shorter; longer words are data, such as an image in base64."""
_JOINERS = frozenset("\u200d\ufe0e\ufe0f\u20e3")
_LONGEST_CHARACTER = 64
"""Code points; families and flags have eleven, longer ones are attacks."""
_LINE_SHARE = 3
"""A cut moves back to the end of a line if that costs at most this part of the shown text."""
_ALERT_CHARACTERS = 200
_MOST_ALERTS = 5
_LEAST_ALERTS_ROOM = 240
"""Characters for lines with errors, also if a result is cut to a few words."""

# Security warnings are shown even if the result is not marked as an error. The word "security"
# alone is not one: it occurs in every second file of a web server.
_SECURITY = re2.compile(
    rb"(?i)security[ _-]*(?:warning|alert|notice|advisor|risk|issue|incident|violation)"
    rb"|(?:warning|alert|critical|danger|caution)[^\n]{0,40}security"
    rb"|vulnerabilit|\bcve-\d{4}-\d{4}|prompt[ -]injection"
)
_SECURITY_STEMS = (b"ecurity", b"ECURITY", b"ulnerab", b"ULNERAB", b"cve-", b"CVE-", b"njection")


# How tools begin that only report a failure: Python and Java name the exception, shells the file,
# MCP servers and SDKs write JSON with `error` first. A line that merely contains the word (`0
# errors`, `error handling is in api.py`) is an ordinary result.
_ERROR = re2.compile(
    rb"(?i)^[\s\[<(*!#>-]{0,9}"
    rb"(?:(?:[a-z_.]{0,60}(?:error|exception)|err|fatal|failure|panic|traceback)(?:[\])>*]|\s?[:!(])"
    rb"|(?:[a-z]{1,20} )?(?:failed|unable|could not) [a-z]|cannot [a-z]"
    rb'|\{\s{0,9}"(?:error|errors|exception)"\s{0,9}:\s{0,9}(?:"[^"]|\{\s{0,9}"|\[\s{0,9}["{]|true))'
    rb"|: (?:no such file or directory|command not found|permission denied|not found|is a directory"
    rb"|operation not permitted|connection refused)\W{0,3}$"
)
_LONGEST_ERROR = 1000
"""Characters; a longer text is a result with an error in it, or a log of a failure."""
_ERROR_LOOKED_AT = 400


def before(text: str, most: int) -> str:
    """Return the beginning of a text, at most `most` characters, ended between words."""
    if len(text) <= most:
        return text
    return text[: _line_end(text, _gap_before(text, most))]


def after(text: str, most: int) -> str:
    """Return the end of a text, at most `most` characters, started between words."""
    if len(text) <= most:
        return text
    return text[_line_start(text, _gap_after(text, len(text) - most)) :] if most else ""


def middle_cut(
    text: str, most: int, ref: str = "", opener: str = "", *, one_line: bool = False
) -> str:
    """Return the beginning and the end of a text, with a line on the gap and its worst lines.

    Lines of the text that look like ours are indented. With `one_line`, the result is one line.
    """
    head = before(text, most * 2 // 3)
    tail = after(text[len(head) :], most // 3)
    middle = text[len(head) : len(text) - len(tail)]
    alerts = alert_excerpts(middle, max(_LEAST_ALERTS_ROOM, most // 3))
    omitted = len(middle) - sum(map(len, alerts))
    way = f': {opener}("{ref}")' if ref and opener else ""
    mark = f"{CUT}{omitted} characters cut{way} …]"
    ends = head.rstrip("\n"), tail.lstrip("\n")
    quoted = in_one_line if one_line else set_in
    worst = [*map(quoted, alerts), CUT_AGAIN] if alerts else []
    lines = [quoted(ends[0]), mark, *worst, quoted(ends[1])]
    return (" " if one_line else "\n").join(line for line in lines if line)


def alert_excerpts(text: str, most: int) -> list[str]:
    """Return the lines with errors, then with warnings, within `most` characters; in order."""
    source = Source(text.encode("utf-8", "surrogatepass"))
    numbers = alert_lines(source)
    if not numbers:
        return []
    lines = text.split("\n")
    # A long log may have an error in each line: the first hundred and the last are looked at.
    numbers = numbers if len(numbers) <= 200 else numbers[:100] + numbers[-100:]
    excerpts = {n: before(lines[n - 1].strip(), _ALERT_CHARACTERS) for n in numbers}
    gravest = sorted(excerpts, key=lambda n: (-rank(excerpts[n], level(excerpts[n])), n))
    chosen = []
    for n in gravest[:_MOST_ALERTS]:
        if rank(excerpts[n], level(excerpts[n])) < 2 or len(excerpts[n]) > most:
            continue
        chosen.append(n)
        most -= len(excerpts[n])
    return [excerpts[n] for n in sorted(chosen)]


def security_line(data: bytes) -> bytes:
    """The first line that warns of something about security; empty if there is none."""
    if not any(stem in data for stem in _SECURITY_STEMS):
        return b""
    warning = _SECURITY.search(data)
    if warning is None:
        return b""
    start = max(data.rfind(b"\n", 0, warning.start()) + 1, warning.start() - _ALERT_CHARACTERS)
    stop = data.find(b"\n", warning.start())
    return data[start : len(data) if stop < 0 else stop]


def error_line(text: str) -> str:
    """Return the first line of a short result that is only an error, else "".

    OpenAI's dialects cannot mark a call as failed, so that only the text shows it.
    """
    if len(text) > _LONGEST_ERROR:
        return ""
    line = text.strip()[:_ERROR_LOOKED_AT].partition("\n")[0]
    return line if _ERROR.search(line.encode("utf-8", "replace")) else ""


def quote(text: str, most: int) -> str:
    """Return a text as a quotation of at most `most` characters, for use inside our brackets.

    The text can neither end the quotation nor the bracket, nor begin a line: it cannot imitate our
    own lines.
    """
    return f'"{plain(text, most)}"'


def plain(text: str, most: int) -> str:
    """Return a text in one line, without characters that could end our brackets or quotations."""
    # A text of a megabyte is not read for a line of it; space in front is rare and short.
    words = " ".join(text[: most * 8].translate(_TAMED).split())
    words = "".join(c for c in words if c.isprintable())
    return words if len(words) <= most else f"{before(words, most)}…"


_TAMED = str.maketrans(
    {"[": "(", "]": ")", '"': "'", "【": "(", "】": ")", "［": "(", "］": ")"}  # noqa: RUF001
)


def _gap_before(text: str, at: int) -> int:
    """The last place up to `at` that is between words."""
    start, _ = _word_around(text, at)
    return start


def _gap_after(text: str, at: int) -> int:
    """The first place from `at` on that is between words."""
    _, stop = _word_around(text, at)
    return stop


def _word_around(text: str, at: int) -> tuple[int, int]:
    """Return the bounds of the word around a position; the position itself between words."""
    low = _reach(text, at, -1, _ENDS_WORD, _LONGEST_URL)
    high = _reach(text, at, 1, _ENDS_WORD, _LONGEST_URL)
    if "://" not in text[low:high]:
        low = max(low, _reach(text, at, -1, _ENDS_PART, _LONGEST_URL))
        high = min(high, _reach(text, at, 1, _ENDS_PART, _LONGEST_URL))
        if high - low > _LONGEST_WORD:
            low = high = at
    elif high - low > _LONGEST_URL:
        low = high = at
    if low < at < high:
        return low, high
    return _character_around(text, at)


def _reach(text: str, at: int, step: int, ends: frozenset[str], most: int) -> int:
    """Return the end of a word from a position, in one direction."""
    bound = max(0, at - most) if step < 0 else min(len(text), at + most)
    while at != bound:
        n = at - 1 if step < 0 else at
        if text[n] in ends and not _in_number(text, n):
            break
        at += step
    return at


def _in_number(text: str, n: int) -> bool:
    """Whether the comma at a place belongs to a number: 1,234."""
    return text[n] == "," and text[n - 1 : n].isdigit() and text[n + 1 : n + 2].isdigit()


def _character_around(text: str, at: int) -> tuple[int, int]:
    low = high = at
    floor, ceiling = max(0, at - _LONGEST_CHARACTER), min(len(text), at + _LONGEST_CHARACTER)
    while floor < low < len(text) and _joined(text, low):
        low -= 1
    while 0 < high < ceiling and _joined(text, high):
        high += 1
    return low, high


def _joined(text: str, at: int) -> bool:
    """Return whether the code points around a position are one character."""
    previous, right = text[at - 1], text[at]
    if previous.isascii() and right.isascii():
        return previous == "\r" and right == "\n"
    return (
        right in _JOINERS
        or previous == "\u200d"
        or unicodedata.category(right).startswith("M")
        or "\U0001f3fb" <= right <= "\U0001f3ff"  # the tone of a skin
        or (_is_region(previous) and _is_region(right))  # a flag is two letters
        or ("\ud800" <= previous <= "\udbff" and "\udc00" <= right <= "\udfff")
    )


def _is_region(letter: str) -> bool:
    return "\U0001f1e6" <= letter <= "\U0001f1ff"


def _line_end(text: str, at: int) -> int:
    """The end of the last line before a place, if it is near."""
    end = text.rfind("\n", at - at // _LINE_SHARE, at)
    return at if end < 0 else end + 1


def _line_start(text: str, at: int) -> int:
    """Return the start of the next line after a position, if it is near."""
    end = text.find("\n", at, at + (len(text) - at) // _LINE_SHARE)
    return at if end < 0 else end + 1
