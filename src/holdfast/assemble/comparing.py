"""The same question asked of a whole history and of an assembled turn: how alike the answers are.

comparing: after assembler. The regression of 004-61: the four queries of the seed (004-62), or
others, are answered by one model from both contexts. The offline model quotes what it is shown,
with the lines beside it: so the measure is how much of what it quotes from the whole history it
quotes from the assembled turn too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.assemble.composing import COUNTED_AS
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
"""The seed's (004-62)."""
SIMILAR = 0.95
"""What the seed asks of answers from both contexts (004-61)."""

_QUOTED = re.compile(r"^> ?(.*)$", re.MULTILINE)
_WORD = re.compile(r"\w+")

Answering = Callable[[Conversation], Awaitable[str]]
"""Asks a model what it answers to a conversation."""
Assembling = Callable[[str], Awaitable[AssembledContext]]
"""Assembles the turn that asks a question."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One question, asked of both contexts."""

    query: str
    intent: Intent
    full_tokens: int
    assembled_tokens: int
    similarity: float
    """The share of the words of the one answer that stand in the other too."""
    full_answer: str
    assembled_answer: str

    @property
    def reduction(self) -> float:
        """The share of the tokens that was not sent."""
        return 1 - self.assembled_tokens / max(1, self.full_tokens)

    @property
    def is_alike(self) -> bool:
        """Whether the answers are as alike as the seed asks."""
        return self.similarity > SIMILAR


async def compare(
    history: Sequence[Mapping[str, Any]],
    query: str,
    assembling: Assembling,
    *,
    model: str = "",
    answering: Answering | None = None,
) -> Comparison:
    """Ask a question of a whole history and of the turn that was assembled for it."""
    ask = answering or quoted
    asked = [*({"role": m["role"], "content": m["content"]} for m in history), _user(query)]
    whole = read(request_body(asked, [], model, PLAIN), PLAIN)
    context = await assembling(query)
    assembled = read(context.body(model), PLAIN)
    full_answer, assembled_answer = await ask(whole), await ask(assembled)
    return Comparison(
        query=query,
        intent=context.intent,
        full_tokens=count(whole, model=model or COUNTED_AS).tokens,
        assembled_tokens=context.budget.used,
        similarity=similarity(full_answer, assembled_answer),
        full_answer=full_answer,
        assembled_answer=assembled_answer,
    )


async def quoted(conversation: Conversation) -> str:
    """What the offline model quotes on the question; rules hold nothing that was said."""
    said = tuple(message for message in conversation.messages if message.role != "system")
    return "\n".join(_QUOTED.findall(answer(conversation.with_messages(said)).text))


def similarity(full: str, assembled: str) -> float:
    """How much of an answer from all that was said stands in the one from the assembled turn."""
    wanted, given = (Counter(_WORD.findall(text.casefold())) for text in (full, assembled))
    return (wanted & given).total() / wanted.total() if wanted else 1.0


def _user(query: str) -> dict[str, str]:
    return {"role": "user", "content": query}
