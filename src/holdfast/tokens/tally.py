"""Sum the tokens of a conversation's messages, each counted once in its life.

tally: between render and counting. A message's tokens are remembered with the message, and the sum
over a conversation with its last message, so a longer conversation costs what was added to it.
"""

from __future__ import annotations

import msgspec

from holdfast.tokens.families import Constants
from holdfast.tokens.media import media_tokens
from holdfast.tokens.render import renderer
from holdfast.tokens.render.request import Surroundings, view
from holdfast.tokens.vocabulary import CountText
from holdfast.wire import Block, Conversation, Media, Message, Opaque, Text, Thinking, ToolResult
from holdfast.wire.notes import KeyedNote, SingleNote
from holdfast.wire.running import LOOK_BACK, MOVING

_AROUND_SUMMARY = 80
"""Tokens that Anthropic puts around its own summary, from two recorded requests (81 and 84)."""
_NO_CONTEXT = Surroundings()
_NEAR = 16
"""How many messages back a call is looked for one by one: results follow their calls, after as many
others as were made at once."""

Call = tuple[str, int, int]
"""The name of a call, its place in its message, and how many calls stand there."""


class Tally(msgspec.Struct, frozen=True):
    """The tokens of a conversation's messages, and what is needed to go on from here."""

    messages: tuple[Message, ...] = ()
    each: tuple[float, ...] = ()
    """The tokens of each message."""
    system: float = 0
    """Tokens of system messages in the list."""
    said: float = 0
    """Tokens of all the others."""
    answers: int = 0
    """How many messages are the assistant's."""
    question: int = -1
    """Index of the last question of the user: reasoning before it is not shown any more."""
    thinkers: tuple[int, ...] = ()
    """Messages whose tokens depend on that."""


def tally_messages(
    conversation: Conversation, numbers: Constants, count: CountText, model: str
) -> Tally:
    """Count the messages, going on from the longest part that was summed before."""
    messages = conversation.messages
    key = (numbers.family, model)
    before = _earlier(conversation, key)
    counter = _Counter(conversation, numbers, count, model)
    stable = len(messages) - MOVING
    if len(before.messages) < stable and len(before.messages) != len(conversation.extends):
        # The last messages have changed, as those of clients do that move their cache marks: the
        # next request will go on from where they stay.
        before = _keep(_tally_on(messages[:stable], before, counter), before, key)
    return _keep(_tally_on(messages, before, counter), before, key)


def _tally_on(messages: tuple[Message, ...], before: Tally, counter: _Counter) -> Tally:
    """The sum over messages that begin with those of another sum."""
    start = len(before.messages)
    facts = [_facts(message) for message in messages[start:]]
    question = next((n for n in range(len(facts) - 1, -1, -1) if facts[n].asks), None)
    question = before.question if question is None else start + question

    earlier, each = before.each, []
    system, said, answers, thinkers = before.system, before.said, before.answers, before.thinkers
    thinking = [n for n in thinkers if n > before.question] if question != before.question else []
    if thinking:
        # A new question: what was thought before it is not shown any more.
        tokens_before = list(earlier)
        for n in thinking:
            tokens = counter(n, _facts(messages[n]), in_turn=n > question)
            said += tokens - tokens_before[n]
            tokens_before[n] = tokens
        earlier = tuple(tokens_before)
    thinking = []
    for n, fact in enumerate(facts, start):
        if fact.stands_for_all_before:
            earlier, each, thinkers, thinking = (0.0,) * start, [0.0] * (n - start), (), []
            system, said, answers = 0.0, float(_AROUND_SUMMARY), 0
        tokens = counter(n, fact, in_turn=n > question)
        each.append(tokens)
        role = messages[n].role
        if role == "system":
            system += tokens
        else:
            said += tokens
            answers += role == "assistant"
        if fact.thinks:
            thinking.append(n)
    thinkers = (*thinkers, *thinking)
    return Tally(messages, (*earlier, *each), system, said, answers, question, thinkers)


def _keep(tally: Tally, before: Tally, key: tuple[str, str]) -> Tally:
    """Note a sum with its last message."""
    if tally.messages:
        last = tally.messages[-1]
        others = [other for other in _SUMS.get(last, key) or () if other is not before]
        _SUMS.put(last, key, (tally, *others[:1]))
    return tally


# A message is shown to few models, in one or two places: more counts are not worth keeping.
_TOKENS: KeyedNote[float] = KeyedNote("tokens", most=48)
_SUMS: KeyedNote[tuple[Tally, ...]] = KeyedNote("sums", most=4, lasting=False)
"""By family and model, over the two lists that end with a message: as asked, and as sent."""


