"""Rebuild under attack: clients that edit their history, odd JSON, many messages, two writers.

Nothing of it may raise, and every request comes back byte for byte.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast import Holdfast
from holdfast.cite import CitingRules
from holdfast.errors import AnchorPreservationError, BudgetExceededError
from holdfast.fitting import FitOptions
from tests.engine.test_rebuild import GAPS, LISTS, client_bytes, conversation
from tests.fitting.test_citing import chat, in_dialect, log
from tests.trim.test_fit import DIALECTS, MODELS

Body = dict[str, Any]
TOO_SMALL = (AnchorPreservationError, BudgetExceededError)


def listed(body: Body, dialect: str) -> list[Any]:
    messages: list[Any] = body[LISTS.get(dialect, "messages")]
    return messages


def said(dialect: str, words: str) -> Body:
    if dialect == "gemini":
        return {"role": "user", "parts": [{"text": words}]}
    return {"role": "user", "content": words}


# --- what clients do to their history ------------------------------------------------------------


class History(NamedTuple):
    """A client's next request."""

    body: Body
    dialect: str
    chance: random.Random
    sent: list[Any]
    """The messages sent last time."""

    @property
    def messages(self) -> list[Any]:
        return listed(self.body, self.dialect)


def nothing(history: History) -> None:
    """Most turns only add to the history."""


def repeats_a_message(history: History) -> None:
    messages = history.messages
    place = history.chance.randrange(len(messages))
    messages.insert(place, messages[place])


def loses_a_message(history: History) -> None:
    messages = history.messages
    del messages[history.chance.randrange(len(messages))]


def takes_turns_back(history: History) -> None:
    messages = history.messages
    del messages[max(1, len(messages) - history.chance.randrange(1, 5)) :]


def changes_the_system(history: History) -> None:
    words = f"You are number {history.chance.randrange(99)}."
    if history.dialect == "gemini":
        history.body["systemInstruction"] = {"parts": [{"text": words}]}
    elif history.dialect == "openai-chat":
        history.body["messages"].insert(0, {"role": "system", "content": words})
    else:
        history.body["system" if history.dialect == "anthropic" else "instructions"] = words


def takes_its_tools_back(history: History) -> None:
    history.body.pop("tools", None)


def rewrites_words(history: History) -> None:
    messages = history.messages
    place = history.chance.randrange(len(messages))
    messages[place] = json.loads(json.dumps(messages[place]).replace("went", "ran"))


def says_nothing(history: History) -> None:
    messages = history.messages
    silence = (
        said(history.dialect, "")
        if history.chance.random() < 0.5
        else {**said(history.dialect, ""), "content": []}
    )
    messages.insert(history.chance.randrange(len(messages) + 1), silence)


def sends_back_what_we_sent(history: History) -> None:
    """Send our digests and citations back as if they were the client's own."""
    if history.sent:
        history.messages.append(history.chance.choice(history.sent))


def speaks_of_refs(history: History) -> None:
    history.messages.append(said(history.dialect, "[ref:fold:0123456789abcdef] and ref:log:00ff"))


def moves_its_cache_marks(history: History) -> None:
    if history.dialect == "anthropic":
        for message in history.messages[-3::2]:
            if isinstance(message["content"], list):
                message["content"][-1]["cache_control"] = {"type": "ephemeral"}


EDITS: tuple[Callable[[History], None], ...] = (
    *(nothing, nothing, nothing, nothing),
    *(repeats_a_message, loses_a_message, takes_turns_back, changes_the_system),
    *(takes_its_tools_back, rewrites_words, says_nothing, sends_back_what_we_sent),
    *(speaks_of_refs, moves_its_cache_marks, moves_its_cache_marks),
)


