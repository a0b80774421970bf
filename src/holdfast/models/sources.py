"""The last question of a conversation, and the texts that may answer it.

Finds and labels texts; it selects none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.condense.condenser import Passage
from holdfast.condense.kinds import condenser_for
from holdfast.condense.source import Source
from holdfast.document.pasted import LONGEST_QUESTION, enclosed, paragraphs
from holdfast.guard.final_turn import final_turn_guidance
from holdfast.quoting import INDENT
from holdfast.store.refs import REF
from holdfast.wire import Block, Conversation, Message, Text, ToolCall, ToolResult
from holdfast.wire.blocks import text_of

_SENTENCES = re.compile(r"(?<=[.!?])\s+")
_LOOKED_AT = 100_000
"""Characters of a text without paragraphs that are taken apart into sentences."""
# Possessive: digits that were taken for lines are not tried again as the rest of the line.
_OPENED = re.compile(
    r"^\[(ref:[a-z0-9_]{1,40}:[0-9a-f]{16,64})\b(?: (lines? [\d-]++))?+[^\n]*+\n(`{3,}+)\n",
    re.M,
)
"""The first line of an opened passage, and its opening fence."""
_ITEM = re.compile(rf"^- ([^\n]*+(?:\n{INDENT}[^\n]*+)*+)", re.M)
"""A passage of an answer; its further lines are set in."""
_PLACE_BEFORE = re.compile(
    r"((?:lines?|rows?|items?|paragraph|characters) [\d,-]+(?: of [^\n]*?)?"
    r"|\$[^\n]*?|section: [^\n]*?): "
)
_LINES_BEHIND = re.compile(r" \((lines? [\d-]{1,30})\)\Z")
"""The place at the end of a passage: see `condense.places.labelled`."""


class LastQuestion(NamedTuple):
    """The last question of a conversation."""

    question: str
    """Empty if it asks nothing."""
    at: int
    """Its message; later openings were made for it."""
    about: str = ""
    """Other text of the same message."""


class LabelledText(NamedTuple):
    """A text of the conversation that can be quoted."""

    label: str
    text: str
    opened: str = ""
    """The ref, if the text is an opened part of one."""


def asked(messages: Sequence[Message]) -> LastQuestion:
    """Return the user's last question; text that the proxy adds to a last turn is none."""
    ending = final_turn_guidance(())
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role != "user":
            continue
        texts = [block.text for block in messages[at].blocks if isinstance(block, Text)]
        text = "\n\n".join(text for text in texts if text.strip() and text != ending)
        if text:
            question, about = _taken_apart(text)
            return LastQuestion(question, at, about)
    return LastQuestion("", len(messages))


def _taken_apart(text: str) -> tuple[str, str]:
    """Return the question in a text, and the content before or after it."""
    inside = enclosed(text)
    if inside.size:
        beside = (text[: inside.start].strip(), text[inside.stop :].strip())
        return "\n".join(filter(None, beside)), text[inside.start : inside.stop]
    parts = [text[start:stop] for start, stop in paragraphs(text)]
    if len(parts) == 1 or len(text) <= LONGEST_QUESTION:
        return _by_sentences(text.strip())
    first, *remaining = parts
    if first.endswith(("?", ":")) and not remaining[-1].endswith("?"):
        return first, "\n\n".join(remaining)
    return remaining[-1], "\n\n".join([first, *remaining[:-1]])


def _by_sentences(text: str) -> tuple[str, str]:
    """The sentences that ask, and the others; a text of which none or each does is a question."""
    sentences = _SENTENCES.split(text[:_LOOKED_AT])
    questions = [sentence for sentence in sentences if sentence.endswith("?")]
    statements = [sentence for sentence in sentences if not sentence.endswith("?")]
    if not questions or not statements:
        return text, ""
    return " ".join(questions), "\n".join(statements) + text[_LOOKED_AT:]


def held(
    conversation: Conversation, question: LastQuestion, tool: str | None
) -> Iterator[LabelledText]:
    """All that can be quoted; `tool` is the name of the one that opens refs."""
    names: dict[str, str] = {}
    for block in conversation.system:
        if isinstance(block, Text) and block.text.strip():
            yield LabelledText("the instructions", block.text)
    for index, message in enumerate(conversation.messages):
        if index == question.at and question.about:
            yield _said(message, index, question.about)
        for block in message.blocks:
            if isinstance(block, ToolCall):
                names[block.id] = block.name
            elif isinstance(block, ToolResult) and block.text.strip():
                yield _result(block, block.name or names.get(block.call_id, ""), tool)
            elif _is_said(block, message) and index != question.at:
                yield _said(message, index, text_of(block))


def _said(message: Message, index: int, text: str) -> LabelledText:
    """Return a text of a message; a passage opened ahead is content of its ref, not the user's."""
    if message.role == "user" and (opened := _OPENED.search(text)):
        return LabelledText(f"the stored {opened[1]}", text[opened.start() :], opened[1])
    return LabelledText(_who(message, index), text)


def _result(block: ToolResult, name: str, tool: str | None) -> LabelledText:
    # The user knows nothing of the tool that opens refs, but the ref is in the citation.
    if name == tool and (opened := _OPENED.match(block.text)):
        return LabelledText(f"the stored {opened[1]}", block.text, opened[1])
    return LabelledText(f"the result of `{name}`" if name else "a tool's result", block.text)


def _is_said(block: Block, message: Message) -> bool:
    """Return whether a block is a message: an older question answers nothing."""
    if not isinstance(block, Text) or message.role not in ("user", "assistant"):
        return False
    text = block.text.strip()
    asks = message.role == "user" and text.endswith("?") and len(text) <= LONGEST_QUESTION
    return bool(text) and not asks


def _who(message: Message, index: int) -> str:
    return f"{'what you said' if message.role == 'user' else 'the answer'} in message {index + 1}"


def passages(one: LabelledText) -> Sequence[Passage]:
    """Return the parts of a text, with their places in its source."""
    if one.opened and (heading := _OPENED.match(one.text)):
        # Nothing inside has that many backticks: text after the second fence is no content.
        page = one.text[heading.end() :].partition(heading[3])[0]
        return list(_items(page)) or [Passage(page, heading[2] or "")]
    source = Source(one.text.encode("utf-8", "replace"))
    return condenser_for(source).passages(source)


def quotations(citation: str) -> list[str]:
    """Return the passages that a citation quotes of its original, each after its place."""
    return [f"{each.where}: {each.text}" for each in _items(citation)]


def _items(text: str) -> Iterator[Passage]:
    """Yield the items of a text that name their place."""
    for match in _ITEM.finditer(text):
        quoted = match[1].replace(f"\n{INDENT}", "\n")
        if before := _PLACE_BEFORE.match(quoted):
            yield Passage(quoted[before.end() :], before[1])
        elif behind := _LINES_BEHIND.search(quoted):
            yield Passage(quoted[: behind.start()], behind[1])


def refs_in(text: str) -> list[str]:
    """The refs that a text cites, each once."""
    return list(dict.fromkeys(match[0] for match in REF.finditer(text)))
