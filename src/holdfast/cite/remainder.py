"""A content without the lines that stand in the conversation already: the rest, and where they are.

remainder: after composing, beside shortening. What is shown stands between fences, to the byte; a
line of ours in the place of what is left out says in which result above it is the same. That stays
true when that result gives way, then or later: the last line says how to open it here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.cite.citation import Citation, CitingRules, Excerpt, count
from holdfast.cite.composing import Composed, Handle, citation_of
from holdfast.condense.kinds import kind_of
from holdfast.condense.places import short_place
from holdfast.condense.source import Source
from holdfast.condense.spans import counted, where
from holdfast.privacy import apply, find, flags
from holdfast.quoting import CUT, bracketed, fenced
from holdfast.store.records import Content
from holdfast.store.refs import canonical, digest, ref_id

REPEATED = "repeated"
"""The level of a content of which all is shown that stands nowhere above."""
_SUMMARY = "A tool result of which lines stood in the conversation already"


class Standing(NamedTuple):
    """A stretch of a content that stands above."""

    start: int
    end: int
    place: str
    """The result it stands in, in words."""


def remainder(
    text: str, above: Sequence[Standing], *, tool: str, rules: CitingRules, with_ref: bool = True
) -> Citation:
    """Return a content without some stretches of it, which are in order and not empty.

    Without `with_ref` the ref is not shown, for requests that have no tool to open it: all that is
    left out can be read above.

    Raises:
        PrivacyError: it may not be stored, so that nothing of it may be left out either.
    """
    data = canonical(text)
    source = Source(data, tool=tool)
    findings = find(text)
    apply(rules.privacy, text, findings)
    sha256, kind = digest(data), kind_of(source)
    name = ref_id(kind, sha256, rules.ref_digits)
    parts = [Excerpt(text[a:b], _where(source, a, b), 0.0) for a, b in _between(text, above)]
    tokens = count(text)
    handle = (f"Stored as {name}; ", rules.opener) if with_ref else ("", "")
    written = "\n".join(_lines(name, source, tokens, above, parts, handle))
    original = Content(
        ref_id=name,
        kind=kind,
        sha256=sha256,
        data=data,
        summary=_SUMMARY,
        tokens=tokens,
        meta={"tool": tool} if tool else {},
        flags=flags(findings),
        ttl_seconds=rules.ttl_seconds,
    )
    unit = "line" if source.line_count == 1 else "lines"
    composed = Composed(
        written, _SUMMARY, count(written), tuple(parts), unit, total=source.line_count
    )
    return citation_of(original, composed, level=REPEATED)


def _between(text: str, above: Sequence[Standing]) -> Iterator[tuple[int, int]]:
    """What is shown; nothing of it is empty."""
    edges = [0, *(edge for stretch in above for edge in stretch[:2]), len(text)]
    spans = zip(edges[::2], edges[1::2], strict=True)
    return ((start, end) for start, end in spans if start < end)


def _where(source: Source, start: int, end: int) -> str:
    """A stretch in source units: whole lines, or a part of the only one."""
    if source.line_count == 1:
        return f"characters {start}-{end}"
    return short_place(where(source, start, end))


def _lines(
    name: str,
    source: Source,
    tokens: int,
    above: Sequence[Standing],
    parts: Sequence[Excerpt],
    handle: tuple[str, str],
) -> Iterator[str]:
    shown_name, opener = handle
    size = f"{counted(source.line_count, 'line')}, about {tokens:,} tokens"
    yield f"[{shown_name}{size}; parts that a result above repeats are left out]"
    example = ""
    waiting = iter(parts)
    at = 0
    for stretch in above:
        if stretch.start > at:
            yield fenced(next(waiting).text)
        span = _where(source, stretch.start, stretch.end)
        example = example or span
        yield f"{CUT}{span}: same as in the result above of {bracketed(stretch.place)} …]"
        at = stretch.end
    yield from (fenced(part.text) for part in waiting)
    if opener:
        yield Handle(name, opener, tokens, example).foot()
