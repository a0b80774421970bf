"""One sub-question for one sub-agent: its own few sources, a prompt that fits, claims that hold.

agents: after asking and places. A sub-agent gets a payload of the sources that bear on its question
and can open no other (003-38). It starts with what an allocation shows of them, may open parts with
"Retrieve Stored Content", and only what stands word for word in a source comes back from it.
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
from holdfast.expand.retrieval import ACTION, Retrieved
from holdfast.quoting import fenced
from holdfast.researching.asking import Asker, Claimed, actions_in, claims_in
from holdfast.researching.places import SourceContent
from holdfast.researching.prompts import AGAIN, ANALYSE, SYSTEM
from holdfast.researching.records import Finding, ResearchState, SourceEntry, Usage
from holdfast.researching.saving import Analysed
from holdfast.researching.verifying import bears_out
from holdfast.settings import Settings
from holdfast.summarise.support import shared_words

_ACTIONS = 3
"""Parts that one sub-agent may open."""
_LEAST_OPENED = 200
"""Tokens of a part below which it says too little."""
_LEAST_SHARED = 0.3
"""The share of a claim's words that its quote has: below it, the claim speaks of something else."""


class SubAgent:
    """Answers one question from the sources it is given."""

    def __init__(
        self,
        asker: Asker,
        manager: ContextBudgetManager,
        settings: Settings,
        contents: Mapping[str, SourceContent],
    ) -> None:
        self.asker = asker
        self.manager = manager
        self.settings = settings
        self.contents = contents
        """Sources by their ids: what quotes are looked for in."""

    async def analyse(
        self,
        number: int,
        question: str,
        payload: Payload,
        entries: Sequence[SourceEntry],
        state: ResearchState,
    ) -> Analysed:
        """The findings on a question; where the model fails, none, and why."""
        phase = "analysis" if number == 0 else f"analysis {number + 1}"
        words = ANALYSE.format(question=question)
        around = self.asker.count(SYSTEM) + self.asker.count(words)
        room = budget_of_context("analysis", self.asker.context, self.settings, around=around)
        try:
            allocation = await self.manager.allocate_budget(
                await _items(payload, entries, state), room, phase=phase, context=question
            )
        except AllocationError as error:
            return Analysed(question=number, findings=(), warnings=(_failure(question, error),))
        shown_ids = {part.source_id for part in allocation.parts}
        try:
            answer, usage = await self._conversed(f"{words}\n{allocation.text}", payload)
        except ModelError as error:
            return Analysed(
                question=number,
                findings=(),
                fidelity=allocation.fidelity_metadata,
                usage=Usage(failures=1),
                warnings=(_failure(question, error),),
            )
        findings, refused = self._checked(number, claims_in(answer), shown_ids)
        return Analysed(
            question=number,
            findings=tuple(findings),
            fidelity=allocation.fidelity_metadata,
            usage=usage + refused,
            warnings=allocation.warnings,
        )

    async def _conversed(self, prompt: str, payload: Payload) -> tuple[str, Usage]:
        """The answer; if it asks to open something, that of the question asked again with it."""
        answer, usage = await self.asker.ask(prompt)
        calls = [call for call in actions_in(answer) if call["action"] == ACTION][:_ACTIONS]
        if not calls:
            return answer, usage
        longer_prompt = await self._with_opened(prompt, calls, payload)
        if not longer_prompt:
            return answer, usage
        second_answer, second_usage = await self.asker.ask(longer_prompt)
        return f"{answer}\n{second_answer}", usage + second_usage

    async def _with_opened(
        self, prompt: str, calls: Sequence[dict[str, Any]], payload: Payload
    ) -> str:
        """The prompt with what the first calls open, as many as fit; empty if not one does."""
        left = self.asker.context - self.asker.count(SYSTEM) - self.asker.count(prompt)
        for number in range(len(calls), 0, -1):
            # What is opened is JSON in JSON: a third of the room is for its quotes and names.
            room = max(_LEAST_OPENED, 2 * left // (3 * number))
            results = [await self._opened(call, payload, room) for call in calls[:number]]
            message = await action_message(
                results,
                [{"name": ACTION}] * number,
                "research",
                settings=self.settings,
                store=payload.store,
            )
            opened = f"\n\n{AGAIN}\n{fenced(message['content'])}"
            if self.asker.count(opened) <= left:
                return f"{prompt}{opened}"
        return ""

    async def _opened(self, call: dict[str, Any], payload: Payload, room: int) -> dict[str, Any]:
        """What an action gives, in the form in which actions give it; only of the payload."""
        opened = await payload.retrieve(
            call.get("parameters"), count=self.asker.count, max_tokens=room
        )
        return _result(opened)

    def _checked(
        self, number: int, claims: Sequence[Claimed], shown_ids: set[str]
    ) -> tuple[list[Finding], Usage]:
        """The claims whose quotes stand in a source that was shown."""
        findings: list[Finding] = []
        bad_quotes = bad_claims = 0
        for place, claimed in enumerate(claims):
            content = self.contents.get(claimed.source) if claimed.source in shown_ids else None
            quote = content.find(claimed.quote) if content else None
            if quote is None:
                bad_quotes += 1
                continue
            claim = claimed.claim
            if not is_borne(claim, quote.text):
                bad_claims += 1
                claim = quote.text  # what the source says stands, what was made of it does not
            score = round(1 - place / (len(claims) + 1), 4)
            findings.append(
                Finding(id="", question=number, claim=claim, supporting=(quote,), score=score)
            )
        return findings, Usage(refused_quotes=bad_quotes, refused_claims=bad_claims)


def is_borne(claim: str, quotes: str) -> bool:
    """Whether a claim in other words speaks of what its quotes say, and states nothing else."""
    return bears_out(claim, quotes) and shared_words(claim, quotes) >= _LEAST_SHARED


def source_name(ref: str) -> str:
    """The name of a source in payloads, whatever kind its ref tells."""
    return f"src_{ref.rpartition(':')[2]}"


async def _items(
    payload: Payload, entries: Sequence[SourceEntry], state: ResearchState
) -> list[ContentItem]:
    """The sources of a payload as items of a prompt (000-56)."""
    by_name = {source_name(entry.ref): entry for entry in entries}
    items = []
    # By name, not by ref: an allocation stores the same content under a ref of its own kind.
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


def _result(opened: Retrieved) -> dict[str, Any]:
    inner = {"Message": opened.message, "Result": {"ResultCode": opened.result_code}}
    error = {} if opened.success else {"error": opened.message}
    return {"success": opened.success, "result": inner, **error}


def _failure(question: str, error: Exception) -> str:
    what = getattr(error, "what", type(error).__name__)
    return f"on “{question[:80]}” no model answered ({what}): quotations stand there"
