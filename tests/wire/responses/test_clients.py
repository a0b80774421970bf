"""The providers' own clients take what we make of streams, answers and errors.

Each client talks to a server on the loopback that sends back prepared bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from holdfast.wire.responses import (
    ModelCall,
    OfflineResponse,
    Relay,
    compose_response,
    error_body,
    error_event,
    join_responses,
    stream_response,
)
from tests.wire.responses.streams import HIDDEN, Script, hidden, write
from tests.wire.responses.test_relay import ANSWER, EXPAND, HELLO, LOOK_UP, THOUGHT, run

openai = pytest.importorskip("openai", reason="the openai client is not installed")
anthropic = pytest.importorskip("anthropic", reason="the anthropic client is not installed")
genai = pytest.importorskip("google.genai", reason="the google-genai client is not installed")

SAID = OfflineResponse(
    id="a1",
    model="m",
    created=1_700_000_000,
    pieces=("Let me ", "look."),
    calls=(ModelCall("c1", "look_up", '{"q": 1}'),),
    input_tokens=7,
    output_tokens=3,
)


@contextmanager
def serving(body: bytes, *, status: int = 200, stream: bool = True) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            kind = "text/event-stream" if stream else "application/json"
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def joined(dialect: str, *scripts: Script) -> bytes:
    relay = Relay(dialect, hidden)
    out = run(relay, write(scripts[0], dialect))
    for script in scripts[1:]:
        out += b"".join(relay.continue_with()) + run(relay, write(script, dialect))
    return out + b"".join(relay.close())


CHAIN = (Script((THOUGHT, HELLO, EXPAND)), Script((ANSWER, LOOK_UP), "second"))


def open_ai(url: str) -> Any:
    return openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)


def open_anthropic(url: str) -> Any:
    return anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)


def open_gemini(url: str) -> Any:
    return genai.Client(api_key="k", http_options={"base_url": url})


TOOL = {"type": "function", "name": "look_up", "parameters": {}, "strict": False}


def chat_stream(url: str) -> Any:
    with (
        open_ai(url) as client,
        client.chat.completions.stream(
            model="gpt-5", messages=[{"role": "user", "content": "Hi"}]
        ) as stream,
    ):
        list(stream)
        return stream.get_final_completion()


def responses_stream(url: str) -> Any:
    with (
        open_ai(url) as client,
        client.responses.stream(model="gpt-5", input="Hi", tools=[TOOL]) as stream,
    ):
        list(stream)
        return stream.get_final_response()


ASKED = {"model": "claude-test", "max_tokens": 9}
HI = [{"role": "user", "content": "Hi"}]


def anthropic_stream(url: str) -> Any:
    with open_anthropic(url) as client, client.messages.stream(**ASKED, messages=HI) as stream:
        list(stream)
        return stream.get_final_message()


def gemini_stream(url: str) -> list[Any]:
    client = open_gemini(url)
    try:
        return list(client.models.generate_content_stream(model="gemini-2.5-flash", contents="Hi"))
    finally:
        client.close()


def test_openai_chat_takes_a_joined_stream() -> None:
    with serving(joined("openai-chat", *CHAIN)) as url:
        final = chat_stream(url)
    [choice] = final.choices
    assert choice.message.content == "Let me look.\n\nIt is 42."
    assert [call.function.name for call in choice.message.tool_calls] == ["look_up"]
    assert choice.finish_reason == "tool_calls"
    assert (final.usage.prompt_tokens, final.usage.total_tokens) == (10, 20)
    assert final.usage.prompt_tokens_details.cached_tokens == 3
    assert final.usage.model_dump()["holdfast"] == {"calls": 2, "input_tokens": 20}


def test_openai_responses_takes_a_joined_stream() -> None:
    with serving(joined("openai-responses", *CHAIN)) as url:
        final = responses_stream(url)
    assert final.id == "resp_first"
    assert [item.type for item in final.output] == [
        "reasoning",
        "message",
        "message",
        "function_call",
    ]
    assert final.output_text == "Let me look.It is 42."
    assert final.usage.input_tokens == 10
    assert final.usage.model_dump()["holdfast"] == {"calls": 2, "input_tokens": 20}


def test_anthropic_takes_a_joined_stream() -> None:
    with serving(joined("anthropic", *CHAIN)) as url:
        final = anthropic_stream(url)
    assert [block.type for block in final.content] == ["thinking", "text", "text", "tool_use"]
    assert final.content[0].signature == "signed hm"
    assert final.content[3].input == {"q": 1}
    assert final.stop_reason == "tool_use"
    assert (final.usage.input_tokens, final.usage.output_tokens) == (10, 10)
    assert final.usage.cache_read_input_tokens == 3


def test_gemini_takes_a_joined_stream() -> None:
    with serving(joined("gemini", *CHAIN)) as url:
        chunks = gemini_stream(url)
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]
    words = "".join(part.text for part in parts if part.text and not part.thought)
    assert words == "Let me look.\n\nIt is 42."
    assert [part.function_call.name for part in parts if part.function_call] == ["look_up"]
    assert chunks[-1].usage_metadata.prompt_token_count == 10
    assert chunks[-1].usage_metadata.candidates_token_count == 10


def test_every_client_takes_an_answer_that_was_all_hidden() -> None:
    silent = Script((EXPAND,))
    with serving(joined("openai-chat", silent)) as url:
        assert not chat_stream(url).choices[0].message.content
    with serving(joined("openai-responses", silent)) as url:
        assert responses_stream(url).output_text == ""
    with serving(joined("anthropic", silent)) as url:
        assert anthropic_stream(url).content == []
    with serving(joined("gemini", silent)) as url:
        assert not "".join(chunk.text or "" for chunk in gemini_stream(url))


def composed(dialect: str) -> bytes:
    return b"".join(stream_response(SAID, dialect))


def test_every_client_takes_a_stream_of_our_own() -> None:
    with serving(composed("openai-chat")) as url:
        message = chat_stream(url).choices[0].message
    assert (message.content, message.tool_calls[0].id) == ("Let me look.", "c1")
    with serving(composed("openai-responses")) as url:
        final = responses_stream(url)
    assert (final.output_text, final.output[1].call_id) == ("Let me look.", "c1")
    with serving(composed("anthropic")) as url:
        content = anthropic_stream(url).content
    assert (content[0].text, content[1].input) == ("Let me look.", {"q": 1})
    with serving(composed("gemini")) as url:
        chunks = gemini_stream(url)
    assert chunks[0].text == "Let me "
    assert chunks[-1].function_calls[0].args == {"q": 1}


def whole(dialect: str) -> bytes:
    call = ModelCall("h", HIDDEN, "{}")
    first = OfflineResponse(
        id="f", model="m", created=1, calls=(call,), input_tokens=1, output_tokens=1
    )
    bodies = [compose_response(first, dialect), compose_response(SAID, dialect)]
    return join_responses(bodies, dialect, hidden)


def test_every_client_takes_joined_answers_in_one_piece() -> None:
    with serving(whole("openai-chat"), stream=False) as url, open_ai(url) as client:
        chat = client.chat.completions.create(model="m", messages=HI)
    assert (chat.choices[0].message.content, chat.usage.total_tokens) == ("Let me look.", 11)
    with serving(whole("openai-responses"), stream=False) as url, open_ai(url) as client:
        final = client.responses.create(model="m", input="Hi")
    assert (final.output_text, final.usage.input_tokens) == ("Let me look.", 7)
    with serving(whole("anthropic"), stream=False) as url, open_anthropic(url) as client:
        message = client.messages.create(**ASKED, messages=HI)
    assert (message.stop_reason, message.usage.output_tokens) == ("tool_use", 4)
    with serving(whole("gemini"), stream=False) as url:
        client = open_gemini(url)
        answer = client.models.generate_content(model="m", contents="Hi")
        client.close()
    assert answer.function_calls[0].name == "look_up"
    assert answer.usage_metadata.total_token_count == 11


def test_every_client_raises_our_errors_as_its_own() -> None:
    def failing(dialect: str) -> Any:
        return serving(error_body(dialect, 429, "slow down", "x"), status=429, stream=False)

    with failing("openai-chat") as url, pytest.raises(openai.RateLimitError) as raised:
        chat_stream(url)
    assert raised.value.code == "x"
    with failing("openai-responses") as url, pytest.raises(openai.RateLimitError):
        responses_stream(url)
    with failing("anthropic") as url, pytest.raises(anthropic.RateLimitError, match="slow down"):
        anthropic_stream(url)
    with failing("gemini") as url, pytest.raises(genai.errors.ClientError) as gemini:
        gemini_stream(url)
    assert (gemini.value.code, gemini.value.status) == (429, "RESOURCE_EXHAUSTED")


def broken(dialect: str) -> bytes:
    relay = Relay(dialect, hidden)
    stream = write(Script((HELLO,)), dialect)
    out = run(relay, [*stream[: len(stream) // 2], b"data: {half"])
    assert relay.failed
    return out + b"".join(relay.error(502, "the provider broke off"))


def test_every_client_raises_an_error_inside_a_stream() -> None:
    with (
        serving(broken("openai-chat")) as url,
        pytest.raises(openai.APIError, match="broke off"),
    ):
        chat_stream(url)
    with (
        serving(broken("openai-responses")) as url,
        pytest.raises(openai.APIError, match="broke off"),
    ):
        responses_stream(url)
    with (
        serving(broken("anthropic")) as url,
        pytest.raises(anthropic.APIStatusError, match="broke off"),
    ):
        anthropic_stream(url)
    with serving(broken("gemini")) as url, pytest.raises(genai.errors.APIError, match="broke off"):
        gemini_stream(url)


def test_the_error_event_names_our_kind() -> None:
    value = json.loads(error_event("openai-responses", 502, "m", "upstream").split(b"data: ")[1])
    assert (value["type"], value["code"], value["message"]) == ("error", "upstream", "m")
