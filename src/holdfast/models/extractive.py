"""The offline model: it quotes what a conversation holds on the question, and thinks nothing.

extractive: after condense and tokens; the proxy's offline answers are made of it. Pure: the same
conversation gets the same answer. It cannot fail: where there is nothing to quote it says so, and
what there is instead.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from holdfast.condense.condenser import Passage
from holdfast.condense.kinds import condenser_for
from holdfast.condense.relevance import excerpt, rank
from holdfast.condense.source import Source
from holdfast.guard.final_turn import final_turn_guidance
from holdfast.store.refs import REF
from holdfast.tokens.vocabulary import count_ordinary
from holdfast.wire import Conversation, Message, Text, ToolCall, ToolResult
from holdfast.wire.reader import dialect_named

INTRODUCTION = (
    "Holdfast's offline model: it quotes, it does not think. Configure an upstream for real "
    "answers."
)

_MOST_QUOTES = 5
_LONGEST_QUOTE = 400
_MOST_OPENINGS = 3
_LONGEST_QUESTION = 600
"""A longer text of the user's is content too, which the question is about."""
_LISTED = 8
_PIECE = 48
_VOCABULARY = "o200k_base"
_WORDS = re.compile(r"\S*\s*")
_PARAGRAPHS = re.compile(r"\n\s*\n")


class Opening(msgspec.Struct, frozen=True):
    """A ref that the model asks to see before it answers."""

    ref_id: str
    query: str

    def __repr__(self) -> str:
        return f"<Opening of {self.ref_id}>"


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """What the model says: openings first, and text once it has seen them."""

    pieces: tuple[str, ...] = ()
    openings: tuple[Opening, ...] = ()
    cut: bool = False
    """The text ended because it was as long as the request allows."""

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.pieces)

    def __repr__(self) -> str:
        return f"<Spoken, {len(self.pieces)} pieces, {len(self.openings)} openings>"


class _Held(NamedTuple):
    """A text of the conversation that can be quoted."""

    label: str
    text: str


class _Asked(NamedTuple):
    """What the conversation asks last."""

    question: str
    at: int
    """The message it stands in; what is opened after it was opened for it."""
    about: str = ""
    """What the same message holds beside the question."""


def answer(conversation: Conversation, *, expansion_tool: str | None = None) -> Spoken:
    """Answer the last question of a conversation.

    `expansion_tool` is the name of the tool that opens refs, if the request offers it.
    """
    asked = _asked(conversation.messages)
    held = list(_held(conversation, asked))
    if expansion_tool is not None:
        openings = _openings(conversation.messages, held, asked, expansion_tool)
        if openings:
            return Spoken(openings=openings)
    text = "\n\n".join((INTRODUCTION, *_said(asked.question, held)))
    most = dialect_named(conversation.dialect).params(conversation.rest).get("max_tokens")
    shown = _cut(text, most) if isinstance(most, int) and most > 0 else text
    return Spoken(pieces=tuple(_pieces(shown)), cut=len(shown) < len(text))


def count(text: str) -> int:
    """Tokens of a text, as this model counts them."""
    return count_ordinary(_VOCABULARY, text)


# --- the question --------------------------------------------------------------------------------


def _asked(messages: Sequence[Message]) -> _Asked:
    ending = final_turn_guidance(())
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role != "user":
            continue
        texts = [block.text for block in messages[index].blocks if isinstance(block, Text)]
        text = "\n\n".join(text for text in texts if text.strip() and text != ending)
        if text:
            return _Asked(*_taken_apart(text, index))
    return _Asked("", len(messages))


def _taken_apart(text: str, index: int) -> tuple[str, int, str]:
    """A long text is content with a question before or behind it."""
    if len(text) <= _LONGEST_QUESTION:
        return text.strip(), index, ""
    first, *between, last = [part for part in _PARAGRAPHS.split(text) if part.strip()] or [text]
    if first.rstrip().endswith("?") and not last.rstrip().endswith("?"):
        return first.strip(), index, "\n\n".join((*between, last))
    return last.strip(), index, "\n\n".join((first, *between))


# --- what can be quoted --------------------------------------------------------------------------


