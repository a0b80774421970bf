"""Requests in which the model can open no ref are shortened in place, and nothing is hidden."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import Holdfast
from holdfast.cite import CitingRules
from holdfast.errors import BudgetExceededError
from holdfast.expand.tool import NAME
from holdfast.fitting import FitOptions, FitState, Fitted, fit_request
from holdfast.store.refs import REF
from holdfast.trim.in_place import WHY
from holdfast.wire import Message, Text
from tests.fitting.test_citing import chat, in_dialect, log, tool_names
from tests.wire.bodies import DIALECTS, WRITERS, Call, Script, Turn

MODEL = "gpt-4o"
OPTIONS = FitOptions(model=MODEL, cites=True, opens=True, in_place=True)
QUESTION = "How many coins is the keeper of lighthouse 333 paid?"
ASKED = "Which port does the gateway listen on?"
ANSWER = "The gateway listens on port 8417."
CLAUSES = [f"Clause {n}. The keeper of lighthouse {n} is paid {n * 7} coins." for n in range(600)]
LEFT_OUT = re.compile(r"\[… [^\n]* left out[^\n]* …\]")


def fitted(body: object, dialect: str, limit: int, state: FitState | None = None) -> Fitted:
    options = msgspec.structs.replace(OPTIONS, dialect=dialect, limit=limit)
    return fit_request(body, options, state=state)


def turn(role: str, text: str, calls: tuple[Call, ...] = ()) -> Turn:
    return Turn(role, text, list(calls), thinking=False, listed=False, extra={})


def written(dialect: str, *turns: Turn) -> dict[str, Any]:
    return WRITERS[dialect](Script("Be brief.", [], list(turns), {}))


def texts(body: object, dialect: str) -> list[str]:
    """The texts of all messages but system text."""
    messages = [m for m in holdfast.read(body, dialect).messages if m.role != "system"]
    return [block.text for m in messages for block in m.blocks if isinstance(block, Text)]


def tokens_of(body: object, dialect: str) -> int:
    return holdfast.count(body, dialect=dialect, model=MODEL).tokens


def files(*contents: str) -> str:
    """Return files as aider pastes: the closing fence follows a file without a last newline."""
    blocks = [f"src/part{n}.py\n```\n{content}```" for n, content in enumerate(contents)]
    return "I have added these files to the chat.\n\n" + "\n\n".join(blocks) + "\n"


def source_file(n: int, functions: int = 60) -> str:
    return "".join(
        f"def step_{n}_{k}(value):\n    return value * {k} + {n}\n\n" for k in range(functions)
    )


# --- what may be opened ---------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_chat_without_tools_gets_no_ref_and_no_tool(dialect: str) -> None:
    words = "The weather in the harbour was calm and the ferries went out on time. "
    talk = [t for n in range(40) for t in (turn("user", f"{n} {words}"), turn("assistant", words))]
    talk[11] = turn("assistant", ANSWER)
    body = written(dialect, *talk, turn("user", ASKED))
    result = fitted(body, dialect, 700)
    assert result.tokens <= 700
    assert holdfast.validate(result.body, dialect) == []
    shown = texts(result.body, dialect)
    assert shown[-1] == ASKED
    assert ANSWER in shown
    assert any(LEFT_OUT.fullmatch(text) for text in shown)
    assert REF.search(result.body.decode()) is None
    assert tool_names(result.body, dialect) == []
    assert {edit.why for edit in result.edits} == {WHY}


def test_files_in_an_earlier_message_are_shortened_for_the_question() -> None:
    content = files(*(source_file(n) for n in range(8)))
    messages = [
        {"role": "system", "content": "Act as an expert."},
        {"role": "user", "content": content},
        {"role": "assistant", "content": "Ok."},
        {"role": "user", "content": "What does step_5_41 in src/part5.py return?"},
    ]
    body = {"model": "gpt-4o", "messages": messages}
    limit = holdfast.count(body).tokens // 4
    result = fitted(body, "openai-chat", limit)
    assert limit * 0.8 < result.tokens <= limit
    shown = texts(result.body, "openai-chat")[0]
    assert shown.startswith("I have added these files to the chat.")
    assert "def step_5_41(value):\n    return value * 41 + 5\n" in shown
    for n in range(8):  # the kept lines of a file are below its name, between its fences
        assert f"src/part{n}.py\n```\n" in shown
    assert shown.count("```") == 16
    lines = content.splitlines()
    kept = [line for line in shown.splitlines() if not LEFT_OUT.fullmatch(line)]
    assert all(line in lines for line in kept)
    [edit] = result.edits
    assert edit.action == "shorten"
    [stored] = [one for one in result.contents if one.ref_id == edit.ref_id]
    assert stored.data.decode() == content


def test_the_line_in_the_place_of_what_is_gone_says_how_much() -> None:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": pasted()}]}
    result = fitted(body, "openai-chat", 3_000)
    [shown] = texts(result.body, "openai-chat")
    first, *others = LEFT_OUT.findall(shown)
    amounts = re.search(r"([\d,]+) lines of ([\d,]+) lines, about ([\d,]+) tokens", first)
    assert amounts is not None
    gone, total, tokens = (int(amount.replace(",", "")) for amount in amounts.groups())
    assert total == pasted().count("\n") + 1
    assert gone == total - len(shown.splitlines()) + 1 + len(others)
    before = holdfast.count(body).tokens
    assert tokens == pytest.approx(before - result.tokens, rel=0.01)  # cuts join other tokens


def pasted() -> str:
    return "You are reading a contract.\n\n" + "\n".join(CLAUSES) + f"\n\n{QUESTION}"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_document_and_the_question_in_one_message(dialect: str) -> None:
    body = written(dialect, turn("user", pasted()))
    result = fitted(body, dialect, 3_000)
    [shown] = texts(result.body, dialect)
    assert shown.startswith("You are reading a contract.")
    assert shown.endswith(QUESTION)
    assert CLAUSES[333] in shown
    assert result.tokens <= 3_000


def test_text_agents_are_shortened_for_their_task_and_see_the_newest_observation_whole() -> None:
    messages = [{"role": "user", "content": "New task:\nWhat is the code of step 17 in 0.log?"}]
    for n in range(12):
        lines = "\n".join(f"{k:04} step {n}-{k} done, code {n * 1000 + k}" for k in range(30))
        messages += [
            {
                "role": "assistant",
                "content": f'Thought: read.\n<code>\nread_log("{n}.log")\n</code>',
            },
            {"role": "user", "content": f"Observation:\n{lines}"},
        ]
    result = fitted({"model": "gpt-4o", "messages": messages}, "openai-chat", 1_500)
    shown = texts(result.body, "openai-chat")
    assert shown[0] == messages[0]["content"]
    assert shown[-1] == messages[-1]["content"]
    assert "0017 step 0-17 done, code 17" in "\n".join(shown)


def test_the_question_itself_makes_no_other_text_look_irrelevant() -> None:
    """As smolagents' CodeAgent sends it: the task names several files, and is the only question."""
    task = "The files 0.log to 9.log are here. Read them one by one, 0.log first. What is the code"
    messages = [{"role": "user", "content": f"New task:\n{task} of step 17 in 0.log?"}]
    state: FitState | None = None
    for n in range(10):
        steps = 400 if n == 9 else 20
        lines = "\n".join(f"{k:04} INFO step {n}-{k} done, code {n}x{k}" for k in range(steps))
        code = f"Thought: I go on.\n<code>\nprint(read_log('{n}.log'))\n</code>"
        messages += [
            {"role": "assistant", "content": code},
            {"role": "user", "content": f"Observation:\nExecution logs:\n{lines}"},
        ]
        body = {"model": "gpt-4o", "messages": messages}
        result = fitted(body, "openai-chat", 7_400, state)
        state = result.state
    assert result.edits
    assert "step 0-17 done, code 0x17\n" in "\n".join(texts(result.body, "openai-chat"))


