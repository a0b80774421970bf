"""Verify a report against the store without a model: every quote, place and source.

Nothing in the report is trusted. Every ref is opened by its full hash; bytes, lines and pages are
compared; each claim is checked against its quotes, and each path and URL against the run's record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.errors import HoldfastError
from holdfast.researching.places import SourceContent
from holdfast.researching.records import Finding, SourceEntry
from holdfast.researching.report import CitedSource, Report, cited_source, skipped_sources
from holdfast.researching.run_record import read_gathered
from holdfast.store import Scope, Store
from holdfast.store.records import Stored
from holdfast.summarise.support import supported


class ReportFault(NamedTuple):
    """A defect of a report."""

    where: str
    """The finding or source."""
    what: str


class VerificationResult(NamedTuple):
    """The result of a verification."""

    quotes: int
    sources: int
    faults: tuple[ReportFault, ...]


async def verify(report: Report, store: Store, scope: Scope) -> VerificationResult:
    """Verify all quotes, sources and claims of a report."""
    faults: list[ReportFault] = []
    contents: dict[str, SourceContent] = {}
    gathered = await read_gathered(store, scope, report.run) if report.run else {}
    if not gathered:
        faults.append(
            ReportFault("run", "the store has no record of it: paths and URLs are not borne out")
        )
    elif report.left_out != skipped_sources(gathered.values()):
        faults.append(ReportFault("run", "other sources were left out than the report says"))
    for source in report.sources:
        entry = gathered.get(source.id)
        if gathered and (entry is None or cited_source(entry, source.fidelity) != source):
            faults.append(
                ReportFault(source.id, "is not the source that the run read under this number")
            )
        try:
            stored = await store.get(scope, source.ref, peek=True)
        except HoldfastError as error:
            faults.append(ReportFault(source.id, error.what))
            continue
        fault = _source_fault(source, stored)
        if fault or stored is None:
            faults.append(ReportFault(source.id, fault))
        elif source.id in contents:
            faults.append(ReportFault(source.id, "stands twice in the table of sources"))
        else:
            contents[source.id] = SourceContent(_entry(source), stored)
    faults += _unlisted(report)
    for finding in report.findings:
        faults += [ReportFault(finding.id, what) for what in _faults(finding, contents)]
    faults += _of_summary(report)
    quotes = sum(len(f.supporting) + len(f.contradicting) for f in report.findings)
    return VerificationResult(quotes, len(report.sources), tuple(faults))


def supports(claim: str, quotes: str) -> bool:
    """Return whether quotes support a claim's numbers, code names, URLs and quotations."""
    return supported(claim, quotes).unsupported == 0


def _source_fault(source: CitedSource, stored: Stored | None) -> str:
    if stored is None:
        return "its content is not in the store"
    if stored.info.sha256 != source.sha256:
        return "the content under its ref is another"
    return ""


def _entry(source: CitedSource) -> SourceEntry:
    return SourceEntry(
        id=source.id, name=source.name, origin=source.origin, ref=source.ref, kind=source.kind
    )


def _unlisted(report: Report) -> Iterator[ReportFault]:
    """Yield sources that are not cited, and findings that occur twice."""
    quoted = {q.source for f in report.findings for q in (*f.supporting, *f.contradicting)}
    for source in report.sources:
        if source.id not in quoted:
            yield ReportFault(source.id, "is listed and not cited")
    ids = [finding.id for finding in report.findings]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        yield ReportFault(name, "stands twice")


def _faults(finding: Finding, contents: dict[str, SourceContent]) -> Iterator[str]:
    if not finding.supporting:
        yield "has no quote"
        return
    for quote in (*finding.supporting, *finding.contradicting):
        content = contents.get(quote.source)
        if content is None:
            yield f"quotes {quote.source or 'nobody'}, which is not among the sources"
        elif not content.has_quote(quote):
            yield f"its quote does not stand at {quote.where} of {quote.source}"
    texts = [quote.text for quote in finding.supporting]
    if finding.claim not in texts and not supports(finding.claim, "\n".join(texts)):
        yield "states what its quotes do not say"


def _of_summary(report: Report) -> Iterator[ReportFault]:
    findings = {finding.id: finding for finding in report.findings}
    for number, statement in enumerate(report.summary, 1):
        where = f"sentence {number} of the summary"
        missing = [name for name in statement.findings if name not in findings]
        if missing or not statement.findings:
            yield ReportFault(
                where, f"stands on no finding: {', '.join(missing) or 'none is named'}"
            )
            continue
        texts = [q.text for name in statement.findings for q in findings[name].supporting]
        if not supports(statement.text, "\n".join(texts)):
            yield ReportFault(where, "states what its findings do not say")
