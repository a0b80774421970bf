"""If the API accepts tools in a message, ours comes with the first ref, after the cached prefix."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from holdfast.cite import CitingRules
from holdfast.expand.tool import NAME, OTHER_NAME
from holdfast.fitting import FitOptions, FitState, Fitted, fit_request
from holdfast.wire import validate
from tests.fitting.test_citing import chat, in_dialect, log, refs_in, tool_names
from tests.fitting.test_tool_offers import parts
from tests.provider.tool_changes import BETA, added, claude_violations, responses_violations

CLAUDE, GPT = "anthropic", "openai-responses"
MODELS = {CLAUDE: "claude-opus-5-5", GPT: "gpt-5"}
OPTIONS = FitOptions(
    cites=True,
    opens=True,
    rules=CitingRules(policy="always"),
    offer_inline="always",
    betas=frozenset({"claude-code-20250219", BETA}),
    limit=100_000,
)
LISTS = {CLAUDE: "messages", GPT: "input"}
INLINE = pytest.mark.parametrize("dialect", [CLAUDE, GPT])


def body_of(dialect: str, *results: str, **changes: Any) -> bytes:
    value = json.loads(in_dialect(chat(*results), dialect))
    return json.dumps({**value, "model": MODELS[dialect], **changes}).encode()


def fitted(body: bytes, dialect: str, state: FitState | None = None, **changes: Any) -> Fitted:
    turn = fit_request(
        body, msgspec.structs.replace(OPTIONS, dialect=dialect, **changes), state=state
    )
    assert refused(turn.body, dialect) == []
    return turn


def refused(body: bytes, dialect: str) -> list[str]:
    """Return the objections of the package, and of the tests' provider."""
    value = json.loads(body)
    ours = [violation.rule for violation in validate(body, dialect)]
    if dialect == CLAUDE:
        return [*ours, *claude_violations(value, value["model"], BETA)]
    return [*ours, *responses_violations(value["input"], value["model"])]


def inline(body: bytes) -> list[str]:
    return [str(tool["name"]) for tool in added(json.loads(body))]


def turns(dialect: str, results: list[str], **changes: Any) -> Iterator[Fitted]:
    state: FitState | None = None
    for n in range(len(results) + 1):
        turn = fitted(body_of(dialect, *results[:n]), dialect, state, **changes)
        state = turn.state
        yield turn


@INLINE
def test_it_costs_nothing_until_there_is_a_ref_and_then_breaks_no_prefix(dialect: str) -> None:
    results = ["short", "brief", log(90), "fine", log(80, 1), "well"]
    before: tuple[str, list[str]] | None = None
    for n, turn in enumerate(turns(dialect, results)):
        body = body_of(dialect, *results[:n])
        assert tool_names(turn.body, dialect) == ["read_log"]
        assert inline(turn.body) == ([NAME] if refs_in(turn.body) else [])
        if n < 3:
            assert turn.body == body
        around, messages = parts(turn.body, dialect)
        if before is not None:
            assert (around, messages[: len(before[1])]) == before
        before = around, messages
        assert [edit.action for edit in turn.edits].count("offer") == (n == 3)
        assert turn.body == fitted(body, dialect).body, "seen for the first time it is the same"


@INLINE
def test_the_edit_says_where(dialect: str) -> None:
    turn = fitted(body_of(dialect, log(90)), dialect)
    [offer] = [edit for edit in turn.edits if edit.action == "offer"]
    assert offer.where == "before message 3"
    assert offer.start == offer.stop == 3


