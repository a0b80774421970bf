"""Sum the tokens of a conversation's messages.

A message's count is cached on the message and the running sum on the last message, so that a longer
conversation costs only what was added to it.
"""

from __future__ import annotations

import msgspec

from holdfast.tokens.families import Constants
from holdfast.tokens.media import media_tokens
from holdfast.tokens.render import renderer
from holdfast.tokens.render.request import NeighbourFacts, message_view
from holdfast.tokens.vocabulary import CountText
from holdfast.wire import Block, Conversation, Media, Message, Opaque, Text, Thinking, ToolResult
from holdfast.wire.notes import KeyedNote, SingleNote
from holdfast.wire.prefix_values import LOOK_BACK, MOVING

_AROUND_SUMMARY = 80
"""Tokens that Anthropic adds around its own summary, from two recorded requests (81 and 84)."""
_NO_CONTEXT = NeighbourFacts()
_NEAR_MESSAGES = 16
"""How many messages back a call is searched one by one. Results follow their calls, after at most
as many other results as there were parallel calls.
"""

CallPosition = tuple[str, int, int]
"""A tool call's name, its index in its message, and the number of calls in that message."""


class MessageTally(msgspec.Struct, frozen=True):
    """The tokens of a conversation's messages and the state to continue the sum."""

    messages: tuple[Message, ...] = ()
    each: tuple[float, ...] = ()
    """Tokens of each message."""
    system: float = 0
    """Tokens of the system messages in the list."""
    dialogue: float = 0
    """Tokens of all messages that are not system messages."""
    answers: int = 0
    """Number of assistant messages."""
    question: int = -1
    """Index of the user's last question; providers drop the reasoning before it."""
    reasoning_at: tuple[int, ...] = ()
    """Indexes of messages whose tokens depend on `question`."""


def tally_messages(
    conversation: Conversation, numbers: Constants, count: CountText, model: str
) -> MessageTally:
    """Sum the tokens of all messages, continuing from the longest cached sum."""
    messages = conversation.messages
    key = (numbers.family, model)
    before = _cached_tally(conversation, key)
    counter = _Counter(conversation, numbers, count, model)
    stable = len(messages) - MOVING
    if len(before.messages) < stable and len(before.messages) != len(conversation.extends):
        # Clients that move their cache marks change the last messages. Cache a sum that ends before
        # them, from which the next request can continue.
        before = _cache_tally(_continue_tally(messages[:stable], before, counter), before, key)
    return _cache_tally(_continue_tally(messages, before, counter), before, key)


def _continue_tally(
    messages: tuple[Message, ...], before: MessageTally, counter: _Counter
) -> MessageTally:
    """Return the sum over `messages`, of which `before` covers a prefix."""
    start = len(before.messages)
    facts = [_message_facts(message) for message in messages[start:]]
    question = next((n for n in range(len(facts) - 1, -1, -1) if facts[n].is_question), None)
    question = before.question if question is None else start + question

    earlier, each = before.each, []
    system, dialogue, answers, reasoning_at = (
        before.system,
        before.dialogue,
        before.answers,
        before.reasoning_at,
    )
    thinking = (
        [n for n in reasoning_at if n > before.question] if question != before.question else []
    )
    if thinking:
        # A new question: the provider drops the reasoning before it, so those messages cost less.
        tokens_before = list(earlier)
        for n in thinking:
            tokens = counter(n, _message_facts(messages[n]), in_turn=n > question)
            dialogue += tokens - tokens_before[n]
            tokens_before[n] = tokens
        earlier = tuple(tokens_before)
    thinking = []
    for n, fact in enumerate(facts, start):
        if fact.replaces_history:
            earlier, each, reasoning_at, thinking = (
                (0.0,) * start,
                [0.0] * (n - start),
                (),
                [],
            )
            system, dialogue, answers = 0.0, float(_AROUND_SUMMARY), 0
        tokens = counter(n, fact, in_turn=n > question)
        each.append(tokens)
        role = messages[n].role
        if role == "system":
            system += tokens
        else:
            dialogue += tokens
            answers += role == "assistant"
        if fact.has_reasoning:
            thinking.append(n)
    reasoning_at = (*reasoning_at, *thinking)
    return MessageTally(
        messages, (*earlier, *each), system, dialogue, answers, question, reasoning_at
    )


def _cache_tally(tally: MessageTally, before: MessageTally, key: tuple[str, str]) -> MessageTally:
    """Cache a sum on its last message."""
    if tally.messages:
        last = tally.messages[-1]
        older = [entry for entry in _SUMS.get(last, key) or () if entry is not before]
        _SUMS.put(last, key, (tally, *older[:1]))
    return tally


# A message is counted for few models and in few positions, so older counts are dropped.
_TOKENS: KeyedNote[float] = KeyedNote("tokens", most=48)
_SUMS: KeyedNote[tuple[MessageTally, ...]] = KeyedNote("sums", most=4, lasting=False)
"""Sums by family and model, for the two lists that end with a message: asked and sent."""


