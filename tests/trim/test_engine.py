"""The engine: chooses, previews, remembers how well strategies did."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest

from holdfast import count, read
from holdfast.trim import (
    PROFILES,
    STRATEGIES,
    AnchorPreservationManager,
    ContextOptimizationEngine,
    FoldStrategy,
    FrozenHeadsTailsStrategy,
    Piece,
    strategies,
)
from holdfast.trim.pieces import middle_cut, pieces_of
from holdfast.wire import Conversation
from tests.trim.test_fit import talk


def pieces(turns: int = 20) -> tuple[Conversation, list[Piece]]:
    conversation = read(talk(turns), "openai-chat")
    anchors = AnchorPreservationManager().identify(conversation.messages)
    origins = [(n, n + 1) for n in range(len(conversation.messages))]
    return conversation, pieces_of(conversation, count(conversation), anchors, origins)


def fixed(_: Piece) -> float:
    return 20.0


def test_results_are_shortened_where_they_are_most_of_it() -> None:
    engine = ContextOptimizationEngine()
    _, made = pieces()
    assert engine.select(made).name == "summarise"
    talkative = [
        p if p.kind != "tool" else Piece(p.messages, p.start, p.stop, p.tokens, "assistant")
        for p in made
    ]
    assert engine.select(talkative).name == "fold"


def test_a_preview_changes_and_remembers_nothing() -> None:
    engine = ContextOptimizationEngine()
    conversation, made = pieces()
    before = list(made)
    seen = engine.preview(made, target=1000, conversation=conversation, measure=fixed)
    assert seen.cuts
    assert made == before
    assert engine.effects() == []


def test_effects_are_kept_by_strategy() -> None:
    engine = ContextOptimizationEngine()
    conversation, made = pieces()
    engine.optimize(
        made, target=1500, most=3000, conversation=conversation, measure=fixed, strategy="fold"
    )
    [effect] = engine.effects()
    assert (effect.strategy, effect.runs) == ("fold", 1)
    assert effect.tokens_saved > 0


def test_what_is_small_enough_is_left_alone() -> None:
    engine = ContextOptimizationEngine()
    conversation, made = pieces()
    left = engine.optimize(made, target=10**6, most=10**6, conversation=conversation, measure=fixed)
    assert left.pieces == made


@pytest.mark.parametrize("profile", PROFILES)
def test_heads_and_tails_keep_what_their_profile_says(profile: str) -> None:
    conversation, made = pieces(40)
    strategy = FrozenHeadsTailsStrategy(profile)  # type: ignore[arg-type]
    head, tail = PROFILES[profile]
    left = strategy.trim(made, 0, conversation, fixed).pieces
    assert left[:head] == made[:head]
    assert left[-tail:] == made[-tail:]
    assert len(left) < len(made)


def test_every_strategy_describes_itself_and_estimates() -> None:
    _, made = pieces()
    for name, strategy in STRATEGIES.items():
        assert strategy.name == name
        assert strategy.description.endswith(".")
        assert strategy.estimate_savings(made) > 0
        assert strategy.should_trim(2, 1)


def test_other_packages_may_offer_strategies(monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)("offered_strategy")
    module.Offered = type("Offered", (FoldStrategy,), {"name": "offered"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "offered_strategy", module)
    point = EntryPoint("offered", "offered_strategy:Offered", strategies.ENTRY_POINTS)
    monkeypatch.setattr(strategies, "entry_points", lambda **_: [point])
    monkeypatch.delitem(STRATEGIES, "offered", raising=False)
    try:
        assert strategies.strategy_named("offered").name == "offered"
    finally:
        STRATEGIES.pop("offered", None)


def test_a_middle_cut_says_how_much_is_gone() -> None:
    text = "a" * 600 + "b" * 400
    short = middle_cut(text, 300)
    assert short.startswith("a" * 200)
    assert short.endswith("b" * 100)
    assert "700 characters cut" in short
