"""The guard against a slow, obvious model: a list of everything that was ever put in."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.errors import BudgetExceededError
from holdfast.guard import ContextGuard, ContextGuardEvent, OverflowMode, ToolPolicy
from tests.guard.harness import PROVIDER, Told, guard, target

TOKENS = st.integers(0, 400)
INTERNAL = "agent__final_report"


class Model:
    """The guard's expected state, as lists that are summed each time."""

    def __init__(self, limits: list[int], mode: OverflowMode, policy: ToolPolicy) -> None:
        self.limits = limits
        self.mode = mode
        self.policy = policy
        self.sent: list[int] = []
        self.waiting: list[int] = []
        self.schema = 0
        self.schema_of_final_turn: int | None = None
        self.schema_in_request = 0
        self.schema_in_report = 0
        self.final = False
        self.refused = False
        self.told = 0

    def projected(self) -> int:
        return sum(self.sent) + sum(self.waiting) + self.schema - self.schema_in_report

    def blocked(self, extra: int = 0) -> list[bool]:
        return [limit == 0 or self.projected() + extra > limit for limit in self.limits]

    def has_room(self, tokens: int) -> bool:
        blocked = self.blocked(tokens)
        return not any(blocked) if self.policy == "any" else not all(blocked)

    def force(self, blocked: int) -> None:
        if not self.final:
            self.told += max(blocked, 1)
        self.final = True
        if self.schema_of_final_turn is not None:
            self.schema = self.schema_of_final_turn


class GuardAgainstModel(RuleBasedStateMachine):
    """Do the same to both, and compare after every step."""

    guard: ContextGuard
    model: Model

    @initialize(
        limits=st.lists(st.integers(0, 1500), min_size=1, max_size=3),
        mode=st.sampled_from(["force_final", "raise", "best_effort"]),
        policy=st.sampled_from(["any", "all"]),
        current=TOKENS,
    )
    def start(
        self, limits: list[int], mode: OverflowMode, policy: ToolPolicy, current: int
    ) -> None:
        self.heard = Told()
        self.guard = guard(
            *limits,
            on_overflow=mode,
            tool_policy=policy,
            current_tokens=current,
            listener=self.heard,
        )
        self.model = Model(limits, mode, policy)
        self.model.sent = [current]

    @rule(tokens=TOKENS)
    def a_message_waits(self, tokens: int) -> None:
        self.guard.add_pending(tokens)
        self.model.waiting.append(tokens)

    @rule(tokens=TOKENS, final=st.none() | TOKENS)
    def tools_are_offered(self, tokens: int, final: int | None) -> None:
        self.guard.set_schema(tokens, final_tokens=final)
        model = self.model
        model.schema = final if model.final and final is not None else tokens
        model.schema_of_final_turn = final

    @rule(tokens=TOKENS)
    def a_tool_answers(self, tokens: int) -> None:
        model = self.model
        expected = model.has_room(tokens)
        assert self.guard.reserve_tool_output(str(tokens)).ok is expected
        if expected:
            model.waiting.append(tokens)
        elif not model.refused:
            model.refused = True
            if model.mode != "raise":
                model.force(sum(model.blocked(tokens)))

    @rule(tokens=TOKENS)
    def an_internal_tool_answers(self, tokens: int) -> None:
        assert self.guard.reserve_tool_output(str(tokens), INTERNAL).ok
        self.model.waiting.append(tokens)

    @rule()
    def the_request_goes_out(self) -> None:
        self.guard.commit()
        model = self.model
        model.sent += model.waiting
        model.waiting = []
        model.schema_in_request = model.schema

    @rule(given=TOKENS, answer=TOKENS)
    def usage_is_reported(self, given: int, answer: int) -> None:
        self.guard.observe_usage(given, answer)
        model = self.model
        model.sent = [given, answer]
        model.schema_in_report = min(model.schema_in_request, given)

    @precondition(lambda self: sum(self.model.waiting) == 0)
    @rule(tokens=TOKENS)
    def the_history_is_folded(self, tokens: int) -> None:
        self.guard.rebase(tokens)
        model = self.model
        model.sent = [tokens]
        model.schema_in_report = model.schema_in_request = 0

    @rule()
    def the_final_turn_is_enforced(self) -> None:
        model = self.model
        error = False
        if model.mode == "raise" and all(model.blocked()):
            error = True
        else:
            model.force(sum(model.blocked()))
            error = model.mode == "force_final" and all(model.blocked())
        try:
            found = self.guard.enforce_final_turn("turn_preflight")
        except BudgetExceededError:
            assert error
        else:
            assert not error
            assert len(found.blocked) == sum(model.blocked())

    @invariant()
    def both_say_the_same(self) -> None:
        model, it = self.model, self.guard
        evaluation = it.evaluate()
        assert evaluation.projected_tokens == model.projected() >= 0
        blocked = model.blocked()
        assert [entry.limit for entry in evaluation.blocked] == [
            limit for limit, out in zip(model.limits, blocked, strict=True) if out
        ]
        assert (it.forced_final_turn_reason == "context") is model.final
        assert it.can_execute_tool("search") is not model.refused
        assert it.can_execute_tool(INTERNAL)
        forced = [e for e in self.heard.of(ContextGuardEvent) if e.outcome == "forced_final"]
        assert len(forced) == model.told

    @invariant()
    def targets_are_answered_alike(self) -> None:
        blocked = self.model.blocked()
        heard = len(self.heard)
        for found, out in zip(self.guard.targets, blocked, strict=True):
            expected = "ok" if not out else "final" if all(blocked) else "skip"
            assert self.guard.evaluate_for(PROVIDER, found.model) == expected
        del self.heard[heard:]


GuardAgainstModel.TestCase.settings = settings(
    max_examples=200, stateful_step_count=40, deadline=None
)
test_the_guard_answers_as_the_obvious_model_does = GuardAgainstModel.TestCase


def test_the_harness_makes_targets_of_exactly_the_limit_asked_for() -> None:
    assert [target(limit).limit for limit in (0, 1, 1000)] == [0, 1, 1000]
