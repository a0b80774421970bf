"""The engine: chooses, previews, remembers how well strategies did."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

import msgspec
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
    ProgressiveStrategy,
    SummarizationStrategy,
    TrimState,
    strategies,
)
from holdfast.trim.edits import fold
from holdfast.trim.pieces import Bench, pieces_of
from holdfast.wire import Conversation
from tests.trim.test_fit import talk


def pieces(turns: int = 20) -> tuple[Conversation, list[Piece]]:
    return pieces_from(talk(turns))


def pieces_from(body: dict[str, Any]) -> tuple[Conversation, list[Piece]]:
    conversation = read(body, "openai-chat")
    anchors = AnchorPreservationManager().identify(conversation.messages)
    origins = [(n, n + 1) for n in range(len(conversation.messages))]
    return conversation, pieces_of(conversation, count(conversation), anchors, origins)


def raw(trimmed: TrimState) -> list[bytes]:
    return [message.raw for piece in trimmed.pieces for message in piece.messages]


def fixed(_: Piece) -> float:
    return 20.0


def test_auto_folds_also_where_results_are_most_of_it() -> None:
    engine = ContextOptimizationEngine()
    conversation, whole = pieces()
    assert engine.select(whole).name == "fold"
    state = next(engine.ladder(whole, target=1500, bench=Bench(conversation.dialect, fixed)))
    assert {edit.action for edit in state.edits} == {"fold"}


def test_a_preview_changes_and_remembers_nothing() -> None:
    engine = ContextOptimizationEngine()
    conversation, made = pieces()
    before = list(made)
    seen = engine.preview(made, target=1000, bench=Bench(conversation.dialect, fixed))
    assert seen.edits
    assert made == before
    assert engine.effects() == []


def test_effects_are_kept_by_strategy() -> None:
    engine = ContextOptimizationEngine()
    conversation, made = pieces()
    next(
        engine.ladder(made, target=1500, bench=Bench(conversation.dialect, fixed), strategy="fold")
    )
    [effect] = engine.effects()
    assert (effect.strategy, effect.runs) == ("fold", 1)
    assert effect.tokens_saved > 0
    assert effect.reached == 1
    assert effect.failed == 0


def test_what_is_small_enough_is_left_alone() -> None:
    engine = ContextOptimizationEngine()
    conversation, made = pieces()
    left = next(engine.ladder(made, target=10**6, bench=Bench(conversation.dialect, fixed)))
    assert left.pieces == made


@pytest.mark.parametrize("profile", PROFILES)
def test_heads_and_tails_keep_what_their_profile_says(profile: str) -> None:
    conversation, made = pieces(40)
    strategy = FrozenHeadsTailsStrategy(profile)  # type: ignore[arg-type]
    head, tail = PROFILES[profile]
    left = strategy.trim(made, 0, Bench(conversation.dialect, fixed)).pieces
    assert left[:head] == made[:head]
    assert left[-tail:] == made[-tail:]
    assert len(left) < len(made)


class Careless(FoldStrategy):
    """A strategy of someone else's, which does one thing wrong."""

    name = "careless"

    def __init__(self, harm: Callable[[list[Piece]], list[Piece]]) -> None:
        super().__init__()
        self.harm = harm

    def trim(self, pieces: list[Piece], *_: Any) -> TrimState:
        return TrimState(self.harm(pieces), ())


HARMS: dict[str, Callable[[list[Piece]], list[Piece]]] = {
    "loses an anchor": lambda pieces: pieces[1:],
    "loses a message": lambda pieces: [*pieces[:3], *pieces[4:]],
    "loses the rest": lambda pieces: pieces[:1],
    "parts a call from its result": lambda pieces: [
        *pieces[:3],
        msgspec.structs.replace(pieces[3], messages=()),
        *pieces[4:],
    ],
    "changes an anchor": lambda pieces: [msgspec.structs.replace(pieces[0], tokens=0), *pieces[1:]],
    "turns the order": lambda pieces: [*pieces[:2], pieces[3], pieces[2], *pieces[4:]],
    "says a thing twice": lambda pieces: [*pieces[:3], pieces[2], *pieces[3:]],
    "raises": lambda pieces: [pieces[len(pieces)]],
}


LOST = {"loses an anchor": slice(0, 1), "loses the rest": slice(1, None)}
"""The pieces whose anchors are lost."""


@pytest.mark.parametrize("harm", HARMS)
def test_a_strategy_that_breaks_its_promises_is_replaced_by_folding(harm: str) -> None:
    engine = ContextOptimizationEngine()
    conversation, made = pieces()
    bench = Bench(conversation.dialect, fixed)
    left = next(engine.ladder(made, target=1500, bench=bench, strategy=Careless(HARMS[harm])))
    folded = FoldStrategy().trim(made, 1500, Bench(conversation.dialect, fixed))
    assert raw(left) == raw(folded)
    [effect] = engine.effects()
    assert (effect.failed, effect.reached, effect.tokens_saved) == (1, 0, 0)
    lost = [piece.anchor for piece in made[LOST[harm]]] if harm in LOST else []
    assert effect.lost == tuple(sorted({anchor.type for anchor in lost if anchor is not None}))
    assert bool(effect.lost) == (harm in LOST)


