"""When a result is cited: decided by its kind, its cost and the room, never at random.

The policy is pure, so its guarantees are properties: the same input gives the same decision, more
pressure never brings a result back, and rules are obeyed.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.cite import CitingRules
from holdfast.fitting import FitState, Fitted
from holdfast.fitting.context_pressure import rates_of
from holdfast.fitting.policy import Arrival, Pressure, decide
from holdfast.fitting.uses import use_of

AUTO = CitingRules()
WIDE = Pressure(200_000)
KINDS = {
    "code": "def total(rows):\n    return sum(row.price for row in rows)\n\n",
    "rows": '{"id": 7, "name": "Fairchild", "price": 12.50, "stock": 4},\n',
    "log": "2026-03-01 12:00:01 INFO worker 3: batch of 120 rows was stored\n",
    "text": "The committee met on Tuesday and agreed to go on as before.\n",
}
TOOLS = ("", "Read", "bash", "execute_sql", "web_fetch", "mcp__notes__list_pages")


def of_tokens(tokens: int, kind: str = "text") -> str:
    line = KINDS[kind]
    return line * (1 + tokens * 4 // len(line))


arrivals = st.builds(
    lambda kind, tokens, tool: (of_tokens(tokens, kind), tool),
    st.sampled_from(sorted(KINDS)),
    st.integers(1, 9_000),
    st.sampled_from(TOOLS),
)
windows = st.sampled_from([4_000, 16_000, 32_000, 128_000, 200_000, 1_000_000])
pressures = st.builds(
    lambda window, fill, read, write, own: Pressure(
        window, int(window * fill), read, write, own_window=own
    ),
    windows,
    st.floats(0, 1.2),
    st.floats(0.02, 1.0),
    st.floats(1.0, 2.0),
    st.booleans(),
)


def action(result: tuple[str, str], pressure: Pressure, rules: CitingRules = AUTO) -> str:
    text, tool = result
    return decide(Arrival(text, tool=tool), pressure, rules).action


# --- what it promises ----------------------------------------------------------------------------


@given(arrivals, pressures)
def test_the_same_result_is_decided_the_same(result: tuple[str, str], pressure: Pressure) -> None:
    text, tool = result
    first, second = (decide(Arrival(text, tool=tool), pressure, AUTO) for _ in range(2))
    assert first == second
    assert first.action == "whole" or first.reason


@given(arrivals, pressures, st.floats(0.1, 1.0))
def test_a_smaller_window_never_brings_a_result_back(
    result: tuple[str, str], pressure: Pressure, of_window: float
) -> None:
    narrower = pressure._replace(window=max(1, int(pressure.window * of_window)))
    if action(result, pressure) == "cite":
        assert action(result, narrower) == "cite"


@given(arrivals, pressures, st.floats(0, 0.5))
def test_a_fuller_window_never_makes_room_for_a_result(
    result: tuple[str, str], pressure: Pressure, more: float
) -> None:
    """If an opening costs nothing; otherwise a longer prefix makes it dearer."""
    free = pressure._replace(read=0.0)
    fuller = free._replace(before=free.before + int(more * free.window))
    if action(result, free) == "cite":
        assert action(result, fuller) == "cite"


@given(st.sampled_from(sorted(KINDS)), st.sampled_from(TOOLS), pressures, st.data())
def test_of_two_results_of_a_kind_the_longer_one_is_not_the_one_that_stays(
    kind: str, tool: str, pressure: Pressure, data: st.DataObject
) -> None:
    shorter = data.draw(st.integers(1, 9_000))
    longer = data.draw(st.integers(shorter, 9_000))
    if action((of_tokens(shorter, kind), tool), pressure) == "cite":
        assert action((of_tokens(longer, kind), tool), pressure) == "cite"


@given(arrivals, pressures)
@example((of_tokens(8_000), ""), Pressure(1_000, 1_000))
def test_always_and_never_are_obeyed_whatever_the_pressure(
    result: tuple[str, str], pressure: Pressure
) -> None:
    always = action(result, pressure, CitingRules(policy="always"))
    assert (always == "cite") == (len(result[0]) > 1_000), "the seed's rule, over 1,000 characters"
    assert action(result, pressure, CitingRules(policy="never")) == "whole"


def test_a_short_result_stays_in_the_fullest_window() -> None:
    assert action(("x " * 500, ""), Pressure(10_000, 9_999)) == "whole"
    assert action(("word " * 201, ""), Pressure(10_000, 9_999)) == "cite"


def test_a_vendor_that_caches_nothing_has_results_cited_earlier() -> None:
    result = (of_tokens(3_000, "text"), "")
    assert action(result, WIDE._replace(read=0.1, write=1.25)) == "cite"
    result = (of_tokens(2_800, "text"), "")
    assert action(result, WIDE._replace(read=0.1, write=1.25)) == "whole"
    assert action(result, WIDE._replace(read=1.0, write=1.0)) == "cite"


@pytest.mark.parametrize(
    ("model", "dialect", "marked", "rates"),
    [
        ("claude-sonnet-4-5", "anthropic", True, (0.1, 1.25)),
        ("claude-sonnet-4-5", "anthropic", False, (1.0, 1.0)),
        ("gpt-4o", "openai-chat", True, (0.5, 1.0)),
        ("no-such-model", "openai-chat", True, (0.25, 1.0)),
        ("", "anthropic", True, (0.1, 1.25)),
    ],
)
def test_prices_are_those_of_the_model(
    model: str, dialect: str, marked: bool, rates: tuple[float, float]
) -> None:
    assert rates_of(model, dialect, marked=marked) == pytest.approx(rates)


def test_what_is_read_stays_longer_than_what_is_listed() -> None:
    text = of_tokens(3_300)
    assert action((text, "Read"), WIDE) == "whole"
    assert action((text, "execute_sql"), WIDE) == "cite"


# --- rules for tools -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "tokens", "expected"),
    [
        ("Read", 40_000, "whole"),
        ("mcp__notes__get", 300, "cite"),
        ("mcp__files__read", 300, "whole"),  # its own name wins over a pattern before it
        ("web_fetch", 1_900, "whole"),
        ("web_fetch", 2_900, "cite"),
        ("bash", 300, "whole"),
        ("fetch_2", 150, "cite"),
    ],
)
def test_a_rule_for_a_tool_wins_over_the_policy(tool: str, tokens: int, expected: str) -> None:
    rules = CitingRules(
        tools=(
            ("Read", "never"),
            ("mcp__*", "always"),
            ("mcp__files__read", "never"),
            ("web_fetch", 2_000),
            ("fetch_?", 100),
        )
    )
    assert action((of_tokens(tokens), tool), WIDE, rules) == expected


def test_a_pattern_is_no_regular_expression_and_takes_linear_time() -> None:
    rules = CitingRules(tools=(("a.b+", "always"), ("*a" * 60 + "b", "never")))
    assert action((of_tokens(400), "a.b+"), WIDE, rules) == "cite"
    assert action((of_tokens(400), "axbb"), WIDE, rules) == "whole"
    assert action((of_tokens(400), "a" * 5_000), WIDE, rules) == "whole"


def test_thresholds_in_tokens_and_as_a_share_of_the_window() -> None:
    text = of_tokens(1_500, "code")
    assert action((text, "Read"), WIDE) == "whole"
    assert action((text, "Read"), WIDE, CitingRules(tokens=1_000)) == "cite"
    assert action((text, "Read"), WIDE, CitingRules(share=0.005)) == "cite"
    full = WIDE._replace(window=20_000, before=14_000)
    assert action((text, "Read"), full) == "cite"
    assert action((text, "Read"), full, CitingRules(share=0.2)) == "whole"


def test_a_file_that_is_worked_on_stays_in_a_models_own_window_while_there_is_room() -> None:
    """A coding agent opened one six times that took more than a third of the room."""
    file = (of_tokens(17_000, "code"), "Read")
    busy = Pressure(167_744, 122_000, own_window=True)
    assert action(file, busy) == "whole"
    assert action(file, busy._replace(own_window=False)) == "cite"
    assert action(file, busy._replace(before=145_000)) == "cite"
    assert action(file, busy, CitingRules(share=0.035)) == "cite"
    assert action((of_tokens(17_000, "log"), "Read"), busy) == "cite"


# --- what a call is for --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "use"),
    [
        ("bash", {"command": "cd src && cat a.py"}, "read"),
        ("bash", {"command": "nl -ba a.py | sed -n '1,80p'"}, "read"),
        ("bash", '{"command": "FOO=1 timeout 60 python -m pytest -q"}', "test"),
        ("shell", {"command": ["bash", "-lc", "rg -n needle"]}, "search"),
        ("bash", {"command": "./tests/runtests.py timezones"}, "test"),
        ("bash", {"command": "cat > a.py <<'EOF'\nx\nEOF"}, "edit"),
        ("bash", {"command": "git --no-pager diff HEAD"}, "diff"),
        ("bash", {"command": "python3 reproduce.py"}, ""),
        ("bash", {"command": ""}, ""),
        ("bash", None, ""),
        ("Read", {"file_path": "/a"}, "read"),
        ("read_file", {}, "read"),
        ("get_file_contents", {}, "read"),
        ("list_issues", {}, "list"),
        ("execute_sql", {"query": "select 1"}, "rows"),
        ("WebFetch", {}, "page"),
        ("get_order_details", {}, ""),
    ],
)
def test_a_call_tells_what_its_result_is_for(tool: str, arguments: Any, use: str) -> None:
    assert use_of(tool, arguments) == use


@settings(max_examples=40)
@given(st.text(max_size=300), st.none() | st.text() | st.dictionaries(st.text(), st.text()))
def test_any_call_can_be_looked_at(tool: str, arguments: Any) -> None:
    assert isinstance(use_of(tool, arguments), str)
    assert isinstance(use_of("bash", {"command": tool}), str)


# --- in a conversation ---------------------------------------------------------------------------


def chat(*results: str, tool: str = "execute_sql") -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "How are the sales?"}]
    for n, result in enumerate(results):
        call = {"id": f"c{n}", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": result},
        ]
    return {"model": "gpt-5", "messages": messages}


def fitted(body: dict[str, Any], state: FitState | None = None, **how: Any) -> Fitted:
    return holdfast.fit(json.dumps(body).encode(), citing=AUTO, state=state, **how)


def shown(body: bytes) -> list[str]:
    return [m["content"] for m in json.loads(body)["messages"] if m["role"] == "tool"]


def test_the_record_says_why_a_result_was_cited() -> None:
    rows, crowd = of_tokens(4_000, "rows"), of_tokens(6_000, "rows")
    [edit] = [e for e in fitted(chat(rows), limit=200_000).edits if e.action == "cite"]
    assert "tokens, seldom needed again; shown: " in edit.why
    [edit] = [e for e in fitted(chat(crowd), limit=16_000).edits if e.action == "cite"]
    assert "% of the window; shown: " in edit.why


def test_what_is_a_little_too_long_is_shortened_and_what_is_much_too_long_is_cited() -> None:
    rules = CitingRules(tools=(("Read", 1_000),))
    for lines, what in ((95, "shortened a tool result"), (400, "cited a tool result")):
        code = "\n".join(f"def step_{n}(): return 'value {n}'" for n in range(lines))
        body = json.dumps(chat(code, tool="Read")).encode()
        [edit] = [e for e in holdfast.fit(body, citing=rules).edits if e.action == "cite"]
        assert edit.what == what
        assert edit.to_tokens <= 1_000
        assert "more than 1,000 tokens, as the rule for its tool says" in edit.why


def test_a_citation_has_more_room_in_a_larger_window() -> None:
    log = "\n".join(f"{n:05} INFO batch {n * 7919 % 10007} was stored" for n in range(2_000))
    tokens = []
    for limit in (16_000, 400_000):
        [edit] = [e for e in fitted(chat(log), limit=limit).edits if e.action == "cite"]
        tokens.append(edit.to_tokens)
    assert tokens[0] <= 400 < tokens[1]


def test_what_is_asked_for_again_comes_whole_once() -> None:
    rows = of_tokens(5_000, "rows")
    first, second, third = shown(fitted(chat(rows, rows, rows), limit=200_000).body)
    assert first.startswith("[Stored as ref:")
    assert second == rows, "the model wants it: hiding it again would cost a third call"
    assert third.startswith("[Stored as ref:"), "it stands whole above"


def test_what_is_asked_for_again_is_cited_where_there_is_no_room() -> None:
    rows = of_tokens(5_000, "rows")
    texts = shown(fitted(chat(rows, rows), limit=16_000).body)
    assert all(text.startswith("[Stored as ref:") for text in texts)


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from([40, 400, 900, 2_500])),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([24_000, 60_000, 200_000]),
)
def test_turn_by_turn_and_at_once_decide_the_same(
    results: list[tuple[str, int]], limit: int
) -> None:
    texts = [f"{n}\n{of_tokens(tokens, kind)}" for n, (kind, tokens) in enumerate(results)]
    state = None
    for n in range(1, len(texts) + 1):
        last = fitted(chat(*texts[:n]), state, limit=limit)
        if any(edit.action == "fold" for edit in last.edits):
            return  # from here on the prefix depends on the time of the fold
        state = last.state
    assert last.body == fitted(chat(*texts), limit=limit).body
