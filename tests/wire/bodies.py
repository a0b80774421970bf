"""Hypothesis strategies for request bodies: valid ones in every dialect, and any JSON at all.

A conversation is drawn as a script (who says what, which tools are called), then written in a
dialect by code that shares nothing with the package: the dialects' own spellings, and the
freedoms they leave (text or parts, extra fields, ids), are drawn too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini", "converse", "cohere")

words = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=30
).filter(lambda text: text.strip() == text and text.strip() != "")
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
any_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | words | st.just(""),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(words | st.sampled_from(["messages"]), inner)
    ),
    max_leaves=8,
)
arguments = st.dictionaries(st.sampled_from(["path", "query", "limit"]), any_json, max_size=2)
names = st.from_regex(r"[a-z_][a-z0-9_]{0,12}", fullmatch=True)


@dataclass
class Call:
    id: str
    name: str
    arguments: dict[str, Any]
    result: str
    failed: bool


@dataclass
class Turn:
    role: str  # user, assistant, or tools: an assistant turn with calls and their results
    text: str
    calls: list[Call]
    thinking: bool
    listed: bool  # content as a list of parts, where the dialect leaves the choice
    extra: dict[str, Any]


@dataclass
class Script:
    system: str
    tools: list[str]
    turns: list[Turn]
    extra: dict[str, Any]


extras: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.dictionaries(
    names.map(lambda n: f"x_{n}"), any_json, max_size=2
)


@st.composite
def scripts(draw: st.DrawFn, max_turns: int = 7) -> Script:
    """A conversation that begins and ends with the user, as every dialect allows."""
    number = 0
    turns = []
    kinds = draw(
        st.lists(st.sampled_from(["user", "assistant", "tools", "tools"]), max_size=max_turns)
    )
    for kind in ["user", *kinds, "user"]:
        calls = []
        for _ in range(draw(st.integers(1, 3)) if kind == "tools" else 0):
            number += 1
            call = Call(
                id=f"call_{number}",
                name=draw(names),
                arguments=draw(arguments),
                result=draw(words),
                failed=draw(st.booleans()),
            )
            calls.append(call)
        turns.append(
            Turn(
                role=kind,
                text=draw(words),
                calls=calls,
                thinking=draw(st.booleans()),
                listed=draw(st.booleans()),
                extra=draw(extras),
            )
        )
    return Script(
        system=draw(st.just("") | words),
        tools=draw(st.lists(names, max_size=3, unique=True)),
        turns=turns,
        extra=draw(extras),
    )


def _text(turn: Turn, key: str = "text") -> Any:
    return [{"type": key, "text": turn.text}] if turn.listed else turn.text


def _chat(script: Script) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    if script.system:
        messages.append({"role": "system", "content": script.system})
    for turn in script.turns:
        role = "user" if turn.role == "user" else "assistant"
        message: dict[str, Any] = {"role": role, "content": _text(turn), **turn.extra}
        if turn.calls:
            message["content"] = None if turn.thinking else turn.text
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
                }
                for call in turn.calls
            ]
        messages.append(message)
        for call in reversed(turn.calls):  # any order is legal
            content: Any = [{"type": "text", "text": call.result}] if turn.listed else call.result
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
    tools = [{"type": "function", "function": {"name": n, "parameters": {}}} for n in script.tools]
    return {"model": "gpt-4o", "messages": messages, "tools": tools or None, **script.extra}


def _responses(script: Script) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for turn in script.turns:
        if turn.role == "user":
            items.append({"role": "user", "content": _text(turn, "input_text"), **turn.extra})
            continue
        if turn.thinking:
            items.append({"type": "reasoning", "id": f"rs_{len(items)}", "summary": []})
        if not turn.calls:
            content = _text(turn, "output_text")
            items.append({"type": "message", "role": "assistant", "content": content, **turn.extra})
        items.extend(
            {
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": json.dumps(call.arguments),
            }
            for call in turn.calls
        )
        items.extend(
            {"type": "function_call_output", "call_id": call.id, "output": call.result}
            for call in turn.calls
        )
    body: dict[str, Any] = {"model": "gpt-5", "input": items, **script.extra}
    if script.system:
        body["instructions"] = script.system
    return body


def _anthropic(script: Script) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for turn in script.turns:
        role = "user" if turn.role == "user" else "assistant"
        if not turn.calls:
            messages.append({"role": role, "content": _text(turn), **turn.extra})
            continue
        parts: list[dict[str, Any]] = []
        if turn.thinking:
            parts.append({"type": "thinking", "thinking": turn.text, "signature": "c2ln"})
        parts.append({"type": "text", "text": turn.text})
        parts.extend(
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
            for call in turn.calls
        )
        messages.append({"role": "assistant", "content": parts, **turn.extra})
        results = []
        for call in turn.calls:
            content = [{"type": "text", "text": call.result}] if turn.listed else call.result
            result = {"type": "tool_result", "tool_use_id": call.id, "content": content}
            results.append({**result, "is_error": True} if call.failed else result)
        messages.append({"role": "user", "content": results})
    body: dict[str, Any] = {"model": "claude-haiku-4-5", "max_tokens": 100, "messages": messages}
    if script.system:
        body["system"] = script.system
    if script.tools:
        body["tools"] = [{"name": n, "input_schema": {"type": "object"}} for n in script.tools]
    return body | script.extra


def _gemini(script: Script) -> dict[str, Any]:
    contents: list[dict[str, Any]] = []
    for turn in script.turns:
        role = "user" if turn.role == "user" else "model"
        parts: list[dict[str, Any]] = [{"text": turn.text}]
        if turn.calls:
            signed = {"thoughtSignature": "c2ln"} if turn.thinking else {}
            ids = [{"id": call.id} if turn.listed else {} for call in turn.calls]
            parts.extend(
                {"functionCall": {**i, "name": call.name, "args": call.arguments}, **signed}
                for i, call in zip(ids, turn.calls, strict=True)
            )
        contents.append({"role": role, "parts": parts})
        if turn.calls:
            answers = [
                {"functionResponse": {**i, "name": call.name, "response": {"output": call.result}}}
                for i, call in zip(ids, turn.calls, strict=True)
            ]
            contents.append({"role": "user", "parts": answers})
    body: dict[str, Any] = {"contents": contents, **script.extra}
    if script.system:
        body["systemInstruction"] = {"parts": [{"text": script.system}]}
    return body


def _converse(script: Script) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for turn in script.turns:
        role = "user" if turn.role == "user" else "assistant"
        parts: list[dict[str, Any]] = [{"text": turn.text}]
        parts.extend(
            {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}}
            for call in turn.calls
        )
        messages.append({"role": role, "content": parts})
        if turn.calls:
            results = [
                {"toolResult": {"toolUseId": call.id, "content": [{"text": call.result}]}}
                for call in turn.calls
            ]
            messages.append({"role": "user", "content": results})
    body: dict[str, Any] = {"messages": messages, "inferenceConfig": {"maxTokens": 10}}
    if script.system:
        body["system"] = [{"text": script.system}]
    names = sorted({call.name for turn in script.turns for call in turn.calls})
    if names:
        schema = {"json": {"type": "object"}}
        specs = [{"toolSpec": {"name": name, "inputSchema": schema}} for name in names]
        body["toolConfig"] = {"tools": specs}
    return body | script.extra


def _cohere(script: Script) -> dict[str, Any]:
    body = _chat(script)
    body["model"] = "command-a-03-2025"
    for message in body["messages"]:
        if message.get("tool_calls"):
            message["tool_plan"] = "plan"
    return body


WRITERS: dict[str, Callable[[Script], dict[str, Any]]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "converse": _converse,
    "cohere": _cohere,
}

bodies: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.tuples(
    st.sampled_from(DIALECTS), scripts()
).map(lambda drawn: (drawn[0], WRITERS[drawn[0]](drawn[1])))
"""A dialect and a valid body in it."""

_STYLES: list[dict[str, Any]] = [
    {"separators": (",", ":"), "ensure_ascii": False},
    {"separators": (",", ":")},
    {},
    {"indent": 2},
    {"indent": "\t", "ensure_ascii": False},
]


def _writer(options: dict[str, Any]) -> Callable[[Any], bytes]:
    return lambda value: json.dumps(value, **options).encode()


styles: st.SearchStrategy[Callable[[Any], bytes]] = st.sampled_from(_STYLES).map(_writer)
"""The ways in which clients write JSON."""