class Client:
    """One conversation of a client that is hard to follow."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.dialect = self.chance.choice(DIALECTS)
        self.results: list[str] = []
        self.sent: list[Any] = []

    def next_body(self) -> bytes:
        chance = self.chance
        if chance.random() < 0.1:
            self.dialect = chance.choice(DIALECTS)
            self.sent = []
        long_words = "Größe 😀 \x7f " * chance.randrange(1, 200)
        size = chance.choice([2, 20, 60, 200])
        self.results.append(long_words if chance.random() < 0.2 else log(size, size % 7))
        body = json.loads(in_dialect(chat(*self.results, question="Why?"), self.dialect))
        if self.dialect != "gemini":
            body["model"] = MODELS[self.dialect]
        chance.choice(EDITS)(History(body, self.dialect, chance, self.sent))
        written = client_bytes(body, self.dialect, iter(lambda: chance.choice(GAPS), None))
        if chance.random() < 0.2:
            written = written.replace(b"went well", b"w\\u0065nt w\\u0065ll \\ud83d\\ude00")
        return written

    def options(self) -> FitOptions:
        chance = self.chance
        return FitOptions(
            dialect=self.dialect,
            model=MODELS[self.dialect],
            limit=chance.choice([1_200, 1_800, 3_000, 100_000]),
            cites=chance.random() < 0.8,
            opens=chance.random() < 0.8,
            rules=CitingRules(
                threshold=chance.choice([50, 1_000]), policy=chance.choice(["auto", "always"])
            ),
            reports_usage=True,
            strategy=chance.choice(["auto", "auto", "summarise", "heads_tails", "progressive"]),
        )


async def attack(seed: int) -> int:
    client = Client(seed)
    bodies: list[bytes] = []
    async with Holdfast.open("memory:") as opened:
        engine = Holdfast(opened.store)
        for _ in range(client.chance.randrange(3, 14)):
            if client.chance.random() < 0.25:
                engine = Holdfast(opened.store)  # as after a restart
            session = engine.session("s")
            body = client.next_body()
            try:
                fitted = await session.fit(body, client.options())
            except TOO_SMALL:
                continue
            client.sent = listed(json.loads(fitted.body), client.dialect)
            await engine.observe(session, fitted)
            bodies.append(body)
            assert await session.rebuild(len(bodies)) == body
        session = Holdfast(opened.store).session("s")
        for number, body in enumerate(bodies, 1):
            assert await session.rebuild(number) == body, "and still later"
    return len(bodies)


def test_a_client_that_edits_its_history_gets_every_request_back() -> None:
    assert sum(asyncio.run(attack(seed)) for seed in range(40)) > 130


@pytest.mark.campaign
def test_so_do_two_thousand_of_them() -> None:
    assert sum(asyncio.run(attack(seed)) for seed in range(2_000)) > 8_000


# --- odd JSON ------------------------------------------------------------------------------------

CHAT = json.dumps(chat(*(log(60, n) for n in range(8))))
ODD = {
    "surrogate pairs": CHAT.replace("0-3 went", r"\ud83d\ude00 went"),
    "white space around": f"\r\n  {CHAT}\r\n\t ",
    "numbers no float holds": CHAT[:-1] + ', "seed": 123456789012345678901, "top_p": 1e-400}',
    "escaped names": CHAT.replace("read_log", r"read\u005flog").replace("a.log", r"a\/b.log"),
    "escaped keys": CHAT.replace('"role"', r'"r\u006fle"'),
    "a NUL": CHAT.replace("0-3 went", r"\u0000 went"),
    "words of ours": CHAT.replace("What went wrong?", "[Folded: messages 1 to 9 of this]"),
    "one message eighty times": json.dumps(
        {"model": "gpt-4o", "messages": [{"role": "user", "content": "same " * 50}] * 80}
    ),
    "nothing": '{"model": "gpt-4o", "messages": []}',
    "bare input": json.dumps({"model": "gpt-5", "input": "hello " * 30}),
    "bare input with escapes": r'{"model":"gpt-5", "input" : "h\u00e9llo \ud83d\ude00" }',
    "bare input that is long": json.dumps({"model": "gpt-5", "input": "hello " * 3_000}),
    "empty input": '{"model": "gpt-5", "input": ""}',
}


@pytest.mark.parametrize("opens", [True, False])
@pytest.mark.parametrize("odd", ODD)
def test_odd_json_comes_back_and_goes_out_the_same_after_a_restart(odd: str, opens: bool) -> None:
    body = ODD[odd].encode()

    async def work(limit: int) -> None:
        dialect = "openai-responses" if '"input"' in ODD[odd] else "openai-chat"
        options = FitOptions(dialect=dialect, limit=limit, cites=opens, opens=opens)
        async with Holdfast.open("memory:") as opened:
            sent_bodies = []
            for number in (1, 2):
                engine = Holdfast(opened.store)
                session = engine.session("s")
                try:
                    fitted = await session.fit(body, options)
                except TOO_SMALL:
                    return
                sent_bodies.append(fitted.body)
                await engine.observe(session, fitted)
                assert await session.rebuild(number) == body
            assert sent_bodies[0] == sent_bodies[1]

    for limit in (900, 2_000, 100_000):
        asyncio.run(work(limit))


# --- many messages, and two writers --------------------------------------------------------------


def test_five_thousand_messages_come_back() -> None:
    async def work() -> None:
        results = [log(20, n) for n in range(2_500)]
        bodies = [json.dumps(chat(*results[:size])).encode() for size in (2_499, 2_500)]
        async with Holdfast.open("memory:") as engine:
            session = engine.session("s")
            for number, body in enumerate(bodies, 1):
                fitted = await session.fit(body, limit=100_000)
                await engine.observe(session, fitted)
                assert await session.rebuild(number) == body
            assert len(json.loads(body)["messages"]) == 5_001
            fresh = Holdfast(engine.store).session("s")
            assert await fresh.rebuild(2) == bodies[1]

    asyncio.run(work())


WRITER = """
import asyncio, sys
from holdfast import Holdfast
from tests.engine.test_rebuild import conversation

