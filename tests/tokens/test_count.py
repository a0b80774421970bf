"""Counts: what providers reported for requests like these, parts, memory, fallbacks."""

from __future__ import annotations

import base64
import json
import struct
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import count, read, write
from holdfast.errors import LimitError, TokenCountingError, WireError
from holdfast.tokens import (
    TokenCount,
    UnknownModelWarning,
    counter,
    estimate_tokens,
    register_counter,
)
from holdfast.tokens.request_reader import RecentConversations, recent_conversations
from holdfast.tokens.vocabulary import CountCache
from holdfast.wire import Conversation, Limits
from tests.wire.bodies import DIALECTS, WRITERS, scripts, styles, words

MODELS = [
    *["gpt-4o", "gpt-4-0613", "gpt-5", "o3", "gpt-oss-120b", "claude-sonnet-4-5", "claude-opus-5"],
    *["gemini-2.5-flash", "gemini-2.0-flash", "gemini-3-pro", "qwen3:8b", "llama-3.3-70b"],
    *["deepseek-chat", "mistral-large-latest", "grok-4.3", "command-a-03-2025", "nova-lite"],
]

WEATHER = {
    "name": "get_weather",
    "description": "Get the weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city's name."},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city"],
    },
}
USER = {"role": "user", "content": "What is the weather in Paris?"}


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"messages": list(messages), **more}


# OpenAI's published formula: 3 for the request, 3 and the role for each message, then the text.
@pytest.mark.parametrize(
    ("model", "messages", "tokens"),
    [
        ("gpt-4o", [{"role": "user", "content": "hello world"}], 3 + 3 + 1 + 2),
        ("gpt-4o", [{"role": "user", "content": "hello world", "name": "bob"}], 9 + 1 + 1),
        (
            "gpt-4o",
            [{"role": "system", "content": ""}, {"role": "user", "content": "hi"}],
            3 + 4 + 5,
        ),
        ("gpt-5", [{"role": "user", "content": "hello world"}], 8),
        ("gpt-3.5-turbo", [{"role": "user", "content": "hello world"}], 9),
    ],
)
def test_openai_text_follows_the_published_formula(
    model: str, messages: list[Any], tokens: int
) -> None:
    counted = count({"messages": messages}, model=model)
    assert counted.tokens == tokens
    assert counted.accuracy == "exact"


def test_openai_tools_are_counted_as_the_typescript_that_they_become() -> None:
    tool = {"type": "function", "function": WEATHER}
    plain, with_tool = (
        count(chat(USER), model="gpt-4o"),
        count(chat(USER, tools=[tool]), model="gpt-4o"),
    )
    shown = (
        "# Tools\n\n## functions\n\nnamespace functions {\n\n// Get the weather in a city.\n"
        "type get_weather = (_: {\n// The city's name.\ncity: string,\n"
        'unit?: "celsius" | "fahrenheit",\n}) => any;\n\n} // namespace functions'
    )
    memory = CountCache()
    expected = memory.count("o200k_base", shown) - 1 + 4  # a system message is made for it
    assert abs(with_tool.tokens - plain.tokens - expected) <= 1
    assert with_tool.parts.tools == with_tool.tokens - plain.tokens


@given(st.sampled_from(DIALECTS), scripts(), st.sampled_from(MODELS))
def test_every_dialect_is_counted_for_every_family(dialect: str, script: Any, model: str) -> None:
    counted = count(WRITERS[dialect](script), dialect=dialect, model=model)
    parts = counted.parts
    assert counted.tokens == parts.system + parts.tools + parts.messages + parts.formatting
    assert counted.tokens > 0
    assert counted.upper >= counted.tokens
    assert counted.note == ""
    assert len(counted.per_message) == len(read(WRITERS[dialect](script), dialect).messages)
    assert all(tokens >= 0 for tokens in counted.message_tokens)


@given(scripts(), st.sampled_from(MODELS), words)
def test_more_text_never_counts_less(script: Any, model: str, more: str) -> None:
    body = WRITERS["openai-chat"](script)
    before = count(body, model=model)
    body["messages"].append({"role": "user", "content": more})
    after = count(body, model=model)
    assert after.tokens >= before.tokens


