"""The offline model as an upstream: the dialects' own forms, with ids and times from outside."""

from __future__ import annotations

import asyncio
import json
from itertools import count as numbers
from typing import Any

import pytest

import holdfast
from holdfast.expand.tool import NAME, OTHER_NAME, definition
from holdfast.surfaces.proxy.offline import OfflineSending
from holdfast.upstream.offline import MODEL
from holdfast.wire.responses import read_response
from tests.fitting.test_citing import chat
from tests.models.test_extractive import CITATION, REF
from tests.surfaces.proxy.harness import DIALECTS, Answered, path_of, request_in, text_of, usage_of


def send(path: str, body: bytes, method: str = "POST") -> tuple[Answered, int]:
    """The answer, and in how many pieces it came."""
    ids = numbers()
    sending = OfflineSending(clock=lambda: 1_700_000_000.5, new_id=lambda: f"id{next(ids)}")

    async def work() -> tuple[Answered, int]:
        async with sending.send(path, method, {}, body) as reply:
            pieces = [piece async for piece in reply.chunks()]
        return Answered(reply.status, dict(reply.headers), b"".join(pieces)), len(pieces)

    return asyncio.run(work())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_says_the_same_as_the_whole(dialect: str) -> None:
    asked = chat("the disk of db-7 is full", question="Which disk is full?")
    whole, pieces = send(path_of(dialect), request_in(dialect, asked))
    assert (whole.status, pieces) == (200, 1)
    stream, pieces = send(
        path_of(dialect, stream=True).partition("?")[0], request_in(dialect, asked, stream=True)
    )
    assert stream.headers["content-type"] == "text/event-stream"
    assert pieces >= 5
    assert text_of(dialect, stream, stream=True) == text_of(dialect, whole)
    assert usage_of(dialect, stream, stream=True) == usage_of(dialect, whole)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_usage_is_what_holdfast_counts(dialect: str) -> None:
    body = request_in(dialect, chat("the disk of db-7 is full"))
    whole, _ = send(path_of(dialect), body)
    model = "gemini-2.5-flash" if dialect == "gemini" else None
    counted = holdfast.count(body, dialect=dialect, model=model).tokens
    assert usage_of(dialect, whole)[0] == counted


@pytest.mark.parametrize("dialect", DIALECTS)
def test_ids_and_times_come_from_outside(dialect: str) -> None:
    body = request_in(dialect, chat("the disk of db-7 is full"))
    once, _ = send(path_of(dialect), body)
    assert once == send(path_of(dialect), body)[0]
    assert b"id0" in once.body
    assert MODEL.encode() in once.body


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_citation_is_opened_with_the_tool_that_is_offered(dialect: str) -> None:
    asked = chat(CITATION, question="Which disk is full?")
    for name in (NAME, OTHER_NAME):
        offered = {**asked, "tools": [*asked["tools"], definition("openai-chat", name)]}
        answered, _ = send(path_of(dialect), request_in(dialect, offered))
        [call] = read_response(answered.body, dialect).calls
        assert call.name == name
        assert json.loads(call.arguments) == {"ref": REF, "find": "Which disk is full?"}


def test_a_clients_own_tool_of_the_same_name_is_not_called() -> None:
    asked = chat(CITATION, question="Which disk is full?")
    theirs = {"type": "function", "function": {"name": NAME, "description": "Theirs."}}
    answered, _ = send(
        "/v1/chat/completions", request_in("openai-chat", {**asked, "tools": [theirs]})
    )
    assert read_response(answered.body, "openai-chat").calls == ()


STOPS: dict[str, Any] = {
    "openai-chat": lambda value: value["choices"][0]["finish_reason"] == "length",
    "openai-responses": lambda value: value["incomplete_details"]["reason"] == "max_output_tokens",
    "anthropic": lambda value: value["stop_reason"] == "max_tokens",
    "gemini": lambda value: value["candidates"][0]["finishReason"] == "MAX_TOKENS",
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_cut_answer_says_so(dialect: str) -> None:
    answered, _ = send(path_of(dialect), request_in(dialect, chat("disk", max_tokens=5)))
    assert STOPS[dialect](answered.json)
    assert usage_of(dialect, answered)[1] <= 5


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_cannot_be_read_is_refused(dialect: str) -> None:
    answered, _ = send(path_of(dialect), b"{")
    assert answered.status == 400
    assert answered.json["error"]


def test_other_paths_are_not_found() -> None:
    assert send("/v1/models", b"", "GET")[0].status == 404


def test_a_large_request_is_answered_off_the_loop() -> None:
    body = request_in("openai-chat", chat("disk full " * 20_000, question="Which disk is full?"))
    answered, _ = send("/v1/chat/completions", body)
    assert "> …disk full" in text_of("openai-chat", answered) or "> disk full" in text_of(
        "openai-chat", answered
    )


def test_others_get_their_turn_between_two_pieces_of_a_stream() -> None:
    sending = OfflineSending(clock=lambda: 0.0, new_id=lambda: "id")
    body = request_in("anthropic", chat("the disk of db-7 is full"), stream=True)
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def main() -> None:
        other = asyncio.create_task(take_turns())
        async with sending.send(path_of("anthropic"), "POST", {}, body) as reply:
            before = turns
            pieces = [piece async for piece in reply.chunks()]
        other.cancel()
        assert len(pieces) >= 5
        assert turns - before >= len(pieces)

    asyncio.run(main())
