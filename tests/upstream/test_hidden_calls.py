"""The next request after hidden calls: its room, and its fallback."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from holdfast.engine import Holdfast
from holdfast.errors import UnmaskedError
from holdfast.faults import logged_faults
from holdfast.fitting import FitOptions
from holdfast.settings import Settings
from holdfast.tokens import count
from holdfast.upstream.expansions import Caps
from holdfast.upstream.hidden_calls import HiddenCalls, SentRequest
from holdfast.wire import read
from tests.fitting.test_citing import chat, log

LIMIT = 6_000
Work = Callable[[Holdfast, SentRequest, HiddenCalls], Awaitable[None]]


def with_request(work: Work, *, limit: int | None = LIMIT, policy: str = "allow") -> None:
    """Work with a long fitted request."""

    async def main() -> None:
        settings = msgspec.convert({"privacy_policy": policy}, Settings)
        async with Holdfast.open("memory:", settings=settings) as engine:
            asked = read(chat(*(log(25, n) for n in range(18))), "openai-chat")
            session = engine.session("s")
            options = FitOptions(limit=limit, model="claude-sonnet-4-5", rules=engine.options.rules)
            fitted = await session.fit(asked, options)
            request = SentRequest(asked, session, fitted, options)
            hidden = HiddenCalls(engine, request, Caps(), logged_faults("test"))
            await work(engine, request, hidden)

    asyncio.run(main())


@pytest.mark.parametrize("policy", ["allow", "mask", "refuse"])
def test_the_clients_own_request_is_sent_unless_it_may_show_what_is_masked(policy: str) -> None:
    async def work(_: Holdfast, request: SentRequest, hidden: HiddenCalls) -> None:
        if policy == "mask":
            with pytest.raises(UnmaskedError):
                hidden.without_tools()
        else:
            assert hidden.without_tools() is request.asked

    with_request(work, policy=policy)


@pytest.mark.parametrize("limit", [LIMIT, None])
def test_room_is_counted_as_the_request_was_counted_to_make_it_fit(limit: int | None) -> None:
    async def work(engine: Holdfast, request: SentRequest, hidden: HiddenCalls) -> None:
        assert request.fitted
        counted = count(request.sent, model="claude-sonnet-4-5", calibration=engine.calibration)
        assert counted.upper > counted.tokens
        # Only a limit that someone names is one of tokens; that of a model must not be exceeded.
        used = counted.tokens if limit else counted.upper
        assert hidden._room(request.sent) == request.fitted.limit - used

    with_request(work, limit=limit)


@pytest.mark.parametrize("opened", [0, 60, 160])
@pytest.mark.parametrize("wanted", [500, 1_000, 1_900])
def test_a_request_that_is_folded_has_the_room_that_was_asked_for(opened: int, wanted: int) -> None:
    async def work(_: Holdfast, request: SentRequest, hidden: HiddenCalls) -> None:
        assert request.fitted
        turn = read(chat(log(opened, 99), question="And now?"), "openai-chat").messages
        sent = request.sent.with_messages((*request.sent.messages, *(turn if opened else ())))
        folded = await hidden._make_room(sent, wanted)
        assert folded is not None
        assert hidden._room(folded) >= wanted
        assert folded.messages[len(folded.messages) - len(turn) :] == turn or not opened
        assert hidden.refitted is not None
        assert hidden.refitted.edits[: len(request.fitted.edits)] == request.fitted.edits
        assert request.fitted.edits
        assert hidden.refitted.limit == request.fitted.limit
        again = await hidden._make_room(folded, 2 * wanted)
        if again is not None:
            assert hidden._room(again) >= 2 * wanted

    with_request(work)