@given(st.sampled_from(DIALECTS), scripts(), styles, st.sampled_from(MODELS), st.data())
def test_counting_on_gives_what_counting_anew_gives(
    dialect: str, script: Any, style: Any, model: str, data: st.DataObject
) -> None:
    body = WRITERS[dialect](script)
    key = {"openai-responses": "input", "gemini": "contents"}.get(dialect, "messages")
    cuts = sorted(data.draw(st.sets(st.integers(1, len(body[key])), max_size=4)))
    conversation: Conversation | None = None
    for cut in [*cuts, len(body[key])]:
        raw = style({**body, key: body[key][:cut]})
        conversation = read(raw, dialect, previous=conversation)
        counted = count(conversation, model=model)
        fresh = count(read(raw, dialect), model=model)
        assert counted.tokens == fresh.tokens
        assert counted.parts == fresh.parts
        assert counted.message_tokens == pytest.approx(fresh.message_tokens)
        assert count(raw, dialect=dialect, model=model).tokens == fresh.tokens


def test_reasoning_counts_only_in_the_turn_that_is_still_going_on() -> None:
    thought = {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "I should look at the weather. " * 20, "signature": "s"},
        {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Paris"}},
    ]}  # fmt: skip
    result = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "20"}],
    }
    going_on = read(chat(USER, thought, result), "anthropic")
    during = count(going_on, model="claude-sonnet-4-5")
    done = going_on.insert(
        3, {"role": "assistant", "content": "20 degrees."}, {"role": "user", "content": "ok"}
    )
    after = count(read(write(done), "anthropic", previous=going_on), model="claude-sonnet-4-5")
    assert after.tokens < during.tokens
    assert after.message_tokens[1] < during.message_tokens[1] / 2


def test_a_longer_conversation_costs_one_message() -> None:
    messages = [{"role": "user", "content": f"number {n} of the messages"} for n in range(300)]
    counted_texts: list[str] = []

    class Watched(CountCache):
        def count(self, vocabulary: str, text: str) -> int:
            counted_texts.append(text)
            return super().count(vocabulary, text)

    memory = Watched()
    count({"messages": messages}, model="gpt-4o", memory=memory)
    counted_texts.clear()
    messages.append({"role": "user", "content": "the last one"})
    count(
        json.dumps({"messages": messages}, separators=(",", ":")).encode(),
        model="gpt-4o",
        memory=memory,
    )
    assert "the last one" in counted_texts
    assert len(counted_texts) <= 6


def test_few_conversations_are_kept_to_go_on_from() -> None:
    for n in range(40):
        count({"messages": [{"role": "user", "content": f"conversation {n}"}]}, model="gpt-4o")
    assert len(recent_conversations) <= 16
    small = RecentConversations(most_bytes=1000)
    for n in range(40):
        small.read(
            json.dumps(chat({"role": "user", "content": f"{n}" * 100})).encode(), None, Limits()
        )
    assert 0 < small.size <= 1000


def test_plain_text_is_counted_as_text() -> None:
    assert count("hello world", model="gpt-4o").tokens == 2
    assert count('{"not": "a request"}', model="gpt-4o").tokens > 3
    assert (
        count(json.dumps(chat(USER)), model="gpt-4o").tokens
        == count(chat(USER), model="gpt-4o").tokens
    )
    assert count("", model="gpt-4o").tokens == 0
    assert estimate_tokens("hello world", "openai:gpt-4o") == 2
    assert estimate_tokens("hello world", "claude:sonnet") in (2, 3)
    assert estimate_tokens("hello world", "[cli]gemini:flash") == 2


def test_an_unknown_model_is_estimated_and_warned_about_once() -> None:
    with pytest.warns(UnknownModelWarning, match="nobody-knows-it"):
        counted = count(chat(USER), model="nobody-knows-it")
    assert counted.accuracy == "heuristic"
    assert counted.upper > counted.tokens * 1.4
    count(chat(USER), model="nobody-knows-it")  # a warning would be an error


@pytest.mark.parametrize(
    "name",
    [
        "Summarise the salary of Ann Lee: 84,000 a year",
        "gpt-x\nERROR root: forged line",
        "m\x1b[31m",
        "z" * 101,
        "модель-неизвестная",
    ],
)
def test_a_warning_shows_no_more_of_what_a_client_sent_than_looks_like_a_model(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter, "_warned", set())  # of names that are not shown, one warns
    with pytest.warns(UnknownModelWarning) as warned:
        count(chat(USER), model=name)
    with pytest.warns(UnknownModelWarning) as failing:
        estimate_tokens("text", name, provider_manager=_Failing())
    for warning in (*warned, *failing):
        text = str(warning.message)
        assert text.isprintable()
        assert not any(name[at : at + 8] in text for at in range(len(name) - 8))


