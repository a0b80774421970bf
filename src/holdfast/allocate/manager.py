"""Divide a budget among contents: choose a level for each, have summaries made, count the prompt.

manager: after planning, asking and composing. Levels are chosen on estimates, summaries are made
for the choice, and the choice is made again with what they really cost; the last choice is among
texts that are there. The prompt is then counted as it stands, with every line around the parts,
and what does not fit is chosen again with less room: the budget is never exceeded (X03, C10).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.allocate.asking import Progress, ask, keep_originals
from holdfast.allocate.candidates import Candidate, Frame, Terms, measured, weights_of
from holdfast.allocate.choosing import Option
from holdfast.allocate.composing import parts_of, record_of
from holdfast.allocate.fidelity import ContentFidelityRecord, Rung
from holdfast.allocate.item import ContentItem
from holdfast.allocate.originals import Originals
from holdfast.allocate.planning import Plan, Rules, too_little
from holdfast.allocate.prompt import SEPARATOR, Part, left_out, render
from holdfast.allocate.strategy import DEFAULT, AllocationStrategy, strategy_named
from holdfast.allocate.truncating import Count
from holdfast.budget import PhaseBudget
from holdfast.errors import AllocationError, SettingsError
from holdfast.settings import Settings
from holdfast.store import Scope, Store
from holdfast.store.opening import open_memory
from holdfast.summarise import RATIO, Summarizer
from holdfast.tokens import estimate_tokens, vocabulary

VOCABULARY = "o200k_base"
"""What prompts are counted with where no model is named."""
ROUNDS = 2
"""How often summaries are asked for. The first round brings nearly all; the second is for what the
real lengths leave room for, or lack. More would cost calls for a few tokens."""
NEARLY = 0.05
"""The share of the room by which real lengths may differ from the estimates without a second
round: what is over is filled from what is there."""


class AllocationResult(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that fits, and what became of each item in it."""

    text: str
    parts: tuple[Part, ...]
    """What the prompt is made of, in its order."""
    tokens: int
    """Of `text`, counted."""
    budget: int
    """The most that it might have had."""
    strategy: str
    phase: str
    fidelity_metadata: dict[str, ContentFidelityRecord]
    """A record for every item, by `fidelity_key`."""
    dropped_ids: list[str]
    weighted_fidelity: float
    """The share of the items' worth, each by its weight, that the levels keep: 0 to 1."""
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        size = f"{self.tokens} of {self.budget} tokens"
        return f"<{type(self).__name__} {len(self.parts)} parts, {size}>"


class ContextBudgetManager:
    """Divides budgets; one can serve many calls at once."""

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
        """Where originals go; of this run alone unless one is given."""
        self.count = counter_of(model) if count is None else count
        self._originals = Originals(settings, self.store, scope or Scope())

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
        """Make a prompt of the items that fits what remains of the budget, and take its tokens.

        `context` is what is asked: summaries keep what bears on it.

        Raises:
            AllocationError: the least that must stay does not fit, even truncated.
            PrivacyError: an original may not be stored, and so not be shortened.
        """
        _refuse_twins(items)
        strategy = strategy_named(strategy)
        frame = Frame.counted(self.count)
        candidates = [
            Candidate(item, weight, strategy.top_of(item.kind), self.count, frame)
            for item, weight in zip(items, weights_of(items), strict=True)
        ]
        candidates.sort(key=lambda each: each.item.kind not in strategy.first)
        call = _Call(
            candidates,
            Rules.of(strategy, self.settings, len(items)),
            budget.remaining if isinstance(budget, PhaseBudget) else _whole(budget),
            phase,
        )
        if self.settings.token_management_enabled:
            result = await self._fitting(call, context, progress)
        else:
            result = self._untouched(call)
        if isinstance(budget, PhaseBudget) and not budget.allocate(result.tokens):
            _refuse_overdraft(result)
        return result

    async def _summarised(self, call: _Call, context: str, progress: Progress | None) -> None:
        """Have the summaries made that the best plan wants."""
        for _ in range(ROUNDS):
            options = call.estimated()
            while call.recounted(options):
                options = call.estimated()
            wanted = [
                (candidate, option)
                for candidate, option in zip(call.candidates, options, strict=True)
                if option.asked is not None and option.asked not in candidate.summaries
            ]
            await keep_originals(wanted, self._originals)
            await ask(wanted, self.summarizer, context, progress)
            if not wanted or _as_expected(wanted, call.room):
                return

    async def _fitting(
        self, call: _Call, context: str, progress: Progress | None
    ) -> AllocationResult:
        """The best prompt of what can be made that has at most as many tokens as there is room."""
        await self._summarised(call, context, progress)
        plan, planned = call.plan(), call.room
        while (options := plan.within(planned)) is not None:
            await keep_originals(zip(call.candidates, options, strict=True), self._originals)
            parts = parts_of(call.candidates, options, planned - self._note(options), self.count)
            text, tokens = self._text(parts, call.room)
            if tokens <= call.room:
                return self._result(call, options, parts, text, tokens)
            if planned == call.room and call.recounted(options, all_of_them=True):
                return await self._fitting(call, context, progress)
            # The lines around parts are counted apart from them, which can be off by a token each.
            # With no room at all only the empty prompt is left, if that may be.
            planned = max(planned - (tokens - call.room), 0) if planned else -1
        raise too_little(plan, call.rules, call.room, call.phase)

    def _note(self, options: Sequence[Option]) -> int:
        """The tokens of the line that tells of what was dropped, if something is."""
        dropped = sum(option.rung is Rung.DROPPED for option in options)
        return self.count(SEPARATOR + left_out(dropped, len(options))) if dropped else 0

    def _untouched(self, call: _Call) -> AllocationResult:
        """Everything as it is, whatever it costs: the settings want no management."""
        options = [
            Option(Rung.RAW, each.tokens, each.tokens, each.weight) for each in call.candidates
        ]
        parts = parts_of(call.candidates, options, call.room, self.count)
        return self._result(call, options, parts, *self._text(parts, call.room))

    def _text(self, parts: Sequence[Part | None], room: int) -> tuple[str, int]:
        """The prompt and its tokens; it tells how much it lacks, if there is room to tell."""
        shown = [part for part in parts if part is not None]
        text = render(shown)
        tokens = self.count(text)
        if len(shown) == len(parts) or tokens > room:
            return text, tokens
        note = left_out(len(parts) - len(shown), len(parts))
        # Counted apart first: whether it fits is mostly clear without counting everything again.
        if tokens + self.count(note) > room:
            return text, tokens
        telling = f"{text}{SEPARATOR}{note}" if text else note
        more = self.count(telling)
        return (telling, more) if more <= room else (text, tokens)

    def _result(
        self,
        call: _Call,
        options: Sequence[Option],
        parts: Sequence[Part | None],
        text: str,
        tokens: int,
    ) -> AllocationResult:
        records = [
            record_of(candidate, option, part, call.phase, self.count)
            for candidate, option, part in zip(call.candidates, options, parts, strict=True)
        ]
        weight = sum(candidate.weight for candidate in call.candidates)
        return AllocationResult(
            text=text,
            parts=tuple(part for part in parts if part is not None),
            tokens=tokens,
            budget=call.room,
            strategy=call.rules.strategy.name,
            phase=call.phase,
            fidelity_metadata={record.key: record for record in records},
            dropped_ids=[record.source_id for record in records if record.dropped],
            weighted_fidelity=sum(option.worth for option in options) / weight if weight else 1.0,
            warnings=_warnings(records, tokens, call.room),
        )


