"""Turns assembled from memory by the engine: within the budget, with the relevant parts."""

from __future__ import annotations

import asyncio
import math
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.assemble import AssembledContext, HeaderParts, ToolIntent
from holdfast.assemble.composition import COUNTED_AS
from holdfast.assemble.header import CRITICAL
from holdfast.engine import Holdfast
from holdfast.errors import BudgetExceededError, PrivacyError, SettingsError, StoreError
from holdfast.settings import Settings
from holdfast.store import Scope
from holdfast.store.opening import open_memory
from holdfast.tokens import count
from tests.assemble.test_composition import drawn_text
from tests.fitting.test_citing import log
from tests.store.harness import Clock

_T = TypeVar("_T")
SAID = "The spare key of the harbour office lies under the blue anchor."
QUESTION = "Where does the spare key of the harbour office lie?"


def with_engine(work: Callable[[Holdfast], Awaitable[_T]], scope: Scope | None = None) -> _T:
    async def main() -> _T:
        return await work(Holdfast(open_memory(), scope))

    return asyncio.run(main())


def talk(pairs: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for n in range(pairs):
        words = SAID if n == 2 else f"Ship {n} came in with {n * 7} crates. " + "It was calm. " * 9
        answer = f"I noted ship {n}. " + "The tide is fine today. " * 12
        messages += [{"role": "user", "content": words}, {"role": "assistant", "content": answer}]
    return messages


def recounted(context: AssembledContext) -> int:
    return count(context.body(), model=COUNTED_AS, dialect="openai-chat").tokens


def parts_of(context: AssembledContext, part: str) -> list[str]:
    return [source.id for source in context.sources if source.part == part]


def test_a_turn_holds_what_was_said_long_ago_and_last() -> None:
    async def work(engine: Holdfast) -> AssembledContext:
        await engine.remember("s", talk(80))
        return await engine.assemble(session="s", user_turn=QUESTION)

    context = with_engine(work)
    texts = "\n".join(message["content"] for message in context.messages)
    assert SAID in texts
    assert "I noted ship 79." in texts
    assert context.messages[-1] == {"role": "user", "content": QUESTION}
    assert recounted(context) == context.budget.used <= 3_000
    assert context.intent == "context_lookup"
    assert len(parts_of(context, "recalled")) > 5


def test_it_uses_what_it_may() -> None:
    async def work(engine: Holdfast) -> list[int]:
        await engine.remember("s", talk(80))
        budgets = (1_000, 3_000, 6_000)
        turns = [
            await engine.assemble(session="s", user_turn=QUESTION, token_budget=tokens)
            for tokens in budgets
        ]
        return [turn.budget.used * 100 // turn.budget.limit for turn in turns]

    assert min(with_engine(work)) >= 85


def test_facts_and_hot_refs_stand_in_the_turn_and_say_what_they_are() -> None:
    async def work(engine: Holdfast) -> tuple[AssembledContext, str]:
        await engine.remember("s", talk(4))
        await engine.facts.add(
            "We use PostgreSQL 16.", kind="decision", source_ref="m1", session="s"
        )
        cited = await engine.cite(log(400), tool="read_log", session="s")
        return await engine.assemble(session="s", user_turn="Which database?"), cited.ref_id

    context, ref = with_engine(work)
    memory = context.working_set[0]["content"]
    assert "- decided: We use PostgreSQL 16." in memory
    assert f"- {ref} " in memory
    assert parts_of(context, "summary") == [ref]
    assert context.fidelity[f"summary:{ref}"].ref == ref
    assert "expand_ref" in context.lazy_tools


def test_a_ref_that_is_past_its_time_says_so() -> None:
    clock = Clock()

    async def main() -> AssembledContext:
        settings_with_ttl = Settings(store_url="memory:", content_ttl_hours=1)
        async with Holdfast.open(settings=settings_with_ttl, clock=clock) as engine:
            await engine.remember("s", talk(1))
            await engine.cite(log(400), tool="read_log", session="s")
            clock.now += 7_200
            return await engine.assemble(session="s", user_turn="Which step failed?")

    context = asyncio.run(main())
    assert "[stale - use expand_ref to refresh]" in context.working_set[0]["content"]
    assert [source.stale for source in context.sources if source.part == "summary"] == [True]


def test_the_header_has_the_same_bytes_until_it_is_refreshed() -> None:
    async def work(engine: Holdfast) -> list[str]:
        headers = []
        for n in range(6):
            await engine.remember("s", talk(30)[: n * 8])
            tools = (ToolIntent("search", "finds pages"), ToolIntent(f"tool{n}"))
            profile = {"project": "alfred", "role": f"role {n}"}
            parts = HeaderParts(tools=tools, profile=profile)
            engine.assembler.options = type(engine.assembler.options)(header=parts)
            questions = ("Plan it.", "Why?", "Note: it rained.", QUESTION, "When?", "Show it.")
            context = await engine.assemble(
                session="s", user_turn=questions[n], force_refresh=n == 5
            )
            headers.append(context.header[0]["content"])
        return headers

    *same, refreshed = with_engine(work)
    assert len(set(same)) == 1
    assert "role: role 0" in same[0]
    assert "- search: finds pages" in same[0]
    assert "role: role 5" in refreshed


def test_nobody_sees_what_another_said() -> None:
    async def work(engine: Holdfast) -> AssembledContext:
        await engine.remember("s", talk(8))
        await engine.facts.add("Ann owns the boat.", source_ref="m1", session="s")
        other = await engine.of(Scope("somebody else"))
        return await other.assemble(session="s", user_turn=QUESTION)

    context = with_engine(work)
    assert [message["role"] for message in context.messages] == ["system", "user"]


def test_a_turn_that_is_longer_than_its_budget_is_kept_whole_and_shown_in_part() -> None:
    turn = "Is this right? " + "It says so. " * 400 + "What do you think?"

    async def work(engine: Holdfast) -> tuple[AssembledContext, str]:
        context = await engine.assemble(session="s", user_turn=turn, token_budget=400)
        ref = context.sources[-1].fidelity.ref
        return context, (await engine.expand_ref(ref, {"max_tokens": 4_000})).content

    context, opened = with_engine(work)
    assert recounted(context) <= 400
    assert context.header[0]["content"] == CRITICAL
    assert opened == turn


def test_what_cannot_fit_and_what_says_nothing_are_errors() -> None:
    async def too_little(engine: Holdfast) -> None:
        await engine.assemble(session="s", user_turn="words " * 400, token_budget=20)

    async def nothing(engine: Holdfast) -> None:
        await engine.assemble(session="s", user_turn=" ")

    with pytest.raises(BudgetExceededError):
        with_engine(too_little)
    with pytest.raises(SettingsError, match="a user message"):
        with_engine(nothing)


words = st.text(st.sampled_from('abcd .\n"\\é漢🦀[]'), min_size=1, max_size=300)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool", "system"]), "content": words}
    ),
    max_size=25,
)


