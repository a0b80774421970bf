"""Items that we do not know pass unharmed: read, judged, grouped, counted, and never edited."""

from __future__ import annotations

import json
from typing import Any

import pytest

import holdfast
from holdfast.wire import convert, read, repair, stays, validate, write

WORDS = "the quick brown fox jumps over the lazy dog " * 40
TOOL = {
    "type": "function",
    "name": "look_up",
    "description": WORDS,
    "parameters": {"type": "object", "properties": {}},
}
HI = {"role": "user", "content": "Hi"}
DONE = {"role": "assistant", "content": "Done."}


def search(execution: str, **named: Any) -> list[Any]:
    item = {"execution": execution, "status": "completed", **named}
    return [
        {"type": "tool_search_call", "id": "tsc_1", "arguments": {"goal": WORDS}, **item},
        {"type": "tool_search_output", "id": "tso_1", "tools": [TOOL], **item},
    ]


PROGRAM = [
    {"type": "program", "id": "p_1", "call_id": "c1", "code": WORDS, "fingerprint": "f" * 400},
    {
        "type": "function_call",
        "call_id": "c2",
        "name": "look_up",
        "arguments": "{}",
        "caller": {"type": "program", "caller_id": "c1"},
    },
    {"type": "function_call_output", "call_id": "c2", "output": "sunny"},
    {
        "type": "program_output",
        "id": "po_1",
        "call_id": "c1",
        "result": WORDS,
        "status": "completed",
    },
]
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"}
CALL = {"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {"type": "screenshot"}}
SHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64," + "A" * 40_000}

RESPONSES: dict[str, tuple[list[Any], list[int]]] = {
    # Items, and how many of them stand in each exchange.
    "tool search by the client": (search("client", call_id="c1"), [2]),
    "tool search by the provider": (search("server", call_id=None), [2]),
    "reasoning before a search": ([REASONING, *search("client", call_id="c1")], [3]),
    "program": (PROGRAM, [4]),
    "additional tools": ([{"type": "additional_tools", "role": "developer", "tools": [TOOL]}], [1]),
    "compaction": ([{"type": "compaction", "id": "cmp_1", "encrypted_content": "A" * 4_000}], [1]),
    "reference": ([{"type": "item_reference", "id": "msg_1"}], [1]),
    "reference to a call": (
        [
            {"type": "item_reference", "id": "fc_1"},
            {"type": "function_call_output", "call_id": "c1", "output": WORDS},
        ],
        [2],
    ),
    "computer": ([CALL, {"type": "computer_call_output", "call_id": "c1", "output": SHOT}], [2]),
    "picture": ([{"type": "image_generation_call", "id": "ig_1", "result": "A" * 40_000}], [1]),
    "approval": (
        [
            {"type": "mcp_approval_request", "id": "mcpr_1", "name": "ask", "arguments": WORDS},
            {"type": "mcp_approval_response", "approve": True, "approval_request_id": "mcpr_1"},
        ],
        [2],
    ),
    "unknown": ([{"type": "brand_new_item", "id": "x_1", "anything": WORDS}], [1]),
}
STAYING = {
    *("tool search by the client", "tool search by the provider", "reasoning before a search"),
    *("additional tools", "compaction", "reference", "reference to a call"),
}


def responses(name: str) -> bytes:
    items, _ = RESPONSES[name]
    return json.dumps({"model": "gpt-5.4", "input": [HI, *items, HI, DONE, HI]}, indent=1).encode()


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_items_pass_unharmed(name: str) -> None:
    body = responses(name)
    items, sizes = RESPONSES[name]
    conversation = read(body, "openai-responses")
    assert write(conversation) == body
    assert validate(body, "openai-responses") == []
    assert repair(body, "openai-responses").body == body
    inside = [e for e in conversation.exchanges if 0 < e.start <= len(items)]
    assert [len(exchange.messages) for exchange in inside] == sizes
    assert all(exchange.complete for exchange in inside) or "reference" in name
    assert any(exchange.stays for exchange in inside) == (name in STAYING)
    assert not stays(conversation.messages[0])
    edited = conversation.replace(conversation.messages[0].blocks[0], "Hello")
    for before, after in zip(conversation.messages[1:], edited.messages[1:], strict=True):
        assert after is before


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_items_are_counted(name: str) -> None:
    """Their text is; what is sealed by its length, a picture as one and not by its bytes."""
    items, _ = RESPONSES[name]
    with_items = holdfast.count(responses(name), dialect="openai-responses").tokens
    bare = {"model": "gpt-5.4", "input": [HI, HI, DONE, HI]}
    more = with_items - holdfast.count(bare, dialect="openai-responses").tokens
    words = json.dumps(items).count("quick brown")
    expected = {"compaction": 4_000 / 11, "picture": 1_100, "computer": 630, "reference": 0}
    least = expected.get(name, words * 9)
    assert least <= more <= least * 1.15 + 120


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_items_are_listed_as_lost_by_a_conversion(name: str) -> None:
    body = responses(name)
    converted = convert(body, "anthropic", "openai-responses")
    assert validate(converted.body, "anthropic") == []
    assert converted.lost


@pytest.mark.parametrize("later", [False, True])
def test_tools_in_a_namespace_are_counted_as_far_as_they_are_shown(later: bool) -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string", "description": WORDS}}}
    inside = {"type": "function", "name": "look_up", "description": WORDS, "parameters": schema}
    tools = [{**inside, "defer_loading": later}]
    space = {"type": "namespace", "name": "weather", "description": "Weather.", "tools": tools}
    body = {"model": "gpt-5.4", "input": [HI], "tools": [space]}
    assert validate(json.dumps(body).encode(), "openai-responses") == []
    bare = holdfast.count({**body, "tools": []}, dialect="openai-responses").tokens
    more = holdfast.count(body, dialect="openai-responses").tokens - bare
    texts = 1 if later else 2
    assert texts * 360 <= more <= texts * 360 + 100


def test_an_order_to_compact_stays_last() -> None:
    body = json.dumps({"model": "gpt-5.4", "input": [HI, {"type": "compaction_trigger"}]}).encode()
    conversation = read(body, "openai-responses")
    assert validate(body, "openai-responses") == []
    assert [exchange.stays for exchange in conversation.exchanges] == [False, True]


# --- Anthropic ---------------------------------------------------------------------------------


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks) or "Hi"}


