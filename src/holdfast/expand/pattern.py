"""Where a regular expression matches, with line numbers or paths and what stands beside it.

pattern: after opened. RE2 takes time in proportion to the text, whatever the pattern; its length,
the text it is tried on and the number of hits have limits all the same.
"""

from __future__ import annotations

import re2  # type: ignore[import-untyped]

from holdfast.document import Document
from holdfast.errors import ExpandError
from holdfast.expand.opened import Opened
from holdfast.expand.region import Region, blocks, listed
from holdfast.expand.rows import Nothing

MOST_CHARACTERS = 1000
"""Of a pattern."""
MOST_BYTES = 32 * 1024 * 1024
"""Of the text it is tried on."""
MOST_HITS = 500
_CONTEXT_LINES = 1
_LONGEST_LINE = 400
_BESIDE = 120
_MEMORY = 16 * 1024 * 1024

Hit = tuple[int, int]
"""Where a match begins and ends in the text."""


def by_pattern(opened: Opened, pattern: str) -> Region:
    """The places that match, in order."""
    hits, ignored_case = _hits(opened, pattern)
    if not hits:
        raise Nothing(
            "nothing matches the pattern, with or without regard to case",
            "Try a shorter pattern, or query with a question.",
        )
    document = opened.source.document
    if document is not None and opened.base(document) == 0 and _has_long_lines(opened, hits):
        region = _in_json(document, hits)
    else:
        region = _in_lines(opened, hits)
    number = f"first {MOST_HITS}" if len(hits) >= MOST_HITS else f"{len(hits)} in all"
    region.total = f" ({number}, ignoring case)" if ignored_case else f" ({number})"
    return region


def _hits(opened: Opened, pattern: str) -> tuple[list[Hit], bool]:
    if len(pattern) > MOST_CHARACTERS:
        raise ExpandError(
            "the pattern is too long",
            where="options.pattern",
            fix=f"Use at most {MOST_CHARACTERS} characters.",
        )
    for ignore_case in (False, True):
        found = _search(opened.text, pattern, ignore_case=ignore_case)
        if found:
            return found, ignore_case
    return [], False


def _search(text: str, pattern: str, *, ignore_case: bool) -> list[Hit]:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.case_sensitive = not ignore_case
    data = text.encode("utf-8", "replace")[:MOST_BYTES]
    found: list[Hit] = []
    try:
        compiled = re2.compile(f"(?m:{pattern})".encode("utf-8", "replace"), options)
        for match in compiled.finditer(data):
            if match.end() > match.start():
                found.append(match.span())
            if len(found) >= MOST_HITS:
                break
    except re2.error:
        raise ExpandError(
            "the pattern is no regular expression that RE2 takes",
            where="options.pattern",
            fix="Escape signs like ( [ . with a backslash; back-references and look-around "
            "are not supported.",
        ) from None
    return found if text.isascii() else _in_characters(data, found)


def _in_characters(data: bytes, spans: list[Hit]) -> list[Hit]:
    """Byte offsets as offsets into the text."""
    made, seen, at = [], 0, 0
    for start, end in spans:
        first = at + len(data[seen:start].decode("utf-8", "ignore"))
        last = first + len(data[start:end].decode("utf-8", "ignore"))
        made.append((first, last))
        seen, at = end, last
    return made


def _has_long_lines(opened: Opened, hits: list[Hit]) -> bool:
    starts = [*opened.source.line_starts, len(opened.text)]
    numbers = {opened.source.line_at(start) for start, _ in hits[:20]}
    return any(starts[number] - starts[number - 1] > _LONGEST_LINE for number in numbers)


def _in_lines(opened: Opened, hits: list[Hit]) -> Region:
    source = opened.source
    by_line: dict[int, Hit] = {}
    for start, end in hits:
        by_line.setdefault(source.line_at(start), (start, end))
    groups: list[list[int]] = []
    for number in by_line:
        if groups and number - groups[-1][-1] <= 2 * _CONTEXT_LINES + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    texts, places = [], []
    for group in groups:
        first = max(1, group[0] - _CONTEXT_LINES)
        last = min(source.line_count, group[-1] + _CONTEXT_LINES)
        shown = [_line(opened, number, by_line.get(number)) for number in range(first, last + 1)]
        texts.append("\n".join(shown))
        places.append(f"lines {first}-{last}")
    return blocks(texts, listed(places), "hits")


def _line(opened: Opened, number: int, hit: Hit | None) -> str:
    """A line with its number: `40:` has a hit, `41-` stands beside one."""
    text = opened.source.lines(number, number).rstrip("\r\n")
    begin = opened.source.line_starts[number - 1]
    if len(text) > _LONGEST_LINE:
        start, end = (hit[0] - begin, hit[1] - begin) if hit else (0, 0)
        text = _window(text, start, min(end, len(text)))
    return f"{number}{':' if hit else '-'} {text}"


def _window(text: str, start: int, end: int) -> str:
    first, last = max(0, start - _BESIDE), min(len(text), min(end, start + 200) + _BESIDE)
    return ("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")


def _in_json(document: Document, hits: list[Hit]) -> Region:
    texts: dict[str, str] = {}
    for start, end in hits:
        node = document.node_at(start)
        # A hit in a key stands before the value; it is shown with it.
        first = min(start, node.start)
        whole = document.text[first : node.end]
        if len(whole) > _LONGEST_LINE:
            whole = _window(whole, start - first, min(end, node.end) - first)
        known = texts.get(node.path)
        texts[node.path] = whole if known is None or whole in known else f"{known} {whole}"
    shown = [f"{path}: {text}" for path, text in texts.items()]
    return blocks(shown, listed(list(texts)), "hits")