def check_session(spoken: list[dict[str, str]], facts: list[str], turn: str, limit: int) -> None:
    async def work(engine: Holdfast) -> AssembledContext:
        await engine.remember("s", spoken)
        for n, fact in enumerate(facts):
            if fact.strip():
                # One that is too long, has what nobody sees, or digits that look like somebody's.
                with suppress(StoreError, PrivacyError):
                    await engine.facts.add(fact, source_ref=f"m{n}", session="s")
        return await engine.assemble(session="s", user_turn=turn, token_budget=limit)

    context = with_engine(work)
    assert recounted(context) == context.budget.used <= limit
    assert {source.fidelity.source_id for source in context.sources} >= {"rules", "user_turn"}


@settings(max_examples=12, deadline=None)
@given(
    messages, st.lists(words, max_size=15), words.map(lambda t: f"So {t}"), st.integers(200, 4_000)
)
def test_no_session_is_over_its_budget(
    spoken: list[dict[str, str]], facts: list[str], turn: str, limit: int
) -> None:
    check_session(spoken, facts, turn, limit)


SEED = int(os.environ.get("ASSEMBLE_SEED", "14"))
FIRST = int(os.environ.get("ASSEMBLE_FIRST", "0"))
SESSIONS = int(os.environ.get("ASSEMBLE_SESSIONS", "100000"))
ROLES = ("user", "assistant", "tool", "system")


