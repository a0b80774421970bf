"""A recorded agent, turn by turn: what is added to the conversation, and what the model answers.

recording: after reuse. Every conversation is told in OpenAI's chat dialect, repaired where it was
not well-formed, with its tools declared as they were called.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import holdfast
from benchmarks.regret.reuse import texts_of
from holdfast.engine.session_replay import Reuse
from holdfast.tokens import ModelContextRegistry
from tests.support.recorded import trajectories
from tests.surfaces.proxy.replaying import tools_of

MODEL = "gpt-5"
"""Counts all of them, so that tokens are comparable, and has cached input at a tenth of the price
like Anthropic's models: what our policy weighs by. The windows are those of the recorded models."""
_UNNAMED = "claude-sonnet-4-5"
"""For the recordings that do not say which model it was."""
_REGISTRY = ModelContextRegistry()

CODING = frozenset({"swe-mini-bash", "swe-mini-toolcalls"})


class Turn(NamedTuple):
    """One call of the model."""

    added: list[dict[str, Any]]
    answer: list[dict[str, Any]]


class Recording:
    """A conversation with a recorded agent."""

    def __init__(self, trajectory: dict[str, Any]) -> None:
        self.id: str = trajectory["id"]
        self.source: str = trajectory["source"]
        self.task = f"{self.source}/{trajectory['task']}"
        self.model: str = trajectory.get("model") or _UNNAMED
        body = {"model": MODEL, "messages": trajectory["messages"]}
        self.messages: list[dict[str, Any]] = json.loads(holdfast.repair(body, "openai-chat").body)[
            "messages"
        ]

    @property
    def learns(self) -> bool:
        """Whether coefficients may be learnt from it; all runs of one task are in one half."""
        return hashlib.sha256(self.task.encode()).digest()[0] % 2 == 0

    @cached_property
    def own_window(self) -> int:
        """Input tokens that its own model takes."""
        return _REGISTRY.resolve(self.model).input_budget

    @cached_property
    def tokens(self) -> list[float]:
        """Of what is around the messages, and of each of them."""
        counted = holdfast.count({**self.frame, "messages": self.messages}, dialect="openai-chat")
        each = counted.message_tokens
        return [counted.tokens - sum(each), *each]

    @cached_property
    def frame(self) -> dict[str, Any]:
        """The request around its messages."""
        tools = tools_of(self.messages)
        return {"model": MODEL, **({"tools": tools} if tools else {})}

    @cached_property
    def turns(self) -> list[Turn]:
        runs = [list(run) for _, run in groupby(self.messages, lambda m: m["role"] == "assistant")]
        if self.messages[0]["role"] == "assistant":
            runs = [runs[0] + runs[1], *runs[2:]] if len(runs) > 1 else []
        return [Turn(*pair) for pair in zip(runs[::2], runs[1::2], strict=False)]

    @cached_property
    def reuse(self) -> Reuse:
        answers = (turn.answer for turn in self.turns)
        return Reuse([t for message in answer for t in texts_of(message)] for answer in answers)


def recordings(every: int = 1, source: str = "") -> Iterator[Recording]:
    """Every so many-th of each source, or of one source."""
    seen: dict[str, int] = {}
    for trajectory in trajectories():
        number = seen[trajectory["source"]] = seen.get(trajectory["source"], -1) + 1
        if number % every == 0 and source in ("", trajectory["source"]):
            recording = Recording(trajectory)
            if recording.turns:
                yield recording
