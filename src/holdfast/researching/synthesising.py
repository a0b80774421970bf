"""Findings → a model's summary of them, of which only sentences stay that the findings bear out.

synthesising: after agents. Findings go into the prompt first and whole, sources behind them and
harder compressed (000-58). In a refinement what was found so far is one item that may shrink, so
that rounds cannot grow without bound (000-60).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from holdfast.allocate import ContentItem, ContextBudgetManager
from holdfast.allocate.phases import budget_of_context
from holdfast.budget import PhaseBudget
from holdfast.errors import AllocationError, ModelError
from holdfast.researching.agents import is_borne
from holdfast.researching.asking import Asker, markers_in, questions_in
from holdfast.researching.places import SourceContent
from holdfast.researching.planning import MOST
from holdfast.researching.prompts import PLAN, REFINE, SYNTHESISE, SYSTEM
from holdfast.researching.records import Finding, ResearchState, Statement, Usage
from holdfast.researching.saving import Planned, Refined, Synthesised
from holdfast.settings import Settings
from holdfast.summarise.support import sentences_of

_NEW_QUESTIONS = 3


class Writer:
    """Plans, looks for what is missing, and sums up, by a model."""

    def __init__(self, asker: Asker, manager: ContextBudgetManager, settings: Settings) -> None:
        self.asker = asker
        self.manager = manager
        self.settings = settings

    async def plan(self, question: str, by_rules: Sequence[str]) -> Planned:
        """The questions in a question; those of the rules where the model gives none."""
        try:
            answer, usage = await self.asker.ask(PLAN.format(question=question, most=MOST))
        except ModelError:
            return Planned(tuple(by_rules), Usage(failures=1))
        return Planned(questions_in(answer, MOST) or tuple(by_rules), usage)

    async def refine(self, state: ResearchState, number: int) -> Refined:
        """Questions that are still open, none of which was asked before."""
        words = REFINE.format(question=state.query, most=_NEW_QUESTIONS)
        claims = "\n".join(f"- {finding.claim}" for finding in state.findings)
        context = ContentItem(source_id="findings", content=claims or "Nothing.", kind="context")
        try:
            room = self._room("refinement", words)
            allocation = await self.manager.allocate_budget(
                [context], room, "refinement", phase=f"refinement {number}", context=state.query
            )
            answer, usage = await self.asker.ask(f"{words}\n{allocation.text}")
        except (ModelError, AllocationError):
            return Refined((), Usage(failures=1))
        earlier = {" ".join(question.lower().split()) for question in state.sub_questions}
        questions = [q for q in questions_in(answer, _NEW_QUESTIONS) if q.lower() not in earlier]
        return Refined(tuple(questions), usage)

    async def summarise(
        self,
        state: ResearchState,
        findings: Sequence[Finding],
        contents: Mapping[str, SourceContent],
    ) -> Synthesised:
        """The settled findings, and the sentences on them that hold."""
        words = SYNTHESISE.format(question=state.query)
        cited = {quote.source for finding in findings for quote in finding.supporting}
        items = [_of_finding(finding) for finding in findings]
        items += [
            ContentItem(source_id=entry.id, content=contents[entry.id].text, quality=entry.quality)
            for entry in state.readable
            if entry.id in cited
        ]
        try:
            allocation = await self.manager.allocate_budget(
                items,
                self._room("synthesis", words),
                "findings_first",
                phase="synthesis",
                context=state.query,
            )
        except AllocationError as error:
            return Synthesised(findings=tuple(findings), warnings=(f"no summary: {error.what}",))
        try:
            answer, usage = await self.asker.ask(f"{words}\n{allocation.text}", last=True)
        except ModelError as error:
            return Synthesised(
                findings=tuple(findings),
                fidelity=allocation.fidelity_metadata,
                usage=Usage(failures=1),
                warnings=(f"no summary: {error.what}",),
            )
        summary, refused = _checked(answer, findings)
        return Synthesised(
            findings=tuple(findings),
            summary=summary,
            fidelity=allocation.fidelity_metadata,
            usage=usage + Usage(refused_claims=refused),
        )

    def _room(self, phase: str, words: str) -> PhaseBudget:
        around = self.asker.count(SYSTEM) + self.asker.count(words)
        return budget_of_context(phase, self.asker.context, self.settings, around=around)


def _of_finding(finding: Finding) -> ContentItem:
    quotes = "\n".join(f"“{quote.text}” ({quote.source})" for quote in finding.supporting)
    against = "".join(f"\nbut {q.source}: “{q.text}”" for q in finding.contradicting)
    return ContentItem(
        source_id=finding.id,
        content=f"{finding.claim}\n{quotes}{against}",
        kind="finding",
        confidence=finding.confidence,
        priority=min(1.0, 0.5 + finding.score / 2),
    )


def _checked(answer: str, findings: Sequence[Finding]) -> tuple[tuple[Statement, ...], int]:
    """The sentences that name findings which bear them out, and how many do not."""
    quotes = {f.id: "\n".join(q.text for q in f.supporting) for f in findings}
    statements: list[Statement] = []
    refused = 0
    for sentence in sentences_of(_behind_marks(answer)):
        text, names = markers_in(sentence.text)
        is_cited = bool(names) and all(name in quotes for name in names)
        if is_cited and text and is_borne(text, "\n".join(quotes[name] for name in names)):
            statements.append(Statement(text=text, findings=names))
        elif text:
            refused += 1
    return tuple(statements), refused


_BEHIND = re.compile(r"([.!?])((?:\s?\[F\d[^\]\n]{0,300}\])+)")


def _behind_marks(answer: str) -> str:
    """`It failed. [F1]` as `It failed [F1].`: markers behind a full stop belong before it."""
    return _BEHIND.sub(r" \2\1", answer)