@pytest.mark.campaign
def test_nor_are_a_hundred_thousand(capsys: pytest.CaptureFixture[str]) -> None:
    """Drawn without hypothesis: a session is identified by its seed and number, so that a long run
    can be resumed.
    """
    told_at = time.monotonic()
    for number in range(FIRST, SESSIONS):
        chance = random.Random(f"{SEED}:{number}")
        spoken = [
            {"role": chance.choice(ROLES), "content": drawn_text(chance, 400) or "x"}
            for _ in range(chance.randint(0, 25))
        ]
        facts = [drawn_text(chance, 100) for _ in range(chance.randint(0, 15))]
        turn = f"So {drawn_text(chance, 1_000)}"
        limit = int(math.exp(chance.uniform(math.log(200), math.log(6_000))))
        try:
            check_session(spoken, facts, turn, limit)
        except Exception as error:
            error.add_note(f"session {number} of ASSEMBLE_SEED={SEED}")
            raise
        if number == FIRST or time.monotonic() - told_at > 30:
            told_at = time.monotonic()
            with capsys.disabled():
                sys.stderr.write(f"\nsession {number:,} of {SESSIONS:,}, ASSEMBLE_SEED={SEED}\n")


# --- quoted turns and whose facts ----------------------------------------------------------------

_LONG_AGO = 1_682_773_800.0
"""29 April 2023, 13:10 UTC."""


def dated_talk(said: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"at": _LONG_AGO, **said}, *({"at": _LONG_AGO + 86_400, **each} for each in talk(40))]


def quoted_memory(said: dict[str, Any], question: str, now: float) -> tuple[str, str, str]:
    """Return the quotations of a turn, and the same turn as recalled and as stored."""

    async def main() -> tuple[str, str, str]:
        clock = Clock()
        clock.now = now
        async with Holdfast.open(settings=Settings(store_url="memory:"), clock=clock) as engine:
            [first, *_] = await engine.remember("s", dated_talk(said))
            context = await engine.assemble(session="s", user_turn=question)
            assert recounted(context) == context.budget.used <= 3_000
            recalled = await engine.recall(question, session="s")
            [stored] = await engine.memory.forget_turns(ids=[first], preview=True)
            return context.working_set[0]["content"], recalled.text, stored.content

    return asyncio.run(main())


@pytest.mark.parametrize(("years_later", "day"), [(0, "26 April"), (1, "26 April 2023")])
def test_relative_dates_of_quoted_turns_are_resolved(years_later: int, day: str) -> None:
    words = "I broke my left wrist three days ago while climbing, what a pity."
    said = {"role": "user", "name": "Ann", "content": words}
    now = _LONG_AGO + 5 * 86_400 + years_later * 365 * 86_400
    memory, recalled, stored = quoted_memory(said, "When did Ann break her wrist?", now)
    assert f"- Ann: {words.replace('ago', f'ago [{day}]')}" in memory
    assert "Earlier turns (dates in [brackets] were added):" in memory
    assert words in recalled
    assert stored == words


def test_a_tool_result_is_quoted_without_dates() -> None:
    words = "The wrist scanner calibration ran yesterday and failed with code 81."
    said = {"role": "tool", "name": "scan", "content": words}
    memory, _, _ = quoted_memory(said, "Why did the wrist scanner calibration fail?", _LONG_AGO)
    assert f"scan: {words}" in memory


def test_a_turn_about_one_person_leaves_out_unrelated_facts_of_another() -> None:
    async def work(engine: Holdfast) -> str:
        for n in range(12):
            text = f"Ben: I sold boat number {n} in Oslo"
            await engine.facts.add(text, source_ref=f"b{n}", said_by="Ben", session="s")
        for text in ("Ann: I painted the harbour", "Ann: I moved to Rome"):
            await engine.facts.add(text, source_ref=text, said_by="Ann", session="s")
        await engine.facts.add("Use PostgreSQL 16", source_ref="d", session="s")
        context = await engine.assemble(session="s", user_turn="What did Ann paint?")
        return context.working_set[0]["content"]

    memory = with_engine(work)
    assert memory.index("Ann: I painted") < memory.index("Ann: I moved")
    assert "Use PostgreSQL 16" in memory
    assert "Ben:" not in memory
