"""Recognise the side requests of clients: titles, quota checks, compactions, checks.

side_requests: after client_texts. A side request is no conversation: lists show it separately, and
no conversation continues from it.
"""

from __future__ import annotations

from itertools import islice

from holdfast.engine.client_texts import ONE_TOKEN, SIDE_ITEMS, SIDE_TEXTS, SideText, Where
from holdfast.wire import Block, Conversation, Message, Text

_MOST_BLOCKS = 8
"""System blocks that are looked at; Claude Code has four."""
_READ = max(len(row.start) for row in SIDE_TEXTS) + 100
"""Characters of a text that are read: a prompt is at the beginning."""
_BY_PLACE: dict[Where, tuple[SideText, ...]] = {
    where: tuple(row for row in SIDE_TEXTS if row.where == where)
    for where in ("system", "first", "last")
}


def purpose_of(conversation: Conversation, client: str = "") -> str:
    """Return the purpose of a side request, such as `title`; empty for a conversation."""
    if not conversation.messages:
        return ""
    last = conversation.messages[-1]
    if last.role == "system":
        return _of_item(last)
    if last.role != "user":
        return ""
    text = _last_text(last)
    if conversation.rest.get("max_tokens") == 1 and client in ONE_TOKEN:
        purposes = ONE_TOKEN[client]
        return purposes.get(text.strip(), purposes[""])
    return (
        _of_text("last", text, client)
        or _of_text("first", _first_text(conversation), client)
        or _of_system(conversation.leading_system, client)
    )


def _of_item(last: Message) -> str:
    """Return the purpose that the type of the last item gives a request."""
    kind = last.parsed.get("type") if isinstance(last.parsed, dict) else None
    return SIDE_ITEMS.get(kind, "") if isinstance(kind, str) else ""


def _of_system(blocks: tuple[Block, ...], client: str) -> str:
    texts = (block.text for block in blocks[:_MOST_BLOCKS] if isinstance(block, Text))
    return next(filter(None, (_of_text("system", text, client) for text in texts)), "")


def _of_text(where: Where, text: str, client: str) -> str:
    start = text[:_READ].lstrip()
    for row in _BY_PLACE[where]:
        if start.startswith(row.start) and (not row.only or row.client == client):
            return row.purpose
    return ""


def _first_text(conversation: Conversation) -> str:
    first = next((m for m in islice(conversation.messages, 50) if m.role == "user"), None)
    texts = (block.text for block in first.blocks if isinstance(block, Text)) if first else ()
    return next(iter(texts), "")


def _last_text(last: Message) -> str:
    texts = (block.text for block in reversed(last.blocks) if isinstance(block, Text))
    return next(texts, "")
