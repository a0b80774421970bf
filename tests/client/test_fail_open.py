"""An internal error of Holdfast does not keep a program from its answer."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from holdfast.client import Reply
from holdfast.errors import BudgetExceededError, PrivacyError
from holdfast.settings import Settings
from tests.client.test_client import MODELS, TOOLS, calls, client_of, log, run, says, with_result
from tests.surfaces.proxy.spoken import REF
from tests.surfaces.proxy.upstream import Upstream

CONTENT = "the words of the conversation"


def raising(*_: Any, **__: Any) -> Any:
    raise KeyError(CONTENT)


async def asked(client: Any, messages: list[dict[str, Any]], *, streams: bool) -> tuple[Reply, str]:
    """The reply of a client, and the text that it gave on the way."""
    if not streams:
        reply = await client.chat(messages, tools=TOOLS)
        return reply, reply.text
    parts = [part async for part in client.stream(messages, tools=TOOLS)]
    assert parts[-1].reply is not None
    return parts[-1].reply, "".join(part.text for part in parts)


STEPS = {
    "fit": "holdfast.fitting.originals.Originals.contents",
    "count": "holdfast.fitting.measure.Measure.count",
    "session": "holdfast.engine.session.Session.load",
    "workers": "holdfast.workers.pool.Citer.__call__",
    "record": "holdfast.engine.session.parts_of",
    "calibration": "holdfast.tokens.calibration.Calibration.observe",
    "budget": "holdfast.budget.manager.TokenBudgetManager.estimate_completion",
    "usage": "holdfast.budget.manager.TokenBudgetManager.track_usage",
}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_an_internal_error_costs_no_answer(
    step: str, streams: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Upstream(says("It was db-3."), says("Sure.")) as upstream:

        async def work() -> tuple[Reply, str, Reply]:
            async with client_of(upstream) as client:
                messages = with_result(log(600))
                with monkeypatch.context() as patch:
                    patch.setattr(STEPS[step], raising)
                    reply, text = await asked(client, messages, streams=streams)
                messages += [*reply.messages, {"role": "user", "content": "Sure?"}]
                again, _ = await asked(client, messages, streams=streams)
                return reply, text, again

        reply, text, again = run(work)
        assert upstream.refused == []
        assert (reply.text, text, again.text) == ("It was db-3.", "It was db-3.", "Sure.")
        assert [warning for warning in reply.warnings if "internal error" in warning]
        assert not [warning for warning in again.warnings if "internal error" in warning]
        [line] = {
            record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR
        }
        assert "KeyError at " in line
        assert CONTENT not in caplog.text


def opens(got: Any) -> Any:
    """Open all refs."""
    cited = REF.search(got.texts)
    assert cited
    return calls("expand_ref", {"ref_id": cited[0]})


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("dialect", MODELS)
def test_a_ref_that_cannot_be_opened_is_answered_with_an_error_the_model_can_read(
    dialect: str, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Upstream(opens, says("It was db-3.")) as upstream:

        async def work() -> tuple[Reply, str]:
            async with client_of(upstream, dialect, limit=4_000) as client:
                monkeypatch.setattr("holdfast.engine.Holdfast.expand_ref", raising)
                return await asked(client, with_result(log(4_000)), streams=streams)

        reply, _ = run(work)
        assert upstream.refused == []
        assert reply.text == "It was db-3."
        assert "Opening failed" in upstream.requests[-1].texts
        assert "expansion" in reply.warnings[-1]


@pytest.mark.parametrize("streams", [False, True])
def test_the_program_is_asked_for_without_our_tool_where_calls_cannot_be_answered(
    streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Upstream(opens, says("It was db-3.")) as upstream:

        async def work() -> tuple[Reply, str]:
            async with client_of(upstream) as client:
                monkeypatch.setattr("holdfast.upstream.expansions.continuation", raising)
                return await asked(client, with_result(log(2_000)), streams=streams)

        reply, text = run(work)
        assert upstream.refused == []
        assert (reply.text, text) == ("It was db-3.", "It was db-3.")
        assert "expand_ref" not in upstream.requests[-1].tools


def test_a_stream_that_cannot_be_read_is_asked_for_in_one_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Upstream(says("It was db-3."), says("It was db-3.")) as upstream:

        async def work() -> tuple[Reply, str]:
            async with client_of(upstream) as client:
                monkeypatch.setattr("holdfast.wire.responses.Relay.feed", raising)
                return await asked(client, with_result("short"), streams=True)

        reply, text = run(work)
        assert (reply.text, text) == ("It was db-3.", "It was db-3.")
        assert upstream.refused == []


def test_what_does_not_fit_unedited_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with Upstream() as upstream:

        async def work() -> None:
            async with client_of(upstream, limit=4_000) as client:
                monkeypatch.setattr(STEPS["fit"], raising)
                await client.chat(with_result(log(4_000)), tools=TOOLS)

        with pytest.raises(BudgetExceededError) as caught:
            run(work)
        assert caught.value.limit == 4_000
        assert CONTENT not in str(caught.value)
        assert upstream.requests == []


def test_what_was_to_be_masked_is_not_sent_unmasked(monkeypatch: pytest.MonkeyPatch) -> None:
    with Upstream() as upstream:

        async def work() -> None:
            settings = Settings(privacy_policy="mask")
            async with client_of(upstream, settings=settings) as client:
                monkeypatch.setattr(STEPS["fit"], raising)
                await client.chat(with_result(log(600)), tools=TOOLS)

        with pytest.raises(PrivacyError):
            run(work)
        assert upstream.requests == []
