"""A report as Markdown: the question, what was found, where it stands, and the table of sources.

markdown: after report. What sources say is quoted in one line, with what Markdown would obey made
harmless: a source can draw no heading, link, image or tag of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from holdfast.quoting import inline
from holdfast.researching.records import Finding, Quote
from holdfast.researching.report import CitedSource, LeftOut, Report

_OBEYED = str.maketrans({c: f"\\{c}" for c in "\\`*[]<>|~"})
_NAMES_TOLD = 3


def markdown(report: Report) -> str:
    """The report."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {escaped(report.question)}"
    yield ""
    if report.summary:
        yield " ".join(
            f"{escaped(each.text)} [{', '.join(each.findings)}]" for each in report.summary
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
            yield f"## {escaped(question)}"
            yield ""
        for finding in findings:
            yield from finding_lines(finding, report)
        yield ""
    yield from _sources(report)


def finding_lines(finding: Finding, report: Report) -> Iterator[str]:
    """A finding: its claim and its places; a model's words with what they stand on."""
    quotes = finding.supporting
    number = f"{finding.id}: " if report.summary else ""
    places = "; ".join(places_of(quotes))
    if finding.claim == quotes[0].text:
        yield f"- {number}{escaped(finding.claim)} [{places}]"
    else:
        yield f"- {number}{escaped(finding.claim)}"
        for quote in quotes:
            yield f"  - “{escaped(quote.text)}” [{place(quote)}]"
    for quote in finding.contradicting:
        yield f"  - but: “{escaped(quote.text)}” [{place(quote)}]"


def source_line(source: CitedSource) -> str:
    """A row of the table of sources."""
    fidelity = source.fidelity
    share = f"{fidelity.level}, {fidelity.tokens_to:,} of {fidelity.tokens_from:,} tokens"
    return f"| {source.id} | {escaped(source.name)} | {source.ref} | {share} |"


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
        yield f"- {escaped(warning)}"


def _reasons(left_out: tuple[LeftOut, ...]) -> Iterator[str]:
    """Why sources were left out, those with one reason together."""
    for note, number in Counter(each.note for each in left_out).items():
        names = [each.name for each in left_out if each.note == note][:_NAMES_TOLD]
        more = f" and {number - len(names):,} more" if number > len(names) else ""
        yield f"- {', '.join(map(escaped, names))}{more}: {escaped(note)}"


def places_of(quotes: Iterable[Quote]) -> list[str]:
    """Where quotes stand; two on one line are one place."""
    return list(dict.fromkeys(map(place, quotes)))


def place(quote: Quote) -> str:
    """`S3, lines 4-7`."""
    return f"{quote.source}, {quote.where}"


def escaped(text: str) -> str:
    """A text of others in one line of ours."""
    line = inline(" ".join(text.split())).translate(_OBEYED)
    return f"\\{line}" if line[:1] in "#+-" and line else line
