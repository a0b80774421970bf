"""A tool is withdrawn beside its definition, in each provider's own words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.wire import read, validate, write
from holdfast.wire.tool_choice import forbid_tools

HI = [{"role": "user", "content": "Hi"}]


def ours(name: str) -> bool:
    return name == "expand_ref"


def chat(*names: str, **more: Any) -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"model": "gpt-5", "messages": HI, "tools": tools, **more}


def responses(*names: str, **more: Any) -> dict[str, Any]:
    tools = [{"type": "function", "name": name, "parameters": {}} for name in names]
    hosted = [{"type": "web_search"}, {"type": "mcp", "server_label": "wiki", "server_url": "u"}]
    return {"model": "gpt-5", "input": HI, "tools": [*tools, *hosted], **more}


def gemini(*names: str, **more: Any) -> dict[str, Any]:
    declared = [{"name": name} for name in names]
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}]
    return {"contents": contents, "tools": [{"functionDeclarations": declared}], **more}


def claude(*names: str, **more: Any) -> dict[str, Any]:
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    return {
        "model": "claude-opus-4-5",
        "max_tokens": 9,
        "messages": HI,
        "tools": tools,
        **more,
    }


def calling(mode: str, *names: str) -> dict[str, Any]:
    allowed = {"allowedFunctionNames": list(names)} if names else {}
    return {"functionCallingConfig": {"mode": mode, **allowed}}


def allowed_chat(mode: str, *names: str) -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


FORCED = {"type": "function", "function": {"name": "look_up"}}
BOTH = ("look_up", "expand_ref")


@pytest.mark.parametrize(
    ("dialect", "body", "expected"),
    [
        ("openai-chat", chat(*BOTH), allowed_chat("auto", "look_up")),
        ("openai-chat", chat(*BOTH, tool_choice="auto"), allowed_chat("auto", "look_up")),
        ("openai-chat", chat(*BOTH, tool_choice="required"), allowed_chat("required", "look_up")),
        ("openai-chat", chat(*BOTH, tool_choice=FORCED), FORCED),
        (
            "openai-chat",
            chat(*BOTH, "other", tool_choice=allowed_chat("required", "other", "expand_ref")),
            allowed_chat("required", "other"),
        ),
        ("openai-chat", chat("expand_ref"), "none"),
        ("openai-chat", {**chat(*BOTH), "model": "qwen3-32b"}, "none"),
        (
            "openai-responses",
            responses(*BOTH),
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [
                    {"type": "function", "name": "look_up"},
                    {"type": "web_search"},
                    {"type": "mcp", "server_label": "wiki"},
                ],
            },
        ),
        ("anthropic", claude(*BOTH), {"type": "none"}),
        ("gemini", gemini(*BOTH), calling("VALIDATED", "look_up")),
        ("gemini", gemini(*BOTH, toolConfig=calling("ANY")), calling("ANY", "look_up")),
        (
            "gemini",
            gemini(*BOTH, "other", toolConfig=calling("ANY", "other", "expand_ref")),
            calling("ANY", "other"),
        ),
        ("gemini", gemini("expand_ref"), calling("NONE")),
    ],
)
def test_a_tool_is_withdrawn_in_the_dialects_own_words(
    dialect: str, body: dict[str, Any], expected: Any
) -> None:
    withdrawn = forbid_tools(read(json.dumps(body).encode(), dialect), ours)
    value = json.loads(write(withdrawn))
    key = "toolConfig" if dialect == "gemini" else "tool_choice"
    assert value.pop(key) == expected
    body.pop(key, None)
    assert value == body, "something else changed"
    assert validate(write(withdrawn), dialect) == []


def test_messages_keep_their_very_bytes_when_a_field_is_set() -> None:
    messages = b'[ {"role":"user", "content":"Hi"} ,{"role":"user","content":"x"}]'
    raw = b'{"model": "gpt-5",  "messages": ' + messages + b"}"
    conversation = read(raw, "openai-chat")
    changed = conversation.with_field("tool_choice", "none")
    assert changed.messages is conversation.messages
    value = json.loads(write(changed))
    assert value == {**json.loads(raw), "tool_choice": "none"}
