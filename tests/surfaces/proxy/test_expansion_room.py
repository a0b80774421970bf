"""Limits of one answer's openings, besides the caps: its room, its rounds and invalid calls."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.cite import count
from holdfast.engine import Holdfast
from holdfast.store.sqlite.store import SqliteStore
from holdfast.upstream.expansions import Caps, Expansions, OpeningStep
from holdfast.wire import Conversation, read, write
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.test_expansions import NO_FAULTS, PLENTY, Model, opened, with_model


def test_the_calls_of_a_turn_share_half_of_the_room() -> None:
    async def story(model: Model) -> None:
        step = await model.opens_each({"lines": "1-600"}, {"lines": "1-599"})
        assert opened(step) == [True, True]
        assert 400 < sum(count(text) for _, text in step.results) <= 500

    with_model(Caps(), story, room=lambda _: 1_000)


def test_every_time_that_the_prompt_is_sent_again_is_a_round() -> None:
    async def story(model: Model) -> None:
        for _ in range(3):
            assert (await model.opens()).following is not None
        assert model.expansions.used.rounds == 3

    with_model(Caps(), story)


def test_a_call_that_makes_no_sense_is_told_why_and_the_answer_goes_on() -> None:
    async def story(model: Model) -> None:
        step = await model.opens(lines="from the beginning")
        [(_, text)] = step.results
        assert text.startswith("[ref:")
        assert "passages match" in text
        assert step.following is not None
        assert (await model.opens()).results[0][1].startswith("[ref:")

    with_model(Caps(), story)


def test_a_call_that_makes_no_sense_is_told_so_where_room_has_to_be_made() -> None:
    async def story(model: Model) -> None:
        step = await model.opens(lines="from the beginning")
        assert len(step.results) == 1

    async def none(*_: object) -> None:
        return None

    with_model(Caps(), story, room=lambda _: 100, make_room=none)


def tokens_in(step: OpeningStep) -> list[int]:
    return [count(text) for _, text in step.results]


def test_calls_beside_those_of_the_client_get_half_of_the_room_too() -> None:
    async def story(model: Model) -> None:
        step = await model.opens_each({"lines": "1-600"}, alone=False)
        assert step.following is None, "the client answers its own calls first"
        assert 400 < sum(tokens_in(step)) <= 500

    with_model(Caps(), story, room=lambda _: 1_000)


@pytest.mark.parametrize("capped", [False, True], ids=["by the window", "by the cap"])
def test_what_one_call_leaves_of_its_share_another_may_use(capped: bool) -> None:
    async def story(model: Model) -> None:
        step = await model.opens_each({"lines": "1-2"}, {"lines": "1-600"})
        first, second = tokens_in(step)
        assert first < 150
        assert 600 - first - 40 < second <= 600 - first

    if capped:
        with_model(Caps(tokens=600), story)
    else:
        with_model(Caps(), story, room=lambda _: 1_200)


@pytest.mark.parametrize(("dearer", "opens"), [(3, True), (6, False)])
def test_a_page_that_counts_for_more_in_the_models_vocabulary_is_opened_in_part_or_not(
    dearer: int, opens: bool
) -> None:
    def room(request: Conversation) -> int:
        results = [result.text for message in request.messages for result in message.results]
        return 1_000 - dearer * sum(map(count, results))

    async def story(model: Model) -> None:
        before = model.sent
        step = await model.opens_each({"lines": "1-600"})
        assert opened(step) == [opens]
        assert step.following is not None
        assert room(step.following) >= 0
        if opens:  # a quarter of the room, after half of it was too much
            assert 200 < sum(tokens_in(step)) <= room(before) // 4

    with_model(Caps(), story, room=room)


def test_a_call_with_an_id_that_was_used_before_is_answered_and_the_model_asked_again() -> None:
    async def story(model: Model) -> None:
        first = model.sent
        step = await model.opens_each({"lines": "1-600"}, call_id="call_0")
        assert step.following is not None
        assert step.following.messages == first.messages
        assert opened(step) == [True]
        assert 400 < sum(tokens_in(step)) <= 500

    with_model(Caps(), story, room=lambda _: 1_000)


@pytest.mark.parametrize(("left", "fits"), [(0, True), (-1, False)])
def test_a_request_may_fill_the_window_to_its_last_token_and_no_further(
    left: int, fits: bool
) -> None:
    def room(request: Conversation) -> int:
        return left if "INFO step" in write(request).decode() else 1_000

    async def story(model: Model) -> None:
        step = await model.opens()
        assert opened(step) == [fits]

    with_model(Caps(), story, room=room)


class Refusing:
    """A fold that always fails, and its requests."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def __call__(self, sent: Conversation, tokens: int) -> None:
        del sent
        self.asked.append(tokens)


@pytest.mark.parametrize("calls", [1, 2])
def test_room_is_asked_for_in_full_then_in_part_then_for_the_least_that_is_worth_it(
    calls: int,
) -> None:
    fold = Refusing()

    async def story(model: Model) -> None:
        step = await model.opens(calls, max_tokens=3_000)
        assert opened(step) == [False] * calls

    with_model(Caps(), story, room=lambda _: 100, make_room=fold)
    assert fold.asked == [6_000 * calls, 3_000 * calls, 240 * calls]


def test_no_more_room_is_asked_for_than_the_cap_leaves() -> None:
    fold = Refusing()
    rooms = [PLENTY]

    async def story(model: Model) -> None:
        await model.opens()
        assert fold.asked == [], "there was room enough"
        spent = model.expansions.used.tokens
        rooms[:] = [100]
        await model.opens(max_tokens=3_000)
        assert fold.asked[0] == 2 * (1_000 - spent)

    with_model(Caps(tokens=1_000), story, room=lambda _: rooms[0], make_room=fold)


@pytest.mark.parametrize(
    ("calls", "room", "max_tokens", "folds"),
    [
        (1, 800, 2_000, False),
        (2, 800, 2_000, True),
        (1, 400, 2_000, True),  # 200 tokens are a page's head and hardly a line
        (1, 400, 200, False),  # nobody asked for more
    ],
)
def test_room_is_made_where_half_of_it_is_too_little_for_every_call(
    calls: int, room: int, max_tokens: int, folds: bool
) -> None:
    fold = Refusing()

    async def story(model: Model) -> None:
        await model.opens(calls, max_tokens=max_tokens)

    with_model(Caps(), story, room=lambda _: room, make_room=fold)
    assert bool(fold.asked) == folds


def test_a_store_that_cannot_be_read_is_told_to_the_model(tmp_path: Path) -> None:
    async def work() -> None:
        store = await SqliteStore.open(tmp_path / "holdfast.db")
        engine = Holdfast(store)
        citation = await engine.cite(log(600))
        await store.close()
        expansions = Expansions(
            engine, Caps(), lambda _: PLENTY, lambda name: name == "expand_ref", faults=NO_FAULTS
        )
        step = await Model(citation.ref_id, read(chat("short")), expansions).opens()
        [(_, text)] = step.results
        assert text.startswith("[The store is not available.")
        assert step.following is not None

    asyncio.run(work())