class _Call(NamedTuple):
    """What one allocation is about."""

    candidates: Sequence[Candidate]
    rules: Rules
    room: int
    phase: str

    def estimated(self) -> list[Option]:
        """The best plan by what levels would cost."""
        plan = self.plan(estimating=True)
        # By the estimates the least may not fit: a summary may turn out shorter.
        return plan.within(self.room) or plan.least()

    def recounted(self, options: Sequence[Option], *, all_of_them: bool = False) -> bool:
        """Whether some item is not as long as its maker said; now it is counted.

        Those that would be shortened are counted before anything is made of them: what is said to
        be long could stand whole. The others are taken at their word until the prompt is counted.
        """
        doubted = [
            candidate
            for candidate, option in zip(self.candidates, options, strict=True)
            if all_of_them or option.rung is not Rung.RAW
        ]
        return sum([candidate.recounted() for candidate in doubted]) > 0

    def plan(self, *, estimating: bool = False) -> Plan:
        """A plan of what is there, or also of what could be made."""
        ratios = measured(self.candidates) if estimating else RATIO
        terms = Terms(self.rules.truncates, ratios, made_only=not estimating)
        return Plan(self.candidates, self.rules, terms)


def counter_of(model: str) -> Count:
    """How texts for a model are counted; without a name, by one vocabulary."""
    if model:
        return lambda text: estimate_tokens(text, model)
    return lambda text: vocabulary.shared.count(VOCABULARY, text)


def _whole(budget: float) -> int:
    """A budget as tokens; one below zero has room for nothing, as zero has."""
    if not math.isfinite(budget):
        raise SettingsError(
            "a budget is no number of tokens", where="budget", fix="Give a whole number."
        )
    return max(int(budget), 0)


def _refuse_twins(items: Sequence[ContentItem]) -> None:
    times = Counter(item.source_id for item in items)
    twin, count = next(iter(times.most_common(1)), ("", 0))
    if count > 1:
        raise SettingsError(
            "an id stands for more than one item",
            where=twin,
            fix="Give each item an id of its own: the record is kept by it.",
        )


def _as_expected(asked: Sequence[tuple[Candidate, Option]], room: int) -> bool:
    """Whether the summaries are there, and together about as long as they were expected to be."""
    surplus = 0
    for candidate, option in asked:
        summary = candidate.summaries.get(option.asked) if option.asked else None
        if summary is None:
            return False
        surplus += summary.tokens - option.tokens
    return abs(surplus) <= NEARLY * room


def _refuse_overdraft(result: AllocationResult) -> None:
    """A prompt that fitted when it was made has lost its room to another call."""
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