def test_a_long_name_of_a_model_is_cut_in_a_warning() -> None:
    with pytest.warns(UnknownModelWarning, match="'" + "y" * 40 + "…' are estimated"):
        count(chat(USER), model="y" * 90)


class _Failing:
    def count_tokens(self, _text: str, _provider_id: str) -> int:
        raise TimeoutError


class Own:
    accuracy = "exact"

    def __init__(self, tokens: object) -> None:
        self.tokens = tokens

    def count(self, conversation: Conversation, model: str) -> int:  # noqa: ARG002
        if isinstance(self.tokens, Exception):
            raise self.tokens
        return self.tokens  # type: ignore[return-value]


def test_a_counter_of_ones_own_is_asked_first() -> None:
    register_counter("my-model", Own(42))  # type: ignore[arg-type]
    try:
        counted = count(chat(USER), model="my-model-7b")
    finally:
        register_counter("my-model", None)
    assert (counted.tokens, counted.accuracy) == (42, "exact")


@pytest.mark.parametrize("model", ["my-model-7b", "me:my-model-7b", "[cli]me:my-model-7b"])
def test_the_counter_of_the_longest_prefix_is_asked_in_any_spelling(model: str) -> None:
    prefixes = {"my": 1, "my-model": 2, "my-": 3}
    for prefix, tokens in prefixes.items():
        register_counter(prefix, Own(tokens))  # type: ignore[arg-type]
    try:
        assert count(chat(USER), model=model).tokens == 2
    finally:
        for prefix in prefixes:
            register_counter(prefix, None)


def test_a_counter_may_be_registered_for_a_whole_provider() -> None:
    register_counter("openai", Own(42))  # type: ignore[arg-type]
    try:
        assert count(chat(USER), model="gpt-4o").tokens == 42
        assert count(chat(USER), model="claude-sonnet-4-5").tokens != 42
    finally:
        register_counter("openai", None)


def test_a_counter_that_says_nothing_known_about_itself_is_a_heuristic() -> None:
    own = Own(100)
    own.accuracy = "approximate"
    register_counter("my-model", own)  # type: ignore[arg-type]
    try:
        counted = count(chat(USER), model="my-model")
    finally:
        register_counter("my-model", None)
    assert (counted.accuracy, counted.upper) == ("heuristic", 150)


@pytest.mark.parametrize("tokens", [RuntimeError("secret text"), -5, "many", "12", 2.5, None, True])
def test_a_counter_that_fails_is_passed_over_and_the_count_says_so(tokens: object) -> None:
    register_counter("gpt-4o-custom", Own(tokens))  # type: ignore[arg-type]
    try:
        counted = count(chat(USER), model="gpt-4o-custom")
    finally:
        register_counter("gpt-4o-custom", None)
    assert counted.tokens == count(chat(USER), model="gpt-4o").tokens
    assert "failed" in counted.note
    assert "secret" not in counted.note


@pytest.mark.parametrize("tokens", [-3, None, "7", True, 2.5, float("nan")])
def test_a_providers_own_counter_may_give_no_number(tokens: object) -> None:
    class Manager:
        def count_tokens(self, text: str, provider_id: str) -> object:  # noqa: ARG002
            return tokens

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownModelWarning)
        assert estimate_tokens("hello world", "openai:gpt-4o", Manager()) == 2


def test_what_is_not_text_is_a_typed_error() -> None:
    for call in (
        lambda: count("hi", model=3),  # type: ignore[arg-type]
        lambda: count(chat(USER), model=b"gpt-4o"),  # type: ignore[arg-type]
        lambda: estimate_tokens(None, "openai:gpt-4o"),  # type: ignore[arg-type]
        lambda: estimate_tokens("hi", None),  # type: ignore[arg-type]
    ):
        with pytest.raises(TokenCountingError, match="must be text"):
            call()
    with pytest.raises(WireError, match="there is no dialect"):
        count(chat(USER), dialect=["openai-chat"], model="gpt-4o")  # type: ignore[arg-type]


