"""The manager against a slow, obvious model: every word on every request is kept and re-read."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast.budget import TokenBudgetManager, Usage
from holdfast.errors import BudgetExceededError
from tests.budget.made import counted

LIMIT = 2000
ids = st.sampled_from(["a", "b", "c", "d"])
providers = st.sampled_from(["p", "q"])
sizes = st.integers(1, 900)


class Word(NamedTuple):
    """One thing that was said about a request."""

    is_report: bool
    input: int | None
    output: int | None


def last(words: list[Word], side: str) -> int:
    """The last report of a side, else its last estimate, else nothing."""
    for is_report in (True, False):
        said = [getattr(word, side) for word in words if word.is_report is is_report]
        known = [tokens for tokens in said if tokens is not None]
        if known:
            return int(known[-1])
    return 0


class Accounts(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.manager = TokenBudgetManager(total_limit=LIMIT)
        self.requests: dict[str, list[Word]] = {}
        self.unnamed = 0
        self.refused = 0

    def used(self, without: str = "") -> int:
        named = (words for name, words in self.requests.items() if name != without)
        return self.unnamed + sum(last(w, "input") + last(w, "output") for w in named)

    @rule(provider=providers, name=ids, tokens=sizes, answer=sizes)
    def reserve(self, provider: str, name: str, tokens: int, answer: int) -> None:
        planned, others = tokens + answer, self.used(without=name)
        if others + planned > LIMIT:
            with pytest.raises(BudgetExceededError) as caught:
                self.manager.reserve(provider, Usage(tokens, answer), name)
            assert (caught.value.used, caught.value.planned) == (others, planned)
        else:
            self.manager.reserve(provider, Usage(tokens, answer), name)
            self.requests.setdefault(name, []).append(Word(False, tokens, answer))

    @rule(provider=providers, name=ids, tokens=sizes)
    def estimate(self, provider: str, name: str, tokens: int) -> None:
        assert self.manager.track_usage(provider, counted(tokens), name)
        self.requests.setdefault(name, []).append(Word(False, tokens, None))

    @rule(
        provider=providers,
        name=ids,
        tokens=st.none() | sizes,
        answer=st.none() | st.integers(0, 900),
    )
    def report(self, provider: str, name: str, tokens: int | None, answer: int | None) -> None:
        accepted = self.manager.track_usage(provider, Usage(tokens, answer), name)
        assert accepted == bool(tokens or answer)
        if accepted:
            self.requests.setdefault(name, []).append(Word(True, tokens, answer))
        else:
            self.refused += 1

    @rule(provider=providers, tokens=sizes)
    def report_without_a_name(self, provider: str, tokens: int) -> None:
        self.manager.track_usage(provider, tokens)
        self.unnamed += tokens

    @rule(provider=providers, name=ids, nonsense=st.sampled_from([-1, True, "9", 1.5, None]))
    def report_nonsense(self, provider: str, name: str, nonsense: Any) -> None:
        assert not self.manager.track_usage(provider, nonsense, name)
        self.refused += 1

    @rule(name=ids)
    def release(self, name: str) -> None:
        reported = any(word.is_report for word in self.requests.get(name, []))
        assert self.manager.release(name) == (name in self.requests and not reported)
        if not reported:
            self.requests.pop(name, None)

    @rule(more=st.integers(0, LIMIT))
    def check(self, more: int) -> None:
        assert (self.manager.check_violation(more) is None) == (self.used() + more <= LIMIT)

    @invariant()
    def the_ledger_is_what_the_model_says(self) -> None:
        snapshot = self.manager.snapshot()
        assert snapshot.budget.total.used == self.used()
        assert snapshot.refused == self.refused
        assert sum(one.input + one.output for one in snapshot.providers) == self.used()

    @invariant()
    def nothing_is_approximate_only_if_all_was_reported(self) -> None:
        known = all(
            any(word.is_report and getattr(word, side) is not None for word in words)
            for words in self.requests.values()
            for side in ("input", "output")
        )
        assert self.manager.budget.total.approximate == (not known or self.unnamed > 0)


TestAccounts = Accounts.TestCase
