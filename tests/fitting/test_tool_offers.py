"""The tool that opens refs is there from the first request with tools: the prefix never breaks."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cite import CitingRules
from holdfast.errors import BudgetExceededError
from holdfast.expand.tool import NAME
from holdfast.fitting import FitOptions, FitState, Fitted, fit_request
from tests.fitting.test_citing import DIALECTS, chat, in_dialect, log, refs_in, tool_names

OPTIONS = FitOptions(cites=True, opens=True, rules=CitingRules(policy="always"))
MESSAGES = {"openai-responses": "input", "gemini": "contents"}


def fitted(
    body: bytes, dialect: str = "openai-chat", state: FitState | None = None, **changes: Any
) -> Fitted:
    options = msgspec.structs.replace(OPTIONS, dialect=dialect, **changes)
    return fit_request(body, options, state=state)


def parts(body: bytes, dialect: str) -> tuple[str, list[str]]:
    """Return the fields around the messages, and each message, as text."""
    value = json.loads(body)
    messages = value.pop(MESSAGES.get(dialect, "messages"))
    return json.dumps(value), [json.dumps(message) for message in messages]


@settings(max_examples=40, deadline=None)
@given(
    lines=st.lists(st.integers(0, 90), min_size=2, max_size=7),
    dialect=st.sampled_from(DIALECTS),
)
def test_without_a_fold_every_request_begins_with_all_of_the_one_before(
    lines: list[int], dialect: str
) -> None:
    state: FitState | None = None
    before: tuple[str, list[str]] | None = None
    for n in range(len(lines) + 1):
        conversation = chat(*(log(size, seed=k) for k, size in enumerate(lines[:n])))
        turn = fitted(in_dialect(conversation, dialect), dialect, state, limit=100_000)
        state = turn.state
        around, messages = parts(turn.body, dialect)
        if before is not None:
            assert around == before[0]
            assert messages[: len(before[1])] == before[1]
        before = around, messages


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("when", "plain", "cited"),
    [("always", True, True), ("when_cited", False, True), ("never", False, False)],
)
def test_the_setting_says_from_when_on(when: str, dialect: str, plain: bool, cited: bool) -> None:
    for results, offered in (("short",), plain), (("short", log(90)), cited):
        body = in_dialect(chat(*results), dialect)
        turn = fitted(body, dialect, offer_expand=when)
        assert (NAME in tool_names(turn.body, dialect)) is offered


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_without_tools_gets_one_only_with_something_to_open(dialect: str) -> None:
    value = chat("short")
    del value["tools"]
    body = in_dialect(value, dialect)
    assert fitted(body, dialect).body == body


@pytest.mark.parametrize("changes", [{"cites": False}, {"rules": CitingRules(policy="never")}])
def test_where_nothing_is_cited_it_waits_for_a_fold(changes: dict[str, Any]) -> None:
    body = in_dialect(chat("short", log(90)), "openai-chat")
    assert fitted(body, **changes).body == body


def test_where_nothing_opens_it_a_citation_does_not_say_how_to() -> None:
    turn = fitted(in_dialect(chat(log(90)), "openai-chat"), offer_expand="never")
    assert [edit.action for edit in turn.edits] == ["cite"]
    assert refs_in(turn.body)
    assert NAME.encode() not in turn.body


def test_what_fits_only_without_the_tool_goes_out_without_it() -> None:
    body = in_dialect(chat("short"), "openai-chat")
    least = fitted(body, offer_expand="when_cited").tokens
    for limit in (least, least + 20):
        assert fitted(body, limit=limit).body == body
    assert NAME.encode() in fitted(body, limit=2 * least + 1_000).body
    with pytest.raises(BudgetExceededError, match="tokens"):
        fitted(body, limit=least - 20)


def test_once_offered_it_stays_where_history_is_folded_for_it() -> None:
    options: dict[str, Any] = {
        "limit": 3_000,
        "rules": CitingRules(threshold=10**6),
        "offer_expand": "always",
    }
    state: FitState | None = None
    for n in range(1, 9):
        body = in_dialect(chat(*(log(15, seed=k) for k in range(n))), "openai-chat")
        turn = fitted(body, state=state, **options)
        state = turn.state
        assert NAME in tool_names(turn.body, "openai-chat")


@pytest.mark.parametrize("tools", [127, 128])
def test_openai_takes_no_more_tools_than_128(tools: int) -> None:
    value = chat("short")
    [tool] = value["tools"]
    names = (f"tool_{n}" for n in range(tools))
    value["tools"] = [{**tool, "function": {**tool["function"], "name": n}} for n in names]
    assert len(tool_names(fitted(json.dumps(value).encode()).body, "openai-chat")) == 128


def test_beside_hosted_tools_alone_gemini_takes_none_of_ours() -> None:
    value = json.loads(in_dialect(chat("short"), "gemini"))
    value["tools"] = [{"googleSearch": {}}]
    body = json.dumps(value).encode()
    assert fitted(body, "gemini").body == body
