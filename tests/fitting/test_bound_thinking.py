"""Thinking that is bound to the tools before it: a citation's own tool must not cost it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from holdfast.fitting import FitState, Fitted, fit_request
from tests.fitting.test_citing import log
from tests.support.citing import CITES

BOUND, FREE = "claude-sonnet-5-5", "claude-sonnet-4-5"
OPTIONS = msgspec.structs.replace(CITES, dialect="anthropic")


def request(*results: str, model: str = BOUND, **fields: Any) -> dict[str, Any]:
    """A question, and for each result a call that the model thought about before it."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "What is wrong?"}]
    for n, result in enumerate(results):
        thought = {"type": "thinking", "thinking": f"Thought {n}.", "signature": f"s{n}"}
        use = {"type": "tool_use", "id": f"t{n}", "name": "look", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": f"t{n}", "content": result}
        messages.append({"role": "assistant", "content": [thought, use]})
        messages.append({"role": "user", "content": [answer]})
    body = {
        "model": model,
        "max_tokens": 1000,
        "thinking": {"type": "adaptive"},
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        "messages": messages,
    }
    return {**body, **fields}


def fitted(body: dict[str, Any], state: FitState | None = None) -> Fitted:
    return fit_request(json.dumps(body).encode(), OPTIONS, state=state)


def tools(request: Fitted) -> list[str]:
    return [tool["name"] for tool in json.loads(request.body).get("tools", [])]


def actions(request: Fitted) -> list[str]:
    return [edit.action for edit in request.edits]


def test_the_tool_is_there_from_the_first_request_on_and_said_once() -> None:
    first = fitted(request())
    assert (tools(first), actions(first)) == (["look", "expand_ref"], ["offer"])
    second = fitted(request("short"), first.state)
    assert (tools(second), actions(second)) == (["look", "expand_ref"], [])


def test_a_citation_then_costs_no_thinking() -> None:
    state = None
    for results in ([], ["short"], ["short", log(600)]):
        last = fitted(request(*results), state)
        state = last.state
    assert actions(last) == ["cite"]
    assert last.body.count(b'"signature"') == 2


def test_a_session_that_began_without_us_keeps_its_thinking_until_there_is_a_ref() -> None:
    body = request("short")
    last = fitted(body)
    assert last.body == json.dumps(body).encode()
    assert actions(fitted(request("short", log(600)), last.state)).count("thinking") == 2


@pytest.mark.parametrize(
    "body",
    [
        request("short", model=FREE),
        request("short", thinking={"type": "disabled"}),
        request(
            "short",
            thinking={
                "type": "adaptive",
                "block_binding": {"prefix_mismatch_behavior": "drop_block"},
            },
        ),
    ],
    ids=["another model", "no thinking", "dropped by the provider"],
)
def test_where_thinking_is_not_bound_it_is_no_reason_to_wait(body: dict[str, Any]) -> None:
    assert tools(fitted(body)) == ["look", "expand_ref"]