def test_a_newest_observation_that_does_not_fit_is_refused() -> None:
    seen = "\n".join(f"{k:04} step {k} done" for k in range(900))
    messages = [
        {"role": "user", "content": "Read the log."},
        {"role": "assistant", "content": "<code>\nread_log()\n</code>"},
        {"role": "user", "content": f"Observation:\n{seen}"},
    ]
    with pytest.raises(BudgetExceededError, match="needs"):
        fitted({"model": "gpt-4o", "messages": messages}, "openai-chat", 2_000)


def test_a_first_message_larger_than_the_window_is_shortened_after_everything_else() -> None:
    """It stays in the history, so a request that was refused for it would be refused forever."""
    sentences = " ".join(CLAUSES)  # a single line, in which nothing shows where a document begins
    messages = [
        {"role": "user", "content": sentences},
        {"role": "assistant", "content": "I see. " * 40},
        {"role": "user", "content": QUESTION},
    ]
    body = {"model": "gpt-4o", "messages": messages}
    limit = holdfast.count(body).tokens // 4
    result = fitted(body, "openai-chat", limit)
    first, *_, last = texts(result.body, "openai-chat")
    assert last == QUESTION
    assert CLAUSES[333] in first
    assert limit * 0.8 < result.tokens <= limit
    assert not any("I see." in text for text in texts(result.body, "openai-chat"))