def _earlier(conversation: Conversation, key: tuple[str, str]) -> Tally:
    """The sum over the longest beginning of these messages; it moves on to the new last one."""
    messages = conversation.messages
    for n in range(len(messages) - 1, max(-1, len(messages) - 1 - LOOK_BACK), -1):
        sums = _SUMS.get(messages[n], key) or ()
        tally = next((t for t in sums if conversation.begins_with(t.messages)), None)
        if tally is not None:
            if n + 1 < len(messages):
                _SUMS.put(messages[n], key, tuple(other for other in sums if other is not tally))
            return tally
    return Tally()


class _Facts(msgspec.Struct, frozen=True):
    """What the count of a message, or of others, needs to know about it."""

    calls: tuple[tuple[str, str], ...]
    """Ids and names of its calls."""
    answers: tuple[str, ...]
    """Ids of the calls that it answers."""
    shows: bool
    """It holds images or other media."""
    thinks: bool
    """It holds reasoning, which counts only in the current turn."""
    asks: bool
    """It is a question of the user, not only results."""
    stands_for_all_before: bool = False
    """It holds Anthropic's own summary: what came before it is sent along, and neither shown to
    the model nor billed (recorded: 216 tokens for a request of 300,000 characters)."""


_FACTS: SingleNote[_Facts] = SingleNote("facts")


def _facts(message: Message) -> _Facts:
    facts = _FACTS.get(message)
    if facts is not None:
        return facts
    blocks = message.blocks
    results = [block for block in blocks if isinstance(block, ToolResult)]
    inside = (part for result in results for part in result.parts)
    facts = _Facts(
        calls=tuple((call.id, call.name) for call in message.calls),
        answers=tuple(result.call_id for result in results),
        shows=any(isinstance(block, Media) for block in (*blocks, *inside)),
        thinks=message.role == "assistant" and any(map(_thinks, blocks)),
        asks=message.role == "user" and not (results and len(results) == len(blocks)),
        stands_for_all_before=message.dialect == "anthropic" and any(map(_is_summary, blocks)),
    )
    return _FACTS.put(message, facts)


def _is_summary(block: Block) -> bool:
    return isinstance(block, Opaque) and block.type == "compaction"


def _thinks(block: Block) -> bool:
    return isinstance(block, Thinking) or (isinstance(block, Text) and "<think>" in block.text)


class _Counter:
    """Counts one message of a conversation after the other, or remembers what it came to."""

    def __init__(
        self, conversation: Conversation, numbers: Constants, count: CountText, model: str
    ) -> None:
        self.messages = conversation.messages
        self.dialect = conversation.dialect
        self.numbers = numbers
        self.count = count
        self.model = model
        self.render = renderer(numbers).message
        self._calls: dict[str, Call] = {}
        self._looked_at = 0

    def __call__(self, n: int, fact: _Facts, *, in_turn: bool) -> float:
        message = self.messages[n]
        context = _NO_CONTEXT
        if fact.calls or fact.answers or fact.thinks:
            context = Surroundings(
                in_turn=in_turn and fact.thinks,
                joined=n > 0 and self._is_joined(self.messages[n - 1], message),
                answers=tuple(self._call(call_id, n) for call_id in fact.answers),
            )
        # Images cost other models of the same family more or less.
        key = (self.numbers.family, context, self.model if fact.shows else "")
        tokens = _TOKENS.get(message, key)
        if tokens is None:
            seen = view(message, self.dialect)
            tokens = self.render(seen, context, self.numbers, self.count)
            for medium in seen.media:
                tokens += media_tokens(medium, seen, self.numbers, self.model)
            _TOKENS.put(message, key, tokens)
        return tokens

    def _call(self, call_id: str, n: int) -> Call:
        """The last call of an id before a message: near it, or else wherever it is."""
        for back in range(n - 1, max(-1, n - 1 - _NEAR), -1):
            calls = _facts(self.messages[back]).calls
            if len(calls) > _NEAR:
                break  # as many results would each go through them all
            for place in range(len(calls) - 1, -1, -1):
                if calls[place][0] == call_id:
                    return calls[place][1], place, len(calls)
        while self._looked_at < n:
            calls = _facts(self.messages[self._looked_at]).calls
            self._calls.update(
                (id_, (name, place, len(calls))) for place, (id_, name) in enumerate(calls)
            )
            self._looked_at += 1
        return self._calls.get(call_id, ("", 0, 1))

    def _is_joined(self, before: Message, this: Message) -> bool:
        """Whether gateways show a message to the model as part of the one before it."""
        if self.dialect == "openai-responses":
            return bool(_facts(this).calls and _facts(before).calls)
        return this.role == "tool" and before.role in ("tool", "user")
