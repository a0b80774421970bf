"""Recorded agent conversations, fitted in every dialect at many limits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast import count, read, repair, validate
from holdfast.errors import AnchorPreservationError, BudgetExceededError
from holdfast.fitting import FitState, fit
from holdfast.wire import convert
from tests.support.recorded import needs_trajectories, trajectories
from tests.trim.test_fit import MODELS, anchors_kept, least

EVERY = 12
"""One of this number of conversations here; `make bench` takes all."""


def sample(every: int = EVERY) -> list[dict[str, Any]]:
    return [t for n, t in enumerate(trajectories()) if n % every == 0]


@needs_trajectories
def test_trajectories_fit_in_every_dialect_at_every_limit() -> None:
    assert check_trajectories(every=3 * EVERY) > 120


@pytest.mark.campaign
@needs_trajectories
def test_many_trajectories_fit_in_every_dialect_at_every_limit() -> None:
    assert check_trajectories(every=EVERY // 3) > 1_200


def check_trajectories(every: int) -> int:
    fits = 0
    for trajectory in sample(every):
        chat = repair({"model": "gpt-4o", "messages": trajectory["messages"]}, "openai-chat").body
        for dialect, model in MODELS.items():
            body = chat if dialect == "openai-chat" else convert(chat, dialect, "openai-chat").body
            source = read(body, dialect)
            counted = count(source, model=model)
            for share in (0.75, 0.5, 0.25, 0.1):
                limit = int(counted.tokens * share)
                try:
                    fitted = fit(body, dialect=dialect, model=model, limit=limit)
                except (AnchorPreservationError, BudgetExceededError):
                    assert limit < least(source, counted) + 10
                    continue
                fits += 1
                after = read(fitted.body, dialect)
                assert count(after, model=model).tokens <= limit
                assert validate(fitted.body, dialect, model) == []
                assert anchors_kept(source, after)
    return fits


@needs_trajectories
def test_replayed_turn_by_turn_the_prefix_stays_and_folds_are_rare() -> None:
    turns, folds = 0, 0
    for trajectory in sample():
        messages = json.loads(
            repair({"model": "gpt-4o", "messages": trajectory["messages"]}, "openai-chat").body
        )["messages"]
        limit = count({"messages": messages}, model="gpt-4o").tokens // 2
        state: FitState | None = None
        before = b""
        for end in [n for n, m in enumerate(messages) if n and m["role"] == "assistant"]:
            body = json.dumps({"model": "gpt-4o", "messages": messages[:end]}).encode()
            try:
                fitted = fit(body, dialect="openai-chat", limit=limit, state=state)
            except AnchorPreservationError:
                break
            turns += 1
            folds += bool(fitted.edits)
            if before and not fitted.edits:
                assert fitted.body.startswith(before[: -len(fitted.state.sent.frame.tail)])
            before, state = fitted.body, fitted.state
    assert folds < turns / 4
