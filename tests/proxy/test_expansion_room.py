"""What one answer may open, beside the caps: its room, its rounds and calls that make no sense."""

from __future__ import annotations

from holdfast.cite import count
from holdfast.surfaces.proxy.expansions import Caps
from tests.proxy.test_expansions import Model, opened, with_model


def test_the_calls_of_a_turn_share_half_of_the_room() -> None:
    async def story(model: Model) -> None:
        step = await model.opens(calls=2, lines="1-600")
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
        assert text.startswith("[")
        assert "lines" in text
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
