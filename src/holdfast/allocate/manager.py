"""Allocate a budget: choose a level for each item, request summaries, count the prompt.

Levels are chosen on estimates, summaries are made for that choice, and the choice is repeated with
their real costs. The final prompt is counted with all lines around its parts; if it is too long,
the choice is repeated with less room. The budget is never exceeded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.allocate.candidates import (
    AllocationCandidate,
    LadderTerms,
    LineCosts,
    measured_ratios,
    relative_weights,
)
from holdfast.allocate.fidelity import ContentFidelityRecord, Rung
from holdfast.allocate.item import ContentItem
from holdfast.allocate.level_choice import Option
from holdfast.allocate.originals import StoredOriginals
from holdfast.allocate.plan import Plan, PlanRules, build_allocation_error
from holdfast.allocate.prompt import SEPARATOR, PromptPart, dropped_note, render
from holdfast.allocate.prompt_parts import build_parts, build_record
from holdfast.allocate.strategy import DEFAULT, AllocationStrategy, find_strategy
from holdfast.allocate.summary_requests import Progress, request_summaries, store_originals
from holdfast.allocate.truncation import Count
from holdfast.budget import PhaseBudget
from holdfast.errors import AllocationError, SettingsError
from holdfast.settings import Settings
from holdfast.store import Scope, Store
from holdfast.store.opening import open_memory
from holdfast.summarise import RATIO, Summarizer
from holdfast.tokens import estimate_tokens, vocabulary

VOCABULARY = "o200k_base"
"""The vocabulary for counting prompts if no model is named."""
ROUNDS = 2
"""How often summaries are requested. The first round gets nearly all; the second fills or frees
tokens after the real lengths are known. More rounds cost calls for a few tokens."""
NEARLY = 0.05
"""Share of the room by which real lengths may differ from the estimates without a second round; the
difference is filled from what exists."""


class AllocationResult(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that fits, with the outcome of each item."""

    text: str
    parts: tuple[PromptPart, ...]
    """The parts of the prompt, in order."""
    tokens: int
    """Tokens of `text`, counted."""
    budget: int
    """Maximum tokens of the prompt."""
    strategy: str
    phase: str
    fidelity_metadata: dict[str, ContentFidelityRecord]
    """A record of every item, by `fidelity_key`."""
    dropped_ids: list[str]
    weighted_fidelity: float
    """The share of the items' weighted worth that their levels keep, from 0 to 1."""
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        size = f"{self.tokens} of {self.budget} tokens"
        return f"<{type(self).__name__} {len(self.parts)} parts, {size}>"


