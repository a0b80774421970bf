"""Each dialect's own spellings come out as the same typed blocks."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from holdfast import read
from holdfast.wire import Media, Opaque, Text, Thinking, ToolCall, ToolResult
from holdfast.wire.media import base64_size, image_size

CHAT = [
    ({"role": "user", "content": "a"}, [Text]),
    ({"role": "user", "content": ["a", {"type": "text", "text": "b"}]}, [Text, Text]),
    ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}, [Media]),
    ({"role": "user", "content": [{"type": "new_thing"}, 5]}, [Opaque, Opaque]),
    ({"role": "assistant", "content": None, "refusal": "no"}, []),
    ({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, [Text]),
    ({"role": "assistant", "content": "a", "reasoning_content": "hm"}, [Thinking, Text]),
    ({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}, [ToolCall]),
    (
        {"role": "assistant", "tool_calls": [{"id": "1", "custom": {"name": "f", "input": "x"}}]},
        [ToolCall],
    ),
    ({"role": "assistant", "tool_calls": [{"id": "1"}, 7]}, [Opaque, Opaque]),
    ({"role": "function", "name": "f", "content": "r"}, [ToolResult]),
    (
        {"role": "tool", "tool_call_id": None, "content": [{"type": "text", "text": "r"}]},
        [ToolResult],
    ),
]
RESPONSES = [
    ({"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}, [Media]),
    ({"type": "custom_tool_call", "call_id": "1", "name": "f", "input": "x"}, [ToolCall]),
    (
        {
            "type": "function_call_output",
            "call_id": "1",
            "output": [{"type": "input_text", "text": "r"}],
        },
        [ToolResult],
    ),
    ({"type": "computer_call_output", "call_id": "1", "output": {"type": "x"}}, [ToolResult]),
    ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, [Thinking]),
    ({"type": "web_search_call", "id": "ws_1"}, [Opaque]),
]
ANTHROPIC = [
    ({"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}, [Thinking]),
    (
        {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s"}, 5]},
        [Opaque, Opaque],
    ),
    ({"role": "user", "content": [{"type": "document", "source": {}}]}, [Media]),
    ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}, [ToolResult]),
    ({"role": "system", "content": "mid-conversation"}, [Text]),
    ({"role": "assistant", "content": [{"id": "t", "name": "f", "input": {}}]}, [ToolCall]),
    ({"role": "user", "content": [{"tool_use_id": "t", "content": "r"}]}, [ToolResult]),
    ({"role": "user", "content": [{"id": "t"}]}, [Opaque]),
]
GEMINI = [
    ({"parts": {"text": "a"}}, [Text]),
    ({"role": "model", "parts": [{"text": "hm", "thought": True}]}, [Thinking]),
    ({"role": "model", "parts": [{"function_call": {"name": "f"}}]}, [ToolCall]),
    (
        {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"a": 1}}}]},
        [ToolResult],
    ),
    ({"role": "user", "parts": [{"inline_data": {"mime_type": "audio/wav"}}]}, [Media]),
    ({"role": "user", "parts": [{"fileData": {"mimeType": "application/pdf"}}]}, [Media]),
    ({"role": "model", "parts": [{"executableCode": {}}, [1]]}, [Opaque, Opaque]),
]
CONVERSE = [
    (
        {"role": "user", "content": [{"image": {"format": "png"}}, {"cachePoint": {}}, 1]},
        [Media, Opaque, Opaque],
    ),
    (
        {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "hm"}}}]},
        [Thinking],
    ),
    (
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "t", "content": [{"json": {"a": 1}}]}}],
        },
        [ToolResult],
    ),
]
COHERE = [
    ({"role": "assistant", "tool_plan": "hm", "tool_calls": []}, [Thinking]),
    (
        {
            "role": "tool",
            "tool_call_id": "1",
            "content": [{"type": "document", "document": {"data": "r"}}],
        },
        [ToolResult],
    ),
]
CASES = [
    *(("openai-chat", "messages", *case) for case in CHAT),
    *(("openai-responses", "input", *case) for case in RESPONSES),
    *(("anthropic", "messages", *case) for case in ANTHROPIC),
    *(("gemini", "contents", *case) for case in GEMINI),
    *(("converse", "messages", *case) for case in CONVERSE),
    *(("cohere", "messages", *case) for case in COHERE),
]


@pytest.mark.parametrize(("dialect", "key", "message", "kinds"), CASES)
def test_blocks_have_their_kinds(dialect: str, key: str, message: Any, kinds: list[type]) -> None:
    conversation = read({key: [message]}, dialect)
    blocks = conversation.messages[0].blocks
    assert [type(block) for block in blocks] == kinds
    for block in blocks:
        value: Any = conversation.messages[0].value
        for step in block.place:  # every place leads somewhere in the message
            value = value[step]


def test_search_results_are_given_as_text() -> None:
    found = {"title": "T", "source": "s", "content": [{"text": "a"}, {"text": "b"}]}
    result = {"toolResult": {"toolUseId": "t", "content": [{"searchResult": found}]}}
    [read_back] = read({"messages": [{"role": "user", "content": [result]}]}, "converse").messages
    assert read_back.results[0].text == "T\ns\na\nb"


def test_structured_results_are_given_as_json_text() -> None:
    [result] = read({"contents": [GEMINI[3][0]]}, "gemini").messages[0].results
    assert result.text == '{"a":1}'
    [result] = read({"messages": [CONVERSE[2][0]]}, "converse").messages[0].results
    assert result.text == '{"a":1}'
    [result] = read({"messages": [COHERE[1][0]]}, "cohere").messages[0].results
    assert result.text == "r"


def test_tools_are_listed_with_their_place() -> None:
    offered = [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"a": 1}}},
        {"type": "web_search"},
    ]
    tools = read(
        {"messages": [], "tools": offered, "functions": [{"name": "old"}]}, "openai-chat"
    ).tools
    assert [(t.name, t.hosted, t.place) for t in tools] == [
        ("f", False, ("tools", 0)),
        ("web_search", True, ("tools", 1)),
        ("old", False, ("functions", 0)),
    ]
    groups = [{"functionDeclarations": [{"name": "g"}]}, {"googleSearch": {}}, 5]
    tools = read({"contents": [], "tools": groups}, "gemini").tools
    assert [(t.name, t.hosted) for t in tools] == [("g", False), ("googleSearch", True)]


def test_odd_fields_around_the_messages_do_no_harm() -> None:
    odd = {"tools": 5, "system": 5, "instructions": 5, "preamble": 5, "toolConfig": 5, "input": 5}
    for dialect, key in (
        ("openai-chat", "messages"),
        ("anthropic", "messages"),
        ("gemini", "contents"),
    ):
        conversation = read({**odd, key: []}, dialect)
        assert conversation.tools == ()
        assert conversation.system == ()
        assert conversation.model is None
    assert read({**odd, "messages": []}, "converse").tools == ()
    assert read({**odd, "messages": []}, "cohere").system == ()


PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (640).to_bytes(4, "big") + (480).to_bytes(4, "big")
GIF = b"GIF89a" + (640).to_bytes(2, "little") + (480).to_bytes(2, "little")
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10" + bytes(14) + b"\xff\xc4\x00\x04\x00\x00"
    b"\xff\xc0\x00\x11\x08" + (480).to_bytes(2, "big") + (640).to_bytes(2, "big")
)
VP8X = (
    b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
)
VP8L = b"RIFF\0\0\0\0WEBPVP8L" + bytes(5) + (639 | 479 << 14).to_bytes(4, "little")
VP8 = (
    b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + (640).to_bytes(2, "little") + (480).to_bytes(2, "little")
)


@pytest.mark.parametrize("head", [PNG, GIF, JPEG, VP8X, VP8L, VP8])
def test_image_sizes_are_read_from_the_first_bytes(head: bytes) -> None:
    assert image_size(head) == (640, 480)
    assert base64_size(base64.b64encode(head + bytes(1000)).decode()) == (640, 480)
    for length in range(len(head)):
        image_size(head[:length])  # cut anywhere: a size or None, never an error


def test_what_is_no_image_has_no_size() -> None:
    assert image_size(b"hello") is None
    assert base64_size("!!!!") is None
    assert base64_size("<<media stripped>>") is None


def test_an_unknown_block_with_an_id_is_no_use_of_a_tool_of_the_provider() -> None:
    known = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    message = {"role": "assistant", "content": [known, {"type": "new_thing", "id": "s2"}]}
    blocks = read({"messages": [message]}, "anthropic").messages[0].blocks
    assert [block.opens for block in blocks if isinstance(block, Opaque)] == ["s1", ""]


def test_texts_and_documents_of_a_result_are_joined_in_their_order() -> None:
    content = [
        {"type": "text", "text": "one"},
        {"type": "document", "document": {"data": "two"}},
        {"type": "document", "document": {"data": {"three": 3}}},
        "no part",
    ]
    message = {"role": "tool", "tool_call_id": "1", "content": content}
    [result] = read({"messages": [message]}, "cohere").messages[0].results
    assert result.text == 'one\ntwo\n{"three":3}'
