"""The steps of a run as entries of a journal: what was done is gone on from, whoever was killed.

saving: after records. An entry is written when its step is done and never changed; the state is
what all entries come to. Two processes that go on from one run are told apart: the second to write
is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.allocate import ContentFidelityRecord
from holdfast.errors import ResearchError
from holdfast.researching.records import (
    Finding,
    ResearchState,
    SearchHit,
    SourceEntry,
    Statement,
    Usage,
)
from holdfast.store import Scope, Store
from holdfast.store.refs import digest

_JOURNAL = "research"


class Begun(msgspec.Struct, frozen=True, tag="begun"):
    """A run began: what is asked, and when."""

    question: str
    now: float


class Planned(msgspec.Struct, frozen=True, tag="planned"):
    """The questions in the question."""

    sub_questions: tuple[str, ...]
    usage: Usage = Usage()


class Searched(msgspec.Struct, frozen=True, tag="searched"):
    """A search was asked for pages; a service may name others the next time."""

    hits: tuple[SearchHit, ...]
    warnings: tuple[str, ...] = ()


class Gathered(msgspec.Struct, frozen=True, tag="gathered"):
    """Some sources were read."""

    sources: tuple[SourceEntry, ...]


class GatheredAll(msgspec.Struct, frozen=True, tag="gathered_all"):
    """All sources were read."""


class Analysed(msgspec.Struct, frozen=True, kw_only=True, tag="analysed"):
    """One question was answered as far as the sources go."""

    question: int
    findings: tuple[Finding, ...]
    fidelity: dict[str, ContentFidelityRecord] = {}
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()


class Refined(msgspec.Struct, frozen=True, tag="refined"):
    """What is still missing was asked for; no new questions end the refinement."""

    sub_questions: tuple[str, ...]
    usage: Usage = Usage()


class Synthesised(msgspec.Struct, frozen=True, kw_only=True, tag="synthesised"):
    """The findings were settled, and a model's summary of them checked."""

    findings: tuple[Finding, ...]
    summary: tuple[Statement, ...] = ()
    fidelity: dict[str, ContentFidelityRecord] = {}
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()


Step = Begun | Planned | Searched | Gathered | GatheredAll | Analysed | Refined | Synthesised


class Record:
    """The journal of one run, and the state that it comes to."""

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
        """Go on from what is written, or begin anew.

        Raises:
            ResearchError: there is nothing to go on from.
        """
        if not resume:
            await self._begin_anew()
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

    async def _begin_anew(self) -> None:
        session = await self._store.session(self._scope)
        if session is not None and session.closed_at is not None:
            # What a closed run used may go within the hour, and this run will use it: a session
            # cannot be opened again, so that it begins without what the closed one left.
            await self._store.delete_session(self._scope)
        await self._store.journal.forget(self._scope, _JOURNAL)

    async def add(self, step: Step) -> None:
        """Write a step down; then it is done."""
        data = msgspec.json.encode(step)
        self._next = await self._store.journal.append(
            self._scope, _JOURNAL, [data], expect=self._next
        )
        self._apply(step)

    def _apply(self, step: Step) -> None:
        state = self.state
        match step:
            case Begun(question, now):
                state.query, state.now = question, now
            case Planned(sub_questions):
                state.sub_questions = sub_questions
            case Searched(hits):
                self.searched = True
                state.search_hits.extend(hits)
            case Gathered(sources):
                state.sources.extend(sources)
                state.search_hits = _fetched(state.search_hits, sources)
            case GatheredAll():
                self.gathered = True
            case Analysed():
                self.analysed.add(step.question)
                state.findings.extend(step.findings)
                state.note(step.fidelity)
            case Refined(sub_questions):
                self.refinements.append(sub_questions)
                state.sub_questions += sub_questions
                state.rounds += bool(sub_questions)
            case Synthesised():
                self.synthesised = True
                state.findings = list(step.findings)
                state.summary = step.summary
                state.note(step.fidelity)
        if isinstance(step, Planned | Analysed | Refined | Synthesised):
            state.usage += step.usage
        if isinstance(step, Searched | Analysed | Synthesised):
            state.warnings.extend(step.warnings)


def _fetched(hits: Sequence[SearchHit], sources: Sequence[SourceEntry]) -> list[SearchHit]:
    """Hits with the refs of the pages that were fetched for them (003-41)."""
    refs = {entry.name: entry.ref for entry in sources if entry.origin == "search" and entry.ref}
    return [
        msgspec.structs.replace(hit, content_citation_id=refs.get(hit.url, hit.content_citation_id))
        for hit in hits
    ]


async def is_recorded(store: Store, scope: Scope, run: str) -> bool:
    """Whether a store has the steps of a run."""
    return _JOURNAL in await store.journal.names(scope.of(run))


async def gathered_by(store: Store, scope: Scope, run: str) -> dict[str, SourceEntry]:
    """The sources of a run by their ids; none if the store has no record of it."""
    record = Record(store, scope, run)
    try:
        await record.open(resume=True)
    except ResearchError:
        return {}
    return {entry.id: entry for entry in record.state.sources}


def run_of(parts: Sequence[str]) -> str:
    """The name of a run: the same for the same question, options and contents of sources."""
    return f"research-{digest(msgspec.json.encode(parts))[:16]}"