def _held(conversation: Conversation, asked: _Asked) -> Iterator[_Held]:
    calls: dict[str, str] = {}
    for block in conversation.system:
        if isinstance(block, Text) and block.text.strip():
            yield _Held("the instructions", block.text)
    for index, message in enumerate(conversation.messages):
        for block in message.blocks:
            if isinstance(block, ToolCall):
                calls[block.id] = block.name
            elif isinstance(block, ToolResult) and block.text.strip():
                name = block.name or calls.get(block.call_id, "")
                yield _Held(f"the result of `{name}`" if name else "a tool's result", block.text)
            elif isinstance(block, Text) and message.role in ("user", "assistant"):
                text = asked.about if index == asked.at else block.text
                # What this model said before are quotations of what stands there anyway.
                if text.strip() and not text.startswith(INTRODUCTION):
                    yield _Held(_who(message, index), text)


def _who(message: Message, index: int) -> str:
    return f"{'what you said' if message.role == 'user' else 'the answer'} in message {index + 1}"


def _openings(
    messages: Sequence[Message], held: Sequence[_Held], asked: _Asked, tool: str
) -> tuple[Opening, ...]:
    """The refs to open: those whose citation bears on the question, else the latest one."""
    if not asked.question or any(
        call.name == tool for message in messages[asked.at :] for call in message.calls
    ):
        return ()
    cited = [one for one in held if REF.search(one.text)]
    ranked = rank(asked.question, [Passage(one.text, one.label) for one in cited])
    if not ranked and cited and not _ranked(asked.question, held):
        best = cited[-1:]
    else:
        best = [cited[one.index] for one in ranked]
    refs = dict.fromkeys(found[0] for one in best for found in REF.finditer(one.text))
    return tuple(Opening(ref, asked.question) for ref in list(refs)[:_MOST_OPENINGS])


def _ranked(question: str, held: Sequence[_Held]) -> list[tuple[str, Passage]]:
    """The passages that bear on the question, best first, with what they are part of."""
    labels: list[str] = []
    passages: list[Passage] = []
    for one in held:
        source = Source(one.text.encode("utf-8", "replace"))
        found = condenser_for(source).passages(source)
        passages.extend(found)
        labels.extend([one.label] * len(found))
    return [(labels[one.index], passages[one.index]) for one in rank(question, passages)]


# --- the answer ----------------------------------------------------------------------------------


def _said(question: str, held: Sequence[_Held]) -> Iterator[str]:
    if not question:
        yield "There is no question in this conversation that could be looked up."
        yield from _listing(held)
        return
    seen: set[str] = set()
    for label, passage in _ranked(question, held):
        words, _, _ = excerpt(passage.text.strip(), question, _LONGEST_QUOTE)
        if (key := " ".join(words.split())) in seen:
            continue
        seen.add(key)
        place = f", {passage.where}" if passage.where else ""
        quoted = "\n".join(f"> {line}" for line in words.splitlines())
        yield f"From {label}{place}:\n{quoted}"
        if len(seen) == _MOST_QUOTES:
            return
    if not seen:
        yield "Nothing in this conversation bears on the question."
        yield from _listing(held)


def _listing(held: Sequence[_Held]) -> Iterator[str]:
    if not held:
        return
    lines = [f"- {one.label}, {len(one.text):,} characters" for one in held[-_LISTED:]]
    if (more := len(held) - _LISTED) > 0:
        lines.insert(0, f"- {more:,} older texts")
    yield "It holds:\n" + "\n".join(lines)


def _cut(text: str, most_tokens: int) -> str:
    """The longest beginning that has at most so many tokens."""
    if count(text) <= most_tokens:
        return text
    ends = range(1, min(len(text), 40 * most_tokens) + 1)
    at = bisect.bisect_right(ends, most_tokens, key=lambda end: count(text[:end]))
    return text[: max(1, at)]


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of some words, as a model would speak it."""
    piece = ""
    for word in _WORDS.findall(text):
        if piece and len(piece) + len(word) > _PIECE:
            yield piece
            piece = ""
        piece += word
    if piece:
        yield piece
