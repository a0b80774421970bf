"""Long conversations as prompts: assembled by the engine, or their end alone."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from datetime import UTC, datetime
from typing import Any

from benchmarks.judge.contents import count
from benchmarks.recall_data import Talk, locomo
from holdfast.engine import Holdfast
from holdfast.settings import Settings

ASSEMBLED_TOKENS = 1_500
LAST_TOKENS = 1_450
"""Less than an assembled turn's: that has instructions too."""


@functools.cache
def _talks() -> dict[str, Talk]:
    return {talk.name: talk for talk in locomo()}


class _Engine:
    """An engine that remembers one conversation, on a loop of its own."""

    def __init__(self, talk: Talk) -> None:
        self._loop = asyncio.new_event_loop()
        self._stack = contextlib.AsyncExitStack()
        self._holdfast = self._loop.run_until_complete(self._remember(talk))

    async def _remember(self, talk: Talk) -> Holdfast:
        settings = Settings(store_url="memory:", background_jobs=False)
        engine = await self._stack.enter_async_context(Holdfast.open(settings=settings))
        fields = ("id", "role", "name", "content", "at")
        await engine.remember(
            "talk", [{field: turn[field] for field in fields} for turn in talk.turns]
        )
        return engine

    def assemble(self, question: str) -> list[dict[str, Any]]:
        work = self._holdfast.assemble(
            session="talk",
            user_turn=question,
            token_budget=ASSEMBLED_TOKENS,
            dialect="openai-chat",
        )
        context = self._loop.run_until_complete(work)
        return [dict(message) for message in context.messages]


@functools.cache
def _engine(talk: str) -> _Engine:
    return _Engine(_talks()[talk])


def assembled_messages(talk: str, question: str) -> list[dict[str, Any]]:
    """Return the turn that the engine assembles for a question."""
    return _engine(talk).assemble(question)


def last_messages(talk: str, question: str) -> list[dict[str, Any]]:
    """Return the conversation's last turns, dated, and the question."""
    lines: list[str] = []
    for turn in reversed(_talks()[talk].turns):
        day = datetime.fromtimestamp(turn["at"], UTC).strftime("%d %B %Y").lstrip("0")
        line = f"[{day}] {turn['name']}: {turn['content']}"
        if count("\n".join([line, *lines])) > LAST_TOKENS:
            break
        lines.insert(0, line)
    history = "\n".join(lines)
    return [{"role": "user", "content": f"The conversation:\n{history}\n\n{question}"}]
