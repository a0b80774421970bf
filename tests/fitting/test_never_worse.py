"""With default settings nothing is added or hidden while there is room, and the prefix is kept.

A conversation without pressure is sent unchanged. The tool that opens refs is offered early only
if it is a hundredth of the request, and late only if the request still costs less than the
client's own would have.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cite import CitingRules, count
from holdfast.expand.tool import NAME
from holdfast.fitting import FitOptions, FitState, Fitted, fit_request
from holdfast.fitting.context_pressure import rates_of
from holdfast.wire.tools import INLINE_BETA
from tests.fitting.test_citing import DIALECTS, chat, in_dialect, log, refs_in, tool_names
from tests.fitting.test_tool_offers import parts

OPTIONS = FitOptions(cites=True, opens=True)
FILE = "\n".join(f"    value_{n} = compute(value_{n - 1}, {n * 7919 % 1000})" for n in range(120))
PROSE = "The harbour master keeps a list of all ships and of the hours at which they came in.\n"
JSON_ROWS = json.dumps(
    [{"id": n, "name": f"ship {n}", "tons": n * 7919 % 1000} for n in range(900)]
)


def fitted(
    body: bytes, dialect: str = "openai-chat", state: FitState | None = None, **changes: Any
) -> Fitted:
    return fit_request(
        body, msgspec.structs.replace(OPTIONS, dialect=dialect, **changes), state=state
    )


def agent(*results: str, tool: str = "get_ships", system: str = "") -> dict[str, Any]:
    """A conversation of an agent that called one tool after the other."""
    value = chat(*results)
    value["tools"][0]["function"]["name"] = tool
    for message in value["messages"]:
        for call in message.get("tool_calls") or ():
            call["function"] = {"name": tool, "arguments": "{}"}
    if system:
        value["messages"].insert(0, {"role": "system", "content": system})
    return value


# --- nothing is added ----------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_small_request_with_tools_goes_out_as_it_came(dialect: str) -> None:
    body = in_dialect(chat("short"), dialect)
    assert fitted(body, dialect).body == body


def test_a_fresh_result_of_921_tokens_is_not_cited_at_1210_of_8000() -> None:
    rows = log(84)
    value = agent(rows, system=PROSE * 60)
    body = json.dumps(value).encode()
    turn = fitted(body, limit=8_000)
    assert 900 < count(rows) < 940
    assert turn.untouched < 2_200
    assert rows in [r.text for m in turn.state.sent.messages for r in m.results]
    assert turn.tokens - turn.untouched <= 80


@settings(max_examples=60, deadline=None)
@given(
    results=st.lists(st.tuples(st.sampled_from(["log", "rows", "prose"]), st.integers(1, 60))),
    tool=st.sampled_from(["read_file", "execute_sql", "search", "get_ships", "bash"]),
    dialect=st.sampled_from(DIALECTS),
)
def test_conversations_without_pressure_go_out_byte_for_byte(
    results: list[tuple[str, int]], tool: str, dialect: str
) -> None:
    texts = {"log": lambda n: log(n, seed=n), "rows": lambda n: JSON_ROWS[: 40 * n],
             "prose": lambda n: "".join(f"{k} {PROSE}" for k in range(n))}  # fmt: skip
    # Each text is different: repeated lines would become pointers.
    made = [f"{n}{texts[kind](size)}" for n, (kind, size) in enumerate(dict(results).items())]
    state: FitState | None = None
    for n in range(len(made) + 1):
        body = in_dialect(agent(*made[:n], tool=tool), dialect)
        turn = fitted(body, dialect, state)
        assert turn.body == body
        state = turn.state


# --- the tool ------------------------------------------------------------------------------------


def test_an_agent_that_begins_with_8500_tokens_of_claude_does_not_pay_for_the_tool() -> None:
    """opencode on Anthropic took 8,713 tokens with Holdfast and 8,526 without."""
    value = json.loads(in_dialect(agent(system=PROSE * 390), "anthropic"))
    body = json.dumps({**value, "model": "claude-sonnet-4-5", "max_tokens": 100}).encode()
    turn = fitted(body, "anthropic", model="claude-sonnet-4-5")
    assert 8_000 < turn.untouched < 9_500
    assert turn.body == body


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_large_first_request_of_an_agent_gets_the_tool_for_a_hundredth_of_it(
    dialect: str,
) -> None:
    for lines, is_offered in ((100, False), (1_400, True)):
        body = in_dialect(agent(system=PROSE * lines), dialect)
        turn = fitted(body, dialect)
        assert (NAME in tool_names(turn.body, dialect)) is is_offered
        assert turn.tokens <= 1.01 * turn.untouched


def test_what_the_first_request_decided_holds_while_the_conversation_grows() -> None:
    """Neither a state nor the moment at which it is seen first changes the tools."""
    state: FitState | None = None
    for n in range(12):
        body = json.dumps(agent(*(log(60, seed=k) for k in range(n)), tool="read_file")).encode()
        turn = fitted(body, state=state)
        assert turn.body == body == fitted(body).body
        state = turn.state


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic"])
def test_a_late_tool_pays_for_the_prefix_in_the_very_request(dialect: str) -> None:
    steps = [log(40, seed=1), log(40, seed=2), JSON_ROWS]
    state: FitState | None = None
    before = 0
    for n in range(len(steps) + 1):
        turn = fitted(in_dialect(agent(*steps[:n]), dialect), dialect, state)
        if NAME in tool_names(turn.body, dialect):
            break
        state, before = turn.state, turn.untouched
    assert refs_in(turn.body), "the rows are cited"
    rates = rates_of("gpt-4o", dialect, marked=True)
    asked = rates.read * before + rates.write * (turn.untouched - before)
    assert rates.write * turn.tokens < asked, "nothing of it is read from the cache"


def test_a_tool_in_a_message_keeps_every_byte_that_went_out() -> None:
    """Where the API takes tools in messages, the prefix stays when the tool comes."""
    steps = [log(40, seed=1), log(40, seed=2), JSON_ROWS, log(30, seed=3)]
    state: FitState | None = None
    before: tuple[str, list[str]] | None = None
    offered = False
    for n in range(len(steps) + 1):
        value = json.loads(in_dialect(agent(*steps[:n]), "anthropic"))
        body = json.dumps({**value, "model": "claude-opus-4-8", "max_tokens": 100}).encode()
        turn = fitted(body, "anthropic", state, betas=frozenset({INLINE_BETA}))
        around, messages = parts(turn.body, "anthropic")
        if before is not None:
            assert around == before[0]
            assert messages[: len(before[1])] == before[1]
        state, before = turn.state, (around, messages)
        offered = offered or b"tool_addition" in turn.body
    assert offered


@settings(max_examples=40, deadline=None)
@given(
    results=st.lists(st.sampled_from([5, 40, 300, 900]), min_size=1, max_size=6),
    lines=st.sampled_from([0, 100, 1_400]),
    dialect=st.sampled_from(DIALECTS),
)
def test_without_a_fold_the_prefix_changes_only_where_that_costs_less(
    results: list[int], lines: int, dialect: str
) -> None:
    texts = [f"{n}{JSON_ROWS[: 50 * size]}" for n, size in enumerate(results)]
    state: FitState | None = None
    before: tuple[str, list[str], Fitted] | None = None
    for n in range(len(texts) + 1):
        body = in_dialect(agent(*texts[:n], system=PROSE * lines), dialect)
        turn = fitted(body, dialect, state)
        around, messages = parts(turn.body, dialect)
        if before is not None and (around, messages[: len(before[1])]) != before[:2]:
            rates = rates_of("gpt-4o", dialect, marked=True)
            cached = before[2].tokens
            asked = rates.read * cached + rates.write * (turn.untouched - cached)
            assert rates.write * turn.tokens < asked
        state, before = turn.state, (around, messages, turn)


# --- content that is worked on -------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["read_file", "run_tests", "git_diff", "edit_file"])
def test_what_an_agent_works_on_is_not_hidden_while_there_is_room(tool: str) -> None:
    source = "\n".join(f"def step_{n}(): return 'value {n * 7919 % 1000}'" for n in range(1_500))
    body = json.dumps(agent(source, tool=tool, system=PROSE * 1_400)).encode()
    turn = fitted(body, limit=200_000)
    assert source in [r.text for m in turn.state.sent.messages for r in m.results]
    full = json.dumps(agent(*(log(900, seed=k) for k in range(16)), source, tool=tool)).encode()
    cited = fitted(full, limit=200_000, high_water=1.0)
    assert refs_in(cited.body), "without room it is"


def test_a_file_of_data_is_searched_and_not_worked_on() -> None:
    """A long log that was read from a file is cited; code of the same length stays."""
    source = "\n".join(f"def step_{n}(): return 'value {n * 7919 % 1000}'" for n in range(700))
    rows = log(1_000)
    assert count(source) > 5_000 < count(rows)
    for text, is_cited in ((source, False), (rows, True)):
        turn = fitted(json.dumps(agent(text, tool="read_file")).encode(), limit=200_000)
        assert bool(refs_in(turn.body)) is is_cited


@pytest.mark.parametrize(
    "rules",
    [
        CitingRules(policy="always"),
        CitingRules(tokens=500),
        CitingRules(share=0.001),
        CitingRules(tools=(("read_file", "always"),)),
        CitingRules(tools=(("read_*", 500),)),
    ],
    ids=str,
)
def test_what_someone_chose_to_have_cited_is_cited(rules: CitingRules) -> None:
    turn = fitted(json.dumps(agent(log(90), tool="read_file")).encode(), rules=rules)
    assert refs_in(turn.body)
    assert NAME in tool_names(turn.body, "openai-chat")


# --- pointers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_lines_that_stand_above_are_pointed_to_without_a_tool(dialect: str) -> None:
    body = in_dialect(agent(FILE, FILE + "\n    last = None", tool="read_file"), dialect)
    turn = fitted(body, dialect)
    assert [edit.action for edit in turn.edits] == ["repeat"]
    assert not refs_in(turn.body), "there is no tool that could open one"
    assert tool_names(turn.body, dialect) == ["read_file"]
    assert turn.tokens < turn.untouched
    assert [content.ref_id for content in turn.contents] == [turn.edits[0].ref_id]


def test_no_pointer_takes_a_request_below_what_providers_cache() -> None:
    text = "".join(f"{k} {PROSE}" for k in range(24))
    for before, is_pointed in (("", False), (PROSE * 60, True)):
        turn = fitted(json.dumps(agent(text, text, system=before)).encode())
        assert [edit.action for edit in turn.edits] == ["repeat"] * is_pointed


def test_before_a_fold_such_a_result_is_put_back() -> None:
    """A pointer without a ref can be read only while the lines that it points to are in view."""
    texts = [FILE, FILE + "\n    last = None", *(log(90, seed=k) for k in range(14))]
    state: FitState | None = None
    hidden = False
    for n in range(1, len(texts) + 1):
        body = json.dumps(agent(*texts[:n], tool="read_file")).encode()
        turn = fitted(body, state=state, limit=9_000)
        hidden = hidden or any(edit.action in ("cite", "fold") for edit in turn.edits)
        pointers = [m for m in turn.state.sent.messages if b"as in the result above" in m.raw]
        in_view = any(FILE in r.text for m in turn.state.sent.messages for r in m.results)
        assert in_view or all(b"ref:" in message.raw for message in pointers)
        state = turn.state
    assert hidden
