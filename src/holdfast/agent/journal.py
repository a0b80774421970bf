"""A run's journal: each step is durable before the next begins, so that another machine can go on.

journal: beside tools. Of two processes that go on from one place, one is refused by the store.

What was said in a session: messages that are in the journal before they count. Results of parallel
tools come at once, and have one order; who cancels a run leaves no step half done, in the journal
and not in the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from holdfast.guard.estimate import estimate_messages_tokens, estimate_tool_schema_tokens
from holdfast.store import Scope, Store

NAME = "agent"

Kind = Literal["task", "turn", "result", "told", "report", "ended"]


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry."""

    kind: Kind
    messages: list[dict[str, Any]] = []
    """What it adds to the conversation."""
    provider: str = ""
    input: int = 0
    output: int = 0
    text: str = ""
    """Of a report, or of the end."""
    meta: dict[str, Any] = {}
    why: str = ""

    def __repr__(self) -> str:
        return f"<Step {self.kind}, {len(self.messages)} messages>"


class Journal:
    """The journal of one session."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self._next = 1

    async def read(self) -> list[Step]:
        """All steps so far; from then on this process is the one that goes on."""
        entries = await self._store.journal.read(self._scope, NAME)
        self._next = entries[-1].sequence + 1 if entries else 1
        return [msgspec.json.decode(entry.data, type=Step) for entry in entries]

    async def add(self, *steps: Step) -> None:
        """Write steps down; durable when this returns.

        Raises:
            StoreConflictError: another process has gone on from here.
        """
        data = [msgspec.json.encode(step) for step in steps]
        self._next = await self._store.journal.append(self._scope, NAME, data, expect=self._next)


class Transcript:
    """The conversation of one session, as OpenAI's chat writes messages."""

    def __init__(self, journal: Journal, tokenizers: Sequence[str | None]) -> None:
        """Begin with nothing; `tokenizers` are those of the targets: the most counts."""
        self.messages: list[dict[str, Any]] = []
        self._journal = journal
        self._tokenizers = tuple(tokenizers)
        self._writing = asyncio.Lock()

    async def read(self) -> list[Step]:
        """The steps that the journal holds."""
        return await self._journal.read()

    async def add(self, step: Step) -> None:
        """Write a step down and take it into the conversation: both, whoever cancels meanwhile."""
        await asyncio.shield(self._written(step))

    async def _written(self, step: Step) -> None:
        async with self._writing:
            await self._journal.add(step)
            self.messages += step.messages

    async def unanswered(self, text: str) -> list[dict[str, Any]]:
        """A result with this text for every call that has none: then the conversation is valid."""
        async with self._writing:  # what is on its way into the journal was not interrupted
            pass
        answered = {m.get("tool_call_id") for m in self.messages if m.get("role") == "tool"}
        calls = [call for m in self.messages for call in m.get("tool_calls") or ()]
        return [
            {"role": "tool", "tool_call_id": call["id"], "content": text}
            for call in calls
            if call["id"] not in answered
        ]

    def tokens_of(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """Tokens of messages, for the target that counts most."""
        plain = bare(messages)
        return max(estimate_messages_tokens(plain, name) for name in self._tokenizers)

    def schema_tokens(self, definitions: Sequence[Mapping[str, Any]]) -> int:
        """Tokens of tools, for the target that counts most."""
        return max(estimate_tool_schema_tokens(definitions, name) for name in self._tokenizers)


def bare(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages without what Holdfast keeps on them: marks and counts."""
    return [{key: value for key, value in m.items() if key != "holdfast"} for m in messages]
