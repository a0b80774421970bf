"""An assembled turn: the messages to send, their cost, and the source of each part."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.assemble.intents import TOKEN_BUDGET, Intent
from holdfast.assemble.working_set import PartKind, TrimTarget
from holdfast.expand import tool
from holdfast.expand.turn_recall import definition as recall_definition
from holdfast.summarise.fidelity import ContentFidelityRecord
from holdfast.wire import convert
from holdfast.wire.strict import encode

PLAIN = "openai-chat"
"""The dialect in which messages are written; `body` converts them."""
TRIMMED = "Context trimmed due to token limit"
"""The warning for a turn whose working set was trimmed."""

ChatMessage = dict[str, str]
"""`role` and `content`, as most clients expect."""


class ContextBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of a turn and their limit."""

    used: int
    """Input tokens of the serialized request, including tools."""
    limit: int
    warnings: tuple[str, ...] = ()


class AssembleContextInput(msgspec.Struct, frozen=True, kw_only=True):
    """A request for an assembled turn."""

    session_id: str
    user_turn: str
    intent: Intent | None = None
    """None to detect it."""
    topic_tags: tuple[str, ...] | None = None
    token_budget: int = TOKEN_BUDGET["total"]
    force_refresh: bool = False
    """Whether to read rules, tools and profile again; otherwise a session keeps its first header.
    """


class TurnSource(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an assembled turn and its source."""

    part: PartKind
    id: str
    """Id of the remembered turn or fact, the ref, or the name of a part of the header."""
    message: int
    """Index of the message that has it."""
    tokens: int
    score: float = 0.0
    stale: bool = False
    fidelity: ContentFidelityRecord
    """How much of the source is shown."""


class AssembledContext(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that can be sent."""

    header: tuple[ChatMessage, ...]
    """The same bytes in every turn."""
    working_set: tuple[ChatMessage, ...]
    """Recalled memory, recent pairs, and the user's turn last."""
    budget: ContextBudget
    lazy_tools: tuple[str, ...]
    """Tools that the model may request: our two, and those of the directory."""
    cache_key: str
    """Independent of the question: the key of the context in the answer cache."""
    sources: tuple[TurnSource, ...]
    intent: Intent
    trimmed: tuple[TrimTarget, ...] = ()
    """The trimmed parts of the working set, in the order of trimming."""
    opener: str = ""
    """The names of the two tools; empty if there is nothing to open."""
    recall: str = ""

    @property
    def messages(self) -> list[ChatMessage]:
        """Return all messages in the order in which they are sent."""
        return [*self.header, *self.working_set]

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Return the definitions of the tools, as for Chat Completions."""
        return tool_definitions(self.opener, self.recall)

    @property
    def fidelity(self) -> dict[str, ContentFidelityRecord]:
        """Return the fidelity records of all parts by key."""
        return {source.fidelity.key: source.fidelity for source in self.sources}

    def body(self, model: str = "", dialect: str = PLAIN) -> bytes:
        """Return the request as it is counted and sent; a client adds its own parameters."""
        return request_body(self.messages, self.tools, model, dialect)


def tool_definitions(opener: str, recall: str) -> list[dict[str, Any]]:
    """Return the definitions of the tools that search memory and open refs."""
    offered = [tool.definition(PLAIN, opener)] if opener else []
    return [*offered, recall_definition(PLAIN, recall)] if recall else offered


def request_body(
    messages: list[ChatMessage], tools: list[dict[str, Any]], model: str, dialect: str
) -> bytes:
    """Return a request with these messages and tools."""
    body: dict[str, Any] = {"model": model} if model else {}
    body["messages"] = messages
    if tools:
        body["tools"] = tools
    plain = encode(body)
    return plain if dialect == PLAIN else convert(plain, dialect, PLAIN).body
