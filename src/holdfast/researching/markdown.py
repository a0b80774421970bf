"""A report as Markdown: the question, the findings with their places, the table of sources.

Text from sources is in one line with escaped Markdown, so that a source cannot add a heading, link,
image or tag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from holdfast.quoting import inline
from holdfast.researching.records import Finding, Quote
from holdfast.researching.report import CitedSource, Report, SkippedSource

_ESCAPES = str.maketrans({c: f"\\{c}" for c in "\\`*[]<>|~"})
_MOST_NAMES = 3


def markdown(report: Report) -> str:
    """Return the report as Markdown."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {escape_line(report.question)}"
    yield ""
    if report.summary:
        yield " ".join(
            f"{escape_line(each.text)} [{', '.join(each.findings)}]" for each in report.summary
        )
        yield ""
    if not report.findings:
        yield "Nothing in the sources answers this."
        yield ""
    for number, question in enumerate(report.sub_questions):
        findings = [f for f in report.findings if f.question == number]
        if not findings:
            continue
        if len(report.sub_questions) > 1:
            yield f"## {escape_line(question)}"
            yield ""
        for finding in findings:
            yield from finding_lines(finding, report)
        yield ""
    yield from _sources(report)


def finding_lines(finding: Finding, report: Report) -> Iterator[str]:
    """Yield the lines of a finding: its claim and places; a model's claim with its quotations."""
    quotes = finding.supporting
    number = f"{finding.id}: " if report.summary else ""
    places = "; ".join(places_of(quotes))
    if finding.claim == quotes[0].text:
        yield f"- {number}{escape_line(finding.claim)} [{places}]"
    else:
        yield f"- {number}{escape_line(finding.claim)}"
        for quote in quotes:
            yield f"  - “{escape_line(quote.text)}” [{place(quote)}]"
    for quote in finding.contradicting:
        yield f"  - but: “{escape_line(quote.text)}” [{place(quote)}]"


def source_line(source: CitedSource) -> str:
    """Return a row of the table of sources."""
    fidelity = source.fidelity
    share = f"{fidelity.level}, {fidelity.tokens_to:,} of {fidelity.tokens_from:,} tokens"
    return f"| {source.id} | {escape_line(source.name)} | {source.ref} | {share} |"


def _sources(report: Report) -> Iterator[str]:
    if report.sources:
        yield "| source | | ref | quoted |"
        yield "|---|---|---|---|"
        yield from map(source_line, report.sources)
        yield ""
    uncited = report.sources_read - len(report.sources)
    if uncited > 0:
        yield f"{uncited:,} more were read and are not cited."
    if report.findings_left_out:
        yield f"{report.findings_left_out:,} more findings had no room."
    if report.left_out:
        yield f"{len(report.left_out):,} were left out{'.' if report.brief else ':'}"
        if not report.brief:
            yield from _reasons(report.left_out)
    for warning in report.warnings if not report.brief else ():
        yield f"- {escape_line(warning)}"


def _reasons(left_out: tuple[SkippedSource, ...]) -> Iterator[str]:
    """Yield why sources were left out, grouped by reason."""
    for note, number in Counter(each.note for each in left_out).items():
        names = [each.name for each in left_out if each.note == note][:_MOST_NAMES]
        more = f" and {number - len(names):,} more" if number > len(names) else ""
        yield f"- {', '.join(map(escape_line, names))}{more}: {escape_line(note)}"


def places_of(quotes: Iterable[Quote]) -> list[str]:
    """Return the places of quotes, each once."""
    return list(dict.fromkeys(map(place, quotes)))


def place(quote: Quote) -> str:
    """Return a place as text: `S3, lines 4-7`."""
    return f"{quote.source}, {quote.where}"


def escape_line(text: str) -> str:
    """Return a foreign text as one line with escaped Markdown."""
    line = inline(" ".join(text.split())).translate(_ESCAPES)
    return f"\\{line}" if line[:1] in "#+-" and line else line
