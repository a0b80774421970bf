"""An agent in a process that gets killed: `python -m tests.agent.mortal URL STORE LOG`.

It resumes from the store, or begins. Each tool writes to the log when it has run, before its result
is known. The last line of its output is its outcome.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from holdfast.agent import Agent, Target
from holdfast.errors import AgentError

SESSION = "mortal"
WINDOW = 16_000
TURNS = 6
ANSWER = "All parts are read."


def agent_of(url: str, store: str, note: Callable[[str], None] = lambda _: None) -> Agent:
    async def read_part(number: int, lines: int = 40) -> str:
        """Reads a part."""
        note(f"part {number}")
        await asyncio.sleep(0)  # the results of parallel calls come one by one
        return "\n".join(f"part {number} line {n}: value {n * 31}" for n in range(lines))

    model = Target(
        model="openai:gpt-5", window=WINDOW, max_output_tokens=1_000, url=url, key="key-of-the-test"
    )
    return Agent([model], tools=[read_part], store=store, session=SESSION, budget=10**6)


async def live(url: str, store: str, log: str) -> dict[str, Any]:
    with open(log, "a") as lines:  # noqa: PTH123 - one open file for a whole life

        def note(line: str) -> None:
            lines.write(line + "\n")
            lines.flush()
            os.fsync(lines.fileno())

        async with agent_of(url, store, note) as agent:
            try:
                outcome = await agent.resume()
            except AgentError:
                outcome = await agent.run("Read all parts.")
            used = agent.budget.budget
            return {
                "text": outcome.text,
                "ending": outcome.ending,
                "turns": outcome.turns,
                "messages": agent.messages,
                "input": used.input.used,
                "output": used.output.used,
            }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(live(*sys.argv[1:4]))))  # noqa: T201 - it is read by the test
