"""A state outlives moved cache marks and a repaired history."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast import validate
from holdfast.fitting import fit
from holdfast.fitting.draft import UnchangedOrigins, joined

MODEL = "claude-sonnet-4-5"


def agent(turns: int, *, marked: bool = False) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "Find the bug."}]}
    ]
    for n in range(turns):
        use = {"type": "tool_use", "id": f"t{n}", "name": "look", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": f"line {n} " * 150}
        messages.append({"role": "assistant", "content": [use]})
        messages.append({"role": "user", "content": [result]})
    if marked:  # as agents do: on the last two messages of the user
        for message in messages[-3::2]:
            message["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return {"model": MODEL, "max_tokens": 100, "messages": messages}


def folds_of(bodies: list[dict[str, Any]]) -> int:
    state, folds = None, 0
    for body in bodies:
        fitted = fit(json.dumps(body).encode(), dialect="anthropic", limit=4000, state=state)
        assert validate(fitted.body, "anthropic", MODEL) == []
        assert fitted.body.count(b'"cache_control"') <= 4
        folds += bool(fitted.edits)
        state = fitted.state
    return folds


PLAIN = folds_of([agent(n) for n in range(2, 40)])


def test_moving_cache_marks_does_not_make_history_fold_more_often() -> None:
    assert folds_of([agent(n, marked=True) for n in range(2, 40)]) <= PLAIN + 1


def test_a_history_that_was_repaired_once_is_folded_as_rarely_as_any_other() -> None:
    def broken(turns: int) -> dict[str, Any]:
        body = agent(turns)
        lost = {"type": "tool_use", "id": "lost", "name": "look", "input": {}}
        body["messages"].insert(3, {"role": "assistant", "content": [lost]})
        return body

    assert folds_of([broken(n) for n in range(2, 40)]) <= PLAIN + 1


def test_a_request_that_is_sent_again_goes_out_as_it_did() -> None:
    for turns in range(2, 30):
        body = json.dumps(agent(turns)).encode()
        first = fit(body, dialect="anthropic", limit=4000)
        again = fit(body, dialect="anthropic", limit=4000, state=first.state)
        assert again.body == first.body
        assert again.edits == ()


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("now", [False, True])
def test_a_message_that_was_repaired_carries_the_mark_that_the_client_gives_it_now(
    before: bool, now: bool
) -> None:
    def asked(*, marked: bool, answered: bool) -> bytes:
        question: dict[str, Any] = {"type": "text", "text": "Why?"}
        if marked:
            question["cache_control"] = {"type": "ephemeral"}
        empty = {"type": "text", "text": ""}  # the provider refuses it
        messages = [{"role": "user", "content": [empty, question]}]
        if answered:
            messages.append({"role": "assistant", "content": "Because."})
            messages.append({"role": "user", "content": "Go on."})
        return json.dumps({"model": MODEL, "max_tokens": 100, "messages": messages}).encode()

    first = fit(asked(marked=before, answered=False), dialect="anthropic")
    assert [edit.action for edit in first.edits] == ["repair"]
    second = fit(asked(marked=now, answered=True), dialect="anthropic", state=first.state)
    assert second.edits == (), "what was repaired once stays repaired"
    [question] = json.loads(second.body)["messages"][0]["content"]
    assert ("cache_control" in question) == now


def test_origins_of_what_is_sent_unchanged_are_those_of_a_tuple() -> None:
    tuples = tuple((n, n + 1) for n in range(7))
    origins = UnchangedOrigins(7)
    assert (len(origins), list(origins), origins[3], origins[-1]) == (7, [*tuples], (3, 4), (6, 7))
    assert origins == tuples
    assert hash(origins) == hash(tuples)
    assert origins[:3] == tuples[:3]
    assert isinstance(origins[:3], UnchangedOrigins)
    assert origins[2:5] == tuples[2:5]
    assert joined(origins[:6], ((6, 9),)) == (*tuples[:6], (6, 9))
    assert joined(origins, ()) is origins
    with pytest.raises(IndexError):
        origins[7]
