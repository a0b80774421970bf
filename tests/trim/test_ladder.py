"""The ladder: one sequence of ever smaller states, whole at every step, the same for any budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import count, read
from holdfast.store.refs import digest, ref_id
from holdfast.tokens.counter import message_tokens
from holdfast.trim import (
    STRATEGIES,
    AnchorPreservationManager,
    Bench,
    ContextOptimizationEngine,
    FrozenHeadsTailsStrategy,
    Piece,
    TrimState,
)
from holdfast.trim.anchors import asks
from holdfast.trim.chains import states
from holdfast.trim.edits import fold
from holdfast.trim.pieces import listed, pieces_of
from holdfast.trim.provenance import edits_of, originals_of, own_of, restored
from holdfast.wire import Conversation, Message, Text
from tests.trim.test_fit import DIALECTS, MODELS, long_scripts, talk
from tests.wire.bodies import WRITERS

SECRET = "hunter2"


class Workshop:
    """A conversation in pieces, with a bench that records stored contents."""

    def __init__(self, body: Any, dialect: str, *, opener: str = "expand_ref") -> None:
        self.conversation = read(body, dialect)
        self.model = model = MODELS[dialect]
        self.anchor(AnchorPreservationManager())
        self.stored: dict[str, bytes] = {}
        self.bench = Bench(
            dialect,
            lambda piece: message_tokens(self.conversation, piece.messages, model),
            self.keep,
            lambda originals, tokens: self.keep("fold", listed(originals), tokens),
            opener,
        )

    def anchor(self, manager: AnchorPreservationManager) -> None:
        """Cut the conversation into pieces, with these anchors."""
        anchors = manager.identify(self.conversation.messages)
        places = [(n, n + 1) for n in range(len(self.conversation.messages))]
        counted = count(self.conversation, model=self.model)
        self.pieces = pieces_of(self.conversation, counted, anchors, places)

    def keep(self, kind: str, original: bytes, _tokens: float) -> str:
        if SECRET.encode() in original:
            return ""
        name = ref_id(kind, digest(original))
        self.stored[name] = original
        return name

    def ladder(self, target: float, strategy: str = "auto", **how: float) -> list[TrimState]:
        engine = ContextOptimizationEngine()
        return list(
            engine.ladder(self.pieces, target=target, bench=self.bench, strategy=strategy, **how)
        )


def messages_of(state: TrimState) -> list[Message]:
    return [message for piece in state.pieces for message in piece.messages]


def verbatim(state: TrimState) -> set[bytes]:
    """Return the client's messages that are sent unchanged, each with its place."""
    places: set[bytes] = set()
    for piece in state.pieces:
        at = piece.start
        for message in piece.messages:
            for original in originals_of(message):
                if original is own_of(message) and bytes(original.span) == bytes(message.span):
                    places.add(b"%d " % at + original.raw)
                at += 1
    return places


def spent(state: TrimState) -> list[bytes]:
    return [message.raw for message in messages_of(state)]


def calls_and_results(messages: list[Message]) -> tuple[list[str], list[str]]:
    calls = sorted(call.id or call.name for message in messages for call in message.calls)
    results = sorted(r.call_id or r.name for message in messages for r in message.results)
    return calls, results


