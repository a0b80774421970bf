"""Hidden calls come back whatever a client does to ids, numbers, order and cache marks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.wire import Message, read, validate
from holdfast.wire import write as wire_write
from holdfast.wire.responses import HiddenTurn, Hop, ModelCall, rejoin, split
from holdfast.wire.responses.marks import with_marks
from tests.wire.responses.streams import HIDDEN, hidden

MODEL = "gemini-3-pro-preview"
MARK = {"type": "ephemeral", "ttl": "5m"}


def gemini_turn(ids: bool) -> tuple[bytes, ...]:
    """A turn of Gemini 3: of the calls of one step only the first is signed."""
    calls = [(HIDDEN, {}), ("look_up", {"n": 1, "far": True}), ("search", {"q": "x"})]
    parts: list[Any] = [
        {"functionCall": {**({"id": f"g{n}"} if ids else {}), "name": name, "args": args}}
        for n, (name, args) in enumerate(calls)
    ]
    parts[0]["thoughtSignature"] = "c2lnbmVk"
    return (json.dumps({"role": "model", "parts": parts}).encode(),)


def gemini_request(turn: tuple[bytes, ...], change: str) -> bytes:
    """The client's next request, with what its library does to ids, numbers and order."""
    [seen] = [json.loads(raw) for raw in split(turn, "gemini", hidden)]
    answers: list[Any] = []
    for n, part in enumerate(seen["parts"]):
        call = part["functionCall"]
        if change == "drops":
            call.pop("id", None)
        if change == "invents":
            call["id"] = f"made-up-{n}"
        if change == "floats":
            call["args"] = {
                k: float(v) if type(v) is int else v for k, v in sorted(call["args"].items())
            }
        name = "tool" if change == "renames" else call["name"]
        answer = {"name": name, "response": {"output": f"{call['name']} is well"}}
        answers.append(
            {"functionResponse": {**({"id": call["id"]} if "id" in call else {}), **answer}}
        )
    if change == "reorders":
        answers.reverse()
    question = {"role": "user", "parts": [{"text": "Hi"}]}
    return json.dumps({"contents": [question, seen, {"role": "user", "parts": answers}]}).encode()


# No client gives a call another id than the one it came with.
CHANGES = ("keeps", "drops", "invents", "floats", "reorders", "renames")
CASES = [(ids, c) for ids in (False, True) for c in CHANGES if not (ids and c == "invents")]


@pytest.mark.parametrize(("ids", "change"), CASES)
def test_gemini_gets_its_turn_back_whatever_the_client_made_of_ids(ids: bool, change: str) -> None:
    turn = gemini_turn(ids)
    opened = ModelCall("g0" if ids else "", HIDDEN, "{}")
    answer = HiddenTurn((Hop(turn, ((opened, "opened"),)),), index=1)
    whole = rejoin(read(gemini_request(turn, change), "gemini"), [answer], hidden)
    assert validate(wire_write(whole), "gemini", MODEL) == []
    assert whole.messages[1].raw == turn[0]
    results = whole.messages[2].results
    assert [result.text for result in results] == ["opened", "look_up is well", "search is well"]
    assert [result.call_id for result in results] == (["g0", "g1", "g2"] if ids else ["", "", ""])


@pytest.mark.parametrize("order", ["keeps", "reorders"])
def test_results_under_the_clients_own_ids_answer_calls_without_ids(order: str) -> None:
    """The last step of the answer has no hidden call; an earlier one has."""
    uses = [{"functionCall": {"name": "look_up", "args": {"n": n}}} for n in (1, 2)]
    opening = {"role": "model", "parts": [{"functionCall": {"name": HIDDEN, "args": {}}}]}
    turn = json.dumps({"role": "model", "parts": uses}).encode()
    opened = ModelCall("", HIDDEN, "{}")
    answer = HiddenTurn(
        (Hop((json.dumps(opening).encode(),), ((opened, "opened"),)), Hop((turn,), ()))
    )
    seen = json.loads(turn)
    results = []
    for n, part in enumerate(seen["parts"]):
        part["functionCall"]["id"] = f"own-{n}"
        response = {"id": f"own-{n}", "name": "look_up", "response": {"output": f"result {n}"}}
        results.append({"functionResponse": response})
    if order == "reorders":
        results.reverse()
    question = {"role": "user", "parts": [{"text": "Hi"}]}
    contents = [question, seen, {"role": "user", "parts": results}]
    whole = rejoin(read(json.dumps({"contents": contents}), "gemini"), [answer], hidden)
    assert validate(wire_write(whole), "gemini", "gemini-2.5-flash") == []
    assert [call.id for call in whole.messages[3].calls] == ["", ""]
    assert [(r.call_id, r.text) for r in whole.messages[4].results] == [
        ("", "result 0"),
        ("", "result 1"),
    ]


def test_a_gemini_turn_with_other_ids_is_another_turn() -> None:
    turn = gemini_turn(ids=True)
    answer = HiddenTurn((Hop(turn, ((ModelCall("g0", HIDDEN, "{}"), "opened"),)),), index=1)
    body = gemini_request(turn, "invents")
    assert wire_write(rejoin(read(body, "gemini"), [answer], hidden)) == body


