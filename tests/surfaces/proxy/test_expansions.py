"""The caps of expansions: none is passed by one, and room is made before a page is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast.cite import count
from holdfast.engine import Holdfast
from holdfast.faults import Fault, Faults
from holdfast.store.opening import open_memory
from holdfast.upstream.expansions import Caps, Expansions, MakeRoom, OpeningStep
from holdfast.wire import Conversation, read
from holdfast.wire.responses import ModelCall
from tests.fitting.test_citing import chat, log

TOLD = "No more can be opened in this turn"
PLENTY = 1_000_000


def _unexpected(fault: Fault) -> None:
    pytest.fail(str(fault))


NO_FAULTS = Faults(_unexpected)


class Model:
    """A model that opens lines of one log, in as many calls as it likes."""

    def __init__(self, ref: str, sent: Conversation, expansions: Expansions) -> None:
        self.ref = ref
        self.sent = sent
        self.expansions = expansions
        self.number = 0

    async def opens(self, calls: int = 1, **how: Any) -> OpeningStep:
        """Take one turn, and the next; each call opens other lines unless it is given some."""
        return await self.opens_each(*[how] * calls)

    async def opens_each(
        self, *options: dict[str, Any], alone: bool = True, call_id: str = ""
    ) -> OpeningStep:
        """The same with options for each call; not `alone`, where the client's calls are beside."""
        asked = []
        for how in options:
            self.number += 1
            lines = f"{self.number}-{self.number + 4}"
            arguments = json.dumps({"ref_id": self.ref, "lines": lines, **how})
            asked.append(ModelCall(call_id or f"c{self.number}", "expand_ref", arguments))
        turn = {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in asked
            ],
        }
        raw = (json.dumps(turn).encode(),)
        step = await self.expansions.step(self.sent, raw, asked, alone=alone)
        self.sent = step.following or self.sent
        return step


def opened(step: OpeningStep) -> list[bool]:
    """Return for each call whether it was answered."""
    return [TOLD not in text for _, text in step.results]


def with_model(
    caps: Caps,
    story: Callable[[Model], Awaitable[None]],
    room: Callable[[Conversation], int] = lambda _: PLENTY,
    make_room: MakeRoom | None = None,
) -> None:
    async def work() -> None:
        engine = Holdfast(open_memory())
        citation = await engine.cite(log(600))
        expansions = Expansions(
            engine, caps, room, lambda name: name == "expand_ref", make_room, faults=NO_FAULTS
        )
        await story(Model(citation.ref_id, read(chat("short")), expansions))

    asyncio.run(work())


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_as_many_rounds_open_something_as_the_cap_says(rounds: int) -> None:
    async def story(model: Model) -> None:
        steps = [await model.opens() for _ in range(rounds + 1)]
        assert [opened(step) for step in steps] == [[True]] * rounds + [[False]]
        assert f"{rounds} times" in steps[-1].results[0][1]
        assert model.expansions.used.calls == rounds

    with_model(Caps(rounds=rounds), story)


@pytest.mark.parametrize("most", [1, 3, 4])
def test_as_many_calls_are_answered_as_the_cap_says(most: int) -> None:
    async def story(model: Model) -> None:
        steps = [await model.opens(calls=2) for _ in range(3)]
        answers = [was for step in steps for was in opened(step)]
        assert answers == [True] * most + [False] * (6 - most)
        assert f"{most} parts" in steps[-1].results[-1][1]
        assert model.expansions.used.calls == most

    with_model(Caps(calls=most), story)


@pytest.mark.parametrize("most", [400, 1_000])
def test_no_more_tokens_are_opened_than_the_cap_says(most: int) -> None:
    async def story(model: Model) -> None:
        texts = []
        for _ in range(8):
            step = await model.opens(lines="1-600")
            [(_, answer)] = step.results
            if TOLD in answer:
                assert f"{most:,} tokens" in answer
                break
            texts.append(answer)
        tokens = sum(map(count, texts))
        assert most - 240 < tokens <= most
        assert model.expansions.used.tokens == tokens

    with_model(Caps(tokens=most, rounds=99), story)


def test_two_calls_of_one_turn_do_not_open_more_than_the_cap_together() -> None:
    async def story(model: Model) -> None:
        step = await model.opens(calls=3, lines="1-600")
        assert opened(step) == [True] * 3
        assert sum(count(text) for _, text in step.results) <= 900

    with_model(Caps(tokens=900), story)


def test_a_model_that_is_refused_is_told_three_times_and_loses_the_tool_at_last() -> None:
    async def story(model: Model) -> None:
        asked = [message.role for message in model.sent.messages]
        await model.opens()
        choices = []
        for _ in range(3):
            step = await model.opens()
            assert step.following is not None
            choices.append(step.following.rest.get("tool_choice"))
        named = {"type": "function", "function": {"name": "read_log"}}
        allowed = {"mode": "auto", "tools": [named]}
        assert choices == [None, None, {"type": "allowed_tools", "allowed_tools": allowed}]
        # It calls all the same: it is asked once more, as if it had opened nothing, then never.
        again = (await model.opens()).following
        assert again is not None
        assert [message.role for message in again.messages] == asked
        assert "tool_choice" not in again.rest
        assert [tool.name for tool in again.tools] == ["read_log"]
        assert (await model.opens()).following is None

    with_model(Caps(rounds=1), story)


# --- room --------------------------------------------------------------------------------------


def test_room_is_made_before_a_page_is_refused() -> None:
    """The request is nearly full; a fold frees room for the turn, the page and the next turn."""
    needs: list[int] = []
    folded = read(chat("short", question="Folded."))

    def room(conversation: Conversation) -> int:
        free = 3_000 if conversation.messages[0] is folded.messages[0] else 270
        return free - 10 * len(conversation.messages)

    async def make_room(_: Conversation, tokens: int) -> Conversation | None:
        needs.append(tokens)
        return folded

    async def story(model: Model) -> None:
        step = await model.opens(max_tokens=500)
        assert opened(step) == [True]
        assert step.following is not None
        assert step.following.messages[0] is folded.messages[0]
        assert needs == [20 + 2 * 500]

    with_model(Caps(), story, room, make_room)


def test_where_much_room_cannot_be_made_less_is() -> None:
    """Claude Code's tools fill nine tenths of a small window: no fold frees two whole pages."""
    needs: list[int] = []
    folded = read(chat("short", question="Folded."))

    def room(conversation: Conversation) -> int:
        return 600 if conversation.messages[0] is folded.messages[0] else 100

    async def make_room(_: Conversation, tokens: int) -> Conversation | None:
        needs.append(tokens)
        return folded if tokens <= 600 else None

    async def story(model: Model) -> None:
        assert opened(await model.opens(max_tokens=500)) == [True]
        assert needs == [1_000, 500]

    with_model(Caps(), story, room, make_room)


@pytest.mark.parametrize("gives_up", [True, False], ids=["none", "without a hook"])
def test_where_no_room_can_be_made_the_model_is_told(gives_up: bool) -> None:
    async def make_room(*_: object) -> Conversation | None:
        return None

    async def story(model: Model) -> None:
        [(_, answer)] = (await model.opens()).results
        assert "there is no room left" in answer

    with_model(Caps(), story, lambda _: 200, make_room if gives_up else None)


def test_no_room_is_made_while_there_is_some() -> None:
    async def make_room(*_: object) -> Conversation | None:
        raise AssertionError("it was asked to fold")

    async def story(model: Model) -> None:
        assert opened(await model.opens()) == [True]

    with_model(Caps(), story, lambda _: 800, make_room)
