"""The providers' own clients take translated answers, whole and streamed, of every other dialect.

Each client talks to a server on the loopback that sends what was translated.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from holdfast.wire.responses import AnswerTranslator, translate_error, translate_response
from tests.wire.responses.streams import Script, write
from tests.wire.responses.test_clients import (
    ASKED,
    HI,
    anthropic,
    anthropic_stream,
    chat_stream,
    gemini_stream,
    genai,
    open_ai,
    open_anthropic,
    open_gemini,
    openai,
    responses_stream,
    serving,
)
from tests.wire.responses.test_translate import ERRORS, FULL, PAIRS, translate, whole


class Taken(NamedTuple):
    """What an official client makes of an answer."""

    text: str
    thinking: str
    calls: list[tuple[str, str, Any]]
    stop: str
    usage: tuple[int, int]


def from_chat(final: Any) -> Taken:
    [choice] = final.choices
    message = choice.message
    calls = [
        (call.id, call.function.name, json.loads(call.function.arguments))
        for call in message.tool_calls or ()
    ]
    return Taken(
        message.content or "",
        getattr(message, "reasoning_content", None) or "",
        calls,
        choice.finish_reason,
        (final.usage.prompt_tokens, final.usage.completion_tokens),
    )


def from_responses(final: Any) -> Taken:
    items = final.output
    return Taken(
        final.output_text,
        "".join(s.text for item in items if item.type == "reasoning" for s in item.summary),
        [
            (item.call_id, item.name, json.loads(item.arguments))
            for item in items
            if item.type == "function_call"
        ],
        final.incomplete_details.reason if final.incomplete_details else final.status,
        (final.usage.input_tokens, final.usage.output_tokens),
    )


def from_anthropic(final: Any) -> Taken:
    blocks = final.content
    return Taken(
        "".join(block.text for block in blocks if block.type == "text"),
        "".join(block.thinking for block in blocks if block.type == "thinking"),
        [(block.id, block.name, block.input) for block in blocks if block.type == "tool_use"],
        final.stop_reason,
        (
            final.usage.input_tokens + (final.usage.cache_read_input_tokens or 0),
            final.usage.output_tokens,
        ),
    )


def from_gemini(chunks: list[Any]) -> Taken:
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    used = chunks[-1].usage_metadata
    return Taken(
        "".join(part.text for part in parts if part.text and not part.thought),
        "".join(part.text for part in parts if part.text and part.thought),
        [(c.id, c.name, c.args) for part in parts if (c := part.function_call)],
        chunks[-1].candidates[0].finish_reason.name,
        (used.prompt_token_count, used.candidates_token_count + (used.thoughts_token_count or 0)),
    )


READ = {
    "openai-chat": from_chat,
    "openai-responses": from_responses,
    "anthropic": from_anthropic,
    "gemini": from_gemini,
}


def chat_to_its_end(url: str) -> Any:
    try:
        return chat_stream(url)
    except openai.LengthFinishReasonError as cut:  # how the client tells of an answer cut short
        return cut.completion


def response_to_its_end(url: str) -> Any:
    with open_ai(url) as client:
        *_, last = client.responses.create(model="m", input="Hi", stream=True)
        return last.response


STREAM = {
    "openai-chat": chat_to_its_end,
    "openai-responses": response_to_its_end,
    "anthropic": anthropic_stream,
    "gemini": gemini_stream,
}
"""The calls of the clients that put a stream together."""


def ask(to: str, url: str) -> Any:
    """Ask for an answer in one piece."""
    if to == "anthropic":
        with open_anthropic(url) as client:
            return client.messages.create(**ASKED, messages=HI)
    if to == "gemini":
        client = open_gemini(url)
        try:
            return [client.models.generate_content(model="gemini-2.5-flash", contents="Hi")]
        finally:
            client.close()
    with open_ai(url) as client:
        if to == "openai-chat":
            return client.chat.completions.create(model="m", messages=HI)
        return client.responses.create(model="m", input="Hi")


def test_the_clients_own_helper_puts_a_translated_response_together() -> None:
    for speaks in ("anthropic", "openai-chat", "gemini"):
        with serving(translate(b"".join(write(FULL, speaks)), speaks, "openai-responses")) as url:
            taken = from_responses(responses_stream(url))
        assert (taken.text, taken.calls) == ("It is 42.", CALLS)


CALLS = [("call_a", "look_up", {"q": 1}), ("call_b", "search", {"q": [2]})]
STOPS = {
    "openai-chat": ("tool_calls", "length"),
    "openai-responses": ("completed", "max_output_tokens"),
    "anthropic": ("tool_use", "max_tokens"),
    "gemini": ("STOP", "MAX_TOKENS"),
}
SCRIPTS = {"calls": FULL, "length": replace(FULL, parts=FULL.parts[:2], cut=True)}


def expected(script: Script, speaks: str, to: str) -> Taken:
    shown = script.input + (script.cached if speaks == "anthropic" else 0)
    calls = CALLS if script.calls else []
    return Taken("It is 42.", "Let me see.", calls, STOPS[to][script.cut], (shown, script.output))


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize(("speaks", "to"), PAIRS)
def test_the_client_takes_a_translated_stream(speaks: str, to: str, name: str) -> None:
    script = SCRIPTS[name]
    with serving(translate(b"".join(write(script, speaks)), speaks, to)) as url:
        taken = READ[to](STREAM[to](url))
    assert taken == expected(script, speaks, to)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize(("speaks", "to"), PAIRS)
def test_the_client_takes_a_translated_answer(speaks: str, to: str, name: str) -> None:
    script = SCRIPTS[name]
    body = translate_response(whole(script, speaks), speaks=speaks, to=to, model="m").body
    with serving(body, stream=False) as url:
        taken = READ[to](ask(to, url))
    assert taken == expected(script, speaks, to)


RAISED = {
    "openai-chat": openai.APIError,
    "openai-responses": openai.APIError,
    "anthropic": anthropic.APIStatusError,
    "gemini": genai.errors.APIError,
}


@pytest.mark.parametrize(("speaks", "to"), PAIRS)
def test_the_client_raises_an_error_in_the_middle_and_a_stream_that_breaks_off(
    speaks: str, to: str
) -> None:
    begun = b"".join(write(FULL, speaks)[:5])
    for stream, message in ((begun + ERRORS[speaks], "Too much."), (begun, "broke off")):
        with serving(translate(stream, speaks, to)) as url, pytest.raises(RAISED[to]) as raised:
            STREAM[to](url)
        assert message in str(raised.value)


@pytest.mark.parametrize(("speaks", "to"), PAIRS)
def test_the_client_raises_a_translated_error_by_its_status(speaks: str, to: str) -> None:
    body = ERRORS[speaks].split(b"data: ")[1].strip()
    told = translate_error(429, body, speaks=speaks, to=to)
    with (
        serving(told, status=429, stream=False) as url,
        pytest.raises(RAISED[to]) as raised,
    ):
        ask(to, url)
    assert getattr(raised.value, "status_code", getattr(raised.value, "code", None)) == 429
    assert "Too much." in str(raised.value)


def test_a_gemini_chat_remembers_a_translated_turn() -> None:
    translator = AnswerTranslator(speaks="anthropic", to="gemini", model="m")
    stream = b"".join(write(replace(FULL, parts=FULL.parts[1:2]), "anthropic"))
    with serving(b"".join([*translator.feed(stream), *translator.close()])) as url:
        client = open_gemini(url)
        try:
            session = client.chats.create(model="gemini-2.5-flash")
            list(session.send_message_stream("Hi"))
        finally:
            client.close()
    assert len(session.get_history(curated=True)) > 1
