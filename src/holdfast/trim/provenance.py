"""What a message that goes out stands for, where it is not the client's own.

Every message that goes out either is one of the client's, or carries a `Replacement`: the client's
messages in whose place it is (none, if it was added) and the edits that put it there. So what the
client sent can be told from what goes out, and nothing that we wrote is ever taken for the user's
words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from holdfast.store.records import Edit
from holdfast.store.refs import REF
from holdfast.wire import Conversation, Message
from holdfast.wire.notes import SingleNote
from holdfast.wire.running import RunningNote


class Sentence(msgspec.Struct, frozen=True, array_like=True):
    """A sentence of a model's summary, and the messages that bear it out best."""

    text: str
    first: int
    """Counted from the first message of the part that it is of."""
    last: int


Told = Mapping[str, tuple[Sentence, ...]]
"""What a model says of parts of the conversation, by the refs of these."""


class Part(msgspec.Struct, frozen=True):
    """Messages of a digest that a model is asked about together: once, and from the originals."""

    start: int
    """Index of the first, in the conversation as the client sends it."""
    stop: int
    ref_id: str
    """Where just these messages can be opened."""
    told: tuple[Sentence, ...] = ()
    """What it says of them; empty if that was not known when they were folded last."""


class Fold(msgspec.Struct, frozen=True):
    """What a digest stands for; what its text says besides is read from the originals."""

    start: int
    """Index of the first message it replaced, in the conversation as the client sends it."""
    stop: int
    """Index behind the last one."""
    tokens: float
    """What they cost. Not rounded: a fold of folds must add up to the fold of all."""
    summary: str = ""
    """What a model said about them; empty if none was asked."""
    ref_id: str = ""
    """Where they can be opened."""
    refs: tuple[str, ...] = ()
    """What they cite themselves."""
    parts: tuple[Part, ...] = ()
    """What of it is summarised together, where there is a model for summaries."""
    sentences: int = 0
    """How many sentences of such summaries its text quotes."""

    @property
    def messages(self) -> int:
        """How many messages it replaced."""
        return self.stop - self.start

    def __repr__(self) -> str:
        return f"<Fold of messages {self.start} to {self.stop - 1}, {self.tokens:.0f} tokens>"


ADDED = -1
"""`Replacement.own` of a message that was added, and stands for what was taken out beside it."""


class Replacement(msgspec.Struct, frozen=True):
    """Why a message goes out that the client did not write so."""

    originals: tuple[Message, ...]
    """The client's own messages in whose place it is, in order; none if it was added."""
    edits: tuple[Edit, ...] = ()
    refs: tuple[str, ...] = ()
    """Refs of what left it; where the model can open refs, it shows them."""
    fold: Fold | None = None
    """Set if it is a digest."""
    own: int = 0
    """Which of the originals it is itself, shortened or not. The others were taken out beside it,
    and nothing but it stands for them. `ADDED` if it is none of them: the client never saw it."""

    @property
    def is_added(self) -> bool:
        """Whether the client sent no version of it."""
        return not self.originals or self.own == ADDED

    def __repr__(self) -> str:
        return f"<Replacement for {len(self.originals)} messages, {len(self.edits)} edits>"


REPLACEMENT: SingleNote[Replacement] = SingleNote("stand")


def originals_of(message: Message) -> tuple[Message, ...]:
    """The client's own messages that a message stands for."""
    replacement = REPLACEMENT.get(message)
    return (message,) if replacement is None else replacement.originals


def own_of(message: Message) -> Message:
    """The client's own message that a message is, or was before it was shortened."""
    replacement = REPLACEMENT.get(message)
    if replacement is None or replacement.fold is not None or replacement.is_added:
        return message
    return replacement.originals[replacement.own]


def edits_of(message: Message) -> tuple[Edit, ...]:
    """Why a message is not the client's own; nothing if it is."""
    replacement = REPLACEMENT.get(message)
    return () if replacement is None else replacement.edits


def refs_of(message: Message) -> tuple[str, ...]:
    """The refs that we have put into a message."""
    replacement = REPLACEMENT.get(message)
    return () if replacement is None else replacement.refs


def fold_of(message: Message) -> Fold | None:
    """What a digest stands for; None if the message is none."""
    replacement = REPLACEMENT.get(message)
    return None if replacement is None else replacement.fold


def is_ours(message: Message) -> bool:
    """Whether we wrote a message, so that it is no question, no rule and no anchor.

    One whose results we shortened is still the client's.
    """
    replacement = REPLACEMENT.get(message)
    return replacement is not None and (replacement.fold is not None or replacement.is_added)


def restored(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The client's messages that others stand for, in order."""
    return tuple(original for message in messages for original in originals_of(message))


# --- refs in messages ---------------------------------------------------------------------------


def names_ref(conversation: Conversation) -> bool:
    """Whether a ref stands in messages, such as one that a tool of the client's has cited."""
    return _NAMES_REF.over(conversation)


def _name_one(named: bool, messages: Sequence[Message]) -> bool:
    return named or any(map(shows_ref, messages))


def shows_ref(message: Message) -> bool:
    """Whether a ref stands in a message."""
    return bool(refs_of(message)) or _spells_ref(message)


def _spells_ref(message: Message) -> bool:
    return message.holds(b"ref:") and bool(REF.search(message.raw.decode("utf-8", "replace")))


_NAMES_REF: RunningNote[bool] = RunningNote("names a ref", False, _name_one)
