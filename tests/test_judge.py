"""The judge's own parts: calls written as text, right answers, questions, the report's arithmetic.

None of these needs the model or its packages.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.judge.__main__ import in_rounds
from benchmarks.judge.conditions import HAS_READ, Rig, ask, question_messages
from benchmarks.judge.contents import SIZES, Content, all_contents, first_tokens
from benchmarks.judge.passages import passage_for
from benchmarks.judge.questions import SETS, JudgeQuestion, is_right, judge_questions
from benchmarks.judge.report import difference, mcnemar, report_lines, wilson
from benchmarks.judge.results import Result, append_result, load_results
from benchmarks.judge.server import AnswerFile, Model, model_request, serve
from benchmarks.judge.toolcalls import parse_reply

from tests.support.recorded import DATA

TOOLS = {"expand_ref", "read_document"}
CALL = {"name": "expand_ref", "arguments": {"ref": "ref:1", "find": "the “port”"}}
needs_data = pytest.mark.skipif(
    not (DATA / "tool_results").exists(),
    reason="recorded tool results are not on this machine; set HOLDFAST_DATA",
)


@pytest.mark.parametrize(
    "written",
    [
        "```json\n{}\n```",
        "```\n{}\n```",
        "<tool_call>\n{}\n</tool_call>",
        "{}",
        "[{}]",
        "<tool_call>\n{}",
        "```json\n{}",
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_call_is_recognised_however_it_is_written(written: str, indent: int | None) -> None:
    parsed = parse_reply(written.replace("{}", json.dumps(CALL, indent=indent)), TOOLS)
    assert [call["function"]["name"] for call in parsed.calls] == ["expand_ref"]
    assert json.loads(parsed.calls[0]["function"]["arguments"]) == CALL["arguments"]
    assert parsed.text == ""


def test_text_around_calls_stays() -> None:
    call = json.dumps(CALL)
    reply = f"I look it up.\n```json\n{call}\n```\nand\n<tool_call>{call}</tool_call> done"
    parsed = parse_reply(reply, TOOLS)
    assert len(parsed.calls) == 2
    assert parsed.calls[0]["id"] != parsed.calls[1]["id"]
    assert parsed.text.split() == ["I", "look", "it", "up.", "and", "done"]


@pytest.mark.parametrize(
    "reply",
    [
        '{"name": "Anna", "arguments": {}}',  # data: no such tool
        '{"name": "expand_ref"}',
        '{"name": "expand_ref", "arguments": "x"}',
        '```json\n{"port": 80}\n```',
        "{" * 5_000,
        '{"name": "expand_ref", "arguments": {"ref": "cut',
        "plain text",
    ],
)
def test_other_text_is_no_call(reply: str) -> None:
    assert parse_reply(reply, TOOLS) == (reply, [])


def test_parameters_count_as_arguments() -> None:
    parsed = parse_reply('{"name": "expand_ref", "parameters": {"ref": "a"}}', TOOLS)
    assert parsed.calls[0]["function"]["arguments"] == '{"ref": "a"}'


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        ("It is `8080`.", "8080", True),
        ("18080", "8080", False),
        ("the  Military\naptitude test", "military aptitude test", True),
        ("May 7, 2023", "7 May 2023", True),
        ("on the 7th of May 2023", "7 May 2023", True),
        ("8 May 2023", "7 May 2023", False),
        ("7 May 2022", "7 May 2023", False),
        ("", "x", False),
        ("a.b", "a.b", True),
        ("axb", "a.b", False),
    ],
)
def test_an_answer_is_right_if_its_exact_text_is_there(
    reply: str, answer: str, right: bool
) -> None:
    assert is_right(reply, answer) is right


@pytest.fixture(scope="module")
def both_sets() -> dict[str, list[JudgeQuestion]]:
    return {name: judge_questions(name) for name in SETS}


@needs_data
@pytest.mark.slow
def test_the_sets_are_large_enough_and_share_nothing(
    both_sets: dict[str, list[JudgeQuestion]],
) -> None:
    tuning, final = both_sets["tuning"], both_sets["final"]
    for asked, tool_results, talk in ((tuning, 40, 10), (final, 120, 40)):
        assert sum(question.content is not None for question in asked) >= tool_results
        assert sum(question.about == "talk" for question in asked) >= talk
        assert any(question.about == "late" for question in asked)
        assert len({question.id for question in asked}) == len(asked)
    for name in ("id", "text"):
        ours = {getattr(q, name) for q in tuning if name == "id" or q.content is None}
        assert not ours & {getattr(question, name) for question in final}
    sources = [
        {question.content.source for question in asked if question.content}
        for asked in (tuning, final)
    ]
    assert not sources[0] & sources[1]


@needs_data
@pytest.mark.slow
def test_questions_are_the_same_every_time(both_sets: dict[str, list[JudgeQuestion]]) -> None:
    all_contents.cache_clear()
    assert judge_questions("tuning") == both_sets["tuning"]


@needs_data
@pytest.mark.slow
def test_each_answer_is_in_its_content_and_not_in_the_question(
    both_sets: dict[str, list[JudgeQuestion]],
) -> None:
    for question in both_sets["tuning"] + both_sets["final"]:
        assert question.answer.casefold() not in question.text.casefold()
        if question.content is not None:
            low, high = SIZES[question.content.size]
            assert low <= question.content.tokens <= high
            assert question.answer in " ".join(question.content.text.split())
            assert is_right(passage_for(question), question.answer), question
    sizes = [question.content.size for question in both_sets["final"] if question.content]
    assert sizes.count("large") >= len(sizes) / 5


def test_first_tokens_is_the_longest_start_that_fits() -> None:
    text = "one two three four five"
    assert first_tokens(text, 2) == "one two"
    assert first_tokens(text, 100) == text
    assert first_tokens(text, 0) == ""


def _question(about: str = "whole") -> JudgeQuestion:
    content = Content("c1", "s", "log", "small", 3, "port: 8080")
    return JudgeQuestion("q1", "tuning", about, "key", "Which port?", "8080", content)


def test_a_late_question_comes_after_the_content() -> None:
    whole = [m["role"] for m in question_messages(_question(), "shown")]
    late = question_messages(_question("late"), "shown")
    assert whole == ["system", "user", "assistant", "tool"]
    assert [m["role"] for m in late] == [*whole, "assistant", "user"]
    assert late[-1]["content"] == "Which port?"
    assert "Which port?" not in late[1]["content"]


def test_no_tool_is_shown_where_none_may_be_called() -> None:
    request: dict[str, Any] = {"messages": [], "tools": [{"x": 1}], "max_tokens": 7}
    assert model_request(request)["tools"] == [{"x": 1}]
    shown = model_request(request | {"tool_choice": "none", "temperature": 1})
    assert "tools" not in shown
    assert (shown["temperature"], shown["max_tokens"]) == (0, 7)


def test_a_known_request_is_answered_without_the_model(tmp_path: Path) -> None:
    answers = AnswerFile(tmp_path / "replies.sqlite")
    model = Model("http://127.0.0.1:1", answers)  # nobody listens there
    asked: list[dict[str, Any]] = []

    def post(body: dict[str, Any]) -> dict[str, Any]:
        asked.append(body)
        call = {"name": "read_document", "arguments": {"name": "a"}}
        message = {"content": f"```json\n{json.dumps(call)}\n```"}
        usage = {"prompt_tokens": 11, "completion_tokens": 5}
        return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}

    model._post = post  # type: ignore[method-assign]
    with serve(model) as url:
        rig = Rig(model, url, url)
        first = ask(rig, url, question_messages(_question(), "shown"))
        second = ask(rig, url, question_messages(_question(), "shown"))
        model.scripted = HAS_READ
        third = ask(rig, url, question_messages(_question(), "shown"))
    answers.close()
    assert len(asked) == 1
    assert first.is_client_call
    assert (first.text, second.text, third.text) == ("", "", HAS_READ)
    assert first.calls == second.calls
    assert first.calls[0].prompt_tokens == 11


def test_wilson_and_mcnemar_match_published_values() -> None:
    low, high = wilson(21, 38)
    assert (round(low, 3), round(high, 3)) == (0.397, 0.699)
    assert wilson(0, 0) == (0.0, 1.0)
    assert round(mcnemar(1, 8), 5) == 0.03906  # 2 * (1 + 9) / 2**9
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(3, 3) == 1.0


def test_a_difference_is_zero_where_nothing_differs() -> None:
    assert difference([(True, True), (False, False)]) == (0.0, 0.0, 0.0)
    mean, low, high = difference([(True, False)] * 5 + [(True, True)] * 5)
    assert mean == 0.5
    assert low < 0.5 < high


def _result(condition: str, question: int, right: bool, **fields: Any) -> Result:
    chosen = {
        "prompt_tokens": 1_000,
        "completion_tokens": 10,
        "calls": 1,
        "openings": 0,
        "valid_openings": 0,
        "empty": False,
    } | fields
    return Result(
        model="m",
        commit="c",
        data="d",
        set_name="tuning",
        question=str(question),
        condition=condition,
        type="key",
        size="small",
        answer="a",
        right=right,
        seconds=1.0,
        canned=False,
        client_call=False,
        reply="",
        **chosen,
    )


def test_the_report_of_a_known_file(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    for number in range(10):
        append_result(path, _result("full", number, number < 5))
        opened = {"calls": 2, "openings": 1, "valid_openings": number % 2, "empty": number == 9}
        append_result(path, _result("proxy", number, number < 7, prompt_tokens=400, **opened))
        append_result(path, _result("late", number, number < 4))
        append_result(path, _result("late-hand", number, number < 5))
    append_result(path, _result("full", 0, right=True))  # a repeated key replaces the first
    with path.open("ab") as torn:
        torn.write(b'{"torn')
    results = load_results(path)
    assert len(results) == 40
    layouts = {"full": "whole", "proxy": "whole", "late": "late", "late-hand": "late"}
    lines = list(report_lines(results, layouts))
    proxy = next(line for line in lines if line.startswith("| proxy |"))
    cells = [cell.strip() for cell in proxy.strip("|").split("|")]
    assert cells[1] == "7 / 10"
    assert cells[2] == "0.70 (0.40-0.89)"
    assert cells[3:5] == ["400", "0.40"]
    assert cells[6:9] == ["2.00 / 2", "5 / 10", "1 / 0 / 0"]
    pair = next(line for line in lines if line.startswith("| proxy - full |"))
    assert "| 10 | 2 | 0 | +0.200" in pair
    assert lines[-1] == "late: 0.80 of what the passage put in by hand reaches."


def test_a_limit_takes_the_first_question_of_each_content() -> None:
    one, other = (Content(name, "file", "log", "small", 900, "text") for name in "ab")
    asked = [
        JudgeQuestion(f"{content.id}{number}", "tuning", "whole", "line", "?", "answer", content)
        for content in (one, other)
        for number in range(3)
    ]
    assert [question.id for question in in_rounds(asked)] == ["a0", "b0", "a1", "b1", "a2", "b2"]
