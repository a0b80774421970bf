"""The steps of a run as journal entries, from which a killed run resumes.

An entry is written after its step and never changed; the state is the result of all entries. If two
processes resume one run, the second to write is rejected.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.allocate import ContentFidelityRecord
from holdfast.errors import ResearchError
from holdfast.researching.records import (
    Finding,
    ModelUsage,
    ResearchState,
    SearchHit,
    SourceEntry,
    SummarySentence,
)
from holdfast.store import Scope, Store
from holdfast.store.refs import digest

_JOURNAL = "research"


class RunStart(msgspec.Struct, frozen=True, tag="begun"):
    """The start of a run: question and time."""

    question: str
    now: float


class PlanStep(msgspec.Struct, frozen=True, tag="planned"):
    """The sub-questions of the question."""

    sub_questions: tuple[str, ...]
    usage: ModelUsage = ModelUsage()


class SearchStep(msgspec.Struct, frozen=True, tag="searched"):
    """The results of web searches, recorded because a repeated search may return others."""

    hits: tuple[SearchHit, ...]
    warnings: tuple[str, ...] = ()


class GatherStep(msgspec.Struct, frozen=True, tag="gathered"):
    """A batch of sources that were read."""

    sources: tuple[SourceEntry, ...]


class GatherEnd(msgspec.Struct, frozen=True, tag="gathered_all"):
    """The end of gathering: all sources were read."""


class AnalysisStep(msgspec.Struct, frozen=True, kw_only=True, tag="analysed"):
    """The findings on one question."""

    question: int
    findings: tuple[Finding, ...]
    fidelity: dict[str, ContentFidelityRecord] = {}
    usage: ModelUsage = ModelUsage()
    warnings: tuple[str, ...] = ()


class RefinementStep(msgspec.Struct, frozen=True, tag="refined"):
    """The new questions of a refinement; none if the answer is complete."""

    sub_questions: tuple[str, ...]
    usage: ModelUsage = ModelUsage()


class SynthesisStep(msgspec.Struct, frozen=True, kw_only=True, tag="synthesised"):
    """The numbered findings, and the checked summary of a model."""

    findings: tuple[Finding, ...]
    summary: tuple[SummarySentence, ...] = ()
    fidelity: dict[str, ContentFidelityRecord] = {}
    usage: ModelUsage = ModelUsage()
    warnings: tuple[str, ...] = ()


Step = (
    RunStart
    | PlanStep
    | SearchStep
    | GatherStep
    | GatherEnd
    | AnalysisStep
    | RefinementStep
    | SynthesisStep
)


class RunRecord:
    """The journal of one run and its resulting state."""

    def __init__(self, store: Store, scope: Scope, run: str) -> None:
        self._store, self._scope = store, scope.of(run)
        self.run = run
        self.state = ResearchState()
        self.searched = False
        self.gathered = False
        self.refinements: list[tuple[str, ...]] = []
        self.analysed: set[int] = set()
        self.synthesised = False
        self._next = 1

    async def open(self, *, resume: bool) -> None:
        """Resume from the journal, or start a new run.

        Raises:
            ResearchError: if there is nothing to resume.
        """
        if not resume:
            await self._start_new()
            return
        entries = await self._store.journal.read(self._scope, _JOURNAL)
        if not entries:
            raise ResearchError(
                "no run of this question over these sources was begun",
                where="--resume",
                fix="Leave --resume out, or give the same question, options and unchanged sources.",
            )
        for entry in entries:
            self._apply(msgspec.json.decode(entry.data, type=Step))
        self._next = entries[-1].sequence + 1

    async def _start_new(self) -> None:
        session = await self._store.session(self._scope)
        if session is not None and session.closed_at is not None:
            # The contents of a closed run may be deleted within the hour, and a session cannot be
            # reopened. So the new run starts without them.
            await self._store.delete_session(self._scope)
        await self._store.journal.forget(self._scope, _JOURNAL)

    async def add(self, step: Step) -> None:
        """Append a step; it is durable when this returns."""
        data = msgspec.json.encode(step)
        self._next = await self._store.journal.append(
            self._scope, _JOURNAL, [data], expect=self._next
        )
        self._apply(step)

    def _apply(self, step: Step) -> None:
        state = self.state
        match step:
            case RunStart(question, now):
                state.query, state.now = question, now
            case PlanStep(sub_questions):
                state.sub_questions = sub_questions
            case SearchStep(hits):
                self.searched = True
                state.search_hits.extend(hits)
            case GatherStep(sources):
                state.sources.extend(sources)
                state.search_hits = _with_refs(state.search_hits, sources)
            case GatherEnd():
                self.gathered = True
            case AnalysisStep():
                self.analysed.add(step.question)
                state.findings.extend(step.findings)
                state.note(step.fidelity)
            case RefinementStep(sub_questions):
                self.refinements.append(sub_questions)
                state.sub_questions += sub_questions
                state.rounds += bool(sub_questions)
            case SynthesisStep():
                self.synthesised = True
                state.findings = list(step.findings)
                state.summary = step.summary
                state.note(step.fidelity)
        if isinstance(step, PlanStep | AnalysisStep | RefinementStep | SynthesisStep):
            state.usage += step.usage
        if isinstance(step, SearchStep | AnalysisStep | SynthesisStep):
            state.warnings.extend(step.warnings)


def _with_refs(hits: Sequence[SearchHit], sources: Sequence[SourceEntry]) -> list[SearchHit]:
    """Return hits with the refs of their fetched pages."""
    refs = {entry.name: entry.ref for entry in sources if entry.origin == "search" and entry.ref}
    return [
        msgspec.structs.replace(hit, content_citation_id=refs.get(hit.url, hit.content_citation_id))
        for hit in hits
    ]


async def is_recorded(store: Store, scope: Scope, run: str) -> bool:
    """Return whether a store has the steps of a run."""
    return _JOURNAL in await store.journal.names(scope.of(run))


async def read_gathered(store: Store, scope: Scope, run: str) -> dict[str, SourceEntry]:
    """Return the sources of a run by id; none if the store has no record of it."""
    record = RunRecord(store, scope, run)
    try:
        await record.open(resume=True)
    except ResearchError:
        return {}
    return {entry.id: entry for entry in record.state.sources}


def run_name(parts: Sequence[str]) -> str:
    """Return the name of a run, which is equal for equal question, options and source contents."""
    return f"research-{digest(msgspec.json.encode(parts))[:16]}"
