"""Names of the places in a conversation: what a client adds and takes away again does not count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.wire import read
from holdfast.wire.places import head_of

MARK = {"cache_control": {"type": "ephemeral"}}
BREAKPOINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}
CACHE_POINT = {"cachePoint": {"type": "default"}}


def conversation(*, marked: bool, text: str = "why?") -> dict[str, Any]:
    part = {"type": "text", "text": text}
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": [{**part, **MARK} if marked else part]},
            {"role": "assistant", "content": "Because."},
        ],
    }


def place(body: dict[str, Any], **layout: Any) -> str:
    return head_of(read(json.dumps(body, **layout), "anthropic"))


@pytest.mark.parametrize("layout", [{}, {"separators": (",", ":")}, {"indent": 2}])
def test_a_mark_that_has_moved_on_leaves_the_place_as_it_was(layout: dict[str, Any]) -> None:
    marked, plain = (place(conversation(marked=mark), **layout) for mark in (True, False))
    assert marked == plain
    assert place(conversation(marked=False, text="how?"), **layout) != plain


def test_white_space_and_escapes_say_nothing() -> None:
    body = conversation(marked=False, text="Größe 😀")
    plain = place(body)
    assert plain == place(body, separators=(",", ":")) == place(body, indent=2)
    assert plain == place(body, ensure_ascii=False)


# --- the same message in other shapes ------------------------------------------------------------


def user(content: Any) -> Any:
    return {"role": "user", "content": content}


def result(content: Any, **more: Any) -> Any:
    return user([{"type": "tool_result", "tool_use_id": "c1", "content": content, **more}])


def converse_result(*parts: Any, **more: Any) -> Any:
    return user([{"toolResult": {"toolUseId": "c1", "content": list(parts), **more}}])


def output(content: Any, **more: Any) -> Any:
    return {"type": "function_call_output", "call_id": "c1", "output": content, **more}


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
GEMINI_CALL = {"name": "look", "args": {}}

SAME: dict[str, tuple[str, list[Any]]] = {
    "a prompt of Claude Code": (
        "anthropic",
        [
            user("Why?"),
            user([{"type": "text", "text": "Why?"}]),
            user([{"type": "text", "text": "Why?", **MARK}]),
            user([{**MARK, "text": "Why?", "type": "text"}]),
            {"content": "Why?", "role": "user"},
        ],
    ),
    "a result of Claude Code": (
        "anthropic",
        [
            result("done"),
            result([{"type": "text", "text": "done"}]),
            result([{"type": "text", "text": "done", **MARK}]),
            result("done", **MARK),
            result("done", is_error=False),
        ],
    ),
    "an answer of Claude": (
        "anthropic",
        [
            {"role": "assistant", "content": "Because."},
            {"role": "assistant", "content": [{"type": "text", "text": "Because.", **MARK}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Because.",
             "citations": None}]},
        ],
    ),
    "an answer with its thinking or without": (
        "anthropic",
        [
            {"role": "assistant", "content": "Because."},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "text", "text": "Because."}]},
        ],
    ),
    "a prompt in Chat": (
        "openai-chat",
        [
            user("Why?"),
            user([{"type": "text", "text": "Why?"}]),
            user([{"type": "text", "text": "Why?", **MARK}]),
            user([{"type": "text", "text": "Why?", **BREAKPOINT}]),
            {**user("Why?"), "name": None},
        ],
    ),
    "a call in Chat": (
        "openai-chat",
        [
            {"role": "assistant", "tool_calls": [CALL]},
            {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None},
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {"role": "assistant", "tool_calls": [CALL], "reasoning_content": "Hm."},
        ],
    ),
    "a result in Chat": (
        "openai-chat",
        [
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "done"}]},
        ],
    ),
    "a prompt in Responses": (
        "openai-responses",
        [
            user("Why?"),
            {"type": "message", **user([{"type": "input_text", "text": "Why?"}])},
            user([{"type": "input_text", "text": "Why?", **BREAKPOINT}]),
            {"type": "message", "id": "msg_1", "status": "completed", **user("Why?")},
        ],
    ),
    "an answer in Responses": (
        "openai-responses",
        [
            {"role": "assistant", "content": "Because."},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "Because.", "annotations": [],
                          "logprobs": []}]},
        ],
    ),
    "a result in Responses": (
        "openai-responses",
        [
            output("done"),
            output([{"type": "input_text", "text": "done"}]),
            output([{"type": "input_text", "text": "done", **BREAKPOINT}], status="completed"),
        ],
    ),
    "a prompt of Gemini": (
        "gemini",
        [
            {"role": "user", "parts": [{"text": "Why?"}]},
            {"role": "user", "parts": {"text": "Why?"}},
            {"parts": [{"text": "Why?"}]},
        ],
    ),
    "a call of Gemini": (
        "gemini",
        [
            {"role": "model", "parts": [{"functionCall": GEMINI_CALL, "thoughtSignature": "c2k="}]},
            {"role": "model", "parts": {"function_call": GEMINI_CALL}},
        ],
    ),
    "a prompt of Converse": (
        "converse",
        [user([{"text": "Why?"}]), user([{"text": "Why?"}, CACHE_POINT])],
    ),
    "a result of Converse": (
        "converse",
        [
            converse_result({"text": "done"}),
            converse_result({"text": "done"}, status="success"),
            converse_result({"text": "done"}, CACHE_POINT),
        ],
    ),
    "a prompt of Cohere": ("cohere", [user("Why?"), user([{"type": "text", "text": "Why?"}])]),
}  # fmt: skip


def head_in(dialect: str, message: Any) -> str:
    name = {"openai-responses": "input", "gemini": "contents"}.get(dialect, "messages")
    return head_of(read(json.dumps({"model": "m", name: [message]}), dialect))


@pytest.mark.parametrize("name", SAME)
def test_a_message_is_the_same_in_every_shape(name: str) -> None:
    dialect, shapes = SAME[name]
    assert {head_in(dialect, shape) for shape in shapes} == {head_in(dialect, shapes[0])}


DIFFERENT: dict[str, tuple[str, list[Any]]] = {
    "words": ("anthropic", [user("Why?"), user("How?"), user(["Why", "?"]), user([])]),
    "two texts are not one": (
        "anthropic",
        [user("Why?"), user([{"type": "text", "text": "Why"}, {"type": "text", "text": "?"}])],
    ),
    "results": (
        "anthropic",
        [result("done"), result("gone"), result("done", is_error=True), user("done")],
    ),
    "images": (
        "openai-responses",
        [
            user([{"type": "input_image", "image_url": url}, {"type": "input_text", "text": "a"}])
            for url in ("a.png", "b.png")
        ],
    ),
    "items known by their ids": (
        "openai-responses",
        [{"type": "item_reference", "id": name} for name in ("msg_1", "msg_2")],
    ),
    "who speaks": ("openai-chat", [user("Why?"), {"role": "system", "content": "Why?"}]),
    "status": (
        "converse",
        [converse_result({"text": "x"}), converse_result({"text": "x"}, status="error")],
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_says_something_else_is_another_message(name: str) -> None:
    dialect, messages = DIFFERENT[name]
    assert len({head_in(dialect, message) for message in messages}) == len(messages)


@pytest.mark.parametrize("key", ["content", "toolResult"])
def test_parts_nested_without_end_have_a_name_too(key: str) -> None:
    nested: Any = "x"
    for _ in range(300):
        nested = [{key: nested}] if key == "content" else {key: nested}
    message = user(nested if key == "content" else [nested])
    dialect = "anthropic" if key == "content" else "converse"
    assert len(head_in(dialect, message)) == 64
