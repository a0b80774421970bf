"""One more tool in a request: offered as the provider wants it, and nothing else changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

import holdfast
from holdfast.wire.tools import with_tool

from .bodies import bodies, styles

FUNCTION: dict[str, Any] = {"type": "function", "function": {"name": "more_of_it"}}
NEW: dict[str, dict[str, Any]] = {
    "openai-chat": FUNCTION,
    "openai-responses": {"type": "function", "name": "more_of_it", "parameters": {}},
    "anthropic": {"name": "more_of_it", "input_schema": {"type": "object"}},
    "gemini": {"functionDeclarations": [{"name": "more_of_it"}]},
    "converse": {"toolSpec": {"name": "more_of_it", "inputSchema": {"json": {"type": "object"}}}},
    "cohere": FUNCTION,
}


@given(drawn=bodies, style=styles)
def test_a_tool_joins_the_others_and_the_messages_keep_their_bytes(
    drawn: tuple[str, dict[str, Any]], style: Callable[[Any], bytes]
) -> None:
    dialect, body = drawn
    before = holdfast.read(style(body), dialect)
    after = holdfast.read(holdfast.write(with_tool(before, NEW[dialect])), dialect)
    assert [tool.name for tool in after.tools] == [tool.name for tool in before.tools] + [
        "more_of_it"
    ]
    assert [m.raw for m in after.messages] == [m.raw for m in before.messages]
    assert {k: v for k, v in after.rest.items() if k not in ("tools", "toolConfig")} == {
        k: v for k, v in before.rest.items() if k not in ("tools", "toolConfig")
    }


def chat(**extra: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", **extra, "messages": [{"role": "user", "content": "Hi."}]}


@pytest.mark.parametrize("written_after", [True, False])
def test_bytes_around_the_new_tool_stay(written_after: bool) -> None:
    tools = '"tools" : [ {"type":"function", "function": {"name": "a"}} ]'
    messages = '"messages": [ {"role":"user","content":"Hi."} ]'
    parts = (messages, tools) if written_after else (tools, messages)
    body = '{ "model": "gpt-4o", ' + ", ".join(parts) + " }"
    made = holdfast.write(with_tool(holdfast.read(body), FUNCTION)).decode()
    added = json.dumps(FUNCTION, separators=(",", ":"))
    assert made == body.replace('{"name": "a"}} ]', '{"name": "a"}},' + added + "]")


def test_null_and_missing_lists_are_made() -> None:
    for body in (chat(), chat(tools=None), chat(tools=[])):
        made = json.loads(holdfast.write(with_tool(holdfast.read(body), FUNCTION)))
        assert made["tools"] == [FUNCTION]


@pytest.mark.parametrize("around", [{}, {"toolConfig": None}, {"toolConfig": {}}])
def test_null_and_missing_objects_around_a_list_are_made(around: dict[str, Any]) -> None:
    tool = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}
    body = {**around, "messages": [{"role": "user", "content": [{"text": "Hi."}]}]}
    made = json.loads(holdfast.write(with_tool(holdfast.read(body, "converse"), tool)))
    assert made["toolConfig"] == {"tools": [tool]}


def test_a_request_that_offers_old_style_functions_gets_one_more() -> None:
    body = chat(functions=[{"name": "a"}])
    made = json.loads(holdfast.write(with_tool(holdfast.read(body), FUNCTION)))
    assert made["functions"] == [{"name": "a"}, {"name": "more_of_it"}]
    assert "tools" not in made


def test_gemini_functions_share_a_group_and_other_tools_stay() -> None:
    body = {
        "contents": [{"role": "user", "parts": [{"text": "Hi."}]}],
        "tools": [{"codeExecution": {}}, {"function_declarations": [{"name": "a"}]}],
    }
    made = json.loads(holdfast.write(with_tool(holdfast.read(body), NEW["gemini"])))
    assert made["tools"] == [
        {"codeExecution": {}},
        {"function_declarations": [{"name": "a"}, {"name": "more_of_it"}]},
    ]


def test_converse_tools_stand_in_their_configuration() -> None:
    body: dict[str, Any] = {"messages": [{"role": "user", "content": [{"text": "Hi."}]}]}
    configs: list[dict[str, Any]] = [{}, {"toolChoice": {"auto": {}}}, {"tools": None}]
    for config in configs:
        made = with_tool(holdfast.read({**body, "toolConfig": config}, "converse"), NEW["converse"])
        assert json.loads(holdfast.write(made))["toolConfig"]["tools"] == [NEW["converse"]]
    bare = json.loads(holdfast.write(with_tool(holdfast.read(body, "converse"), NEW["converse"])))
    assert bare["toolConfig"] == {"tools": [NEW["converse"]]}


def test_a_request_whose_input_is_one_text_gets_a_tool() -> None:
    body = {"model": "gpt-5", "input": "Hi.", "instructions": "Be kind."}
    made = holdfast.write(with_tool(holdfast.read(body), NEW["openai-responses"]))
    assert json.loads(made) == {**body, "tools": [NEW["openai-responses"]]}
