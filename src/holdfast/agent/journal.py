"""A run's journal: each step is durable before the next begins, so that another machine can go on.

journal: beside tools. Of two processes that go on from one place, one is refused by the store.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

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
