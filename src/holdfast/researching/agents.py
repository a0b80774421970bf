"""Answer one sub-question with a sub-agent: a few sources, a prompt that fits, verified claims.

A sub-agent gets only the sources relevant to its question and can open no others. Of its answer,
only claims with a quotation that occurs word for word in a source are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.allocate import ContentItem, ContextBudgetManager, priorities
from holdfast.allocate.phases import budget_of_context
from holdfast.compat import Payload
from holdfast.compat.actions import action_message
from holdfast.errors import AllocationError, ModelError
from holdfast.expand.retrieval import ACTION, RetrievalResult
from holdfast.quoting import fenced
from holdfast.researching.model_calls import BudgetedModel, ModelClaim, parse_actions, parse_claims
from holdfast.researching.places import SourceContent
from holdfast.researching.prompts import AGAIN, ANALYSE, SYSTEM
from holdfast.researching.records import Finding, ModelUsage, ResearchState, SourceEntry
from holdfast.researching.run_record import AnalysisStep
from holdfast.researching.verification import supports
from holdfast.settings import Settings
from holdfast.summarise.support import shared_words

_ACTIONS = 3
"""Parts that one sub-agent may open."""
_LEAST_OPENED = 200
"""Minimum tokens of a part; with fewer it is useless."""
_LEAST_SHARED = 0.3
"""Share of a claim's words that its quote has; with less, the claim is about something else."""


class SubAgent:
    """Answers one question from its sources."""

    def __init__(
        self,
        asker: BudgetedModel,
        manager: ContextBudgetManager,
        settings: Settings,
        contents: Mapping[str, SourceContent],
    ) -> None:
        self.asker = asker
        self.manager = manager
        self.settings = settings
        self.contents = contents
        """Contents by source id, in which quotes are searched."""

    async def analyse(
        self,
        number: int,
        question: str,
        payload: Payload,
        entries: Sequence[SourceEntry],
        state: ResearchState,
    ) -> AnalysisStep:
        """Return the findings on a question; if the model fails, none and the reason."""
        phase = "analysis" if number == 0 else f"analysis {number + 1}"
        words = ANALYSE.format(question=question)
        around = self.asker.count(SYSTEM) + self.asker.count(words)
        room = budget_of_context("analysis", self.asker.context, self.settings, around=around)
        try:
            allocation = await self.manager.allocate_budget(
                await _items(payload, entries, state), room, phase=phase, context=question
            )
        except AllocationError as error:
            return AnalysisStep(question=number, findings=(), warnings=(_failure(question, error),))
        shown_ids = {part.source_id for part in allocation.parts}
        try:
            answer, usage = await self._converse(f"{words}\n{allocation.text}", payload)
        except ModelError as error:
            return AnalysisStep(
                question=number,
                findings=(),
                fidelity=allocation.fidelity_metadata,
                usage=ModelUsage(failures=1),
                warnings=(_failure(question, error),),
            )
        findings, refused = self._check_claims(number, parse_claims(answer), shown_ids)
        return AnalysisStep(
            question=number,
            findings=tuple(findings),
            fidelity=allocation.fidelity_metadata,
            usage=usage + refused,
            warnings=allocation.warnings,
        )

    async def _converse(self, prompt: str, payload: Payload) -> tuple[str, ModelUsage]:
        """Return the answer; if it asks to open parts, ask again with them."""
        answer, usage = await self.asker.ask(prompt)
        calls = [call for call in parse_actions(answer) if call["action"] == ACTION][:_ACTIONS]
        if not calls:
            return answer, usage
        longer_prompt = await self._extend_prompt(prompt, calls, payload)
        if not longer_prompt:
            return answer, usage
        second_answer, second_usage = await self.asker.ask(longer_prompt)
        return f"{answer}\n{second_answer}", usage + second_usage

    async def _extend_prompt(
        self, prompt: str, calls: Sequence[dict[str, Any]], payload: Payload
    ) -> str:
        """Return the prompt with the parts that calls open, as many as fit; empty if none does."""
        remaining = self.asker.context - self.asker.count(SYSTEM) - self.asker.count(prompt)
        for number in range(len(calls), 0, -1):
            # An opened part is JSON inside JSON: a third of the room is for quotes and names.
            room = max(_LEAST_OPENED, 2 * remaining // (3 * number))
            results = [await self._open_part(call, payload, room) for call in calls[:number]]
            message = await action_message(
                results,
                [{"name": ACTION}] * number,
                "research",
                settings=self.settings,
                store=payload.store,
            )
            opened = f"\n\n{AGAIN}\n{fenced(message['content'])}"
            if self.asker.count(opened) <= remaining:
                return f"{prompt}{opened}"
        return ""

    async def _open_part(self, call: dict[str, Any], payload: Payload, room: int) -> dict[str, Any]:
        """Return the result of an action in the usual form, limited to the payload's sources."""
        opened = await payload.retrieve(
            call.get("parameters"), count=self.asker.count, max_tokens=room
        )
        return _result(opened)

    def _check_claims(
        self, number: int, claims: Sequence[ModelClaim], shown_ids: set[str]
    ) -> tuple[list[Finding], ModelUsage]:
        """Return findings for the claims whose quote is in a source that was shown."""
        findings: list[Finding] = []
        bad_quotes = bad_claims = 0
        for place, claimed in enumerate(claims):
            content = self.contents.get(claimed.source) if claimed.source in shown_ids else None
            quote = content.find(claimed.quote) if content else None
            if quote is None:
                bad_quotes += 1
                continue
            claim = claimed.claim
            if not is_supported(claim, quote.text):
                bad_claims += 1
                # the quotation is in the source, the model's wording of it is not supported
                claim = quote.text
            score = round(1 - place / (len(claims) + 1), 4)
            findings.append(
                Finding(id="", question=number, claim=claim, supporting=(quote,), score=score)
            )
        return findings, ModelUsage(refused_quotes=bad_quotes, refused_claims=bad_claims)


def is_supported(claim: str, quotes: str) -> bool:
    """Return whether a claim in other words is about its quotes and states nothing else."""
    return supports(claim, quotes) and shared_words(claim, quotes) >= _LEAST_SHARED


def source_name(ref: str) -> str:
    """Return the name of a source in payloads, whatever the kind in its ref."""
    return f"src_{ref.rpartition(':')[2]}"


async def _items(
    payload: Payload, entries: Sequence[SourceEntry], state: ResearchState
) -> list[ContentItem]:
    """Return the sources of a payload as items of a prompt."""
    by_name = {source_name(entry.ref): entry for entry in entries}
    items = []
    # By name, because an allocation stores the same content under a ref of another kind.
    for record in {record.source_id: record for record in await payload.sources()}.values():
        entry = by_name[record.source_id]
        text = await payload.content(record.ref_id)
        if text:
            items.append(
                ContentItem(
                    source_id=entry.id,
                    content=text,
                    token_count=entry.tokens,
                    quality=entry.quality,
                    published=entry.published,
                )
            )
    scores = priorities(items, state)
    return [
        msgspec.structs.replace(item, priority=score)
        for item, score in zip(items, scores, strict=True)
    ]


def _result(opened: RetrievalResult) -> dict[str, Any]:
    inner = {"Message": opened.message, "Result": {"ResultCode": opened.result_code}}
    error = {} if opened.success else {"error": opened.message}
    return {"success": opened.success, "result": inner, **error}


def _failure(question: str, error: Exception) -> str:
    what = getattr(error, "what", type(error).__name__)
    return f"on “{question[:80]}” no model answered ({what}): quotations stand there"
