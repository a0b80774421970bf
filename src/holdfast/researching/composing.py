"""A state → a report that fits its budget: as many findings as there is room for, the best first.

composing: after report and markdown. The frame is counted first, so that there is always a report;
then findings are added, each with the row of its source, the questions taking turns. What was added
is counted again as it is drawn, and the last go until it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

import msgspec

from holdfast.allocate import ContentFidelityRecord, Rung
from holdfast.errors import ResearchError
from holdfast.researching.markdown import finding_lines, markdown, source_line
from holdfast.researching.records import Finding, ResearchState, SourceEntry
from holdfast.researching.report import Fidelity, Report, cited, left_out_of
from holdfast.summarise.levels import RATIO, SummarizationLevel, level_for

PHASE = "report"
Count = Callable[[str], int]


def compose(
    state: ResearchState, budget: int, count: Count, *, model: str = "", run: str = ""
) -> Report:
    """The report of a state, of at most so many tokens as Markdown.

    Raises:
        ResearchError: not even an empty report fits.
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
    findings = _fitting(frame, state, budget - count(markdown(frame)), count)
    while True:
        report = _with_findings(frame, state, findings, count)
        if count(markdown(report)) <= budget or not findings:
            _note(state, report)
            return report
        findings = findings[: -max(1, len(findings) // 50)]


def _frame(state: ResearchState, budget: int, model: str, run: str) -> Report:
    """The report before anything is found."""
    return Report(
        run=run,
        question=" ".join(state.query.split()),
        sub_questions=state.sub_questions,
        model=model,
        created=state.now,
        summary=state.summary,
        left_out=left_out_of(state.sources),
        sources_read=len(state.readable),
        source_tokens=sum(entry.tokens for entry in state.readable),
        findings_left_out=len(state.findings),
        budget=budget,
        usage=state.usage,
        warnings=tuple(state.warnings),
    )


def _fitting(frame: Report, state: ResearchState, room: int, count: Count) -> list[Finding]:
    """Findings that fit by what each would cost; those that the summary stands on come first."""
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
    widest = Fidelity(
        level=Rung.KEY_POINTS, tokens_from=max(entry.tokens, 1), tokens_to=max(entry.tokens, 1)
    )
    return source_line(cited(entry, widest))


def _in_turns(state: ResearchState) -> Iterator[Finding]:
    """What the summary stands on, then the best of each question, then the second best."""
    summarised_ids = {name for each in state.summary for name in each.findings}
    yield from (finding for finding in state.findings if finding.id in summarised_ids)
    rest = [finding for finding in state.findings if finding.id not in summarised_ids]
    columns = [
        sorted((f for f in rest if f.question == n), key=lambda f: -f.score)
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
        cited(entry, _fidelity(entry, "\n".join(quotes[entry.id].values()), count))
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


def _fidelity(entry: SourceEntry, quoted: str, count: Count) -> Fidelity:
    """What stands of a source in the report: all of it, or the level that its share comes to."""
    tokens = min(count(quoted), entry.tokens) if entry.tokens else count(quoted)
    if tokens >= 0.97 * entry.tokens:
        level = Rung.RAW
    else:
        nearest = level_for(entry.tokens, max(tokens, 1))
        level = Rung(max(nearest, SummarizationLevel.CONDENSED, key=lambda each: -RATIO[each]))
    return Fidelity(level=level, tokens_from=max(entry.tokens, tokens), tokens_to=tokens)


def _note(state: ResearchState, report: Report) -> None:
    """Write down what the report holds of each source that was read."""
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
