"""A day at work for the dashboard to show: agents whose tools give long results."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.proxy.harness import Running, ask

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
        {"role": "user", "content": "Why did the nightly build fail, and on which host?"},
    ]
    tool = how.pop("tool", "read_log")
    headers = {"x-holdfast-session": name, **how.pop("headers", {})}
    offered = [
        {"type": "function", "function": {"name": tool, "description": "Reads a log or a list.",
                                          "parameters": {"type": "object"}}}
    ]  # fmt: skip
    for n, result in enumerate(results):
        call = {"id": f"call_{n}", "type": "function",
                "function": {"name": tool, "arguments": json.dumps({"path": f"night-{n}.log"})}}  # fmt: skip
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
    notes = [build_log(20 + n, lines=24) for n in range(9)]
    tool_turns(running, "long-incident", notes, headers={"x-holdfast-budget": "3500"})
    tool_turns(running, "inventory-check", [inventory(1), "12 hosts are ready."])