def test_a_providers_own_counter_may_fail_too() -> None:
    class Manager:
        def count_tokens(self, text: str, provider_id: str) -> int:  # noqa: ARG002
            raise TimeoutError

    with pytest.warns(UnknownModelWarning, match="TimeoutError"):
        assert estimate_tokens("hello world", "openai:gpt-4o", Manager()) == 2


def test_bad_bodies_raise_what_reading_raises() -> None:
    with pytest.raises(WireError):
        count(b'{"messages":[{"role":"robot"}]}', dialect="openai-chat", model="gpt-4o")
    with pytest.raises(WireError):
        count(b"\x00", model="gpt-4o")


def test_limits_are_the_callers_to_set() -> None:
    with pytest.raises(LimitError):
        count(chat(USER), model="gpt-4o", limits=Limits(max_body_bytes=10))


def test_the_representation_is_short() -> None:
    counted = count(chat(*[USER] * 500), model="gpt-4o")
    assert isinstance(counted, TokenCount)
    assert len(repr(counted)) < 80


def image(width: int, height: int) -> str:
    head = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height) + bytes(20)
    return base64.b64encode(head).decode()


@pytest.mark.parametrize(
    ("model", "size", "detail", "tokens"),
    [
        # platform.openai.com: 85 and 170 for each tile of 512 after scaling
        ("gpt-4o", (1024, 1024), "high", 765),
        ("gpt-4o", (2048, 4096), "high", 1105),
        ("gpt-4o", (4096, 8192), "low", 85),
        ("gpt-4o-mini", (512, 512), "high", 8500),
        ("gpt-4.1-mini", (1024, 1024), "high", 1024 * 1.62 + 2),
    ],
)
def test_openai_images_cost_what_the_documentation_says(
    model: str, size: tuple[int, int], detail: str, tokens: float
) -> None:
    url = f"data:image/png;base64,{image(*size)}"
    part = {"type": "image_url", "image_url": {"url": url, "detail": detail}}
    with_image = count(chat({"role": "user", "content": [part]}), model=model)
    without = count(chat({"role": "user", "content": ""}), model=model)
    assert with_image.tokens - without.tokens == pytest.approx(tokens, abs=1)


def test_claude_and_gemini_images_cost_what_the_documentation_says() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": image(1000, 750)}
    body = chat({"role": "user", "content": [{"type": "image", "source": source}]})
    text = chat({"role": "user", "content": [{"type": "text", "text": "x"}]})
    claude = count(body, dialect="anthropic", model="claude-sonnet-4-5")
    base = count(text, dialect="anthropic", model="claude-sonnet-4-5")
    assert claude.tokens - base.tokens == pytest.approx(1000, abs=15)
    part = {"inlineData": {"mimeType": "image/png", "data": image(300, 300)}}
    gemini = count({"contents": [{"parts": [part]}]}, model="gemini-2.5-flash")
    assert gemini.tokens == pytest.approx(259, abs=1)


# --- what grows, and what must not -------------------------------------------------------------


def test_a_conversation_counted_for_many_models_does_not_grow() -> None:
    conversation = read(chat(USER, {"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}))  # fmt: skip
    for n in range(500):
        counted = count(conversation, model=f"gpt-4o-deployment-{n}")
    kept = [value for message in conversation.messages for value in message.notes.values()]
    assert all(len(values) <= 48 for values in kept if isinstance(values, dict))
    assert counted.tokens == count(read(write(conversation)), model="gpt-4o").tokens


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"inside": schema}}
    return schema


_ITSELF = {"$ref": "#/$defs/node"}
_FOREVER = {
    "type": "object",
    "properties": {"root": _ITSELF},
    "$defs": {"node": {"type": "object", "properties": dict.fromkeys("abcdefgh", _ITSELF)}},
}
_UNIONS = {
    "type": "object",
    "properties": {"root": _ITSELF},
    "$defs": {"node": {"anyOf": [_ITSELF] * 8}},
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "schema", [_FOREVER, _UNIONS, _nested(200)], ids=["itself", "unions", "deep"]
)
def test_schemas_without_end_are_counted(schema: Any, model: str) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    counted = count(chat(USER, tools=[tool]), model=model)
    assert counted.note == ""
    assert 0 < counted.tokens < 500_000


@pytest.mark.parametrize("model", MODELS)
def test_deep_arguments_and_broken_schemas_are_counted(model: str) -> None:
    function = {"name": "f", "arguments": "[" * 900 + "]" * 900}
    call = {"id": "c", "type": "function", "function": function}
    answer = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c", "content": "[" * 900 + "]" * 900}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": "{broken"}}
    body = chat(USER, answer, result, response_format=form)
    assert count(body, dialect="openai-chat", model=model).note == ""


