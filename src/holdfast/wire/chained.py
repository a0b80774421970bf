"""Requests that name content which the provider stores, such as the history before them.

chained: after conversation, beside tools. OpenAI's Responses go on from an earlier response, or
inside a conversation that lives at the provider.
"""

from __future__ import annotations

from holdfast.wire.conversation import Conversation

HELD_BY_PROVIDERS = ("previous_response_id", "conversation", "prompt", "cachedContent")
"""Request fields that name such content: it may change, and no other provider has it."""
_MOST_CHARACTERS = 200
"""Of a name: those of OpenAI have some fifty, and what is longer is nobody's id."""


def held_fields(conversation: Conversation) -> list[str]:
    """Return the fields of a request that name content which only its provider has."""
    return [name for name in HELD_BY_PROVIDERS if conversation.rest.get(name)]


def held_under(conversation: Conversation) -> str:
    """The provider's name for what came before; empty if the request holds its whole history."""
    if conversation.dialect != "openai-responses":
        return ""
    body = conversation.rest
    return _name(body.get("previous_response_id")) or conversation_id(conversation)


def conversation_id(conversation: Conversation) -> str:
    """The conversation at the provider that a request belongs to; it comes as text or an object."""
    given = conversation.rest.get("conversation")
    return _name(given.get("id") if isinstance(given, dict) else given)


def names_of_answer(asked: Conversation, answer_id: str) -> list[str]:
    """The names under which the provider holds the history once it has answered."""
    if asked.dialect != "openai-responses" or asked.rest.get("store") is False:
        return []
    return [name for name in (_name(answer_id), conversation_id(asked)) if name]


def _name(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= _MOST_CHARACTERS else ""
