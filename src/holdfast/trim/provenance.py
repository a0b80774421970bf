"""The client's messages that a sent message replaces.

Every sent message is either one of the client's, or has a `Replacement`: the client's messages
that it replaces (none, if it was added) and the edits that put it there. So the client's messages
can be told from ours, and nothing that we wrote is ever taken for the user's words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from holdfast.store.records import Edit
from holdfast.store.refs import REF
from holdfast.wire import Conversation, Message
from holdfast.wire.notes import SingleNote
from holdfast.wire.prefix_values import PrefixNote


class Sentence(msgspec.Struct, frozen=True, array_like=True):
    """A sentence of a model's summary, and the messages that bear it out best."""

    text: str
    first: int
    """Index, counted from the first message of its part."""
    last: int


Told = Mapping[str, tuple[Sentence, ...]]
"""Models' summaries of parts of the conversation, by the refs of these."""


class Part(msgspec.Struct, frozen=True):
    """Messages of a digest that a model summarises together, once and from the originals."""

    start: int
    """Index of the first one in the client's conversation."""
    stop: int
    ref_id: str
    """Ref of exactly these messages."""
    told: tuple[Sentence, ...] = ()
    """Their summary; empty if there was none at the last fold."""


class Fold(msgspec.Struct, frozen=True):
    """The messages that a digest replaces; the rest of its text is derived from the originals."""

    start: int
    """Index of the first replaced message in the client's conversation."""
    stop: int
    """Index after the last one."""
    tokens: float
    """Their tokens, not rounded: a fold of folds must add up to the fold of all."""
    summary: str = ""
    """A model's summary of them; empty if there is none."""
    ref_id: str = ""
    """Ref of the list of them."""
    refs: tuple[str, ...] = ()
    """Their own refs."""
    parts: tuple[Part, ...] = ()
    """Its parts that are summarised together, if there is a model for summaries."""
    sentences: int = 0
    """Number of sentences of these summaries that its text quotes."""

    @property
    def messages(self) -> int:
        """Number of replaced messages."""
        return self.stop - self.start

    def __repr__(self) -> str:
        return f"<Fold of messages {self.start} to {self.stop - 1}, {self.tokens:.0f} tokens>"


ADDED = -1
"""`Replacement.own` of an added message, which replaces removed neighbours."""


class Replacement(msgspec.Struct, frozen=True):
    """The reason for a sent message that the client did not write."""

    originals: tuple[Message, ...]
    """The client's messages that it replaces, in order; none if it was added."""
    edits: tuple[Edit, ...] = ()
    refs: tuple[str, ...] = ()
    """Refs of its removed contents; it shows them if the model can open refs."""
    fold: Fold | None = None
    """Its fold, if it is a digest."""
    own: int = 0
    """The original that it is a version of, shortened or not. The others were removed next to it,
    and only it replaces them. `ADDED` if it is none of them: the client never saw it."""

    @property
    def is_added(self) -> bool:
        """Whether the client sent no form of it."""
        return not self.originals or self.own == ADDED

    def __repr__(self) -> str:
        return f"<Replacement for {len(self.originals)} messages, {len(self.edits)} edits>"


REPLACEMENT: SingleNote[Replacement] = SingleNote("stand")


def originals_of(message: Message) -> tuple[Message, ...]:
    """Return the client's own messages that a message replaces."""
    replacement = REPLACEMENT.get(message)
    return (message,) if replacement is None else replacement.originals


def own_of(message: Message) -> Message:
    """Return the client's form of a message that was shortened, or the message itself."""
    replacement = REPLACEMENT.get(message)
    if replacement is None or replacement.fold is not None or replacement.is_added:
        return message
    return replacement.originals[replacement.own]


def edits_of(message: Message) -> tuple[Edit, ...]:
    """Return the edits of a message; none if it is the client's own."""
    replacement = REPLACEMENT.get(message)
    return () if replacement is None else replacement.edits


def refs_of(message: Message) -> tuple[str, ...]:
    """Return the refs that Holdfast put into a message."""
    replacement = REPLACEMENT.get(message)
    return () if replacement is None else replacement.refs


def fold_of(message: Message) -> Fold | None:
    """Return the fold of a digest; None for other messages."""
    replacement = REPLACEMENT.get(message)
    return None if replacement is None else replacement.fold


def is_ours(message: Message) -> bool:
    """Return whether Holdfast wrote a message, so that it is no question, rule or anchor.

    One whose results we shortened is still the client's.
    """
    replacement = REPLACEMENT.get(message)
    return replacement is not None and (replacement.fold is not None or replacement.is_added)


def restored(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the client's messages that others replace, in order."""
    return tuple(original for message in messages for original in originals_of(message))


# --- refs in messages ---------------------------------------------------------------------------


def names_ref(conversation: Conversation) -> bool:
    """Return whether a message contains a ref, such as one in a result of the client's tool."""
    return _NAMES_REF.over(conversation)


def _name_one(named: bool, messages: Sequence[Message]) -> bool:
    return named or any(map(shows_ref, messages))


def shows_ref(message: Message) -> bool:
    """Return whether a message contains a ref."""
    return bool(refs_of(message)) or _spells_ref(message)


def _spells_ref(message: Message) -> bool:
    return message.holds(b"ref:") and bool(REF.search(message.raw.decode("utf-8", "replace")))


_NAMES_REF: PrefixNote[bool] = PrefixNote("names a ref", False, _name_one)
