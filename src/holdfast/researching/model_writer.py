"""A model's plan, refinement and summary; only summary sentences that findings support are kept.

The prompt has the findings first and in full, and the sources after them, compressed more. In a
refinement the earlier findings are one item that may shrink, so that prompts do not grow per round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from holdfast.allocate import ContentItem, ContextBudgetManager
from holdfast.allocate.phases import budget_of_context
from holdfast.budget import PhaseBudget
from holdfast.errors import AllocationError, ModelError
from holdfast.researching.agents import is_supported
from holdfast.researching.model_calls import BudgetedModel, parse_questions, split_markers
from holdfast.researching.places import SourceContent
from holdfast.researching.prompts import PLAN, REFINE, SYNTHESISE, SYSTEM
from holdfast.researching.records import Finding, ModelUsage, ResearchState, SummarySentence
from holdfast.researching.run_record import PlanStep, RefinementStep, SynthesisStep
from holdfast.researching.sub_questions import MOST
from holdfast.settings import Settings
from holdfast.summarise.support import sentences_of

_NEW_QUESTIONS = 3


class ModelWriter:
    """Plans, refines and summarises with a model."""

    def __init__(
        self, asker: BudgetedModel, manager: ContextBudgetManager, settings: Settings
    ) -> None:
        self.asker = asker
        self.manager = manager
        self.settings = settings

    async def plan(self, question: str, by_rules: Sequence[str]) -> PlanStep:
        """Return the model's sub-questions; those of the rules if it returns none."""
        try:
            answer, usage = await self.asker.ask(PLAN.format(question=question, most=MOST))
        except ModelError:
            return PlanStep(tuple(by_rules), ModelUsage(failures=1))
        return PlanStep(parse_questions(answer, MOST) or tuple(by_rules), usage)

    async def refine(self, state: ResearchState, number: int) -> RefinementStep:
        """Return questions that are still open and were not asked before."""
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
            return RefinementStep((), ModelUsage(failures=1))
        earlier = {" ".join(question.lower().split()) for question in state.sub_questions}
        questions = [q for q in parse_questions(answer, _NEW_QUESTIONS) if q.lower() not in earlier]
        return RefinementStep(tuple(questions), usage)

    async def summarise(
        self,
        state: ResearchState,
        findings: Sequence[Finding],
        contents: Mapping[str, SourceContent],
    ) -> SynthesisStep:
        """Return the numbered findings, and the model's sentences that they support."""
        words = SYNTHESISE.format(question=state.query)
        cited = {quote.source for finding in findings for quote in finding.supporting}
        items = [_finding_item(finding) for finding in findings]
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
            return SynthesisStep(findings=tuple(findings), warnings=(f"no summary: {error.what}",))
        try:
            answer, usage = await self.asker.ask(f"{words}\n{allocation.text}", last=True)
        except ModelError as error:
            return SynthesisStep(
                findings=tuple(findings),
                fidelity=allocation.fidelity_metadata,
                usage=ModelUsage(failures=1),
                warnings=(f"no summary: {error.what}",),
            )
        summary, refused = _check_sentences(answer, findings)
        return SynthesisStep(
            findings=tuple(findings),
            summary=summary,
            fidelity=allocation.fidelity_metadata,
            usage=usage + ModelUsage(refused_claims=refused),
        )

    def _room(self, phase: str, words: str) -> PhaseBudget:
        around = self.asker.count(SYSTEM) + self.asker.count(words)
        return budget_of_context(phase, self.asker.context, self.settings, around=around)


def _finding_item(finding: Finding) -> ContentItem:
    quotes = "\n".join(f"“{quote.text}” ({quote.source})" for quote in finding.supporting)
    against = "".join(f"\nbut {q.source}: “{q.text}”" for q in finding.contradicting)
    return ContentItem(
        source_id=finding.id,
        content=f"{finding.claim}\n{quotes}{against}",
        kind="finding",
        confidence=finding.confidence,
        priority=min(1.0, 0.5 + finding.score / 2),
    )


def _check_sentences(
    answer: str, findings: Sequence[Finding]
) -> tuple[tuple[SummarySentence, ...], int]:
    """Return the sentences whose findings support them, and the number of others."""
    quotes = {f.id: "\n".join(q.text for q in f.supporting) for f in findings}
    statements: list[SummarySentence] = []
    refused = 0
    for sentence in sentences_of(_move_markers(answer)):
        text, names = split_markers(sentence.text)
        is_cited = bool(names) and all(name in quotes for name in names)
        if is_cited and text and is_supported(text, "\n".join(quotes[name] for name in names)):
            statements.append(SummarySentence(text=text, findings=names))
        elif text:
            refused += 1
    return tuple(statements), refused


_AFTER_STOP = re.compile(r"([.!?])((?:\s?\[F\d[^\]\n]{0,300}\])+)")


def _move_markers(answer: str) -> str:
    """Move markers before the full stop: `It failed. [F1]` becomes `It failed [F1]`."""
    return _AFTER_STOP.sub(r" \2\1", answer)