# --- dialects for counting -----------------------------------------------------------------------

GRPC = {
    "model": "grok-4-fast",
    "messages": [
        {"role": "ROLE_SYSTEM", "content": [{"text": "Be brief."}]},
        {"role": "ROLE_USER", "content": [{"text": "What is the weather in Paris?"}]},
        {"role": "ROLE_ASSISTANT", "tool_calls": [
            {"id": "c1", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}]},
        {"role": "ROLE_TOOL", "tool_call_id": "c1", "content": [{"text": "20 degrees"}]},
    ],
    "tools": [{"function": {**WEATHER, "parameters": json.dumps(WEATHER["parameters"])}}],
    "tool_choice": {"mode": "TOOL_MODE_AUTO"},
}  # fmt: skip
SAME = {
    "model": "grok-4-fast",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is the weather in Paris?"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c1", "type": "function",
             "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "20 degrees"},
    ],
    "tools": [{"type": "function", "function": WEATHER}],
    "tool_choice": "auto",
}  # fmt: skip


@pytest.mark.parametrize("dialect", ["xai", None])
@pytest.mark.parametrize("body", [GRPC, json.dumps(GRPC), json.dumps(GRPC).encode()])
def test_xais_own_requests_count_as_the_chat_that_they_mean(body: Any, dialect: str | None) -> None:
    counted = count(body, dialect=dialect, model="grok-4-fast")
    assert counted == count(SAME, dialect="openai-chat", model="grok-4-fast")
    assert counted == count(SAME, dialect="xai", model="grok-4-fast")


@pytest.mark.parametrize("body", [
    {}, [], {"messages": None}, {"messages": [None]}, {"messages": [{"role": "ROLE_USER"}]},
    {"messages": [{"role": "ROLE_USER", "content": [None, 3, {}, {"file": {"file_id": "x"}},
      {"image_url": {"image_url": "https://x"}}, {"sound": 1}]}], "tools": [None, {}, {"mcp": {}}],
     "tool_choice": {"function_name": "f"}, "response_format": {"schema": "{broken"}},
])  # fmt: skip
def test_strange_requests_of_xai_are_counted_or_refused(body: Any) -> None:
    try:
        counted = count(body, dialect="xai", model="grok-4")
    except WireError:
        return
    assert counted.note == ""


def test_recorded_names_of_openais_dialects_are_understood() -> None:
    assert count(SAME, dialect="chat", model="gpt-4o").tokens > 0
    assert count({"input": "hi"}, dialect="responses", model="gpt-4o").tokens > 0
    with pytest.raises(WireError, match="there is no dialect"):
        count(SAME, dialect="smoke", model="gpt-4o")


def test_what_was_counted_before_makes_no_difference() -> None:
    body = chat(USER, {"role": "assistant", "content": "Sunny."}, {"role": "user", "content": "!"})
    alone = count(body, model="qwen3:8b")
    for dialect in ("anthropic", "cohere", "openai-chat"):
        count(body, dialect=dialect, model="qwen3:8b")
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": "b" * 50}}
    longer = chat(*body["messages"], {"role": "assistant", "content": [call]}, max_tokens=9)
    after = count(longer, model="qwen3:8b")
    assert count(body, model="qwen3:8b") == alone
    assert after == count(read(longer), model="qwen3:8b")


def test_what_a_providers_own_summary_stands_for_is_not_counted() -> None:
    # Recorded: Anthropic billed 216 tokens for such a request of 300,000 characters.
    summary = {"type": "compaction", "content": "The user asked for a summary of a long text."}
    kept = [
        {"role": "assistant", "content": [summary]},
        {"role": "user", "content": "What are we talking about?"},
    ]
    history = [
        {"role": "user", "content": "What of this? " + "All went well. " * 5_000},
        {"role": "assistant", "content": "Nothing."},
    ]
    with_history, alone = (
        count(
            {"model": "claude-opus-4-6", "max_tokens": 10, "messages": messages},
            dialect="anthropic",
        ).tokens
        for messages in ([*history, *kept], kept)
    )
    assert with_history == alone
    assert 80 < alone < 150
