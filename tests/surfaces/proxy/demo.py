"""Data for the dashboard: a day of work, and text of an attacker."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any

import msgspec

from holdfast.engine import Holdfast
from tests.fitting.test_citing import chat, in_dialect
from tests.surfaces.proxy.harness import DIALECTS, Running, ask, running_proxy

QUESTION = "Why did the nightly build fail, and on which host?"
_STEPS = ("pulled", "built", "linked", "tested", "packed", "signed", "shipped")


def build_log(seed: int, lines: int = 320) -> str:
    """A log with one failure in it."""
    chance = random.Random(seed)
    made = [
        f"2026-03-0{1 + seed % 9} 10:{n // 60:02}:{n % 60:02} INFO worker-{chance.randrange(9)} "
        f"{chance.choice(_STEPS)} module_{chance.randrange(400)} in {chance.randrange(900)} ms"
        for n in range(lines)
    ]
    made[lines * 2 // 3] = f"ERROR module_{seed} failed: disk quota exceeded on /var/build/{seed}"
    return "\n".join(made)


def inventory(seed: int, rows: int = 150) -> str:
    """Rows of JSON."""
    chance = random.Random(seed)
    return json.dumps(
        [
            {"id": n, "host": f"node-{n}.example", "cpu": chance.random(), "state": "ready"}
            for n in range(rows)
        ]
    )


def tool_turns(running: Running, name: str, results: list[str], **how: Any) -> None:
    """Let an agent work in a session: for each result one more request."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You look after a build farm. Be brief, cite log lines."},
        {"role": "user", "content": how.pop("question", QUESTION)},
    ]
    tool = how.pop("tool", "read_log")
    headers = {"x-holdfast-session": name, **how.pop("headers", {})}
    offered = [
        {"type": "function", "function": {"name": tool, "description": "Reads a log or a list.",
                                          "parameters": {"type": "object"}}}
    ]  # fmt: skip
    for n, result in enumerate(results):
        asked = {"name": tool, "arguments": json.dumps({"path": f"night-{n}.log"})}
        call = {"id": f"call_{n}", "type": "function", "function": asked}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{n}", "content": result},
        ]
        body = {"model": "gpt-4o", "messages": messages, "tools": offered, **how}
        answered = ask(f"{running.url}/v1/chat/completions", body, headers)
        assert answered.status == 200, answered.body
        running.settled()
        said = answered.json["choices"][0]["message"]["content"]
        messages += [
            {"role": "assistant", "content": said},
            {"role": "user", "content": f"Go on with night {n + 1}: what failed there?"},
        ]


def a_day(running: Running) -> None:
    """Three sessions: one that cites, one that folds, one that is short."""
    tool_turns(running, "nightly-build", [build_log(n) for n in range(8)])
    notes = [build_log(20 + n, lines=24) for n in range(12)]
    budget = {"x-holdfast-budget": "5000"}
    tool_turns(running, "long-incident", notes, headers=budget, question="What caused the outage?")
    checked = [inventory(1), "12 hosts are ready."]
    tool_turns(running, "inventory-check", checked, question="Which hosts are ready?")


HOSTILE = (
    "<script>window.hacked = 1; alert(1)</script>"
    "<img src=x onerror='window.hacked = 2'>\"'><svg/onload=window.hacked=3>"
    "</pre></title></textarea><style>*{display:none}</style>&lt;b&gt;"
    "\u202egnp.exe\u2066 \x00\x1b[31m" + "W" * 3000
)
"""What nobody should have to show."""
HOSTILE_NAME = '../a/turns/1?x#y%2F"><script>window.hacked=4</script>\u202e é\u2028'


async def record(
    engine: Holdfast, name: str, body: bytes, dialect: str, limit: int | None = None
) -> None:
    """Record a turn, as for a request that was sent."""
    session = engine.session(name)
    options = msgspec.structs.replace(engine.options, dialect=dialect, model="gpt-4o", limit=limit)
    fitted = await session.fit(body, options)
    await engine.observe(session, fitted, warnings=(HOSTILE,))


@contextmanager
def busy_proxy() -> Iterator[Running]:
    """Yield a proxy with a day of work in its store."""
    with running_proxy() as running:
        a_day(running)
        yield running


@contextmanager
def attacked_proxy() -> Iterator[Running]:
    """A proxy whose every record was written by an enemy."""
    with running_proxy() as running:
        for dialect in DIALECTS:
            body = chat(f"{HOSTILE}\n" * 9, "short " + HOSTILE, question=HOSTILE)
            for message in body["messages"]:
                for call in message.get("tool_calls", ()):
                    call["function"]["name"] = "x<script>window.hacked=5</script>"
            body["messages"].insert(0, {"role": "system", "content": HOSTILE})
            named = in_dialect(body, dialect)
            running.do(record(running.service.engine, HOSTILE_NAME + dialect, named, dialect))
        yield running


class Seen(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data
