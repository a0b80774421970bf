"""A request for another provider asks for all that it asked for, and nothing that is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import read, validate
from holdfast.wire import Answerer, Media, convert, custom_tools

PNG = "iVBORw0KGgo="
PDF = "JVBERi0="
FOUR = ("openai-chat", "openai-responses", "anthropic", "gemini")
IMAGES: dict[str, Any] = {
    "openai-chat": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    "openai-responses": {
        "type": "input_image",
        "image_url": f"data:image/png;base64,{PNG}",
        "detail": "auto",
    },
    "anthropic": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
    },
    "gemini": {"inlineData": {"mimeType": "image/png", "data": PNG}},
}


def asking(dialect: str, part: Any) -> dict[str, Any]:
    """A request with a part beside a question."""
    if dialect == "gemini":
        return {"contents": [{"role": "user", "parts": [part, {"text": "What?"}]}]}
    kind = "input_text" if dialect == "openai-responses" else "text"
    message = {"role": "user", "content": [part, {"type": kind, "text": "What?"}]}
    return {"max_tokens": 9, "messages": [message]} if dialect != FOUR[1] else {"input": [message]}


def done(body: Any, to: str, dialect: str, model: str = "", **asked: Any) -> tuple[Any, list[str]]:
    converted = convert(body, to, dialect, answerer=Answerer(model=model, **asked))
    assert validate(converted.body, to) == []
    return json.loads(converted.body), [f"{loss.path}: {loss.message}" for loss in converted.lost]


@pytest.mark.parametrize("to", FOUR)
@pytest.mark.parametrize("dialect", FOUR)
def test_an_image_is_carried_over(dialect: str, to: str) -> None:
    body, lost = done(asking(dialect, IMAGES[dialect]), to, dialect)
    [message] = read(json.dumps(body), to).messages
    [image] = [block for block in message.blocks if isinstance(block, Media)]
    content = message.value["parts" if to == "gemini" else "content"]
    assert content[image.place[-1]] == IMAGES[to]
    assert all("max_tokens" in loss for loss in lost)


def test_a_document_and_an_address_are_carried_over() -> None:
    file = {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}
    body, _ = done(asking("openai-chat", {"type": "file", "file": file}), "anthropic", FOUR[0])
    part = body["messages"][0]["content"][0]
    assert part["source"] == {"type": "base64", "media_type": "application/pdf", "data": PDF}
    assert part["title"] == "a.pdf"
    address = {"type": "image_url", "image_url": {"url": "https://e.x/a.png"}}
    body, _ = done(asking("openai-chat", address), "gemini", "openai-chat")
    data = {"mimeType": "image/png", "fileUri": "https://e.x/a.png"}
    assert body["contents"][0]["parts"][0] == {"fileData": data}


def test_what_only_the_provider_can_read_leaves_a_note() -> None:
    for part in ({"type": "image", "source": {"type": "file", "file_id": "f"}}, {"type": "image"}):
        body, lost = done(asking("anthropic", part), "openai-chat", "anthropic")
        assert body["messages"][0]["content"].startswith("[image not carried over]")
        assert lost == ["$.messages[0].content[0]: an image, of which a note is left"]


def loop(*results: Any) -> dict[str, Any]:
    uses = [{"type": "tool_use", "id": f"t{n}", "name": "f", "input": {}} for n in (1, 2)]
    return {
        "max_tokens": 4000,
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": uses},
            {"role": "user", "content": list(results)},
        ],
    }


SHOT = {
    "type": "tool_result",
    "tool_use_id": "t1",
    "content": [IMAGES["anthropic"], {"type": "text", "text": "a shot"}],
}
BAD = {"type": "tool_result", "tool_use_id": "t2", "content": "no file", "is_error": True}


def test_images_of_results_stay_in_them_or_stand_behind_all_of_them() -> None:
    body, lost = done(loop(SHOT, BAD), "openai-responses", "anthropic")
    assert body["input"][-2]["output"][0] == IMAGES["openai-responses"]
    assert lost == ["$.messages[2].content[1]: the mark that a tool result is an error"]
    body, _ = done(loop(SHOT, BAD), "openai-chat", "anthropic")
    assert [message["role"] for message in body["messages"][-3:]] == ["tool", "tool", "user"]
    assert body["messages"][-3]["content"] == "a shot"
    assert body["messages"][-1]["content"][1] == IMAGES["openai-chat"]
    body, lost = done(loop(SHOT, BAD), "gemini", "anthropic")
    assert body["contents"][-1]["parts"][1] == IMAGES["gemini"]
    assert body["contents"][-2]["parts"][1]["functionResponse"]["response"] == {"error": "no file"}
    assert lost == []


def test_gemini_3_gets_what_stands_for_signatures_of_other_models() -> None:
    body, lost = done(loop(SHOT, BAD), "gemini", "anthropic", "gemini-3-pro-preview")
    parts = body["contents"][1]["parts"]
    assert parts[0]["thoughtSignature"] == "skip_thought_signature_validator"
    assert "thoughtSignature" not in parts[1]
    assert lost == ["$.contents: signatures of thinking before calls"]


# --- the answer's form, thinking, sampling -----------------------------------------------------

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
HI = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9000}
FORMS: dict[str, Any] = {
    "openai-chat": {
        **HI,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": SCHEMA, "strict": True},
        },
    },
    "openai-responses": {
        "input": "Hi",
        "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}},
    },
    "anthropic": {**HI, "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "generationConfig": {
            "responseMimeType": "application/json",
            "responseSchema": {
                "type": "OBJECT",
                "properties": {"a": {"type": "STRING"}},
                "required": ["a"],
            },
        },
    },
}


@pytest.mark.parametrize("to", FOUR)
@pytest.mark.parametrize("dialect", FOUR)
def test_the_form_of_an_answer_is_carried_over(dialect: str, to: str) -> None:
    body, lost = done(FORMS[dialect], to, dialect)
    schemas = {
        "openai-chat": lambda: body["response_format"]["json_schema"]["schema"],
        "openai-responses": lambda: body["text"]["format"]["schema"],
        "anthropic": lambda: body["output_config"]["format"]["schema"],
        "gemini": lambda: body["generationConfig"]["responseJsonSchema"],
    }
    assert schemas[to]() == SCHEMA
    assert all("max_tokens" in loss for loss in lost)


def test_json_without_a_schema_is_named_where_there_is_no_such_thing() -> None:
    asked = {**HI, "response_format": {"type": "json_object"}}
    body, _ = done(asked, "openai-responses", "openai-chat")
    assert body["text"]["format"] == {"type": "json_object"}
    body, lost = done(asked, "anthropic", "openai-chat")
    assert "output_config" not in body
    assert lost[0].startswith("$.response_format")


THINKS = {**HI, "reasoning_effort": "medium"}


@pytest.mark.parametrize(
    ("to", "model", "path", "value"),
    [
        ("openai-responses", "gpt-5", ("reasoning",), {"effort": "medium"}),
        ("openai-responses", "gpt-4o", ("reasoning",), None),
        ("anthropic", "claude-sonnet-4-5", ("thinking", "budget_tokens"), 4500),
        ("anthropic", "claude-opus-4-6", ("thinking",), {"type": "adaptive"}),
        ("anthropic", "claude-opus-4-6", ("output_config",), {"effort": "medium"}),
        ("anthropic", "claude-3-5-haiku-latest", ("thinking",), None),
        ("gemini", "gemini-2.5-pro", ("generationConfig", "thinkingConfig"), "thinkingBudget"),
        ("gemini", "gemini-3-pro", ("generationConfig", "thinkingConfig"), "thinkingLevel"),
        ("gemini", "gemini-2.0-flash", ("generationConfig", "thinkingConfig"), None),
    ],
)
def test_thinking_is_asked_of_models_that_are_known_for_it(
    to: str, model: str, path: tuple[str, ...], value: Any
) -> None:
    body, lost = done(THINKS, to, "openai-chat", model)
    for key in path:
        body = (body or {}).get(key)
    assert (list(body) if isinstance(value, str) else body) == (
        [value] if isinstance(value, str) else value
    )
    assert any("not known for" in loss for loss in lost) == (value is None)


@pytest.mark.parametrize(
    ("thinking", "effort"),
    [
        ({"type": "adaptive"}, "medium"),
        ({"type": "enabled", "budget_tokens": 1024}, "low"),
        ({"type": "disabled"}, None),
    ],
)
def test_thinking_of_claude_is_asked_of_others(thinking: Any, effort: str | None) -> None:
    asked = {"max_tokens": 2048, "messages": [{"role": "user", "content": "q"}]}
    body, _ = done({**asked, "thinking": thinking}, "openai-chat", "anthropic", "gpt-5")
    assert body.get("reasoning_effort") == effort


def test_a_turn_that_another_model_began_goes_on_without_thinking() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turn = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    body, lost = done({**THINKS, "messages": turn}, "anthropic", FOUR[0], "claude-sonnet-4-5")
    assert "thinking" not in body
    assert lost == ["$.thinking: thinking in a turn that another model began"]
    body, _ = done({**THINKS, "messages": turn}, "anthropic", FOUR[0], "claude-opus-4-6")
    assert body["thinking"] == {"type": "adaptive"}


@pytest.mark.parametrize("limit", ["many", None, -5, 2.5, 100])
def test_thinking_is_not_asked_for_in_an_answer_of_an_odd_length(limit: Any) -> None:
    asked = {**THINKS, "max_tokens": limit}
    converted = convert(asked, FOUR[2], FOUR[0], answerer=Answerer(model="claude-sonnet-4-5"))
    body = json.loads(converted.body)
    assert ("thinking" in body) == (limit is None)  # the filled-in limit leaves room for both


def test_claudes_thinking_is_an_effort_elsewhere() -> None:
    asked = {**HI, "thinking": {"type": "enabled", "budget_tokens": 5000}, "temperature": 1}
    body, lost = done(asked, "openai-chat", "anthropic", "gpt-5")
    assert body["reasoning_effort"] == "medium"
    assert "temperature" not in body
    assert lost == [
        "$.temperature: sampling, which this model does not take",
        "$.thinking: a budget of thinking, asked for as the effort medium",
    ]


def test_sampling_that_a_model_refuses_is_not_asked_of_it() -> None:
    asked = {**HI, "temperature": 1.5, "top_p": 0.9, "seed": 3, "user": "u", "stop": list("abcdef")}
    body, lost = done(asked, "anthropic", "openai-chat", "claude-sonnet-4-5")
    assert (body["temperature"], "top_p" in body) == (1, False)
    assert body["metadata"] == {"user_id": "u"}
    assert {loss.split(":")[0] for loss in lost} == {"$.temperature", "$.top_p", "$.seed"}
    body, _ = done(asked, "gemini", "openai-chat", "gemini-2.5-flash")
    assert body["generationConfig"]["seed"] == 3
    back, lost = done({**HI, "stop_sequences": list("abcdef")}, "openai-chat", "anthropic")
    assert back["stop"] == list("abcd")
    assert lost == ["$.stop: stop sequences beyond 4"]


def test_one_call_at_a_time_is_asked_for_where_it_can_be() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    asked = {**HI, "parallel_tool_calls": False, "tools": [tool]}
    body, _ = done(asked, "anthropic", "openai-chat")
    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    back, _ = done(body, "openai-responses", "anthropic")
    assert back["parallel_tool_calls"] is False
    _, lost = done(asked, "gemini", "openai-chat")
    assert lost == ["$.parallel_tool_calls: one call at a time"]


def test_the_limit_of_an_answer_has_the_name_that_the_service_knows() -> None:
    for model, name in (
        ("gpt-5", "max_completion_tokens"),
        ("o3", "max_completion_tokens"),
        ("llama3.1", "max_tokens"),
        ("gpt-oss:20b", "max_tokens"),
        ("", "max_completion_tokens"),
    ):
        body, _ = done(HI, "openai-chat", "anthropic", model)
        assert body[name] == 9000
    asked = {"messages": HI["messages"]}
    body, lost = done(asked, "anthropic", "openai-chat", output_limit=64_000)
    assert body["max_tokens"] == 64_000
    assert lost == ["$.max_tokens: no limit of the answer: Anthropic demands one, and gets 64,000"]


def test_a_stream_is_asked_for_with_its_usage() -> None:
    body, lost = done(FORMS["gemini"], "openai-chat", "gemini", streams=True)
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert lost == []
    body, _ = done({**HI, "stream": True}, "gemini", "anthropic")
    assert "stream" not in body


def test_what_is_said_to_gemini_alone_is_named() -> None:
    config = {"candidateCount": 2, "responseModalities": ["AUDIO"], "topK": 5}
    asked = {**FORMS["gemini"], "generationConfig": config, "safetySettings": []}
    body, lost = done(asked, "anthropic", "gemini")
    assert body["top_k"] == 5
    assert {loss.split(":")[0] for loss in lost} == {
        "$.generationConfig.candidateCount",
        "$.generationConfig.responseModalities",
        "$.safetySettings",
        "$.max_tokens",
    }


def test_geminis_schemas_become_json_schemas() -> None:
    declared = {
        "name": "f",
        "parameters": {
            "type": "OBJECT",
            "properties": {"a": {"type": "STRING", "nullable": True}, "type": {"type": "ARRAY"}},
        },
    }
    asked = {**FORMS["gemini"], "tools": [{"functionDeclarations": [declared]}]}
    body, _ = done(asked, "openai-chat", "gemini")
    assert body["tools"][0]["function"]["parameters"] == {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}, "type": {"type": "array"}},
    }
    deep: Any = {"type": "STRING"}
    for _ in range(200):
        deep = {"type": "ARRAY", "items": deep}
    done(
        {**asked, "tools": [{"functionDeclarations": [{**declared, "parameters": deep}]}]},
        FOUR[0],
        "gemini",
    )


def test_a_custom_tool_is_a_function_of_one_text() -> None:
    tool = {"type": "custom", "name": "apply_patch", "description": "Patch."}
    call = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** x"}
    result = {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"}
    asked = {"input": [{"role": "user", "content": "q"}, call, result], "tools": [tool]}
    assert custom_tools(read(json.dumps(asked), "openai-responses")) == {"apply_patch"}
    body, _ = done(asked, "anthropic", "openai-responses")
    assert body["tools"][0]["input_schema"]["required"] == ["input"]
    assert body["messages"][1]["content"][0]["input"] == {"input": "*** x"}


odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 5000)
    | st.floats(-1, 9)
    | st.sampled_from(
        "enabled adaptive any tool json_schema json_object high none application/json".split()
    ),
    lambda inside: (
        st.lists(inside, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                "type format schema json_schema name effort budget_tokens summary user_id "
                "verbosity thinkingConfig thinkingBudget thinkingLevel includeThoughts "
                "responseMimeType responseSchema seed topK temperature maxOutputTokens "
                "stopSequences source "
                "url data media_type disable_parallel_tool_use properties items".split()
            ),
            inside,
            max_size=4,
        )
    ),
    max_leaves=6,
)
WISHES = (
    "response_format reasoning_effort parallel_tool_calls verbosity seed user metadata stop text "
    "reasoning thinking output_config output_format top_k tool_choice generationConfig temperature "
    "top_p max_tokens stop_sequences stream"
).split()


@given(
    st.sampled_from(FOUR),
    st.sampled_from(FOUR),
    st.dictionaries(st.sampled_from(WISHES), odd, max_size=5),
    odd,
    st.sampled_from(
        ["", "gpt-5", "llama3", "claude-sonnet-4-5", "claude-opus-4-6", "gemini-3-pro"]
    ),
)
def test_odd_wishes_and_odd_media_are_carried_or_lost_and_never_raise(
    dialect: str, to: str, wishes: dict[str, Any], part: Any, model: str
) -> None:
    kinds = {"openai-chat": "image_url", "openai-responses": "input_image", "anthropic": "image"}
    media = {"inlineData": part} if dialect == "gemini" else {"type": kinds[dialect]}
    if isinstance(part, dict) and dialect != "gemini":
        media = {**part, **media, "source": part, "image_url": part}
    tool = {"name": "f", "input_schema": {}, "type": "function", "function": {"name": "f"}}
    tools = [{"functionDeclarations": [{"name": "f", "parameters": part}]}, tool]
    body = {
        **asking(dialect, media),
        **wishes,
        "tools": tools[:1] if dialect == "gemini" else tools[1:],
    }
    converted = convert(body, to, dialect, answerer=Answerer(model=model))
    assert len(read(converted.body, to).messages) >= 1
