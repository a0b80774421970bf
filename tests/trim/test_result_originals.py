"""A result is cut from its own original, with any other content in its message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast import read, validate
from holdfast.cite import CitingRules
from holdfast.fitting import FitOptions, Fitted, fit_request
from holdfast.store.refs import canonical, digest
from holdfast.trim.edits import results_with_originals
from holdfast.wire.responses import HiddenTurn, Hop, turn_calls
from tests.fitting.test_citing import log

MODELS = {"anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-flash"}
LONG = 150
"""Lines of a log that does not fit; those of log 7 are step 7-0 and so on."""
OPENED = log(40, 99)


def opened_in(turn: dict[str, Any], dialect: str) -> HiddenTurn:
    """The answer of the model, with what its second call opened."""
    raw = (json.dumps(turn).encode(),)
    return HiddenTurn((Hop(raw, ((turn_calls(raw, dialect)[1], OPENED),)),))


def anthropic_story(numbers: list[int]) -> tuple[dict[str, Any], HiddenTurn]:
    """An answer that opens a ref between two calls of the client's, and their results."""
    uses = [{"type": "tool_use", "id": f"t{n}", "name": "look", "input": {"n": n}} for n in numbers]
    hidden = {"type": "tool_use", "id": "h1", "name": "expand_ref", "input": {"ref_id": "r"}}
    turn = {"role": "assistant", "content": [uses[0], hidden, *uses[1:]]}
    results = [
        {"type": "tool_result", "tool_use_id": f"t{n}", "content": log(LONG, n)} for n in numbers
    ]
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": uses},
        {"role": "user", "content": results[::-1]},
    ]
    kept = opened_in(turn, "anthropic")
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    body = {"model": MODELS["anthropic"], "max_tokens": 100, "tools": tools, "messages": messages}
    return body, kept


def gemini_story(numbers: list[int]) -> tuple[dict[str, Any], HiddenTurn]:
    """The same from a model that names no calls, to a client that does."""
    parts = [{"functionCall": {"name": "look", "args": {"n": n}}} for n in numbers]
    hidden = {"functionCall": {"name": "expand_ref", "args": {"ref_id": "r"}}}
    turn = {"role": "model", "parts": [parts[0], hidden, *parts[1:]]}
    calls = [
        {"functionCall": {"id": f"own_{n}", "name": "look", "args": {"n": n}}} for n in numbers
    ]
    results = [
        {
            "functionResponse": {
                "id": f"own_{n}",
                "name": "look",
                "response": {"output": log(LONG, n)},
            }
        }
        for n in numbers
    ]
    contents = [
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": results[::-1]},
    ]
    kept = opened_in(turn, "gemini")
    tools = [{"functionDeclarations": [{"name": "look"}]}]
    return {"tools": tools, "contents": contents}, kept


LEAST = {"anthropic": 1_920, "gemini": 1_400}
"""Tokens in which the story just fits."""
STORIES = {"anthropic": anthropic_story, "gemini": gemini_story}


def fitted_in(
    dialect: str, body: dict[str, Any], kept: HiddenTurn, limit: int, **how: Any
) -> Fitted:
    options = FitOptions(
        dialect=dialect, model=MODELS[dialect], limit=limit, opens=True, rules=CitingRules(**how),
        cites=bool(how),
    )  # fmt: skip
    fitted = fit_request(json.dumps(body).encode(), options, hidden=[kept])
    assert validate(fitted.body, dialect, MODELS[dialect]) == []
    assert fitted.tokens <= limit
    return fitted


def number_of(text: str) -> int:
    """Return the number of the log in a text, complete, cut or as a ref."""
    for number in (7, 8, 9):
        whole = log(LONG, number)
        if text.startswith(whole[:30]) or digest(canonical(whole))[:16] in text:
            return number
    assert text.startswith(OPENED[:30])
    return 99


@pytest.mark.parametrize("cites", [False, True])
@pytest.mark.parametrize("dialect", STORIES)
def test_results_beside_an_opened_one_are_cut_from_their_own_originals(
    dialect: str, cites: bool
) -> None:
    body, kept = STORIES[dialect]([7, 8, 9])
    how: dict[str, Any] = {"policy": "always"} if cites else {}
    actions: set[str] = set()
    for limit in (9_000, 6_000, 3_000, LEAST[dialect]):
        fitted = fitted_in(dialect, body, kept, limit, **how)
        actions |= {edit.action for edit in fitted.edits}
        [holder] = [message for message in fitted.state.sent.messages if message.results]
        results = results_with_originals(holder)
        # Claude gets opened results first, Gemini all results in the order of its calls.
        order = [7, 99, 8, 9] if dialect == "gemini" else [99, 9, 8, 7]
        assert [number_of(each.text) for each in results] == order
        for each, number in zip(results, order, strict=True):
            assert each.whole == (each.text if number == 99 else log(LONG, number))
    assert actions >= {"rejoin", "cite" if cites else "shorten"}


def test_a_request_whose_orphans_were_taken_out_can_still_be_cut() -> None:
    """The repair takes a result without a call out; the others keep their originals."""
    body, _ = anthropic_story([7, 8])
    orphan = {"type": "tool_result", "tool_use_id": "lost", "content": log(LONG, 5)}
    body["messages"][2]["content"].insert(0, orphan)
    options = FitOptions(dialect="anthropic", model=MODELS["anthropic"], limit=1_200)
    fitted = fit_request(json.dumps(body).encode(), options)
    assert {"repair", "shorten"} <= {edit.action for edit in fitted.edits}
    assert validate(fitted.body, "anthropic", MODELS["anthropic"]) == []
    texts = [each.text for each in read(fitted.body, "anthropic").messages[-1].results]
    assert ["step 8-0 " in texts[0], "step 7-0 " in texts[1]] == [True, True]
