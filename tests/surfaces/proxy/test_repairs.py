"""Repairs are edits: removed messages are recorded, can be opened, and are reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fitting.test_citing import chat
from tests.surfaces.proxy.harness import (
    DIALECTS,
    ask_model,
    request_in,
    running_proxy,
    turns_of,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Upstream

LISTS = {"openai-responses": "input", "gemini": "contents"}
WORDS = "what the lost tool said: 漢字 & \u00fcber"

ORPHANS: dict[str, dict[str, Any]] = {
    "openai-chat": {"role": "tool", "tool_call_id": "lost", "content": WORDS},
    "openai-responses": {"type": "function_call_output", "call_id": "lost", "output": WORDS},
    "anthropic": {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "lost", "content": WORDS}],
    },
    "gemini": {
        "role": "user",
        "parts": [{"functionResponse": {"name": "lost", "response": {"result": WORDS}}}],
    },
}
UNANSWERED: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "never",
                "type": "function",
                "function": {"name": "read_log", "arguments": json.dumps({"path": WORDS})},
            }
        ],
    },
    "openai-responses": {
        "type": "function_call",
        "call_id": "never",
        "name": "read_log",
        "arguments": json.dumps({"path": WORDS}),
    },
    "anthropic": {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "never", "name": "read_log", "input": {"p": WORDS}}],
    },
    # Gemini accepts text after a call, but not one response to two calls.
    "gemini": {
        "role": "model",
        "parts": [
            {"functionCall": {"name": "read_log", "args": {"p": WORDS}}},
            {"functionCall": {"name": "read_log", "args": {}}},
        ],
    },
}


@pytest.mark.parametrize("broken", [ORPHANS, UNANSWERED], ids=["orphan", "unanswered"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_repair_takes_out_is_told_and_can_be_opened(
    dialect: str, broken: dict[str, dict[str, Any]]
) -> None:
    key = LISTS.get(dialect, "messages")
    value = json.loads(request_in(dialect, chat("fine", question="Hello?")))
    value[key].insert(1, broken[dialect])
    if broken is UNANSWERED and dialect == "gemini":
        value[key].insert(2, value[key][3])
    elif broken is UNANSWERED:  # and then the user continued
        value[key].insert(2, value[key][0])
    asked_body = json.dumps(value, indent=1).encode()
    with Upstream(says(text("Well."))) as upstream, running_proxy({}, upstream.url) as proxy:
        answered = ask_model(proxy, dialect, asked_body)
        assert answered.status == 200, answered.body
        assert upstream.refused == []
        assert "lost" not in upstream.requests[0].body.decode()
        assert int(answered.headers["x-holdfast-edits"]) > 0
        assert "repaired" in answered.headers["x-holdfast-warning"]
        [turn] = turns_of(proxy, answered)
        repairs = [edit for edit in turn.edits if edit.action == "repair"]
        assert repairs
        engine = proxy.service.engine
        stored = [proxy.do(engine.store.get(engine.scope, edit.ref_id)) for edit in repairs]
        originals = [json.loads(content.data) for content in stored if content is not None]
        assert len(originals) == len(repairs)
        assert broken[dialect] in [message for messages in originals for message in messages]
        for edit, messages in zip(repairs, originals, strict=True):
            assert messages == value[key][edit.start : edit.stop]
        opened = proxy.do(engine.expand_ref(repairs[0].ref_id))
        assert "what the lost tool said" in opened.text
        session = engine.session(answered.headers["x-holdfast-session"])
        assert proxy.do(session.rebuild(1)) == asked_body


CALL_AND_RESULT: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "function": {"name": "read_log", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": WORDS},
    ],
    "anthropic": [
        {"role": "assistant", "content": [{"id": "c", "name": "read_log", "input": {}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c", "content": WORDS}],
        },
    ],
}


@pytest.mark.parametrize("dialect", CALL_AND_RESULT)
def test_of_a_call_that_forgot_its_type_the_provider_hears(dialect: str) -> None:
    """Its result was once taken out as an orphan, and the model answered without it."""
    body = json.loads(request_in(dialect, chat("fine", question="Hello?")))
    body["messages"][1:] = CALL_AND_RESULT[dialect]
    asked_body = json.dumps(body).encode()
    with Upstream(says(text("Well."))) as upstream, running_proxy({}, upstream.url) as proxy:
        answered = ask_model(proxy, dialect, asked_body)
        assert (answered.status, len(upstream.refused)) == (400, 1)
        assert "type" in upstream.refused[0]
        assert json.loads(upstream.requests[0].body)["messages"] == body["messages"]
        assert "x-holdfast-warning" not in answered.headers  # nothing was repaired
