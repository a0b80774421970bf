"""What a session is called in lists: the first question, where nothing in it is private.

titles: before writer. A title is content: it stands in the store like the messages, and nowhere
else; one that holds a secret or personal data is none.
"""

from __future__ import annotations

from holdfast.privacy import find
from holdfast.trim.anchors import asks
from holdfast.wire import Conversation, Text

MOST_CHARACTERS = 100
_LOOKED_AT = 4_000
"""Characters of a question that are read: what asks stands at its beginning."""


def title_of(asked: Conversation) -> str:
    """The beginning of the first question; empty if there is none that may be shown."""
    question = next(filter(asks, asked.messages), None)
    texts = [block.text for block in question.blocks if isinstance(block, Text)] if question else []
    # Agents put what they have to say about the machine first, in tags.
    spoken = [text for text in texts if not text.lstrip().startswith("<")] or texts
    words = " ".join("".join(spoken[:1])[:_LOOKED_AT].split())
    title = words if len(words) <= MOST_CHARACTERS else f"{words[: MOST_CHARACTERS - 1]}…"
    return "" if find(title) else title
