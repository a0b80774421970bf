"""Repeated lines are not sent again: a result points to them, and nothing is hidden.

Pointers are parsed here independently: shown and repeated lines make up the result byte for byte,
and repeated lines are in the earlier requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.cite import CitingRules, count
from holdfast.expand import ExpandOptions, expand
from holdfast.fitting import FitOptions, Fitted, fit, fit_request
from holdfast.fitting.options import OfferExpand
from holdfast.fitting.restore import names_behind
from tests.engine.test_rebuild import follow, turns_of
from tests.fitting.test_citing import DIALECTS, in_dialect
from tests.support.steps import steps

RULES = CitingRules()
MODELS = {"anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-pro"}
FILE = [f"    value_{n} = compute(value_{n - 1}, {n * 7919 % 1000})" for n in range(120)]
EDITED = [*FILE[:60], "    value_60 = None  # was edited", *FILE[61:]]
MARK = re.compile(
    r"\[… (lines?|characters) (\d+)(?:-(\d+))?: same as in the result above of (.*) …\]"
)


def agent(*results: str, tool: str = "bash", command: str = "cat part_{}.py") -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Mend the file."}]
    for n, result in enumerate(results):
        arguments = json.dumps({"command": command.format(n)})
        call = {"id": f"call_{n}", "type": "function",
                "function": {"name": tool, "arguments": arguments}}  # fmt: skip
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{n}", "content": result})
    declared = {"type": "function", "function": {"name": tool, "parameters": {"type": "object"}}}
    return {"model": "gpt-5", "messages": messages, "tools": [declared]}


def fitted_in(
    dialect: str, body: dict[str, Any], *, offer: OfferExpand = "always", **rules: Any
) -> Fitted:
    model = MODELS.get(dialect, "gpt-5")
    rewritten = in_dialect({**body, "model": model}, dialect)
    options = FitOptions(
        dialect=dialect,
        model=model,
        rules=CitingRules(**rules),
        cites=True,
        opens=True,
        offer_expand=offer,
    )
    return fit_request(rewritten, options)


def sent_results(fitted: Fitted) -> list[str]:
    conversation = fitted.state.sent
    return [result.text for message in conversation.messages for result in message.results]


def said(text: str) -> str:
    """Return the text of a result that Gemini wraps in a value."""
    if text.startswith('{"'):
        [text] = json.loads(text).values()
    return text


def repeats_of(fitted: Fitted) -> list[str]:
    return [edit.ref_id for edit in fitted.edits if edit.action == "repeat"]


def parts_of(pointer: str, original: str) -> tuple[list[str], list[str]]:
    """Return the shown and the repeated lines of a pointer, which make up the original."""
    lines = pointer.split("\n")
    assert lines[0].startswith("[Stored as ref:")
    shown, above = [], []
    rebuilt = ""
    starts = [0, *(m.end() for m in re.finditer("\n", original))]
    n = 1
    while n < len(lines):
        if lines[n].startswith("[Read more: "):
            assert n == len(lines) - 1
            break
        mark = MARK.fullmatch(lines[n])
        if mark:
            first, last = int(mark[2]), int(mark[3] or mark[2])
            if mark[1] != "characters":
                stop = starts[last] if last < len(starts) else len(original)
                part = original[starts[first - 1] : stop]
            else:
                part = original[first:last]
            above.append(part)
            n += 1
        else:
            assert set(lines[n]) == {"`"}, "nothing stands free but lines of ours"
            end = lines.index(lines[n], n + 1)
            part = "\n".join(lines[n + 1 : end])
            part += "\n" if original.startswith(part + "\n", len(rebuilt)) else ""
            shown.append(part)
            n = end + 1
        rebuilt += part
    assert rebuilt == original
    return shown, above


# --- what is done --------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_file_read_again_shows_what_changed_and_points_to_the_rest(dialect: str) -> None:
    fitted = fitted_in(dialect, agent("\n".join(FILE), "\n".join(EDITED)))
    [ref] = repeats_of(fitted)
    [content] = fitted.contents
    first, second = sent_results(fitted)
    assert "value_60 = None" in second
    assert "value_30 =" not in second
    assert "cat part_0.py" in second, "it says where"
    assert len(second) < len(first) / 4
    assert content.ref_id == ref
    assert said(content.data.decode()) == "\n".join(EDITED)
    assert holdfast.validate(fitted.body, dialect) == []
    assert fitted.tokens == holdfast.count(fitted.body, dialect=dialect).tokens


@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_several_readings_of_a_file_it_says_which(dialect: str) -> None:
    """After an edit is undone, "shown above" alone would mean the reading with the edit in it."""
    whole, edited = "\n".join(FILE), "\n".join(EDITED)
    fitted = fitted_in(dialect, agent(whole, edited, "done", whole, command="cat part.py"))
    pointers = [said(result) for result in sent_results(fitted)]
    assert {mark[3] for mark in MARK.findall(pointers[1])} == {"bash: cat part.py"}
    assert {mark[3] for mark in MARK.findall(pointers[3])} == {
        "bash: cat part.py, 2 times before the last"
    }


def test_all_that_is_pointed_to_opens_to_the_byte() -> None:
    fitted = fitted_in("openai-chat", agent("\n".join(FILE), "\n".join(EDITED)))
    pointer = sent_results(fitted)[1]
    [content] = fitted.contents
    shown, above = parts_of(pointer, "\n".join(EDITED))
    assert len(above) == 2
    assert all(part.rstrip("\n") in "\n".join(FILE) for part in above)
    assert shown == ["\n".join([EDITED[59], EDITED[60], EDITED[61]]) + "\n"]
    way = re.search(r'"lines (\d+-\d+)"', pointer)
    assert way
    options = ExpandOptions.parse({"lines": way[1], "max_tokens": 8_000})
    page = expand(content.ref_id, content.data, content.kind, options, count=count)
    assert above[0] in page.text


def test_a_result_that_stands_above_whole_is_one_line_that_says_so() -> None:
    fitted = fitted_in("openai-chat", agent("\n".join(FILE), "\n".join(FILE)))
    pointer = sent_results(fitted)[1]
    assert parts_of(pointer, "\n".join(FILE)) == ([], ["\n".join(FILE)])
    assert count(pointer) < 120


def test_who_asks_a_third_time_gets_it_whole() -> None:
    text = "\n".join(FILE)
    fitted = fitted_in("openai-chat", agent(text, text, text, text))
    assert [result == text for result in sent_results(fitted)] == [True, False, True, True]


def test_a_result_too_long_to_stay_is_shown_where_most_of_it_stands_above() -> None:
    long = [f"    row_{n} = compute(row_{n - 1}, {n * 7919 % 1000})" for n in range(280)]
    pieces = ["\n".join(long[:140]), "\n".join(long[140:])]
    together = "\n".join([*long, "    last = None"])
    rules: dict[str, Any] = {"tokens": 3_500}
    alone = fitted_in("openai-chat", agent(together), **rules)
    assert [edit.action for edit in alone.edits if edit.start] == ["cite"]
    behind = fitted_in("openai-chat", agent(*pieces, together), **rules)
    assert [edit.action for edit in behind.edits if edit.start] == ["repeat"]
    assert "last = None" in sent_results(behind)[2]


def test_what_was_only_cited_above_is_not_pointed_to() -> None:
    text = "\n".join(FILE * 4)
    fitted = fitted_in("openai-chat", agent(text, "\n".join(FILE)), tokens=2_000)
    assert [edit.action for edit in fitted.edits if edit.start] == ["cite"]
    assert sent_results(fitted)[1] == "\n".join(FILE)


def test_what_json_has_in_one_line_is_not_what_has_lines() -> None:
    tab = [f"    value_{n} = split(words, '\\t')" for n in range(120)]
    plain = "\n".join(tab)
    inside = json.dumps({"output": plain.replace("\\t", "\t")})
    assert tab[60] in inside, "the same signs, of which two are a tab there"
    for results in ([inside, plain], [plain, inside]):
        assert sent_results(fitted_in("openai-chat", agent(*results))) == results
    again = sent_results(fitted_in("openai-chat", agent(plain, inside, inside, plain)))
    assert again[:2] == [plain, inside]
    assert "of bash: cat part_1.py …]" in again[2]
    assert "of bash: cat part_0.py …]" in again[3]


def test_of_calls_without_ids_each_is_named_by_its_own_argument() -> None:
    paths = ["first.py", "second.py", "third.py"]
    texts = ["\n".join(f"{path} {line}" for line in FILE) for path in paths]
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "Mend the files."}]}]
    for asked in (paths, ["again.py"]):
        calls = [{"functionCall": {"name": "read", "args": {"path": path}}} for path in asked]
        contents.append({"role": "model", "parts": calls})
        said = texts if asked is paths else [texts[1]]
        answers = [{"functionResponse": {"name": "read", "response": {"output": text}}}
                   for text in said]  # fmt: skip
        contents.append({"role": "user", "parts": answers})
    tool = {"functionDeclarations": [{"name": "read", "parameters": {"type": "object"}}]}
    body = {"contents": contents, "tools": [tool]}
    fitted = fit(json.dumps(body), dialect="gemini", model=MODELS["gemini"], citing=RULES)
    assert "same as in the result above of read: second.py …]" in sent_results(fitted)[3]


@pytest.mark.parametrize(
    "rules",
    [
        {"repeats": False},
        {"policy": "never"},
        {"tools": (("bash", "never"),)},
        {"tools": (("b*", 4_000),)},
        {"threshold": 100_000},
    ],
    ids=str,
)
def test_nothing_is_pointed_to_where_a_rule_says_otherwise(rules: dict[str, Any]) -> None:
    results = ["\n".join(FILE), "\n".join(EDITED)]
    assert sent_results(fitted_in("openai-chat", agent(*results), **rules)) == results


def test_what_may_not_be_stored_is_sent_whole() -> None:
    secret = "AWS_SECRET_ACCESS_KEY = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'"
    text = "\n".join([*FILE, "AKIAIOSFODNN7EXAMPLE", secret])
    fitted = fitted_in("openai-chat", agent(text, text), privacy="refuse")
    assert sent_results(fitted) == [text, text]
    assert repeats_of(fitted_in("openai-chat", agent(text, text)))


def test_an_opened_page_is_never_closed_again() -> None:
    page = {"role": "tool", "tool_call_id": "call_9", "content": "\n".join(FILE)}
    cited = fitted_in("openai-chat", agent("\n".join(FILE * 20)), policy="always")
    [content] = cited.contents
    call = {"id": "call_9", "type": "function",
            "function": {"name": "expand_ref",
                         "arguments": json.dumps({"ref_id": content.ref_id})}}  # fmt: skip
    opened = agent("\n".join(FILE * 20), "\n".join(FILE))
    opened["messages"] += [{"role": "assistant", "content": None, "tool_calls": [call]}, page]
    fitted = fitted_in("openai-chat", opened, tokens=3_000)
    assert [edit.action for edit in fitted.edits if edit.start] == ["cite"]
    assert sent_results(fitted)[2] == "\n".join(FILE)


# --- it is stable, rebuilt, and stays true -------------------------------------------------------


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_turn_by_turn_the_same_goes_out_as_at_once_and_all_is_rebuilt(
    dialect: str, restarts: bool
) -> None:
    results = ["\n".join(FILE), "\n".join(EDITED), "ok", "\n".join(FILE[20:90]), "\n".join(EDITED)]
    model = MODELS.get(dialect, "gpt-5")
    whole = json.loads(in_dialect({**agent(*results), "model": model}, dialect))
    bodies = [json.dumps(body).encode() for body in turns_of(whole, dialect)]
    options = FitOptions(model=model, dialect=dialect, rules=RULES, cites=True, opens=True)
    steps = follow(bodies, dialect, options, restarts=restarts)
    assert len(steps) == len(bodies)
    at_once = fit(bodies[-1], dialect=dialect, model=model, citing=RULES)
    assert steps[-1].body == at_once.body
    assert sum(len(repeats_of(step)) for step in steps) == len(repeats_of(at_once)) == 2
    for before, now in pairwise(steps):
        older = [bytes(message.span) for message in before.state.sent.messages]
        assert [bytes(m.span) for m in now.state.sent.messages][: len(older)] == older


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("restarts", [False, True])
def test_when_what_is_pointed_to_gives_way_the_original_still_opens(
    dialect: str, restarts: bool
) -> None:
    files = [
        [f"    part_{k}_{n} = compute({n * 7919 % 1000})" for n in range(90)] for k in range(12)
    ]
    results = [text for file in files for text in ("\n".join(file), "\n".join([*file, "# end"]))]
    model = MODELS.get(dialect, "gpt-5")
    whole = json.loads(in_dialect({**agent(*results), "model": model}, dialect))
    bodies = [json.dumps(body).encode() for body in turns_of(whole, dialect)]
    rules = CitingRules(share=0.5)
    options = FitOptions(
        model=model, dialect=dialect, limit=12_000, rules=rules, cites=True, opens=True
    )
    steps = follow(bodies, dialect, options, restarts=restarts)
    assert len(steps) == len(bodies)
    assert all(step.tokens <= 12_000 for step in steps)
    actions = {edit.action for step in steps for edit in step.edits}
    assert actions & {"cite", "fold"}
    assert "repeat" in actions
    stored = {content.ref_id for step in steps for content in step.contents}
    shown = {
        ref for step in steps for ref in re.findall(r"ref:\w+:[0-9a-f]{16}", step.body.decode())
    }
    assert shown <= stored


@pytest.mark.parametrize("dialect", DIALECTS)
def test_when_the_client_clears_what_is_pointed_to_the_result_comes_whole(dialect: str) -> None:
    model = MODELS.get(dialect, "gpt-5")
    options = FitOptions(model=model, dialect=dialect, rules=RULES, cites=True, opens=True)
    results = ["\n".join(FILE), "\n".join(EDITED)]
    first = fit_request(in_dialect({**agent(*results), "model": model}, dialect), options)
    assert len(repeats_of(first)) == 1
    cleared = in_dialect({**agent("[cleared]", *results[1:], "ok"), "model": model}, dialect)
    second = fit_request(cleared, options, state=first.state)
    assert said(sent_results(second)[1]) == results[1]


@pytest.mark.parametrize(
    ("dialect", "edits"),
    [
        ("anthropic", {"edits": [{"type": "clear_tool_uses_20250919"}]}),
        ("anthropic", {"edits": [{"type": "compact_20260112"}]}),
        ("openai-responses", [{"type": "compaction", "compact_threshold": 100_000}]),
    ],
)
def test_where_the_provider_may_clear_results_each_is_sent_whole(
    dialect: str, edits: object
) -> None:
    model = MODELS.get(dialect, "gpt-5")
    results = ["\n".join(FILE), "\n".join(EDITED)]
    body = json.loads(in_dialect({**agent(*results), "model": model}, dialect))
    body["context_management"] = edits
    fitted = fit(body, dialect=dialect, model=model, citing=RULES)
    assert sent_results(fitted) == results


def test_someone_may_have_it_whole() -> None:
    body = in_dialect(agent("\n".join(FILE), "\n".join(EDITED)), "openai-chat")
    options = FitOptions(model="gpt-5", dialect="openai-chat", rules=RULES, cites=True, opens=True)
    first = fit_request(body, options)
    [ref] = repeats_of(first)
    names = frozenset(names_behind(first.state, ref))
    whole = FitOptions(
        model="gpt-5", dialect="openai-chat", rules=RULES, cites=True, opens=True, whole=names
    )
    again = fit_request(body, whole, state=first.state)
    assert sent_results(again)[1] == "\n".join(EDITED)


# --- whatever the results are --------------------------------------------------------------------

LINES = st.sampled_from(
    [
        *FILE[:40],
        "",
        "}",
        "```",
        "````",
        "[… lines 1-90: same as in the result above of bash: cat part_0.py …]",
        "[Stored as ref:text:0123456789abcdef; 3 lines, about 9 tokens; excerpts]",
        '[Read more: expand_ref("ref:text:0123456789abcdef")]',
        "ends with a return\r",
        "one\u2028two",
        "ünïcödé 🎈 line that is long enough to be told from others",
    ]
)


@st.composite
def conversations(draw: st.DrawFn) -> list[str]:
    """Draw results that derive from one another, like files that are read and edited."""
    pool: list[list[str]] = [[*FILE]]
    for _ in range(draw(st.integers(1, 5))):
        base = draw(st.sampled_from(pool))
        start = draw(st.integers(0, max(0, len(base) - 1)))
        stop = draw(st.integers(start, len(base)))
        middle = draw(st.lists(LINES, max_size=6))
        other = draw(st.sampled_from(pool))
        pool.append([*base[:start], *middle, *base[stop:], *draw(st.sampled_from([[], other]))])
    end = draw(st.sampled_from(["", "\n", "\n\n"]))
    return ["\n".join(lines) + end for lines in pool]


@settings(max_examples=150, deadline=None)
@given(conversations())
@example(["\n".join(FILE), "\n".join(FILE) + "\n"])
@example(["\n".join(FILE), "```\n" + "\n".join(FILE) + "\n```"])
def test_what_is_shown_and_what_stands_above_make_up_the_result(results: list[str]) -> None:
    fitted = fitted_in("openai-chat", agent(*results))
    sent = sent_results(fitted)
    refs = repeats_of(fitted)
    for n, (text, original) in enumerate(zip(sent, results, strict=True)):
        if text == original:
            continue
        assert n > 0
        if not any(text.startswith(f"[{ref}") for ref in refs):
            continue  # cited: it was too long
        _, above = parts_of(text, original)
        assert above
        for part in above:
            run = part[:-1] if part.endswith("\n") else part
            assert any(f"\n{run}\n" in f"\n{earlier}\n" for earlier in sent[:n])
        assert count(text) < count(original)
    body = in_dialect(agent(*results), "openai-chat")
    options = FitOptions(model="gpt-5", dialect="openai-chat", rules=RULES, cites=True, opens=True)
    follow([body], "openai-chat", options)


def test_a_turn_with_many_calls_looks_each_of_them_up_once() -> None:
    """A thousand results of one turn took 70 seconds: the calls were looked up for each pair."""

    def work(number: int) -> Callable[[], object]:
        body = agent(*("\n".join([f"part {n}", *FILE]) for n in range(number)))
        asked, *others = body["messages"]
        calls = [call for message in others[::2] for call in message["tool_calls"]]
        turn = {"role": "assistant", "content": None, "tool_calls": calls}
        parallel = {**body, "messages": [asked, turn, *others[1::2]]}
        return lambda: fitted_in("openai-chat", parallel)

    few, many = steps(work(40)), steps(work(160))
    assert many < 8 * few  # 64 times as many pairs of pairs, 16 times as many pairs