class ContextBudgetManager:
    """Divides budgets; one instance can serve concurrent calls."""

    def __init__(
        self,
        settings: Settings,
        summarizer: Summarizer,
        *,
        store: Store | None = None,
        scope: Scope | None = None,
        model: str = "",
        count: Count | None = None,
    ) -> None:
        self.settings = settings
        self.summarizer = summarizer
        self.store: Store = open_memory() if store is None else store
        """Where originals are stored; in memory for this run unless one is given."""
        self.count = token_counter(model) if count is None else count
        self._originals = StoredOriginals(settings, self.store, scope or Scope())

    async def allocate_budget(
        self,
        items: Sequence[ContentItem],
        budget: PhaseBudget | int,
        strategy: AllocationStrategy | str = DEFAULT,
        *,
        phase: str = "",
        context: str = "",
        progress: Progress | None = None,
    ) -> AllocationResult:
        """Return a prompt of the items that fits the remaining budget, and take its tokens from it.

        `context` is the question: summaries keep the parts relevant to it.

        Raises:
            AllocationError: if the required minimum does not fit even when truncated.
            PrivacyError: if an original may not be stored, and therefore not be shortened.
        """
        _reject_duplicates(items)
        strategy = find_strategy(strategy)
        line_costs = LineCosts.counted(self.count)
        candidates = [
            AllocationCandidate(item, weight, strategy.top_of(item.kind), self.count, line_costs)
            for item, weight in zip(items, relative_weights(items), strict=True)
        ]
        candidates.sort(key=lambda each: each.item.kind not in strategy.first)
        allocation = _Allocation(
            candidates,
            PlanRules.of(strategy, self.settings, len(items)),
            budget.remaining if isinstance(budget, PhaseBudget) else _as_tokens(budget),
            phase,
        )
        if self.settings.token_management_enabled:
            result = await self._fit(allocation, context, progress)
        else:
            result = self._without_management(allocation)
        if isinstance(budget, PhaseBudget) and not budget.allocate(result.tokens):
            _reject_overdraft(result)
        return result

    async def _summarise(
        self, allocation: _Allocation, context: str, progress: Progress | None
    ) -> None:
        """Request the summaries that the best plan needs."""
        for _ in range(ROUNDS):
            options = allocation.estimated()
            while allocation.recounted(options):
                options = allocation.estimated()
            requested = [
                (candidate, option)
                for candidate, option in zip(allocation.candidates, options, strict=True)
                if option.asked is not None and option.asked not in candidate.summaries
            ]
            await store_originals(requested, self._originals)
            await request_summaries(requested, self.summarizer, context, progress)
            if not requested or _as_expected(requested, allocation.room):
                return

    async def _fit(
        self, allocation: _Allocation, context: str, progress: Progress | None
    ) -> AllocationResult:
        """Return the best prompt that fits."""
        await self._summarise(allocation, context, progress)
        plan, planned = allocation.plan(), allocation.room
        while (options := plan.within(planned)) is not None:
            await store_originals(zip(allocation.candidates, options, strict=True), self._originals)
            parts = build_parts(
                allocation.candidates, options, planned - self._note(options), self.count
            )
            text, tokens = self._text(parts, allocation.room)
            if tokens <= allocation.room:
                return self._result(allocation, options, parts, text, tokens)
            if planned == allocation.room and allocation.recounted(options, all_of_them=True):
                return await self._fit(allocation, context, progress)
            # Lines and parts are counted separately, which can be off by a token each. With no room
            # at all, only the empty prompt is left, if it is allowed.
            planned = max(planned - (tokens - allocation.room), 0) if planned else -1
        raise build_allocation_error(plan, allocation.rules, allocation.room, allocation.phase)

    def _note(self, options: Sequence[Option]) -> int:
        """Return the tokens of the note about dropped items, if any are dropped."""
        dropped = sum(option.rung is Rung.DROPPED for option in options)
        return self.count(SEPARATOR + dropped_note(dropped, len(options))) if dropped else 0

    def _without_management(self, allocation: _Allocation) -> AllocationResult:
        """Return everything unchanged at any cost, because management is disabled."""
        options = [
            Option(Rung.RAW, each.tokens, each.tokens, each.weight)
            for each in allocation.candidates
        ]
        parts = build_parts(allocation.candidates, options, allocation.room, self.count)
        return self._result(allocation, options, parts, *self._text(parts, allocation.room))

    def _text(self, parts: Sequence[PromptPart | None], room: int) -> tuple[str, int]:
        """Return the prompt and its tokens, with a note about dropped items if the note fits."""
        present = [part for part in parts if part is not None]
        text = render(present)
        tokens = self.count(text)
        if len(present) == len(parts) or tokens > room:
            return text, tokens
        note = dropped_note(len(parts) - len(present), len(parts))
        # Counted separately first: usually this shows whether it fits, without counting everything
        # again.
        if tokens + self.count(note) > room:
            return text, tokens
        with_note = f"{text}{SEPARATOR}{note}" if text else note
        more = self.count(with_note)
        return (with_note, more) if more <= room else (text, tokens)

    def _result(
        self,
        allocation: _Allocation,
        options: Sequence[Option],
        parts: Sequence[PromptPart | None],
        text: str,
        tokens: int,
    ) -> AllocationResult:
        records = [
            build_record(candidate, option, part, allocation.phase, self.count)
            for candidate, option, part in zip(allocation.candidates, options, parts, strict=True)
        ]
        weight = sum(candidate.weight for candidate in allocation.candidates)
        return AllocationResult(
            text=text,
            parts=tuple(part for part in parts if part is not None),
            tokens=tokens,
            budget=allocation.room,
            strategy=allocation.rules.strategy.name,
            phase=allocation.phase,
            fidelity_metadata={record.key: record for record in records},
            dropped_ids=[record.source_id for record in records if record.dropped],
            weighted_fidelity=sum(option.worth for option in options) / weight if weight else 1.0,
            warnings=_warnings(records, tokens, allocation.room),
        )


