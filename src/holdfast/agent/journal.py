"""A run's journal and conversation: a run can be resumed after any step.

If two processes continue from the same step, the store refuses one of them. Cancelling a run never
leaves a step half done, neither in the journal nor in the conversation.
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


class JournalStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of the journal."""

    kind: Kind
    messages: list[dict[str, Any]] = []
    """The messages that it adds to the conversation."""
    provider: str = ""
    input: int = 0
    output: int = 0
    text: str = ""
    """The text of a report or of the end."""
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

    async def read(self) -> list[JournalStep]:
        """Return all steps so far; after this, the process may append to them."""
        entries = await self._store.journal.read(self._scope, NAME)
        self._next = entries[-1].sequence + 1 if entries else 1
        return [msgspec.json.decode(entry.data, type=JournalStep) for entry in entries]

    async def add(self, *steps: JournalStep) -> None:
        """Append steps; they are durable when this returns.

        Raises:
            StoreConflictError: if another process has continued from here.
        """
        data = [msgspec.json.encode(step) for step in steps]
        self._next = await self._store.journal.append(self._scope, NAME, data, expect=self._next)


class Transcript:
    """The conversation of one session, as Chat Completions messages."""

    def __init__(self, journal: Journal, tokenizers: Sequence[str | None]) -> None:
        """Begin without messages; of the targets' `tokenizers`, the highest count is used."""
        self.messages: list[dict[str, Any]] = []
        self._journal = journal
        self._tokenizers = tuple(tokenizers)
        self._writing = asyncio.Lock()

    async def read(self) -> list[JournalStep]:
        """Return the steps of the journal."""
        return await self._journal.read()

    async def add(self, step: JournalStep) -> None:
        """Append a step to the journal and the conversation: both, even if cancelled meanwhile."""
        await asyncio.shield(self._append(step))

    async def _append(self, step: JournalStep) -> None:
        async with self._writing:
            await self._journal.add(step)
            self.messages += step.messages

    async def unanswered(self, text: str) -> list[dict[str, Any]]:
        """Return a result with this text for every call without one, as providers require."""
        async with self._writing:  # a step that is being written was not interrupted
            pass
        answered_ids = {m.get("tool_call_id") for m in self.messages if m.get("role") == "tool"}
        calls = [call for m in self.messages for call in m.get("tool_calls") or ()]
        return [
            {"role": "tool", "tool_call_id": call["id"], "content": text}
            for call in calls
            if call["id"] not in answered_ids
        ]

    def tokens_of(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """Return the tokens of messages for the target that counts most."""
        plain = without_holdfast_keys(messages)
        return max(estimate_messages_tokens(plain, name) for name in self._tokenizers)

    def schema_tokens(self, definitions: Sequence[Mapping[str, Any]]) -> int:
        """Return the tokens of tool definitions for the target that counts most."""
        return max(estimate_tool_schema_tokens(definitions, name) for name in self._tokenizers)


def without_holdfast_keys(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages without the keys that Holdfast adds to them: marks and counts."""
    return [{key: value for key, value in m.items() if key != "holdfast"} for m in messages]
