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

_LOOK_BACK = 64
"""How many messages from the end an earlier sum is looked for."""
_AROUND_SUMMARY = 80
"""Tokens that Anthropic puts around its own summary, from two recorded requests (81 and 84)."""
_NO_CONTEXT = Surroundings()


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
    calls: dict[str, tuple[str, int, int]] = {}
    """By id: the name of each call, its place in its message, and how many calls stand there."""
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
    before = _earlier(messages, key)
    facts = [_facts(message) for message in messages[len(before.messages) :]]
    start = len(before.messages)
    question = next((n for n in range(len(facts) - 1, -1, -1) if facts[n].asks), None)
    question = before.question if question is None else start + question

    each = list(before.each)
    system, said, answers = before.system, before.said, before.answers
    calls = dict(before.calls)
    thinkers = list(before.thinkers)
    count_one = _Counter(conversation.dialect, numbers, count, model)
    if question != before.question:
        # A new question: what was thought before it is not shown any more.
        for n in before.thinkers:
            tokens = count_one(messages, n, _facts(messages[n]), calls, in_turn=n > question)
            said += tokens - each[n]
            each[n] = tokens
    for n, fact in enumerate(facts, start):
        if fact.stands_for_all_before:
            each, thinkers = [0.0] * n, []
            system, said, answers = 0.0, float(_AROUND_SUMMARY), 0
        tokens = count_one(messages, n, fact, calls, in_turn=n > question)
        each.append(tokens)
        role = messages[n].role
        if role == "system":
            system += tokens
        else:
            said += tokens
            answers += role == "assistant"
        if fact.thinks:
            thinkers.append(n)
        for place, (call_id, name) in enumerate(fact.calls):
            calls[call_id] = (name, place, len(fact.calls))
    tally = Tally(messages, tuple(each), system, said, answers, calls, question, tuple(thinkers))
    if messages:
        others = [sums for sums in _SUMS.get(messages[-1], key) or () if sums is not before]
        _SUMS.put(messages[-1], key, (tally, *others[:1]))
    return tally


# A message is shown to few models, in one or two places: more counts are not worth keeping.
_TOKENS: KeyedNote[float] = KeyedNote("tokens", most=48)
_SUMS: KeyedNote[tuple[Tally, ...]] = KeyedNote("sums", most=4, lasting=False)
"""By family and model, over the two lists that end with a message: as asked, and as sent."""


def _earlier(messages: tuple[Message, ...], key: tuple[str, str]) -> Tally:
    """The sum over the longest beginning of these messages; it moves on to the new last one."""
    for n in range(len(messages) - 1, max(-1, len(messages) - 1 - _LOOK_BACK), -1):
        sums = _SUMS.get(messages[n], key) or ()
        # Tuples of the same objects compare as fast as they can be walked.
        tally = next(
            (sum_before for sum_before in sums if sum_before.messages == messages[: n + 1]), None
        )
        if tally is not None:
            if n + 1 < len(messages):
                _SUMS.put(
                    messages[n],
                    key,
                    tuple(sum_before for sum_before in sums if sum_before is not tally),
                )
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
    """Counts one message after the other, or remembers what it came to."""

    def __init__(self, dialect: str, numbers: Constants, count: CountText, model: str) -> None:
        self.dialect = dialect
        self.numbers = numbers
        self.count = count
        self.model = model
        self.render = renderer(numbers).message

    def __call__(
        self,
        messages: tuple[Message, ...],
        n: int,
        fact: _Facts,
        calls: dict[str, tuple[str, int, int]],
        *,
        in_turn: bool,
    ) -> float:
        message = messages[n]
        context = _NO_CONTEXT
        if fact.calls or fact.answers or fact.thinks:
            context = Surroundings(
                in_turn=in_turn and fact.thinks,
                joined=n > 0 and self._is_joined(messages[n - 1], message),
                answers=tuple(calls.get(call_id, ("", 0, 1)) for call_id in fact.answers),
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

    def _is_joined(self, before: Message, this: Message) -> bool:
        """Whether gateways show a message to the model as part of the one before it."""
        if self.dialect == "openai-responses":
            return bool(_facts(this).calls and _facts(before).calls)
        return this.role == "tool" and before.role in ("tool", "user")
