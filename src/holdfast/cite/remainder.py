"""Write a content without the lines that earlier results in the conversation show.

remainder: after composition, beside shortened_content. The remaining text is quoted exactly between
fences. A line of Holdfast replaces each omitted part and names the result that shows it. If that
result is later replaced too, the call in the last line opens the part here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.cite.citation import Citation, CitingRules, Excerpt, count
from holdfast.cite.composition import CitationText, Handle, citation_of
from holdfast.condense.kinds import kind_of
from holdfast.condense.places import short_place
from holdfast.condense.source import Source
from holdfast.condense.spans import counted, where
from holdfast.privacy import apply, find, flags
from holdfast.quoting import CUT, bracketed, fenced
from holdfast.store.records import Content
from holdfast.store.refs import canonical, digest, ref_id

REPEATED = "repeated"
"""The level of a content that is quoted except for parts that earlier results show."""
_SUMMARY = "A tool result of which lines stood in the conversation already"


class RepeatedStretch(NamedTuple):
    """A stretch of a content that an earlier result shows."""

    start: int
    end: int
    place: str
    """The name of that result."""


def remainder(
    text: str,
    above: Sequence[RepeatedStretch],
    *,
    tool: str,
    rules: CitingRules,
    with_ref: bool = True,
) -> Citation:
    """Return a content without some stretches, which must be in order and not empty.

    Without `with_ref` the ref is not shown, for requests without a tool that opens it: the earlier
    results show all omitted parts.

    Raises:
        PrivacyError: The content may not be stored, so no part of it may be omitted.
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
    composed = CitationText(
        written, _SUMMARY, count(written), tuple(parts), unit, total=source.line_count
    )
    return citation_of(original, composed, level=REPEATED)


def _between(text: str, above: Sequence[RepeatedStretch]) -> Iterator[tuple[int, int]]:
    """Yield the spans between the stretches; none is empty."""
    edges = [0, *(edge for stretch in above for edge in stretch[:2]), len(text)]
    spans = zip(edges[::2], edges[1::2], strict=True)
    return ((start, end) for start, end in spans if start < end)


def _where(source: Source, start: int, end: int) -> str:
    """Return the name of a stretch: lines, or characters if the content is one line."""
    if source.line_count == 1:
        return f"characters {start}-{end}"
    return short_place(where(source, start, end))


def _lines(
    name: str,
    source: Source,
    tokens: int,
    above: Sequence[RepeatedStretch],
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
