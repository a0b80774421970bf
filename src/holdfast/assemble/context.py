"""An assembled turn as a value: the messages to send, what they cost, and what each stands for.

context: after working_set. Nothing of it is read back from the texts: which turn, fact or stored
result a part is, and how much of it is left, stands in `sources`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.assemble.intents import TOKEN_BUDGET, Intent
from holdfast.assemble.working_set import PartKind, TrimTarget
from holdfast.expand import tool
from holdfast.expand.recalling import definition as recall_definition
from holdfast.summarise.fidelity import ContentFidelityRecord
from holdfast.wire import convert
from holdfast.wire.strict import encode

PLAIN = "openai-chat"
"""The dialect that messages are written in; a body can be had in each."""
TRIMMED = "Context trimmed due to token limit"
"""The warning of 004-67."""

ChatMessage = dict[str, str]
"""`role` and `content`, as most clients take them."""


class BudgetInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn costs, of what it may."""

    used: int
    """Input tokens of the serialized request, tools included."""
    limit: int
    warnings: tuple[str, ...] = ()


class AssembleContextInput(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    session_id: str
    user_turn: str
    intent: Intent | None = None
    """None: it is detected."""
    topic_tags: tuple[str, ...] | None = None
    token_budget: int = TOKEN_BUDGET["total"]
    force_refresh: bool = False
    """Take up rules, tools and profile anew: else a session keeps the header that it began with."""


class TurnSource(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an assembled turn, and what it stands for."""

    part: PartKind
    id: str
    """Of the remembered turn or the fact, or the ref; of the header, the name of its part."""
    message: int
    """Which of the messages it stands in."""
    tokens: int
    score: float = 0.0
    stale: bool = False
    fidelity: ContentFidelityRecord
    """How much of it is left."""


class AssembledContext(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that can be sent."""

    header: tuple[ChatMessage, ...]
    """The same bytes turn after turn."""
    working_set: tuple[ChatMessage, ...]
    """Recalled memory, recent pairs, and the user's turn last."""
    budget: BudgetInfo
    lazy_tools: tuple[str, ...]
    """Tools that the model may ask for: the two of ours, and those of the directory."""
    cache_key: str
    """The same for the same context, whatever is asked in it: what answers are kept under."""
    sources: tuple[TurnSource, ...]
    intent: Intent
    trimmed: tuple[TrimTarget, ...] = ()
    """What had to go so that it fits."""
    opener: str = ""
    """The names under which the two tools are offered; empty where nothing could be opened."""
    recall: str = ""

    @property
    def messages(self) -> list[ChatMessage]:
        """All of them, as they are sent."""
        return [*self.header, *self.working_set]

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The definitions that go with them, in the form of Chat Completions."""
        return tool_definitions(self.opener, self.recall)

    @property
    def fidelity(self) -> dict[str, ContentFidelityRecord]:
        """The records of all parts, by their keys."""
        return {source.fidelity.key: source.fidelity for source in self.sources}

    def body(self, model: str = "", dialect: str = PLAIN) -> bytes:
        """The request, as it is counted and sent; a client adds what it wants of the answer."""
        return request_body(self.messages, self.tools, model, dialect)


def tool_definitions(opener: str, recall: str) -> list[dict[str, Any]]:
    """What the model finds and opens things with."""
    offered = [tool.definition(PLAIN, opener)] if opener else []
    return [*offered, recall_definition(PLAIN, recall)] if recall else offered


def request_body(
    messages: list[ChatMessage], tools: list[dict[str, Any]], model: str, dialect: str
) -> bytes:
    """A request made of messages and tools."""
    body: dict[str, Any] = {"model": model} if model else {}
    body["messages"] = messages
    if tools:
        body["tools"] = tools
    plain = encode(body)
    return plain if dialect == PLAIN else convert(plain, dialect, PLAIN).body