class _Allocation(NamedTuple):
    """The inputs of one allocation."""

    candidates: Sequence[AllocationCandidate]
    rules: PlanRules
    room: int
    phase: str

    def estimated(self) -> list[Option]:
        """Return the best plan by estimated costs."""
        plan = self.plan(estimating=True)
        # By the estimates the minimum may not fit, but a summary may turn out shorter.
        return plan.within(self.room) or plan.least()

    def recounted(self, options: Sequence[Option], *, all_of_them: bool = False) -> bool:
        """Count items whose token count is a claim; return whether any claim was wrong.

        Items that would be shortened are counted before a summary is requested, since a long item
        may turn out short. The others are counted only when the prompt turns out too long.
        """
        unverified = [
            candidate
            for candidate, option in zip(self.candidates, options, strict=True)
            if all_of_them or option.rung is not Rung.RAW
        ]
        return sum([candidate.recounted() for candidate in unverified]) > 0

    def plan(self, *, estimating: bool = False) -> Plan:
        """Return a plan with existing summaries, or also with estimated ones."""
        ratios = measured_ratios(self.candidates) if estimating else RATIO
        terms = LadderTerms(self.rules.truncates, ratios, made_only=not estimating)
        return Plan(self.candidates, self.rules, terms)


def token_counter(model: str) -> Count:
    """Return the counter for a model, or for a default vocabulary without one."""
    if model:
        return lambda text: estimate_tokens(text, model)
    return lambda text: vocabulary.shared.count(VOCABULARY, text)


def _as_tokens(budget: float) -> int:
    """Return a budget as a number of tokens; negative ones count as zero."""
    if not math.isfinite(budget):
        raise SettingsError(
            "the budget is not a number of tokens", where="budget", fix="Give a whole number."
        )
    return max(int(budget), 0)


def _reject_duplicates(items: Sequence[ContentItem]) -> None:
    times = Counter(item.source_id for item in items)
    twin, count = next(iter(times.most_common(1)), ("", 0))
    if count > 1:
        raise SettingsError(
            "two items have the same id",
            where=twin,
            fix="Give each item a unique id; records are kept by it.",
        )


def _as_expected(requested: Sequence[tuple[AllocationCandidate, Option]], room: int) -> bool:
    """Return whether all summaries exist and have about their expected total length."""
    surplus = 0
    for candidate, option in requested:
        summary = candidate.summaries.get(option.asked) if option.asked else None
        if summary is None:
            return False
        surplus += summary.tokens - option.tokens
    return abs(surplus) <= NEARLY * room


def _reject_overdraft(result: AllocationResult) -> None:
    """Raise if another call has used the budget since the prompt was made."""
    if result.tokens <= result.budget:
        raise AllocationError(
            "another call took the budget meanwhile",
            where=result.phase,
            fix="Give calls that run at once budgets of their own.",
            kind="input",
            limit=result.budget,
            planned=result.tokens,
        )


def _warnings(records: Sequence[ContentFidelityRecord], tokens: int, room: int) -> tuple[str, ...]:
    lines = []
    for level, name in ((Rung.TRUNCATED, "truncated"), (Rung.DROPPED, "dropped")):
        reasons = Counter(record.reason for record in records if record.level is level)
        lines += [f"{times:,} {name}: {reason}" for reason, times in reasons.items()]
    if tokens > room:
        lines.append(f"token management is off: {tokens:,} tokens, {room:,} are allowed")
    return tuple(lines)
