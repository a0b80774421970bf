"""Compare a model's answers from a full history and from an assembled turn.

The offline model quotes the lines that it is shown, so the similarity is the share of its
quotations from the full history that it also quotes from the assembled turn.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.assemble.composition import COUNTED_AS
from holdfast.assemble.context import PLAIN, AssembledContext, request_body
from holdfast.assemble.intents import Intent
from holdfast.models import answer
from holdfast.tokens import count
from holdfast.wire import Conversation, read

QUERIES = (
    "Search GitHub for alfred-system",
    "What did we discuss about caching?",
    "Create a task for implementing context strategy",
    "Summarize the last hour of work",
)
"""The queries that requirement documents use for this comparison."""
SIMILAR = 0.95
"""Required similarity of answers from both contexts."""

_QUOTED = re.compile(r"^> ?(.*)$", re.MULTILINE)
_WORD = re.compile(r"\w+")

AnswerFunction = Callable[[Conversation], Awaitable[str]]
"""Returns a model's answer to a conversation."""
AssembleFunction = Callable[[str], Awaitable[AssembledContext]]
"""Returns the turn assembled for a question."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to one question from both contexts."""

    query: str
    intent: Intent
    full_tokens: int
    assembled_tokens: int
    similarity: float
    """The share of the full answer's words that the assembled answer has too."""
    full_answer: str
    assembled_answer: str

    @property
    def reduction(self) -> float:
        """Return the share of the tokens that was saved."""
        return 1 - self.assembled_tokens / max(1, self.full_tokens)

    @property
    def is_alike(self) -> bool:
        """Return whether the answers are similar enough."""
        return self.similarity > SIMILAR


async def compare(
    history: Sequence[Mapping[str, Any]],
    query: str,
    assemble: AssembleFunction,
    *,
    model: str = "",
    answer_with: AnswerFunction | None = None,
) -> Comparison:
    """Answer a question from a full history and from the turn assembled for it."""
    ask = answer_with or quote_offline
    messages = [*({"role": m["role"], "content": m["content"]} for m in history), _user(query)]
    full = read(request_body(messages, [], model, PLAIN), PLAIN)
    context = await assemble(query)
    assembled = read(context.body(model), PLAIN)
    full_answer, assembled_answer = await ask(full), await ask(assembled)
    return Comparison(
        query=query,
        intent=context.intent,
        full_tokens=count(full, model=model or COUNTED_AS).tokens,
        assembled_tokens=context.budget.used,
        similarity=similarity(full_answer, assembled_answer),
        full_answer=full_answer,
        assembled_answer=assembled_answer,
    )


async def quote_offline(conversation: Conversation) -> str:
    """Return the offline model's quotations for the question; system messages are left out."""
    spoken_messages = tuple(
        message for message in conversation.messages if message.role != "system"
    )
    return "\n".join(_QUOTED.findall(answer(conversation.with_messages(spoken_messages)).text))


def similarity(full: str, assembled: str) -> float:
    """Return the share of the full answer's words that the assembled answer has too."""
    full_words, assembled_words = (
        Counter(_WORD.findall(text.casefold())) for text in (full, assembled)
    )
    return (full_words & assembled_words).total() / full_words.total() if full_words else 1.0


def _user(query: str) -> dict[str, str]:
    return {"role": "user", "content": query}