def test_a_history_of_user_messages_alone_keeps_only_the_last_whole() -> None:
    messages = [{"role": "user", "content": f"Note {n}. {'words ' * 200}"} for n in range(60)]
    result = fitted({"model": "gpt-4o", "messages": messages}, "openai-chat", 3_000)
    assert result.tokens <= 3_000
    assert texts(result.body, "openai-chat")[-4:] == [m["content"] for m in messages[-4:]]


def test_the_field_that_a_question_names_stays_in_a_pasted_answer_of_an_api() -> None:
    rows = [
        {"id": n, "name": f"host{n}", "tags": ["x" * 40] * 8, "city": f"c{n}"} for n in range(90)
    ]
    question = 'What is the `city` of the row whose `name` is "host71"?'
    content = f"{json.dumps(rows, indent=1)}\n\n{question}"
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": content}]}
    [shown] = texts(fitted(body, "openai-chat", 2_000).body, "openai-chat")
    assert '"city": "c71"' in shown


# --- with tools that cannot be called -------------------------------------------------------------

FORCED: dict[str, dict[str, Any]] = {
    "openai-chat": {"tool_choice": {"type": "function", "function": {"name": "read_log"}}},
    "openai-responses": {"tool_choice": {"type": "function", "name": "read_log"}},
    "anthropic": {"tool_choice": {"type": "tool", "name": "read_log"}},
    "gemini": {
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read_log"]}
        }
    },
}
FORBIDDEN: dict[str, dict[str, Any]] = {
    "openai-chat": {"tool_choice": "none"},
    "openai-responses": {"tool_choice": "none"},
    "anthropic": {"tool_choice": {"type": "none"}},
    "gemini": {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}},
}


@pytest.mark.parametrize("choices", [FORCED, FORBIDDEN], ids=["forced", "forbidden"])
@pytest.mark.parametrize("dialect", FORCED)
def test_where_the_client_chooses_the_tool_nothing_is_hidden(
    dialect: str, choices: dict[str, dict[str, Any]]
) -> None:
    results = [log(60, seed=n) for n in range(9)]
    value = json.loads(in_dialect(chat(*results), dialect))
    plain = fitted(json.dumps(value).encode(), dialect, 4_000)
    assert REF.search(plain.body.decode()), "else this test shows nothing"
    chosen = fitted(json.dumps({**value, **choices[dialect]}).encode(), dialect, 4_000)
    assert chosen.tokens <= 4_000
    assert holdfast.validate(chosen.body, dialect) == []
    assert REF.search(chosen.body.decode()) is None


def test_refs_that_stand_there_already_stay_while_a_tool_is_forced() -> None:
    value = chat(*(log(60, seed=n) for n in range(9)))
    before = fitted(json.dumps(value).encode(), "openai-chat", 4_000)
    forced = json.dumps({**value, **FORCED["openai-chat"]}).encode()
    after = fitted(forced, "openai-chat", 4_000, before.state)
    assert json.loads(after.body)["messages"] == json.loads(before.body)["messages"]


