"""The title of a session in lists: the first words that a person wrote, unless they are private.

titles: after client_texts, before writer. A title is content: it is stored like the messages, and
nowhere else. A text with a secret or personal data gives no title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from holdfast.engine.client_texts import (
    COMMAND_TEMPLATES,
    EXAMPLES_END,
    SETUP_TAGS,
    SETUP_TEXTS,
    USER_TAGS,
    CommandTemplate,
)
from holdfast.privacy import find
from holdfast.trim.anchors import asks
from holdfast.wire import Conversation, Message, Text

MOST_CHARACTERS = 100
_READ = 4_000
"""Characters of a text that are read once its set-up blocks are cut off."""
_MOST_TEXTS = 100
"""Texts that are looked at: after a compaction, the user's next words come within a few."""
_MOST_MESSAGES = 400
_MOST_EXAMPLES = 20
"""Messages among which the end of a client's examples is looked for; aider has six at most."""
_MOST_BLOCKS = 50
"""XML-like blocks that are cut off at the beginning of one text."""
_TAG = re.compile(r"<([A-Za-z][\w.:-]{0,60})((?:\s[^<>]{0,300})?/?)>")
_SPACE = re.compile(r"\s*+")
_COMMENT = ("<!--", "-->")
_LATER_SETUP = re.compile(rf"<(?:{'|'.join(sorted(map(re.escape, SETUP_TAGS)))})[\s>]")
_SETUP_STARTS = tuple(text.start for text in SETUP_TEXTS)
_COMMAND = "command-message"
"""The tag that Claude Code 2 puts first for a command that asks the model something. For its own
commands, such as /clear, `command-name` comes first."""
_COMMAND_PART = re.compile(r"<command-(name|args)>([^<]*+)")
_NOT_PRINTED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def title_of(asked: Conversation) -> str:
    """Return the beginning of the first text of the user; empty if none may be shown."""
    for texts in _turns(asked):
        parts = [_own_words(text) for text in texts]
        # Words outside of any tags come first, because clients put their own texts in tags.
        words = next(filter(None, (words for words, _ in parts)), "")
        words = words or next(filter(None, (inner for _, inner in parts)), "")
        if words:
            return _shown(words)
    return ""


def _turns(asked: Conversation) -> Iterator[list[str]]:
    """Yield the user's first texts, those up to each answer together.

    A message is not read before its turn: the bytes of cited contents are no longer in memory.
    """
    texts: list[str] = []
    remaining = _MOST_TEXTS
    for message in asked.messages[_after_examples(asked) : _MOST_MESSAGES]:
        if message.role == "assistant":
            yield texts
            texts = []
        elif remaining > 0 and asks(message):
            text = _texts(message)[:remaining]
            texts += text
            remaining -= len(text)
    yield texts


def _after_examples(asked: Conversation) -> int:
    """Return where the messages begin that are not examples of the client's own."""
    leading = enumerate(asked.messages[:_MOST_EXAMPLES], start=1)
    return max((end for end, message in leading if message.holds(EXAMPLES_END)), default=0)


def _texts(message: Message) -> list[str]:
    texts = (block.text for block in message.blocks if isinstance(block, Text))
    return list(islice(texts, _MOST_TEXTS))


def _own_words(text: str) -> tuple[str, str]:
    """Return the person's own words in a text, and the text of its first unknown block."""
    start, inner = _skip_space(text, 0), ""
    for number in range(_MOST_BLOCKS):
        block = _block_at(text, start)
        if block is None:
            break
        name, content, end = block
        start = _skip_space(text, end)
        if name == _COMMAND and not number:
            return _command(text[:_READ]), inner
        if name in USER_TAGS:
            return content, inner
        if name not in SETUP_TAGS:
            inner = inner or content
    words = text[start : start + _READ]
    if words.startswith(_SETUP_STARTS):
        return "", inner
    for template in COMMAND_TEMPLATES:
        if words.startswith(template.start):
            return _from_template(words, template), inner
    later = _LATER_SETUP.search(words)
    return (words[: later.start()] if later else words).strip(), inner


def _skip_space(text: str, start: int) -> int:
    space = _SPACE.match(text, start)
    return space.end() if space else start


def _block_at(text: str, start: int) -> tuple[str, str, int] | None:
    """Return the name, content and end of the block that begins here; None if none does."""
    if text.startswith(_COMMENT[0], start):
        end = text.find(_COMMENT[1], start)
        return ("", "", end + len(_COMMENT[1])) if end >= 0 else None
    tag = _TAG.match(text, start)
    if tag is None:
        return None
    name = tag[1]
    if tag[2].endswith("/"):
        return name, "", tag.end()
    close = text.find(f"</{name}", tag.end())
    end = text.find(">", close) if close >= 0 else -1
    if end < 0:  # a client closes its tags; a person may write about an open one
        return (name, "", len(text)) if name in SETUP_TAGS else None
    return name, text[tag.end() : min(close, tag.end() + _READ)].strip(), end + 1


def _command(text: str) -> str:
    """Return a command as it was typed: its name and arguments."""
    parts = {match[1]: match[2].strip() for match in _COMMAND_PART.finditer(text)}
    return f"{parts.get('name', '')} {parts.get('args', '')}".strip()


def _from_template(words: str, template: CommandTemplate) -> str:
    argument = words.partition(template.argument)[2].partition("\n\n")[0]
    return f"{template.command} {argument.strip()}".strip()


def _shown(words: str) -> str:
    line = " ".join(_NOT_PRINTED.sub(" ", words[:_READ]).split())
    title = line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…"
    return "" if find(title) else title
