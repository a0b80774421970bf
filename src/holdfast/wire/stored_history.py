"""Requests that reference content stored at the provider, such as the earlier history.

OpenAI Responses can continue an earlier response, or a conversation stored at the provider.
"""

from __future__ import annotations

from holdfast.wire.conversation import Conversation

STORED_CONTENT_FIELDS = ("previous_response_id", "conversation", "prompt", "cachedContent")
"""Request fields that reference stored content: it may change, and no other provider has it."""
_MOST_CHARACTERS = 200
"""Maximum characters of an id; OpenAI's have about fifty."""


def stored_fields(conversation: Conversation) -> list[str]:
    """Return the request's fields that reference content stored at its provider."""
    return [name for name in STORED_CONTENT_FIELDS if conversation.rest.get(name)]


def stored_history_id(conversation: Conversation) -> str:
    """Return the provider's id of the preceding history; empty if the request has all of it."""
    if conversation.dialect != "openai-responses":
        return ""
    body = conversation.rest
    return _name(body.get("previous_response_id")) or conversation_id(conversation)


def conversation_id(conversation: Conversation) -> str:
    """Return the id of the provider's conversation; the field is a string or an object."""
    reference = conversation.rest.get("conversation")
    return _name(reference.get("id") if isinstance(reference, dict) else reference)


def history_ids_after(asked: Conversation, answer_id: str) -> list[str]:
    """Return the ids under which the provider stores the history after this response."""
    if asked.dialect != "openai-responses" or asked.rest.get("store") is False:
        return []
    return [name for name in (_name(answer_id), conversation_id(asked)) if name]


def _name(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= _MOST_CHARACTERS else ""