def _cached_tally(conversation: Conversation, key: tuple[str, str]) -> MessageTally:
    """Return the cached sum over the longest prefix of these messages.

    The entry moves to the new last message.
    """
    messages = conversation.messages
    for n in range(len(messages) - 1, max(-1, len(messages) - 1 - LOOK_BACK), -1):
        sums = _SUMS.get(messages[n], key) or ()
        tally = next((t for t in sums if conversation.begins_with(t.messages)), None)
        if tally is not None:
            if n + 1 < len(messages):
                _SUMS.put(messages[n], key, tuple(entry for entry in sums if entry is not tally))
            return tally
    return MessageTally()


class _MessageFacts(msgspec.Struct, frozen=True):
    """Facts about a message that decide how it and its neighbours are counted."""

    calls: tuple[tuple[str, str], ...]
    """Ids and names of the message's calls."""
    answers: tuple[str, ...]
    """Ids of the calls that the message's results answer."""
    has_media: bool
    """Whether it contains images or other media."""
    has_reasoning: bool
    """Whether it contains reasoning, which counts only in the current turn."""
    is_question: bool
    """Whether it is a user's question rather than only tool results."""
    replaces_history: bool = False
    """Whether it contains Anthropic's compaction summary. Earlier messages are still sent, but
    neither shown to the model nor billed (recorded: 216 tokens for a request of 300,000
    characters).
    """


_FACTS: SingleNote[_MessageFacts] = SingleNote("facts")


def _message_facts(message: Message) -> _MessageFacts:
    facts = _FACTS.get(message)
    if facts is not None:
        return facts
    blocks = message.blocks
    results = [block for block in blocks if isinstance(block, ToolResult)]
    inside = (part for result in results for part in result.parts)
    facts = _MessageFacts(
        calls=tuple((call.id, call.name) for call in message.calls),
        answers=tuple(result.call_id for result in results),
        has_media=any(isinstance(block, Media) for block in (*blocks, *inside)),
        has_reasoning=message.role == "assistant" and any(map(_has_reasoning, blocks)),
        is_question=message.role == "user" and not (results and len(results) == len(blocks)),
        replaces_history=message.dialect == "anthropic" and any(map(_is_summary, blocks)),
    )
    return _FACTS.put(message, facts)


def _is_summary(block: Block) -> bool:
    return isinstance(block, Opaque) and block.type == "compaction"


def _has_reasoning(block: Block) -> bool:
    return isinstance(block, Thinking) or (isinstance(block, Text) and "<think>" in block.text)


class _Counter:
    """Counts the messages of one conversation, using the cached counts."""

    def __init__(
        self, conversation: Conversation, numbers: Constants, count: CountText, model: str
    ) -> None:
        self.messages = conversation.messages
        self.dialect = conversation.dialect
        self.numbers = numbers
        self.count = count
        self.model = model
        self.render = renderer(numbers).message
        self._calls: dict[str, CallPosition] = {}
        self._indexed = 0

    def __call__(self, n: int, fact: _MessageFacts, *, in_turn: bool) -> float:
        message = self.messages[n]
        context = _NO_CONTEXT
        if fact.calls or fact.answers or fact.has_reasoning:
            context = NeighbourFacts(
                in_turn=in_turn and fact.has_reasoning,
                joined=n > 0 and self._is_joined(self.messages[n - 1], message),
                answers=tuple(self._call(call_id, n) for call_id in fact.answers),
            )
        # Image prices differ between models of one family, so the model is part of the key.
        key = (self.numbers.family, context, self.model if fact.has_media else "")
        tokens = _TOKENS.get(message, key)
        if tokens is None:
            view = message_view(message, self.dialect)
            tokens = self.render(view, context, self.numbers, self.count)
            for medium in view.media:
                tokens += media_tokens(medium, view, self.numbers, self.model)
            _TOKENS.put(message, key, tokens)
        return tokens

    def _call(self, call_id: str, n: int) -> CallPosition:
        """Return the last call with an id before message `n`, searching near messages first."""
        for back in range(n - 1, max(-1, n - 1 - _NEAR_MESSAGES), -1):
            calls = _message_facts(self.messages[back]).calls
            if len(calls) > _NEAR_MESSAGES:
                break  # avoid quadratic time: each of as many results would scan all these calls
            for place in range(len(calls) - 1, -1, -1):
                if calls[place][0] == call_id:
                    return calls[place][1], place, len(calls)
        while self._indexed < n:
            calls = _message_facts(self.messages[self._indexed]).calls
            self._calls.update(
                (id_, (name, place, len(calls))) for place, (id_, name) in enumerate(calls)
            )
            self._indexed += 1
        return self._calls.get(call_id, ("", 0, 1))

    def _is_joined(self, before: Message, this: Message) -> bool:
        """Return whether gateways merge a message into the previous one."""
        if self.dialect == "openai-responses":
            return bool(_message_facts(this).calls and _message_facts(before).calls)
        return this.role == "tool" and before.role in ("tool", "user")