def test_a_history_with_calls_is_folded_even_if_this_request_offers_no_tools() -> None:
    value = chat(*(log(60, seed=n) for n in range(9)))
    del value["tools"]
    result = fitted(json.dumps(value).encode(), "openai-chat", 3_000)
    assert NAME in tool_names(result.body, "openai-chat")


def test_beside_hosted_tools_alone_nothing_is_hidden() -> None:
    """Gemini refuses functions beside its own tools."""
    words = "The ferries went out on time and the harbour was calm. " * 8
    talk = [t for _ in range(20) for t in (turn("user", words), turn("assistant", words))]
    value = {**written("gemini", *talk, turn("user", ASKED)), "tools": [{"googleSearch": {}}]}
    result = fitted(value, "gemini", 1_500)
    assert json.loads(result.body)["tools"] == [{"googleSearch": {}}]
    assert REF.search(result.body.decode()) is None


# --- what stays, and for how long -----------------------------------------------------------------


def test_what_may_not_be_stored_stays_and_the_rest_is_left_out() -> None:
    secret = "AKIA" + "QWERTYUIOPASDFGH"
    words = "The ferries went out on time and the harbour was calm. " * 6
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": f"{n} {words}"} for n in range(20)
    ]
    messages[5]["content"] = f"The key is {secret}. {words}"
    body = {"model": "gpt-4o", "messages": [*messages, {"role": "user", "content": ASKED}]}
    options = msgspec.structs.replace(
        OPTIONS, limit=holdfast.count(body).tokens // 2, rules=CitingRules(privacy="refuse")
    )
    result = fit_request(body, options)
    assert messages[5] in json.loads(result.body)["messages"]
    assert not any(secret.encode() in content.data for content in result.contents)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_sent_is_sent_again_and_every_request_can_be_rebuilt(dialect: str) -> None:
    words = "The weather in the harbour was calm and the ferries went out on time. "
    talk = [t for n in range(30) for t in (turn("user", f"{n} {words}"), turn("assistant", words))]
    added = [turn("user", ASKED), turn("assistant", ANSWER)]
    bodies = [
        json.dumps(written(dialect, *talk, *added * n, turn("user", ASKED))).encode()
        for n in range(3)
    ]

    async def main() -> list[Fitted]:
        async with Holdfast.open("memory:") as engine:
            session = engine.session("s")
            requests = []
            for body in bodies:
                options = msgspec.structs.replace(
                    engine.options, dialect=dialect, limit=700, model=MODEL, in_place=True
                )
                requests.append(await session.fit(body, options))
                await engine.observe(session, requests[-1])
            assert [await session.rebuild(n) for n in (1, 2, 3)] == bodies
            for content in requests[0].contents:
                assert (await engine.expand_ref(content.ref_id)).content
            return requests

    first, second, third = asyncio.run(main())
    assert first.edits
    assert second.edits, "it grew beyond the limit: now room is made for the next turns"
    assert third.edits == ()
    sent, then = (holdfast.read(one.body, dialect).messages for one in (second, third))
    assert [m.raw for m in then[: len(sent)]] == [m.raw for m in sent]


def test_a_conversation_that_grows_is_shortened_seldom() -> None:
    state: FitState | None = None
    words = "The ferries went out on time and the harbour was calm. " * 4
    messages: list[dict[str, Any]] = []
    steps = broken = 0
    before: list[Any] = []
    for n in range(120):
        messages += [{"role": "user", "content": f"{n}? {words}"}]
        body = {"model": "gpt-4o", "messages": messages}
        result = fitted(body, "openai-chat", 2_000, state)
        state = result.state
        sent = json.loads(result.body)["messages"]
        steps += bool(result.edits)
        broken += sent[: len(before)] != before
        before = sent
        messages += [{"role": "assistant", "content": f"{n}. {words}"}]
    assert broken == steps - 1 or broken == steps
    assert 0 < steps < 30