def said(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def server_use(name: str = "web_search", use_id: str = "s1") -> dict[str, Any]:
    return {"type": "server_tool_use", "id": use_id, "name": name, "input": {"query": "x"}}


SEARCHED = {
    "type": "web_search_tool_result",
    "tool_use_id": "s1",
    "content": [{"type": "web_search_result", "title": WORDS, "encrypted_content": "A" * 5_000}],
}
RUN = {
    "type": "code_execution_tool_result",
    "tool_use_id": "s1",
    "content": {"type": "code_execution_result", "stdout": WORDS, "return_code": 0},
}
USED = {"type": "tool_use", "id": "t1", "name": "look_up", "input": {}}
GIVEN = {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}
FOUND = {
    "type": "tool_result",
    "tool_use_id": "t1",
    "content": [{"type": "tool_reference", "tool_name": "look_up"}],
}
ADDED = {
    "type": "tool_addition",
    "tool": {
        "type": "tool_definition",
        "definition": {"name": "look_up", "description": WORDS, "input_schema": {}},
    },
}
TEXT = {"type": "text", "text": "Well."}

ANTHROPIC: dict[str, tuple[list[Any], list[int], bool]] = {
    # Messages, how many stand in each exchange, and whether any must stay.
    "compaction": (
        [
            said(
                {"type": "compaction", "content": WORDS, "signature": "s", "encrypted_content": "A"}
            )
        ],
        [1],
        True,
    ),
    "server tool": ([user(), said(server_use(), SEARCHED, TEXT)], [1, 1], False),
    "a turn that paused": ([user(), said(server_use()), said(SEARCHED, TEXT)], [1, 2], False),
    "a program that calls a tool": (
        [
            user(),
            said(
                server_use("code_execution"),
                {**USED, "caller": {"type": "code_execution_20250825", "tool_id": "s1"}},
            ),
            user(GIVEN),
            said(RUN, TEXT),
        ],
        [1, 3],
        False,
    ),
    "mcp": (
        [
            user(),
            said(
                {
                    "type": "mcp_tool_use",
                    "id": "m1",
                    "name": "ask",
                    "server_name": "w",
                    "input": {},
                },
                {
                    "type": "mcp_tool_result",
                    "tool_use_id": "m1",
                    "is_error": False,
                    "content": [{"type": "text", "text": WORDS}],
                },
            ),
        ],
        [1, 1],
        False,
    ),
    "tools that were found": ([user(), said(USED), user(FOUND)], [1, 2], True),
    "tools that were added": (
        [user(), said(TEXT), user(), {"role": "system", "content": [ADDED]}, said(TEXT)],
        [1, 1, 1, 1, 1],
        True,
    ),
    "instructions in the middle": (
        [user(), {"role": "system", "content": WORDS, "clear_at": "next_user_message"}, said(TEXT)],
        [1, 1, 1],
        False,
    ),
    "unknown": ([user(), said({"type": "brand_new_block", "anything": WORDS})], [1, 1], False),
}


def anthropic(name: str) -> bytes:
    body = {
        "model": "claude-opus-4-8",
        "max_tokens": 100,
        "messages": [*ANTHROPIC[name][0], user(TEXT)],
    }
    return json.dumps(body, indent=1).encode()


@pytest.mark.parametrize("name", ANTHROPIC)
def test_anthropic_blocks_pass_unharmed(name: str) -> None:
    body = anthropic(name)
    messages, sizes, staying = ANTHROPIC[name]
    conversation = read(body, "anthropic")
    assert write(conversation) == body
    assert validate(body) == []
    assert repair(body, "anthropic").body == body
    inside = [e for e in conversation.exchanges if e.start < len(messages)]
    assert [len(exchange.messages) for exchange in inside] == sizes
    assert any(exchange.stays for exchange in inside) == staying
    edited = conversation.replace(conversation.messages[-1].blocks[0], "Hello")
    for before, after in zip(conversation.messages[:-1], edited.messages[:-1], strict=True):
        assert after is before


@pytest.mark.parametrize("name", ANTHROPIC)
def test_anthropic_blocks_are_counted(name: str) -> None:
    bare = {"model": "claude-opus-4-8", "max_tokens": 100, "messages": [user(TEXT)]}
    less = holdfast.count(bare, dialect="anthropic").tokens
    more = holdfast.count(anthropic(name), dialect="anthropic").tokens - less
    words = json.dumps(ANTHROPIC[name][0]).count("quick brown")
    sealed = 5_000 / 2.5 if "web_search" in str(ANTHROPIC[name]) else 0
    assert words * 9 + sealed <= more <= words * 14 + sealed + 150


def test_a_server_tools_result_without_its_use_is_still_a_fault() -> None:
    messages = [user(), said(SEARCHED, TEXT), user()]
    body = {"model": "claude-opus-4-8", "max_tokens": 9, "messages": messages}
    assert [v.rule for v in validate(json.dumps(body).encode())] == ["A13"]


def test_a_result_that_names_tools_keeps_them_when_its_text_is_replaced() -> None:
    result = {**FOUND, "content": [{"type": "text", "text": WORDS}, *FOUND["content"]]}
    body = {
        "model": "claude-opus-4-8",
        "max_tokens": 9,
        "messages": [user(), said(USED), user(result)],
    }
    fitted = holdfast.fit(json.dumps(body).encode(), limit=700)
    assert "tool_reference" in fitted.body.decode()


def test_developer_messages_of_chat_pass_unharmed() -> None:
    developer = {"role": "developer", "content": WORDS}
    body = json.dumps({"model": "gpt-5.4", "messages": [HI, developer, HI]}).encode()
    conversation = read(body, "openai-chat")
    assert write(conversation) == body
    assert [message.role for message in conversation.messages] == ["user", "system", "user"]
    assert validate(body, "openai-chat") == []
