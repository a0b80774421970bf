"""Anchors, which every trim keeps: system text, the first and the latest question, rules, results.

Works on messages, not on tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from holdfast.errors import HoldfastError, SettingsError
from holdfast.trim.provenance import is_ours, own_of
from holdfast.wire import Message, Text
from holdfast.wire.notes import SingleNote

AnchorType = Literal[
    "system_message",
    "first_user_message",
    "latest_user_message",
    "latest_tool_result",
    "instruction_anchor",
    "custom",
]
Selector = Callable[[Message, int, Sequence[Message]], bool]
"""(message, its index, all messages) → whether it is an anchor."""

# A rule that the user states; a long text that happens to hold such a word is not one.
_RULE = re.compile(r"\b(always|never|must|do not|don't|under no circumstances)\b", re.IGNORECASE)
_LONGEST_RULE = 1500

MARK: SingleNote[bool] = SingleNote("mark")
"""A message that the user wants kept."""
_ASKS: SingleNote[bool] = SingleNote("asks")
_STATES_RULE: SingleNote[bool] = SingleNote("states rule")


class AnchorDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of message that trimming keeps."""

    type: AnchorType
    selector: Selector
    priority: int = 50
    """Higher is more important. Of a less important one long results are cut first; where anchors
    alone do not fit, the error names them in this order, and which would have to go."""
    description: str = ""


class Anchor(msgspec.Struct, frozen=True):
    """A message that is kept, and why."""

    index: int
    type: AnchorType
    priority: int

    @property
    def path(self) -> str:
        """Its place, for reports."""
        return f"message {self.index}"


def mark(message: Message) -> None:
    """Mark a message as an instruction that is kept, as long as the program runs."""
    MARK.put(message, True)


def asks(message: Message) -> bool:
    """Return whether a message is a question of the user, not only tool results or a digest."""
    if message.role != "user" or is_ours(message):
        return False
    question = _ASKS.get(message)
    if question is None:
        question = _ASKS.put(message, len(message.results) < max(1, len(message.blocks)))
    return question


def _states_rule(message: Message) -> bool:
    rule = _STATES_RULE.get(message)
    if rule is None:
        # Only questions state rules: cited results are not parsed again.
        rule = asks(message) and _reads_as_rule(own_of(message))
        _STATES_RULE.put(message, rule)
    return rule


def _reads_as_rule(message: Message) -> bool:
    # A long text that was cut is still a long text, in which such words mean nothing.
    texts = [block.text for block in message.blocks if isinstance(block, Text)]
    short = sum(map(len, texts)) <= _LONGEST_RULE
    return short and any(_RULE.search(text) for text in texts)


def _is_system(message: Message, _: int, __: Sequence[Message]) -> bool:
    return message.role == "system"


def _is_marked(message: Message, _: int, __: Sequence[Message]) -> bool:
    return MARK.get(message) is True or _states_rule(message)


def _is_first_question(message: Message, index: int, messages: Sequence[Message]) -> bool:
    return asks(message) and not any(asks(messages[n]) for n in range(index))


def _is_latest_question(message: Message, index: int, messages: Sequence[Message]) -> bool:
    return asks(message) and not any(asks(messages[n]) for n in range(index + 1, len(messages)))


def _is_latest_result(message: Message, index: int, messages: Sequence[Message]) -> bool:
    later = range(index + 1, len(messages))
    return bool(message.results) and not any(messages[n].calls for n in later)


DEFAULT_ANCHORS: tuple[AnchorDefinition, ...] = (
    AnchorDefinition(
        type="system_message", selector=_is_system, priority=100, description="system text"
    ),
    AnchorDefinition(
        type="latest_user_message",
        selector=_is_latest_question,
        priority=95,
        description="the question that is being answered",
    ),
    AnchorDefinition(
        type="latest_tool_result",
        selector=_is_latest_result,
        priority=90,
        description="what the last tools answered",
    ),
    AnchorDefinition(
        type="instruction_anchor",
        selector=_is_marked,
        priority=80,
        description="marked messages, and rules that the user states (always, never, must)",
    ),
    AnchorDefinition(
        type="first_user_message",
        selector=_is_first_question,
        priority=70,
        description="what the conversation is about",
    ),
)


class AnchorPreservationManager:
    """Finds the messages that every trim keeps."""

    def __init__(self, definitions: Sequence[AnchorDefinition] = DEFAULT_ANCHORS) -> None:
        self.definitions = tuple(sorted(definitions, key=lambda d: -d.priority))

    def identify(self, messages: Sequence[Message]) -> tuple[Anchor, ...]:
        """Return the anchors among messages, in order, each message once with its best reason.

        Selectors see only the client's messages: text by Holdfast is nobody's question or rule,
        and a selector for the last message means the client's last one.
        """
        places = [n for n, message in enumerate(messages) if not is_ours(message)]
        theirs = messages
        if len(places) < len(messages):
            theirs = [messages[n] for n in places]
        ends = _ends(theirs)
        anchors: dict[int, Anchor] = {}
        for definition in self.definitions:
            # The first and the latest of a kind are looked for once, not at every message.
            hits = ends.get(definition.selector)
            for n in _selected(definition, theirs) if hits is None else hits:
                anchor = Anchor(places[n], definition.type, definition.priority)
                anchors.setdefault(anchor.index, anchor)
        return tuple(anchors[index] for index in sorted(anchors))


def lost_anchors(
    anchors: Sequence[Anchor], before: Sequence[Message], after: Sequence[Message]
) -> tuple[Anchor, ...]:
    """Return the anchors of a conversation that a trimmed one has lost.

    A message is kept if its bytes are, or if a shortened version replaces it.
    """
    present = {own_of(message).raw for message in after} | {message.raw for message in after}
    answered = {result.call_id for message in after for result in message.results}

    def is_there(message: Message) -> bool:
        results = message.results
        return message.raw in present or (
            bool(results) and all(result.call_id in answered for result in results)
        )

    return tuple(anchor for anchor in anchors if not is_there(before[anchor.index]))


def _selected(definition: AnchorDefinition, messages: Sequence[Message]) -> list[int]:
    """The messages that a selector chooses; it may be another's code."""
    selector = definition.selector
    n = 0
    chosen = []
    try:
        for n, message in enumerate(messages):
            if selector(message, n, messages):
                chosen.append(n)
    except HoldfastError:
        raise
    except Exception as error:
        if definition in DEFAULT_ANCHORS:
            raise  # a bug of ours, which users cannot fix
        # Without a cause: the text of its error may hold text of the conversation.
        raise SettingsError(
            f"the selector of the anchor {definition.type!r} raised {type(error).__name__} "
            f"at message {n}",
            where="anchors",
            fix="Mend the selector: it takes a message, its index and all messages.",
        ) from None
    return chosen


def _ends(messages: Sequence[Message]) -> dict[Selector, list[int]]:
    """Indices of the anchors that are the first or the latest of their kind, by selector."""
    questions = [n for n, message in enumerate(messages) if asks(message)]
    results: list[int] = []
    for n in range(len(messages) - 1, -1, -1):
        if messages[n].results:
            results.append(n)
        if messages[n].calls:
            break
    return {
        _is_first_question: questions[:1],
        _is_latest_question: questions[-1:],
        _is_latest_result: results,
    }
