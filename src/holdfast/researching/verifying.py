"""A report held against the store once more, without a model: every quote, place, source and word.

verifying: after report, saving and places. It believes nothing that the report says: it opens every
ref by the full hash, compares bytes, lines and pages, holds each claim against its quotes again,
and each path and URL against what the run wrote down when it read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.errors import HoldfastError
from holdfast.researching.places import SourceContent
from holdfast.researching.records import Finding, SourceEntry
from holdfast.researching.report import CitedSource, Report, cited, left_out_of
from holdfast.researching.saving import gathered_by
from holdfast.store import Scope, Store
from holdfast.store.records import Stored
from holdfast.summarise.support import supported


class Fault(NamedTuple):
    """Something in a report that does not hold."""

    where: str
    """The finding or source."""
    what: str


class Verified(NamedTuple):
    """What a check came to."""

    quotes: int
    sources: int
    faults: tuple[Fault, ...]


async def verify(report: Report, store: Store, scope: Scope) -> Verified:
    """Check everything that a report says it stands on."""
    faults: list[Fault] = []
    contents: dict[str, SourceContent] = {}
    gathered = await gathered_by(store, scope, report.run) if report.run else {}
    if not gathered:
        faults.append(
            Fault("run", "the store has no record of it: paths and URLs are not borne out")
        )
    elif report.left_out != left_out_of(gathered.values()):
        faults.append(Fault("run", "other sources were left out than the report says"))
    for source in report.sources:
        entry = gathered.get(source.id)
        if gathered and (entry is None or cited(entry, source.fidelity) != source):
            faults.append(Fault(source.id, "is not the source that the run read under this number"))
        try:
            stored = await store.get(scope, source.ref, peek=True)
        except HoldfastError as error:
            faults.append(Fault(source.id, error.what))
            continue
        fault = _source_fault(source, stored)
        if fault or stored is None:
            faults.append(Fault(source.id, fault))
        elif source.id in contents:
            faults.append(Fault(source.id, "stands twice in the table of sources"))
        else:
            contents[source.id] = SourceContent(_entry(source), stored)
    faults += _unlisted(report)
    for finding in report.findings:
        faults += [Fault(finding.id, what) for what in _faults(finding, contents)]
    faults += _of_summary(report)
    quotes = sum(len(f.supporting) + len(f.contradicting) for f in report.findings)
    return Verified(quotes, len(report.sources), tuple(faults))


def bears_out(claim: str, quotes: str) -> bool:
    """Whether quotes say what a claim states: its numbers, names of code, URLs and quotations."""
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


def _unlisted(report: Report) -> Iterator[Fault]:
    """Sources that nobody cites, and findings that stand twice."""
    quoted = {q.source for f in report.findings for q in (*f.supporting, *f.contradicting)}
    for source in report.sources:
        if source.id not in quoted:
            yield Fault(source.id, "is listed and not cited")
    ids = [finding.id for finding in report.findings]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        yield Fault(name, "stands twice")


def _faults(finding: Finding, contents: dict[str, SourceContent]) -> Iterator[str]:
    if not finding.supporting:
        yield "has no quote"
        return
    for quote in (*finding.supporting, *finding.contradicting):
        content = contents.get(quote.source)
        if content is None:
            yield f"quotes {quote.source or 'nobody'}, which is not among the sources"
        elif not content.holds(quote):
            yield f"its quote does not stand at {quote.where} of {quote.source}"
    texts = [quote.text for quote in finding.supporting]
    if finding.claim not in texts and not bears_out(finding.claim, "\n".join(texts)):
        yield "states what its quotes do not say"


def _of_summary(report: Report) -> Iterator[Fault]:
    findings = {finding.id: finding for finding in report.findings}
    for number, statement in enumerate(report.summary, 1):
        where = f"sentence {number} of the summary"
        missing = [name for name in statement.findings if name not in findings]
        if missing or not statement.findings:
            yield Fault(where, f"stands on no finding: {', '.join(missing) or 'none is named'}")
            continue
        texts = [q.text for name in statement.findings for q in findings[name].supporting]
        if not bears_out(statement.text, "\n".join(texts)):
            yield Fault(where, "states what its findings do not say")