def drawn(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Try a property with a number of conversations, each in a dialect and with a strategy."""
    values = given(
        st.sampled_from(DIALECTS), long_scripts(), st.sampled_from(["auto", *STRATEGIES])
    )
    return lambda test: settings(max_examples=examples)(values(test))


@drawn(60)
def test_every_state_stands_for_all_that_the_client_sent(
    dialect: str, script: Any, strategy: str
) -> None:
    shop = Workshop(WRITERS[dialect](script), dialect)
    whole = shop.conversation.messages
    for state in shop.ladder(0, strategy):
        assert restored(messages_of(state)) == whole
        ends = [place for piece in state.pieces for place in (piece.start, piece.stop)]
        assert ends[0] == 0
        assert ends[-1] == len(whole)
        assert ends[1:-1:2] == ends[2::2]
        calls, results = calls_and_results(messages_of(state))
        assert calls == results


@drawn(60)
def test_what_left_once_never_comes_back_further_down(
    dialect: str, script: Any, strategy: str
) -> None:
    shop = Workshop(WRITERS[dialect](script), dialect)
    kept = verbatim(TrimState(shop.pieces, ()))
    anchors = {(piece.anchor, piece.kind) for piece in shop.pieces if piece.anchored}
    for state in shop.ladder(0, strategy):
        assert verbatim(state) <= kept
        kept = verbatim(state)
        still = [piece for piece in state.pieces if piece.anchored]
        assert {(piece.anchor, piece.kind) for piece in still} == anchors
        assert all(piece.fold is None for piece in still)


@drawn(60)
def test_whatever_is_not_the_clients_own_says_why_and_where_it_can_be_opened(
    dialect: str, script: Any, strategy: str
) -> None:
    shop = Workshop(WRITERS[dialect](script), dialect)
    for state in shop.ladder(0, strategy):
        assert all(edit.ref_id in shop.stored for edit in state.edits)
        explained = {id(edit) for edit in state.edits}
        for message in messages_of(state):
            if originals_of(message) != (message,):
                assert edits_of(message)
                assert explained.issuperset(map(id, edits_of(message)))


def chosen(shop: Workshop, limit: float, strategy: str, **how: float) -> TrimState | None:
    """As fit does it: the first that fits, from the low-water mark on."""
    ladder = shop.ladder(limit / 2, strategy, **how)
    return next((state for state in ladder if state.tokens <= limit), None)


@settings(max_examples=75)
@given(
    st.sampled_from(DIALECTS),
    long_scripts(),
    st.sampled_from(["auto", *STRATEGIES]),
    st.lists(st.floats(0, 1), min_size=2, max_size=4),
)
def test_a_larger_budget_never_keeps_less_nor_fails_where_a_smaller_succeeds(
    dialect: str, script: Any, strategy: str, shares: list[float]
) -> None:
    shop = Workshop(WRITERS[dialect](script), dialect)
    total = sum(piece.tokens for piece in shop.pieces)
    smaller: TrimState | None = None
    for share in sorted(shares):
        state = chosen(shop, total * share, strategy)
        if smaller is not None:
            assert state is not None
            assert verbatim(state) >= verbatim(smaller)
        smaller = state or smaller


@settings(max_examples=80)
@given(st.sampled_from(DIALECTS), long_scripts(), st.floats(0, 1), st.floats(0, 1))
def test_passing_over_what_is_far_too_large_is_monotonic_too(
    dialect: str, script: Any, first: float, second: float
) -> None:
    shop = Workshop(WRITERS[dialect](script), dialect)
    total = sum(piece.tokens for piece in shop.pieces)
    low, high = sorted((total * first, total * second))
    small, large = (chosen(shop, limit, "auto", most=limit) for limit in (low, high))
    assert small is None or (large is not None and verbatim(large) >= verbatim(small))
    # Skipped states are not built: if anything fits, something is found.
    assert (small is None) == (chosen(shop, low, "auto") is None)


@drawn(60)
def test_the_same_pieces_give_the_same_bytes(dialect: str, script: Any, strategy: str) -> None:
    body = WRITERS[dialect](script)
    first, second = (Workshop(body, dialect).ladder(0, strategy) for _ in range(2))
    assert list(map(spent, first)) == list(map(spent, second))


@settings(max_examples=100)
@given(st.sampled_from(DIALECTS), long_scripts(), st.data())
def test_a_fold_of_folds_is_the_fold_of_all(dialect: str, script: Any, data: st.DataObject) -> None:
    shop = Workshop(WRITERS[dialect](script), dialect)
    stop = data.draw(st.integers(2, len(shop.pieces)))
    middle = data.draw(st.integers(1, stop - 1))
    some, more = shop.pieces[:middle], shop.pieces[middle:stop]
    at_once = fold([*some, *more], shop.bench)
    older, younger = fold(some, shop.bench), fold(more, shop.bench, terse=True)
    assert at_once is not None
    assert older is not None
    assert younger is not None
    for parts in ([older, *more], [*some, younger], [older, younger]):
        again = fold(parts, shop.bench)
        assert again is not None
        assert again.messages[0].raw == at_once.messages[0].raw
        assert again.fold == at_once.fold


def with_secrets(turns: int, secrets: set[int]) -> dict[str, Any]:
    body = talk(turns)
    for n in secrets:
        body["messages"][2 * n + 2]["content"] += f" password {SECRET}"
    return body


@settings(max_examples=60)
@given(st.sets(st.integers(0, 23), max_size=6), st.floats(0, 1))
def test_what_may_not_be_stored_does_not_leave_and_the_rest_does(
    secrets: set[int], share: float
) -> None:
    body = with_secrets(24, secrets)
    shop = Workshop(body, "openai-chat")
    total = sum(piece.tokens for piece in shop.pieces)
    ladder = shop.ladder(total * share)
    for state in ladder:
        sent = spent(state)
        for n in secrets:
            assert shop.conversation.messages[2 * n + 2].raw in sent
        assert restored(messages_of(state)) == shop.conversation.messages
    last = messages_of(ladder[-1])
    # The first question, the last exchange, and each exchange with a secret: nothing else is left.
    assert len(last) == 1 + 2 * len(secrets | {23})
    assert [SECRET.encode() in original for original in shop.stored.values()].count(True) == 0
    small, large = (chosen(shop, total * part, "auto") for part in sorted((share, 0.5)))
    assert small is None or (large is not None and verbatim(large) >= verbatim(small))


def says(message: Message) -> str:
    return " ".join(block.text for block in message.blocks if isinstance(block, Text))


def words_of(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


@drawn(60)
def test_the_question_of_an_answer_that_is_kept_is_kept_or_quoted_before_it(
    dialect: str, script: Any, strategy: str
) -> None:
    shop = Workshop(WRITERS[dialect](script), dialect)
    for state in shop.ladder(0, strategy):
        if any(edit.action == "drop" for edit in state.edits):
            break
        question: Message | None = None
        seen: set[int] = set()
        digests: list[str] = []  # one may follow another, folded at different steps
        for message in messages_of(state):
            for original in originals_of(message):
                question = original if asks(original) else question
            if any(edit.action == "fold" for edit in edits_of(message)):
                digests.append(says(message))
                continue
            seen.update(map(id, originals_of(message)))
            if message.role == "assistant" and question is not None and id(question) not in seen:
                beginning = words_of(says(question)[:40])  # a quotation has 80 characters
                assert beginning in words_of("".join(digests[-2:]))


@pytest.mark.campaign
@drawn(20_000)
def test_all_of_this_holds_for_twenty_thousand(dialect: str, script: Any, strategy: str) -> None:
    for test in (
        test_every_state_stands_for_all_that_the_client_sent,
        test_what_left_once_never_comes_back_further_down,
        test_whatever_is_not_the_clients_own_says_why_and_where_it_can_be_opened,
        test_the_same_pieces_give_the_same_bytes,
        test_the_question_of_an_answer_that_is_kept_is_kept_or_quoted_before_it,
    ):
        test.hypothesis.inner_test(dialect, script, strategy)  # type: ignore[attr-defined]


def test_a_tail_begins_with_a_turn() -> None:
    """Head 0, tail 2 once left an answer without its question."""
    body = {
        "model": "gpt-4o",
        "messages": [
            {"role": role, "content": f"{role} {n} " * 40}
            for n in range(8)
            for role in ("user", "assistant")
        ]
        + [{"role": "user", "content": "And now?"}],
    }
    shop = Workshop(body, "openai-chat")
    strategy = FrozenHeadsTailsStrategy(head=0, tail=2)
    state = next(states(strategy.chain(shop.pieces, shop.bench), 0))
    roles = [(piece.start, piece.kind) for piece in state.pieces[-3:]]
    assert roles == [(14, "user"), (15, "assistant"), (16, "user")]


def test_of_a_long_turn_the_question_stays_and_its_calls_are_folded() -> None:
    body = talk(3)
    body["messages"].append({"role": "user", "content": "Now fix it, in all files. " * 3})
    body["messages"].extend(
        {**message, "tool_call_id": f"d{n}"}
        if message["role"] == "tool"
        else {**message, "tool_calls": [{**message["tool_calls"][0], "id": f"d{n}"}]}
        for n in range(30)
        for message in talk(1)["messages"][1:]
    )
    body["messages"].append({"role": "user", "content": "Thanks. What next?"})
    shop = Workshop(body, "openai-chat")
    soft = shop.ladder(0)[0]
    assert any("Now fix it" in says(m) for m in messages_of(soft) if asks(m))
    assert len(soft.pieces) < 12


class Unwilling:
    """A strategy that never finds a reason to trim."""

    name = "unwilling"
    description = "Leaves everything as it is."

    def should_trim(self, _tokens: float, _limit: float) -> bool:
        return False

    def estimate_savings(self, _pieces: Any) -> float:
        return 0

    def trim(self, pieces: list[Piece], _target: float, _bench: Bench) -> TrimState:
        return TrimState(pieces, ())


class Halving(Unwilling):
    """A custom strategy: folds the older half, for any target."""

    name = "halving"

    def should_trim(self, tokens: float, limit: float) -> bool:
        return tokens > limit

    def trim(self, pieces: list[Piece], target: float, bench: Bench) -> TrimState:  # noqa: ARG002
        middle = len(pieces) // 2
        older = fold(pieces[1:middle], bench)
        return TrimState([pieces[0], *([older] if older else []), *pieces[middle:]], ())


@pytest.mark.parametrize("strategy", [Unwilling(), Halving()], ids=lambda s: s.name)
def test_behind_a_strategy_of_anothers_the_emergency_follows(strategy: Any) -> None:
    shop = Workshop(talk(20), "openai-chat")
    engine = ContextOptimizationEngine()
    ladder = list(engine.ladder(shop.pieces, target=10, bench=shop.bench, strategy=strategy))
    assert spent(ladder[0]) == spent(strategy.trim(shop.pieces, 0, shop.bench))
    assert ladder[-1].tokens < ladder[0].tokens / 3
    assert {piece.start for piece in ladder[-1].pieces if piece.anchored} >= {0}
    assert all(restored(messages_of(state)) == shop.conversation.messages for state in ladder)


def test_results_are_cut_only_when_nothing_is_left_to_fold() -> None:
    shop = Workshop(talk(20, size=2000), "openai-chat")
    order = []
    for state in shop.ladder(0):
        actions = {edit.action for edit in state.edits}
        order.append(next(a for a in ("drop", "shorten", "fold") if a in actions))
        if order[-1] != "fold":
            assert all(piece.anchored or piece.fold for piece in state.pieces)
    assert list(dict.fromkeys(order)) == ["fold", "shorten", "drop"]


def many(number: int, size: int) -> Workshop:
    return Workshop(talk(number, size), "openai-chat")


def calls_made(work: Callable[[], object]) -> int:
    """How many functions were called: unlike time, the same on a busy machine."""
    import sys  # noqa: PLC0415

    calls = 0

    def profile(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("strategy", ["auto", *STRATEGIES])
def test_the_work_grows_with_the_pieces_not_with_their_square(strategy: str) -> None:
    def work(number: int) -> int:
        shop = many(number, 20)
        total = sum(piece.tokens for piece in shop.pieces)
        engine = ContextOptimizationEngine()
        how = {"target": total / 20, "most": total / 15, "bench": shop.bench}
        first = engine.ladder(shop.pieces, strategy=strategy, **how)  # type: ignore[arg-type]
        return calls_made(lambda: list(first))

    small, large = work(100), work(800)
    assert large < small * 12


def test_a_conversation_whose_pieces_may_all_not_leave_stays_as_it_is() -> None:
    shop = Workshop(with_secrets(12, set(range(12))), "openai-chat")
    [state] = shop.ladder(0)
    assert state.pieces == shop.pieces
    assert isinstance(shop.conversation, Conversation)
