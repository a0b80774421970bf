"""Earlier decisions are sent again, byte for byte: marks, citations, and after a restart."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from holdfast import Holdfast, count, read
from holdfast.engine.session import with_limit
from holdfast.fitting import FitOptions, fit_request
from holdfast.quoting import HEADINGS
from holdfast.trim.anchors import mark
from tests.fitting.test_citing import chat, in_dialect, log
from tests.support.citing import ALWAYS
from tests.surfaces.proxy.harness import DIALECTS

RULE = "The harbour master is called Ms Okonkwo-Lindqvist."


def talk(turns: int) -> dict[str, Any]:
    """A conversation whose second message is worth keeping, which only its user knows."""
    messages: list[dict[str, Any]] = []
    for n in range(turns):
        words = RULE if n == 1 else f"Tell me about port {n}."
        messages += [
            {"role": "user", "content": words},
            {"role": "assistant", "content": f"Port {n} has a quay. " * 40},
        ]
    messages.append({"role": "user", "content": "And the tide?"})
    return {"model": "gpt-4o", "messages": messages}


@pytest.mark.filterwarnings("ignore::holdfast.tokens.counter.UnknownModelWarning")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_mark_holds_however_often_the_bytes_are_read_anew(dialect: str) -> None:
    async def work() -> None:
        async with Holdfast.open("memory:") as engine:
            session = engine.session("s")
            first = read(in_dialect(talk(4), dialect), dialect)
            [place] = [n for n, m in enumerate(first.messages) if RULE.encode() in bytes(m.span)]
            mark(first.messages[place])
            await session.fit(first, FitOptions(dialect=dialect, limit=1_500))
            for turns in range(5, 30):
                body = in_dialect(talk(turns), dialect)
                if turns == 12:
                    for n in range(200):
                        count(session.state.asked if session.state else first, model=f"gpt-{n}")
                fitted = await session.fit(body, FitOptions(dialect=dialect, limit=1_500))
                [standing] = [
                    text for text in _members(fitted.body, dialect) if json.dumps(RULE) in text
                ]
                assert standing == json.dumps(json.loads(bytes(first.messages[place].span)))
            assert fitted.state.folds

    asyncio.run(work())


@pytest.mark.filterwarnings("ignore::holdfast.tokens.counter.UnknownModelWarning")
def test_a_mark_outlives_counts_for_two_hundred_models() -> None:
    conversation = read(in_dialect(talk(20), "openai-chat"), "openai-chat")
    mark(conversation.messages[2])
    for n in range(200):
        count(conversation, model=f"gpt-4o-{n}")
    fitted = fit_request(conversation, FitOptions(limit=1_200))
    assert fitted.state.folds
    assert bytes(conversation.messages[2].span) in fitted.body


def _members(body: bytes, dialect: str) -> list[str]:
    key = {"openai-responses": "input", "gemini": "contents"}.get(dialect, "messages")
    return [json.dumps(message) for message in json.loads(body)[key]]


# --- citations -----------------------------------------------------------------------------------


def asked_again(questions: list[str], document: str) -> dict[str, Any]:
    """The same document read once for each question."""
    messages: list[dict[str, Any]] = []
    for n, question in enumerate(questions):
        call = {"id": f"c{n}", "type": "function",
                "function": {"name": "read_file", "arguments": "{}"}}  # fmt: skip
        messages += [
            {"role": "user", "content": question},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": document},
        ]
    return {"model": "gpt-4o", "messages": messages}


FACTS = {
    50: "The crane at quay two is inspected by Mr Alder in March.",
    80: "The lighthouse keeper signs the lamp book at dawn.",
    110: "The dredger leaves with the ebb and returns with silt.",
}


def test_another_question_gives_another_citation_and_earlier_ones_stay() -> None:
    document = "\n\n".join(
        f"Section {n}. {FACTS.get(n, 'Ships came and went, and nothing of note was seen.')}"
        for n in range(160)
    )
    questions = [
        "Who inspects the crane at the quay?",
        "When is the lamp book signed?",
        "What returns with silt?",
    ]

    async def work() -> None:
        async with Holdfast.open("memory:") as engine:
            session = engine.session("s")
            sent: list[str] = []
            for n in range(1, len(questions) + 1):
                body = json.dumps(asked_again(questions[:n], document)).encode()
                fitted = await session.fit(body)
                members = _members(fitted.body, "openai-chat")
                assert members[: len(sent)] == sent
                alone = fit_request(body, engine.options)
                assert alone.body == fitted.body, "whoever comes to it fresh sends the same"
                sent = members
                await engine.observe(session, fitted)
            citations = [json.loads(text)["content"] for text in sent[2::3]]
            assert len(set(citations)) == len(questions)

    asyncio.run(work())


# --- after a restart -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_fresh_engine_sends_what_the_running_one_sends(dialect: str, seed: int) -> None:
    chance = random.Random(f"{dialect} {seed}")

    async def work() -> None:
        async with Holdfast.open("memory:") as opened:
            running = Holdfast(opened.store)
            results: list[str] = []
            limit, folds, turns = 3_000, 0, 0
            while turns < 30:
                results += [
                    log(chance.choice([3, 12, 40, 90]), chance.randrange(99))
                    for _ in range(chance.choice([1, 1, 2]))
                ]
                body = in_dialect(chat(*results, question="What is wrong?"), dialect)
                session = running.session("s")
                fitted = await session.fit(body, limit=limit)
                if turns:
                    fresh = Holdfast(opened.store).session("s")
                    assert (
                        await fresh.preview(body, with_limit(running.options, limit))
                    ).body == fitted.body
                await running.observe(session, fitted)
                turns += 1
                folds += any(edit.action == "fold" for edit in fitted.edits)
            assert folds

    asyncio.run(work())


def test_a_restart_with_another_citation_format_rewrites_nothing_that_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results = [log(90, 1), log(90, 2)]

    async def work() -> None:
        async with Holdfast.open("memory:") as opened:
            options = FitOptions(rules=ALWAYS, cites=True, opens=True)
            before = Holdfast(opened.store)
            session = before.session("s")
            first = await session.fit(in_dialect(chat(results[0]), "openai-chat"), options)
            assert any(edit.action == "cite" for edit in first.edits)
            await before.observe(session, first)
            monkeypatch.setitem(HEADINGS, "key", "Another format:")
            after = Holdfast(opened.store).session("s")
            second = await after.fit(in_dialect(chat(*results), "openai-chat"), options)
            sent = _members(first.body, "openai-chat")
            members = _members(second.body, "openai-chat")
            assert members[: len(sent)] == sent
            assert "Another format:" in "".join(members[len(sent) :])

    asyncio.run(work())