def test_a_part_that_was_left_out_comes_back_for_a_question_that_needs_it() -> None:
    first = [
        {"role": "user", "content": "\n".join(CLAUSES) + "\n\nIs this a contract?"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Who signs it?"},
    ]
    before = fitted({"model": "gpt-4o", "messages": first}, "openai-chat", 3_000)
    assert CLAUSES[333] not in texts(before.body, "openai-chat")[0]
    more = [
        {"role": "assistant", "content": "The harbour master. " * 300},
        {"role": "user", "content": QUESTION},
    ]
    body = {"model": "gpt-4o", "messages": [*first, *more]}
    after = fitted(body, "openai-chat", 3_000, before.state)
    assert after.edits
    assert CLAUSES[333] in texts(after.body, "openai-chat")[0]


# --- for random conversations ---------------------------------------------------------------------

sentences = st.sampled_from(
    ["The ferries went out. ", "Port 8417 is open.\n", "ERROR disk full\n", "```\ncode()\n```\n"]
)
long_texts = st.builds(lambda one, n: one * n, sentences, st.integers(1, 120)).map(str.strip)


@st.composite
def talks(draw: st.DrawFn) -> list[Turn]:
    pairs = draw(st.lists(st.tuples(long_texts, long_texts), max_size=9))
    spoken = [t for one, two in pairs for t in (turn("user", one), turn("assistant", two))]
    return [*spoken, turn("user", draw(st.sampled_from([ASKED, f"{CLAUSES[3]} Why?"])))]


@settings(max_examples=150, deadline=None)
@given(talk=talks(), dialect=st.sampled_from(DIALECTS), share=st.floats(0.05, 1.0))
def test_every_result_fits_is_valid_shows_no_ref_and_keeps_the_newest(
    talk: list[Turn], dialect: str, share: float
) -> None:
    body = written(dialect, *talk)
    limit = max(1, round(tokens_of(body, dialect) * share))
    try:
        result = fitted(body, dialect, limit)
    except BudgetExceededError:
        return
    assert tokens_of(result.body, dialect) <= limit
    assert holdfast.validate(result.body, dialect) == []
    assert REF.search(result.body.decode()) is None
    assert tool_names(result.body, dialect) == []
    messages, asked = (holdfast.read(one, dialect).messages for one in (result.body, body))
    assert messages[-1].raw == asked[-1].raw or messages[-1].value == asked[-1].value
    assert fitted(body, dialect, limit).body == result.body
    stored = {content.ref_id for content in result.contents}
    assert {edit.ref_id for edit in result.edits if edit.ref_id} <= stored


@settings(max_examples=60, deadline=None)
@given(talk=talks(), dialect=st.sampled_from(DIALECTS), share=st.floats(0.3, 1.0))
def test_an_added_message_that_fits_changes_nothing_before_it(
    talk: list[Turn], dialect: str, share: float
) -> None:
    body = written(dialect, *talk)
    limit = round(tokens_of(body, dialect) * share) + 100
    try:
        first = fitted(body, dialect, limit)
    except BudgetExceededError:
        return
    longer = written(dialect, *talk, turn("assistant", "Yes."), turn("user", "Thanks."))
    second = fitted(longer, dialect, limit, first.state)
    if second.edits:
        return
    before, after = (holdfast.read(one.body, dialect).messages for one in (first, second))
    assert _values(after[: len(before)]) == _values(before)


def _values(messages: tuple[Message, ...]) -> list[Any]:
    return [message.value for message in messages]


@settings(max_examples=60, deadline=None)
@given(talk=talks(), shares=st.tuples(st.floats(0.1, 1.0), st.floats(0.1, 1.0)))
def test_a_larger_limit_leaves_out_no_more(talk: list[Turn], shares: tuple[float, float]) -> None:
    body = written("openai-chat", *talk)
    total = holdfast.count(body).tokens
    sizes = []
    for share in sorted(shares):
        try:
            sizes.append(fitted(body, "openai-chat", round(total * share)).tokens)
        except BudgetExceededError:
            assert not sizes, "what a smaller limit could do, a larger one can"
    assert sizes == sorted(sizes)
