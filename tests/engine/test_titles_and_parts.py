"""The record of a session for lists and charts: its title, and its tokens by part."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.engine.titles import MOST_CHARACTERS, title_of
from holdfast.store.records import Turn, TurnParts
from holdfast.wire import read
from tests.engine.test_put_back import how, talk
from tests.fitting.test_citing import chat, in_dialect
from tests.trim.test_fit import DIALECTS
from tests.wiring.wired import SECRET


def title(content: Any) -> str:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": content}]}
    return title_of(read(json.dumps(body).encode(), "openai-chat"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_session_is_called_by_its_first_question(dialect: str) -> None:
    body = in_dialect(chat("short", question="Quo\n  vadis?"), dialect)
    assert title_of(read(body, dialect)) == "Quo vadis?"


def test_a_title_is_short_and_says_what_a_person_said() -> None:
    assert len(title("word " * 10_000)) <= MOST_CHARACTERS
    assert title("word " * 10_000).endswith("…")
    texts = ["<system-reminder>be kind</system-reminder>", "Mend the build."]
    assert title([{"type": "text", "text": text} for text in texts]) == "Mend the build."
    assert title("") == ""


def test_a_title_holds_nothing_private() -> None:
    assert title(f"Use the key {SECRET} for it") == ""
    assert title("Write to jane.doe@example.com about it") == ""


def observed(policy: str) -> tuple[str, list[Turn]]:
    async def main() -> tuple[str, list[Turn]]:
        async with Holdfast.open("memory:") as engine:
            session, options = engine.session("s"), how(engine, limit=6_000)
            rules = msgspec.structs.replace(options.rules, privacy=policy)
            options = msgspec.structs.replace(options, rules=rules)
            for turns in range(1, 14):
                body = json.dumps(talk(turns, lines=50)).encode()
                await engine.observe(session, await session.fit(body, options))
            return session.record.title, await engine.store.turns(session.scope)

    return asyncio.run(main())


def test_the_parts_of_a_turn_are_its_tokens() -> None:
    name, turns = observed("allow")
    assert name == "What went wrong?"
    for turn in turns:
        assert sum(msgspec.structs.astuple(turn.parts)) == turn.usage.predicted
    assert turns[0].parts.tools > 20
    assert turns[0].parts.citations > turns[0].parts.history > 0
    folded = [turn for turn in turns if turn.parts.summaries]
    assert bool(folded) == any(e.action == "fold" for turn in turns for e in turn.edits)


def test_a_policy_that_refuses_gives_no_titles() -> None:
    assert observed("refuse")[0] == ""


def test_turns_that_were_written_before_there_were_parts_can_be_read() -> None:
    old = json.loads(msgspec.json.encode(Turn(number=1, started_at=0.0)))
    del old["parts"]
    assert msgspec.json.decode(json.dumps(old), type=Turn).parts == TurnParts()