def test_in_an_emergency_the_last_answer_goes_last() -> None:
    spoken = [
        {"role": role, "content": f"{word} {n} " * 30}
        for n in range(12)
        for role, word in (("user", "question"), ("assistant", "answer"))
    ]
    rules = {"role": "system", "content": "Be brief."}
    body = {
        "model": "gpt-4o",
        "messages": [rules, *spoken, {"role": "user", "content": "And now?"}],
    }
    conversation, made = pieces_from(body)
    last = made[-2]
    anchors = sum(piece.tokens for piece in made if piece.anchored)

    def left(most: float) -> list[Piece]:
        ladder = ContextOptimizationEngine().ladder(
            made, target=0, bench=Bench(conversation.dialect, fixed)
        )
        return next(state.pieces for state in ladder if state.tokens <= most)

    assert last in left(anchors + last.tokens + 20)  # beside a digest
    assert last not in left(anchors + last.tokens)


def test_a_trim_says_what_became_of_the_messages() -> None:
    conversation, made = pieces()
    trimmed = FoldStrategy().trim(made, 1500, Bench(conversation.dialect, fixed))
    [fold] = [piece.fold for piece in trimmed.pieces if piece.fold]
    assert trimmed.removed_count == fold.messages > 2
    assert trimmed.tokens_saved > 1000
    assert trimmed.anchors_preserved == ("message 0", "messages 39 to 40")
    assert "read_file" in trimmed.summary


def test_a_model_writes_the_digest_where_one_is_given() -> None:
    asked: list[tuple[str, int]] = []

    def summarise(text: str, most: int) -> str:
        asked.append((text, most))
        return f"The model read {len(asked)} times."

    conversation, made = pieces(40)
    strategy = SummarizationStrategy(summarise=summarise, summary_tokens=100)
    trimmed = strategy.trim(made, 1000, Bench(conversation.dialect, lambda _: 60.0))
    [digest] = [piece for piece in trimmed.pieces if piece.fold]
    assert f"In short: The model read {len(asked)} times." in digest.messages[0].raw.decode()
    text, most = asked[0]
    assert most == 100
    assert "calls read_file" in text
    assert "result: line 0 of it" in text


def test_a_model_that_is_asked_again_hears_the_messages_and_not_its_own_words() -> None:
    asked: list[str] = []

    def summarise(text: str, _: int) -> str:
        asked.append(text)
        return f"The model read {len(asked)} times."

    conversation, made = pieces(40)
    strategy, bench = FoldStrategy(), Bench(conversation.dialect, lambda _: 60.0)
    half = strategy.trim(made, sum(piece.tokens for piece in made) / 2, bench)
    telling = SummarizationStrategy(summarise=summarise, summary_tokens=100)
    first = telling.trim(half.pieces, 1000, bench)
    assert any(piece.fold and piece.fold.summary for piece in first.pieces)
    assert all("[Folded: " not in text for text in asked)
    assert "result: line 0 of it" in asked[-1]


@pytest.mark.parametrize("answer", ["raises", "", " "])
def test_without_an_answer_of_the_model_the_digest_is_extracted(answer: str) -> None:
    def summarise(_: str, __: int) -> str:
        if answer == "raises":
            raise ConnectionError
        return answer

    conversation, made = pieces(40)
    plain = SummarizationStrategy().trim(made, 1000, Bench(conversation.dialect, fixed))
    tried = SummarizationStrategy(summarise=summarise).trim(
        made, 1000, Bench(conversation.dialect, fixed)
    )
    assert raw(tried) == raw(plain)


def test_a_model_that_says_too_much_is_cut_short() -> None:
    conversation, made = pieces(40)
    strategy = SummarizationStrategy(summarise=lambda _, __: "word " * 9000, summary_tokens=50)
    trimmed = strategy.trim(made, 1000, Bench(conversation.dialect, fixed))
    [digest] = [piece for piece in trimmed.pieces if piece.fold]
    assert len(digest.messages[0].raw) < 1000


def test_what_a_model_said_outlives_its_silence() -> None:
    conversation, made = pieces(40)
    told = fold(made[1:5], Bench(conversation.dialect, fixed), summary="It read four files.")
    assert told is not None
    again = fold([told, *made[5:9]], Bench(conversation.dialect, fixed))
    assert again is not None
    assert "It read four files." in again.messages[0].raw.decode()


def test_old_results_become_one_line_and_younger_ones_lose_their_middle() -> None:
    body = talk(12)
    for message in body["messages"]:
        if message["role"] == "tool":
            message["content"] = "first line\n" + "more of it\n" * 100 + "last line"
    conversation, made = pieces_from(body)
    trimmed = ProgressiveStrategy().trim(made, 0, Bench(conversation.dialect, fixed)).pieces
    results = [m.results[0].text for p in trimmed for m in p.messages if m.results]
    whole = len("first line\n" + "more of it\n" * 100 + "last line")
    ages = list(range(len(results)))[::-1]
    for age, text in zip(ages, results, strict=True):
        if age < 2:
            assert len(text) == whole
        elif age < 5:
            assert 300 < len(text) < 350
        else:
            assert "\n" not in text
            assert text.startswith("first line")
            assert text.endswith("last line")
            assert len(text) < 130


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
