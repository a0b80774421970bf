"""The values that a client returns: a reply, and the parts of a streaming one.

replies: after requests. Their representations contain sizes, never text.

Also the report of a client: its budget, the accuracy of counts, and the savings of strategies. It
contains numbers and names, never text of a conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.budget import TokenBudgetReport, Usage
from holdfast.store.records import Edit
from holdfast.tokens.calibration import ModelAccuracy
from holdfast.trim import Effect
from holdfast.wire.responses import ModelCall


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, its usage, and the edits of its request."""

    text: str
    calls: tuple[ModelCall, ...] = ()
    """The tools that the model asks for, without the calls that open refs, which are answered."""
    messages: list[dict[str, Any]] = []
    """The assistant's turn in the dialect of the messages that were sent: append it to them."""
    stop_reason: str = ""
    model: str = ""
    usage: Usage = Usage()
    """As the provider reports it, summed over all that the answer took."""
    context_tokens: int = 0
    """Input tokens of the request itself, without the calls that opened refs."""
    predicted: int = 0
    """Input tokens as they were counted before."""
    untouched: int = 0
    """Input tokens that the request would have had without us."""
    limit: int = 0
    edits: tuple[Edit, ...] = ()
    warnings: tuple[str, ...] = ()
    turn: int = 0
    """Its number in the session: see `holdfast request show`."""
    session: str = ""
    body: bytes = b""
    """The answer as the provider wrote it, without the calls that were answered inside."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Usage and edits, as plain values (001-71)."""
        return {
            "model": self.model,
            "session": self.session,
            "turn": self.turn,
            "usage": {"input": self.usage.input, "output": self.usage.output},
            "predicted": self.predicted,
            "untouched": self.untouched,
            "limit": self.limit,
            "edits": [msgspec.to_builtins(edit) for edit in self.edits],
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        return f"<Reply, {len(self.text)} characters, {len(self.calls)} calls>"


class ReplyPart(msgspec.Struct, frozen=True):
    """A piece of an answer that streams; the last one holds the reply."""

    text: str = ""
    reply: Reply | None = None

    def __repr__(self) -> str:
        return f"<Part, {len(self.text)} characters>"


class ClientReport(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a client at one moment."""

    model: str
    session: str
    budget: TokenBudgetReport
    accuracy: tuple[ModelAccuracy, ...]
    """How far counts were from what providers reported, by model (001-32)."""
    effects: tuple[Effect, ...]
    """What each strategy did in this process (001-10)."""

    def data(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        return {
            "model": self.model,
            "session": self.session,
            **self.budget.data(),
            "accuracy": msgspec.to_builtins(self.accuracy),
            "effects": msgspec.to_builtins(self.effects),
        }

    def text(self) -> str:
        """The report in lines for a person."""
        lines = [f"{self.model}, session {self.session}", self.budget.text()]
        lines += [
            f"counts of {each.model}: {each.observed:,} reported, "
            f"off by {100 * each.corrected_error:.1f}% (median)"
            for each in self.accuracy
        ]
        lines += [
            f"strategy {each.strategy}: {each.runs:,} runs, {each.reached:,} reached, "
            f"{each.failed:,} failed, {each.tokens_saved:,} tokens saved"
            + (f"; lost anchors: {', '.join(each.lost)}" if each.lost else "")
            for each in self.effects
        ]
        return "\n".join(lines) + "\n"
