"""The judge itself: a request for each rule that it must refuse, and what providers did accept."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.provider.tool_changes import BETA
from tests.support.recorded import needs_usage, requests
from tests.surfaces.proxy.gatekeeper import KEY, Got, Ledger, refusal
from tests.surfaces.proxy.harness import path_of

HEADERS = {
    "authorization": f"Bearer {KEY}",
    "x-goog-api-key": KEY,
    "anthropic-version": "2023-06-01",
}
WINDOW = 200_000
USER = {"role": "user", "content": "Go."}
LOOK = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
SEEN = {"type": "tool_result", "tool_use_id": "a", "content": "seen"}
CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ITEM = {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"}
PUT = {"type": "function_call_output", "call_id": "a", "output": "seen"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
FUNCTION = {"functionCall": {"name": "look", "args": {}}}
RESPONSE = {"functionResponse": {"name": "look", "response": {"result": "seen"}}}


def judged(
    dialect: str,
    value: Mapping[str, Any],
    model: str,
    ledger: Ledger | None = None,
    betas: str = "",
) -> str:
    """Why the upstream refuses; empty if it does not."""
    body = json.dumps({"model": model, "max_tokens": 4_000, **value}).encode()
    headers = {**HEADERS, "anthropic-beta": betas}
    got = Got("POST", path_of(dialect, model=model), {}, headers, body)
    why = refusal(got, WINDOW, ledger or Ledger())
    return why[1] if why else ""


def claude(*messages: Any, model: str = "claude-sonnet-4-5", betas: str = "", **more: Any) -> str:
    return judged("anthropic", {"messages": messages, **more}, model, betas=betas)


def chat(*messages: Any, model: str = "gpt-5", **more: Any) -> str:
    return judged("openai-chat", {"messages": messages, **more}, model)


def responses(*items: Any, ledger: Ledger | None = None, **more: Any) -> str:
    return judged("openai-responses", {"input": items, **more}, "gpt-5", ledger)


def gemini(*contents: Any, model: str = "gemini-2.5-flash", **more: Any) -> str:
    return judged("gemini", {"contents": contents, **more}, model)


def by(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def parts(role: str, *inside: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(inside)}


ASKED = parts("user", {"text": "Go."})
MARK = {"cache_control": {"type": "ephemeral"}}
LASTING = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
THINKS: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 2_000}}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}

ADDITION = {
    "type": "tool_addition",
    "tool": {"type": "tool_definition", "definition": {"name": "look", "input_schema": {"x": 1}}},
}
MORE = {"type": "additional_tools", "role": "developer", "tools": []}
NEWEST = "claude-opus-5-5"
HELD = {"name": "later", "input_schema": {"type": "object"}, "defer_loading": True}
FIND = {"name": "look", "input_schema": {"type": "object"}}
REFERENCE = {"type": "tool_reference", "tool_name": "later"}
LOADED = [USER, by("assistant", LOOK), by("user", {**SEEN, "content": [REFERENCE]})]

REFUSED: dict[str, tuple[Callable[[], str], str]] = {
    "A1": (lambda: claude(USER, by("assistant", LOOK), USER), "without `tool_result` blocks"),
    "A2": (lambda: claude(USER, by("user", SEEN)), "unexpected `tool_use_id`"),
    "A3": (
        lambda: claude(USER, by("assistant", LOOK), by("user", text("Well:"), SEEN)),
        "immediately",
    ),
    "A4": (
        lambda: claude(USER, by("assistant", LOOK, text("Hm.")), by("user", SEEN)),
        "cannot follow",
    ),
    "A5": (lambda: claude(USER, by("assistant", LOOK), by("user", SEEN, SEEN)), "single result"),
    "A6": (
        lambda: claude(USER, by("assistant", {**LOOK, "id": "a.b"}), by("user", SEEN)),
        "should match pattern",
    ),
    "A7": (lambda: claude(by("user", text(" \n"))), "non-whitespace"),
    "A8": (
        lambda: claude(
            USER, by("assistant", LOOK), by("user", {**SEEN, "content": "", "is_error": True})
        ),
        "cannot be empty if `is_error`",
    ),
    "A9": (lambda: claude(by("assistant", text("Hello.")), USER), 'must use the "user" role'),
    "A10": (lambda: claude(USER, by("assistant", text("So")), model="claude-opus-4-6"), "prefill"),
    "A10 old": (lambda: claude(USER, by("assistant", text("So "))), "trailing whitespace"),
    "A11": (
        lambda: claude(USER, by("assistant", LOOK), by("user", SEEN), **THINKS),
        "Expected `thinking`",
    ),
    "A12": (
        lambda: claude(
            USER,
            by("assistant", {"type": "thinking", "thinking": "b", "signature": "signed a"}),
            USER,
        ),
        "Invalid `signature`",
    ),
    "A13": (
        lambda: claude(USER, by("assistant", SEARCH), USER),
        "without a corresponding `web_search",
    ),
    "A14": (lambda: claude(by("user", *(text("x", **MARK) for _ in range(5)))), "maximum of 4"),
    "A14 order": (
        lambda: claude(by("user", text("x", **MARK), text("y", **LASTING))),
        "must not come",
    ),
    "A15": (
        lambda: claude(USER, thinking={"type": "enabled", "budget_tokens": 9_000}),
        "must be greater",
    ),
    "A15 tool": (lambda: claude(USER, **THINKS, tool_choice={"type": "any"}), "forces tool use"),
    "A16": (
        lambda: claude(by("user", *({"type": "image", "source": {}} for _ in range(101)))),
        "Too many images",
    ),
    "A18 before": (
        lambda: claude(USER, by("assistant", text("a")), by("system", text("b")), model=NEWEST),
        "must immediately follow",
    ),
    "A18 behind": (
        lambda: claude(USER, by("system", text("b")), USER, model=NEWEST),
        "must be the last entry",
    ),
    "a tool without the beta": (
        lambda: claude(USER, by("system", ADDITION), model=NEWEST),
        "Input tag 'tool_addition'",
    ),
    "a tool from the user": (
        lambda: claude(by("user", ADDITION), model=NEWEST, betas=BETA),
        "only permitted in `system`",
    ),
    "a tool for an older model": (
        lambda: claude(USER, by("system", ADDITION), betas=BETA),
        "does not support",
    ),
    "all held back": (lambda: claude(USER, tools=[HELD]), "At least one tool"),
    "held back and cached": (
        lambda: claude(USER, tools=[FIND, {**HELD, **MARK}]),
        "prompt caching",
    ),
    "held back before 4.5": (
        lambda: claude(USER, tools=[FIND, HELD], model="claude-opus-4-1"),
        "does not support",
    ),
    "forced and held back": (
        lambda: claude(USER, tools=[FIND, HELD], tool_choice={"type": "tool", "name": "later"}),
        "is not loaded",
    ),
    "a reference to nothing": (lambda: claude(*LOADED, tools=[FIND]), "not found in available"),
    "a reference outside": (
        lambda: claude(by("user", REFERENCE), tools=[FIND, HELD]),
        "Input tag 'tool_reference'",
    ),
    "tools of the user": (lambda: responses(USER, {**MORE, "role": "user"}), "'developer'"),
    "system": (lambda: claude({"role": "system", "content": "x"}), "role: Input should be"),
    "C1": (
        lambda: chat(USER, {"role": "assistant", "tool_calls": [CALL]}, USER),
        "did not have response",
    ),
    "C2": (
        lambda: chat({"role": "tool", "tool_call_id": "a", "content": "x"}),
        "preceeding message",
    ),
    "C3": (lambda: chat({"role": "user", "content": None}), "got null"),
    "C4": (lambda: chat({"role": "assistant", "content": "x", "tool_calls": []}), "empty array"),
    "C5": (
        lambda: chat(
            USER,
            {"role": "assistant", "tool_calls": [{**CALL, "id": "i" * 41}]},
            {"role": "tool", "tool_call_id": "i" * 41, "content": "x"},
        ),
        "maximum length 40",
    ),
    "C6": (lambda: chat({"role": "user", "content": "x" * 10_485_761}), "maximum length 10485760"),
    "C7": (
        lambda: chat(
            USER,
            {"role": "assistant", "tool_calls": [CALL, {**CALL, "id": "b"}]},
            {"role": "tool", "tool_call_id": "b", "content": "x"},
            {"role": "tool", "tool_call_id": "a", "content": "x"},
            model="qwen3",
        ),
        "order of their calls",
    ),
    "chat role": (lambda: chat({"role": "robot", "content": "x"}), "Supported values"),
    "R1": (lambda: responses(USER, ITEM), "No tool output found"),
    "R1 output": (lambda: responses(USER, PUT), "No tool call found"),
    "R2": (lambda: responses(USER, THOUGHT, PUT, ITEM), "required following item"),
    "R2 reasoning": (
        lambda: responses(
            USER, {**ITEM, "id": "fc_1"}, PUT, ledger=Ledger(reasoned={"fc_1": "rs_1"})
        ),
        "without its required 'reasoning' item",
    ),
    "R3": (
        lambda: responses(USER, {**THOUGHT, "encrypted_content": None}, ITEM, PUT, store=False),
        "not persisted",
    ),
    "R4": (lambda: responses(USER, {**ITEM, "id": "xx_1"}, PUT), "begins with 'fc'"),
    "R5": (responses, "must be provided"),
    "chain": (lambda: responses(USER, previous_response_id="resp_9"), "not found"),
    "G1": (lambda: gemini(parts("assistant", {"text": "x"})), "valid role"),
    "G2": (
        lambda: gemini(parts("model", FUNCTION), parts("user", RESPONSE)),
        "function call turn comes",
    ),
    "G3": (
        lambda: gemini(ASKED, parts("model", FUNCTION, FUNCTION), parts("user", RESPONSE)),
        "number of function response",
    ),
    "G3 end": (lambda: gemini(ASKED, parts("model", FUNCTION)), "number of function response"),
    "G3 orphan": (lambda: gemini(ASKED, parts("user", RESPONSE)), "function response turn comes"),
    "G4": (lambda: gemini(parts("user")), "must not be empty"),
    "G4 data": (lambda: gemini(parts("user", {"thought": True})), "oneof field 'data'"),
    "G4 name": (lambda: gemini(parts("user", {"text": "x", "cached": 1})), 'Unknown name "cached"'),
    "G5": (
        lambda: gemini(
            ASKED, parts("model", FUNCTION), parts("user", RESPONSE), model="gemini-3-pro"
        ),
        "missing a thought_signature",
    ),
    "G6": (lambda: gemini(ASKED, parts("model", {"text": "x"})), "end with a user role"),
    "surrogate": (lambda: chat({"role": "user", "content": "\ud800"}), "no low surrogate"),
    "window": (lambda: claude(by("user", text("word " * 250_000))), "prompt is too long"),
}


@pytest.mark.parametrize("rule", REFUSED)
def test_a_breach_is_refused_in_the_providers_words(rule: str) -> None:
    why, words = REFUSED[rule]
    assert words in why()


@pytest.mark.parametrize(
    "why",
    [
        lambda: claude(USER, by("assistant", LOOK), by("user", SEEN, text("Go on."))),
        lambda: claude(
            USER, by("assistant", LOOK), by("user", SEEN), thinking={"type": "adaptive"}
        ),
        lambda: claude(USER, by("assistant", text("So"))),
        lambda: claude(USER, {"role": "system", "content": "x"}, model="claude-opus-4-8"),
        lambda: claude(USER, by("system", ADDITION), model=NEWEST, betas=BETA),
        lambda: claude(*LOADED, tools=[FIND, HELD]),
        lambda: responses(USER, MORE),
        lambda: chat(
            USER,
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "a", "content": ""},
        ),
        lambda: responses(USER, THOUGHT, ITEM, PUT, store=False),
        lambda: responses(PUT, previous_response_id="r", ledger=Ledger(stored={"r": [USER, ITEM]})),
        lambda: gemini(ASKED, parts("model", FUNCTION), parts("user", RESPONSE)),
        # Recorded: text in the place of responses, and a turn of the model in two contents.
        lambda: gemini(ASKED, parts("model", FUNCTION), ASKED),
        lambda: gemini(ASKED, parts("model", FUNCTION, FUNCTION), ASKED),
        lambda: gemini(
            ASKED,
            parts("model", FUNCTION),
            parts("model", FUNCTION),
            parts("user", RESPONSE, RESPONSE),
        ),
    ],
)
def test_what_providers_take_is_taken(why: Callable[[], str]) -> None:
    assert why() == ""


@needs_usage
@pytest.mark.slow
def test_recorded_requests_were_answered_and_are_not_refused() -> None:
    """Of 100 that a provider answered at most one may be refused; imitators take more."""
    judged_requests = refusals = 0
    for dialect, record in requests():
        value = record["request"]
        unknown = dialect in ("converse", "cohere") or "previous_response_id" in value
        if unknown or record["suspect"] or (dialect == "gemini" and "contents" not in value):
            continue
        judged_requests += 1
        model = record["model"].rpartition("/")[2]
        refusals += bool(judged(dialect, {"max_tokens": 10**6, **value}, model))
    assert judged_requests > 1_000
    assert refusals < 0.02 * judged_requests