# --- cache marks -------------------------------------------------------------------------------


def anthropic_turn(*more: Any) -> tuple[bytes, ...]:
    blocks = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "h1", "name": HIDDEN, "input": {}},
        *more,
    ]
    return (json.dumps({"role": "assistant", "content": blocks}).encode(),)


LOOK_UP = {"type": "tool_use", "id": "v1", "name": "look_up", "input": {}}


def anthropic_request(seen: list[Any], user: list[Any]) -> bytes:
    return json.dumps(
        {
            "model": "claude-sonnet-4-5",
            "max_tokens": 100,
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": seen},
                {"role": "user", "content": user},
            ],
        }
    ).encode()


def marked(value: Any) -> list[str]:
    """What carries a mark, by its id or its text."""
    if isinstance(value, list):
        return [name for item in value for name in marked(item)]
    if not isinstance(value, dict):
        return []
    inside = [name for item in value.values() for name in marked(item)]
    here = [value.get("id") or value.get("tool_use_id") or value.get("text") or "?"]
    return inside + (here if value.get("cache_control") == MARK else [])


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ((), []),
        (("v1",), ["v1"]),
        (("text",), ["Let me look."]),
        (("text", "v1"), ["Let me look.", "v1"]),
        (("result",), ["v1"]),
        (("v1", "result", "question"), ["v1", "v1", "And?"]),
    ],
)
def test_cache_marks_of_the_client_stand_on_the_turn_that_comes_back(
    on: tuple[str, ...], expected: list[str]
) -> None:
    turn = anthropic_turn(LOOK_UP)
    answer = HiddenTurn((Hop(turn, ((ModelCall("h1", HIDDEN, "{}"), "opened"),)),), index=1)

    def block(name: str, value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "cache_control": MARK} if name in on else value

    body = anthropic_request(
        [
            json.loads(turn[0])["content"][0],
            block("text", {"type": "text", "text": "Let me look."}),
            block("v1", LOOK_UP),
        ],
        [
            block("result", {"type": "tool_result", "tool_use_id": "v1", "content": "sunny"}),
            block("question", {"type": "text", "text": "And?"}),
        ],
    )
    whole = wire_write(rejoin(read(body, "anthropic"), [answer], hidden))
    assert validate(whole) == []
    assert marked(json.loads(whole)) == expected
    assert b'"h1"' in whole


def test_a_mark_on_the_end_of_an_answer_of_several_hops_stands_on_its_end() -> None:
    """The client's last block was said before the hidden call of the last hop."""
    first, last = (
        anthropic_turn(),
        (
            json.dumps(
                {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
            ).encode(),
        ),
    )
    answer = HiddenTurn(
        (Hop(first, ((ModelCall("h1", HIDDEN, "{}"), "opened"),)), Hop(last)), index=1
    )
    seen = [
        {"type": "text", "text": "Let me look."},
        {"type": "text", "text": "Done.", "cache_control": MARK},
    ]
    body = anthropic_request(seen, [{"type": "text", "text": "And?"}])
    whole = wire_write(rejoin(read(body, "anthropic"), [answer], hidden))
    assert validate(whole) == []
    assert marked(json.loads(whole)) == ["Done."]
    assert read(whole).messages[1].raw == first[0]


def test_no_mark_is_put_on_thinking_or_blank_text() -> None:
    turn = (
        json.dumps(
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Well."},
                    {"type": "tool_use", "id": "h1", "name": HIDDEN, "input": {}},
                ],
            }
        ).encode(),
    )
    end = (
        json.dumps(
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Done."},
                    {"type": "thinking", "thinking": "So.", "signature": "s"},
                    {"type": "text", "text": " "},
                ],
            }
        ).encode(),
    )
    answer = HiddenTurn(
        (Hop(turn, ((ModelCall("h1", HIDDEN, "{}"), "opened"),)), Hop(end)), index=1
    )
    seen = [{"type": "text", "text": "Well.Done.", "cache_control": MARK}]
    body = anthropic_request(seen, [{"type": "text", "text": "And?"}])
    whole = wire_write(rejoin(read(body, "anthropic"), [answer], hidden))
    assert validate(whole) == []
    assert marked(json.loads(whole)) == ["Done."]


@pytest.mark.parametrize(("role", "kind"), [("assistant", "output_text"), ("user", "input_text")])
def test_a_text_that_gets_a_mark_is_a_part_of_its_roles_kind(role: str, kind: str) -> None:
    """The Responses API refuses `input_text` of an assistant, and `output_text` of a user."""

    def message(content: Any) -> Message:
        body = json.dumps({"model": "gpt-5", "input": [{"role": role, "content": content}]})
        return read(body, "openai-responses").messages[0]

    mine = message([{"type": kind, "text": "Well.", "cache_control": MARK}])
    [marked_message] = with_marks([message("Well.")], [mine])
    assert marked_message.value == {
        "role": role,
        "content": [{"type": kind, "text": "Well.", "cache_control": MARK}],
    }