async def main(url, name):
    async with Holdfast.open(url) as engine:
        for body in conversation(12):
            body = body.replace(b"Why did it fail?", name.encode())
            session = engine.session("s")
            await engine.observe(session, await session.fit(body, limit=2_000))

asyncio.run(main(*sys.argv[1:]))
"""


def test_two_processes_may_write_one_session_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    names = ("Why, asks one?", "Why, asks the other?")
    root = Path(__file__).parents[2]
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, url, name], cwd=root, stderr=subprocess.PIPE
        )
        for name in names
    ]
    for writer in writers:
        _, problems = writer.communicate(timeout=120)
        assert writer.returncode == 0, problems.decode()[-2_000:]
    expected = {
        body.replace(b"Why did it fail?", name.encode())
        for name in names
        for body in conversation(12)
    }

    async def work() -> None:
        async with Holdfast.open(url) as engine:
            session = engine.session("s")
            rebuilt = [await session.rebuild(number) for number in range(1, 25)]
            assert len(set(rebuilt)) == 24
            assert set(rebuilt) == expected

    asyncio.run(work())


def test_turn_is_written_however_often_another_process_is_faster(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    first, *others = conversation(12)

    async def work() -> None:
        async with Holdfast.open(url) as faster, Holdfast.open(url) as slower:
            session, waiting = slower.session("s"), list(others)
            fitted = await session.fit(first, limit=2_000)
            add_turn = slower.store.add_turn

            async def overtaken(*args: Any) -> None:
                if waiting:
                    other = faster.session("s")
                    await faster.observe(other, await other.fit(waiting.pop(0), limit=2_000))
                await add_turn(*args)

            slower.store.add_turn = overtaken  # type: ignore[method-assign,assignment]
            await slower.observe(session, fitted)
            rebuilt = [await session.rebuild(number) for number in range(1, 13)]
            assert rebuilt == [*others, first]

    asyncio.run(work())
