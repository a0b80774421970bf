"""What was said in a session: messages that are in the journal before they count.

transcript: after journal, before agent. Results of parallel tools come at once, and have one order;
who cancels a run leaves no step half done, in the journal and not in the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.agent.journal import Journal, Step
from holdfast.guard.estimate import estimate_messages_tokens, estimate_tool_schema_tokens


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
