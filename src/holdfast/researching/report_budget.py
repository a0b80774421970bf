"""Fit a report into its budget: as many findings as possible, best first.

The frame is counted first, so that there is always a report. Findings are added with the rows of
their sources, alternating between questions. The rendered report is counted again, and the last
findings are dropped until it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

import msgspec

from holdfast.allocate import ContentFidelityRecord, Rung
from holdfast.errors import ResearchError
from holdfast.researching.markdown import finding_lines, markdown, source_line
from holdfast.researching.records import Finding, ResearchState, SourceEntry
from holdfast.researching.report import Report, SourceFidelity, cited_source, skipped_sources
from holdfast.summarise.levels import RATIO, SummarizationLevel, level_for

PHASE = "report"
Count = Callable[[str], int]


def fit_report(
    state: ResearchState, budget: int, count: Count, *, model: str = "", run: str = ""
) -> Report:
    """Return the report of a state, with at most `budget` tokens as Markdown.

    Raises:
        ResearchError: if not even an empty report fits.
    """
    frame = _frame(state, budget, model, run)
    if count(markdown(frame)) > budget // 3:
        frame = msgspec.structs.replace(frame, brief=True)
    if count(markdown(frame)) > budget:
        raise ResearchError(
            f"a budget of {budget:,} tokens has no room for a report",
            where="budget",
            fix="Give at least 400.",
        )
    findings = _select(frame, state, budget - count(markdown(frame)), count)
    while True:
        report = _with_findings(frame, state, findings, count)
        if count(markdown(report)) <= budget or not findings:
            _record_fidelity(state, report)
            return report
        findings = findings[: -max(1, len(findings) // 50)]


def _frame(state: ResearchState, budget: int, model: str, run: str) -> Report:
    """Return the report without findings."""
    return Report(
        run=run,
        question=" ".join(state.query.split()),
        sub_questions=state.sub_questions,
        model=model,
        created=state.now,
        summary=state.summary,
        left_out=skipped_sources(state.sources),
        sources_read=len(state.readable),
        source_tokens=sum(entry.tokens for entry in state.readable),
        findings_left_out=len(state.findings),
        budget=budget,
        usage=state.usage,
        warnings=tuple(state.warnings),
    )


def _select(frame: Report, state: ResearchState, room: int, count: Count) -> list[Finding]:
    """Return findings that fit by estimated cost, those of the summary first."""
    entries = {entry.id: entry for entry in state.sources}
    findings: list[Finding] = []
    listed_ids: set[str] = set()
    for finding in _in_turns(state):
        new_ids = {q.source for q in (*finding.supporting, *finding.contradicting)} - listed_ids
        rows = [_row(entries[source]) for source in sorted(new_ids) if source in entries]
        cost = count("\n".join([*finding_lines(finding, frame), *rows])) + 1
        if cost <= room:
            room -= cost
            listed_ids |= new_ids
            findings.append(finding)
    return findings


def _row(entry: SourceEntry) -> str:
    widest = SourceFidelity(
        level=Rung.KEY_POINTS, tokens_from=max(entry.tokens, 1), tokens_to=max(entry.tokens, 1)
    )
    return source_line(cited_source(entry, widest))


def _in_turns(state: ResearchState) -> Iterator[Finding]:
    """Yield the findings of the summary, then each question's best, then each one's second best."""
    summarised_ids = {name for each in state.summary for name in each.findings}
    yield from (finding for finding in state.findings if finding.id in summarised_ids)
    others_left = [finding for finding in state.findings if finding.id not in summarised_ids]
    columns = [
        sorted((f for f in others_left if f.question == n), key=lambda f: -f.score)
        for n in range(len(state.sub_questions))
    ]
    for row in zip_longest(*columns):
        yield from (finding for finding in row if finding is not None)


def _with_findings(
    frame: Report, state: ResearchState, findings: Sequence[Finding], count: Count
) -> Report:
    ids = {finding.id for finding in findings}
    ordered = tuple(finding for finding in state.findings if finding.id in ids)
    quotes: dict[str, dict[int, str]] = {}
    for finding in ordered:
        for quote in (*finding.supporting, *finding.contradicting):
            quotes.setdefault(quote.source, {})[quote.start] = quote.text
    sources = [
        cited_source(entry, _fidelity(entry, "\n".join(quotes[entry.id].values()), count))
        for entry in state.sources
        if entry.id in quotes
    ]
    return msgspec.structs.replace(
        frame,
        findings=ordered,
        sources=tuple(sources),
        summary=tuple(each for each in state.summary if ids.issuperset(each.findings)),
        findings_left_out=len(state.findings) - len(ordered),
    )


def _fidelity(entry: SourceEntry, quoted: str, count: Count) -> SourceFidelity:
    """Return how much of a source is in the report: all of it, or the nearest level."""
    tokens = min(count(quoted), entry.tokens) if entry.tokens else count(quoted)
    if tokens >= 0.97 * entry.tokens:
        level = Rung.RAW
    else:
        nearest = level_for(entry.tokens, max(tokens, 1))
        level = Rung(max(nearest, SummarizationLevel.CONDENSED, key=lambda each: -RATIO[each]))
    return SourceFidelity(level=level, tokens_from=max(entry.tokens, tokens), tokens_to=tokens)


def _record_fidelity(state: ResearchState, report: Report) -> None:
    """Record how much of each source the report has."""
    fidelities = {source.id: source.fidelity for source in report.sources}
    records = {}
    for entry in state.readable:
        fidelity = fidelities.get(entry.id)
        record = ContentFidelityRecord(
            source_id=entry.id,
            phase=PHASE,
            level=fidelity.level if fidelity else Rung.DROPPED,
            requested_level=fidelity.level if fidelity else Rung.DROPPED,
            tokens_from=entry.tokens,
            tokens_to=fidelity.tokens_to if fidelity else 0,
            dropped=fidelity is None,
            reason="" if fidelity else "not cited",
            ref=entry.ref,
            sha256=entry.sha256,
        )
        records[record.key] = record
    state.note(records)