@pytest.mark.parametrize(
    ("dialect", "changes", "options"),
    [
        (CLAUDE, {}, {"betas": frozenset({"mid-conversation-tool-changes-2026-07-01"})}),
        (CLAUDE, {}, {"offer_inline": "never"}),
        (CLAUDE, {"model": "claude-sonnet-4-5"}, {}),
        (CLAUDE, {"model": "claude-sonnet-5"}, {}),
        (CLAUDE, {"model": "claude-3-5-haiku-20241022"}, {}),
        (CLAUDE, {"tools": [{"name": "read_log", "input_schema": {}, "defer_loading": True}]}, {}),
        (GPT, {}, {"offer_inline": "auto"}),
        (GPT, {}, {"offer_inline": "never"}),
        (GPT, {"model": "llama-4"}, {}),
        (GPT, {"previous_response_id": "resp_1"}, {}),
    ],
)
def test_elsewhere_it_stands_among_the_tools(
    dialect: str, changes: dict[str, Any], options: dict[str, Any]
) -> None:
    turn = fitted(body_of(dialect, log(90), **changes), dialect, **options)
    assert inline(turn.body) == []
    assert tool_names(turn.body, dialect) == ["read_log", NAME]


@pytest.mark.parametrize(
    "model", ["claude-opus-4-8", "claude-opus-5", "claude-fable-5-1", "claude-haiku-5-5-20260801"]
)
def test_models_that_take_tools_in_a_message_get_it_there(model: str) -> None:
    turn = fitted(body_of(CLAUDE, log(90), model=model), CLAUDE, offer_inline="auto")
    assert inline(turn.body) == [NAME]


def with_own_tools(*names: str, results: Sequence[str] = (log(90),)) -> bytes:
    """As Codex sends them: none among the tools, all in an item, some in a namespace."""
    value = json.loads(body_of(GPT, *results))
    [tool] = value.pop("tools")
    tools = [{**tool, "name": name} for name in names]
    space = {"type": "namespace", "name": "functions", "tools": tools}
    item = {"type": "additional_tools", "role": "developer", "tools": [space]}
    value["input"].insert(0, item)
    return json.dumps(value).encode()


def test_a_client_whose_own_tools_come_in_an_item_gets_ours_in_one() -> None:
    turn = fitted(with_own_tools("read_log"), GPT, offer_inline="auto")
    assert inline(turn.body) == ["read_log", NAME]
    assert "tools" not in json.loads(turn.body)


def test_where_a_fold_comes_first_it_stands_beside_the_clients_own() -> None:
    value = json.loads(with_own_tools("read_log", results=[log(12, n) for n in range(40)]))
    turn = fitted(json.dumps(value).encode(), GPT, limit=3_000, rules=CitingRules(threshold=10**6))
    assert any(edit.action == "fold" for edit in turn.edits)
    assert inline(turn.body) == ["read_log", NAME]
    assert "tools" not in json.loads(turn.body)
    assert [item.get("type") for item in json.loads(turn.body)["input"][:2]] == [
        "additional_tools"
    ] * 2


def test_a_tool_of_the_clients_in_a_message_keeps_its_name() -> None:
    turn = fitted(with_own_tools("read_log", NAME), GPT)
    assert inline(turn.body) == ["read_log", NAME, OTHER_NAME]


def test_who_speaks_again_before_the_model_has_gets_a_request_that_is_taken() -> None:
    """After a failed answer, the user's next turn would follow our message."""
    value = json.loads(body_of(CLAUDE, log(90)))
    state = fitted(json.dumps(value).encode(), CLAUDE).state
    value["messages"].append({"role": "user", "content": "Are you there?"})
    turn = fitted(json.dumps(value).encode(), CLAUDE, state)
    assert inline(turn.body) == [NAME]
    assert refs_in(turn.body)


@INLINE
def test_what_was_offered_among_the_tools_stays_there(dialect: str) -> None:
    results = ["short", log(90), "fine"]
    first = fitted(body_of(dialect, "short"), dialect, offer_inline="never")
    turn = fitted(body_of(dialect, *results), dialect, first.state)
    assert tool_names(turn.body, dialect) == ["read_log", NAME]
    assert inline(turn.body) == []


@INLINE
def test_a_fold_leaves_one_of_it_and_a_request_that_is_taken(dialect: str) -> None:
    results = [log(12, n) for n in range(40)]
    folds = 0
    for turn in turns(dialect, results, limit=3_000, rules=CitingRules(threshold=300)):
        offered = [*inline(turn.body), *tool_names(turn.body, dialect)]
        assert offered.count(NAME) == bool(refs_in(turn.body))
        folds += any(edit.action == "fold" for edit in turn.edits)
    assert folds
