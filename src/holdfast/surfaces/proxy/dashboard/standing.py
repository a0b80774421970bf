"""What of a request stands still: the tokens of its system text and its tools.

standing: after views. Records do not hold it, so it is counted from the stored bytes, once for
each beginning of a conversation.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from holdfast.errors import HoldfastError
from holdfast.tokens import count
from holdfast.wire import Conversation, read
from holdfast.wire.frame import unpack

_MOST_REMEMBERED = 2_000


class FixedTokens:
    """Counts system and tools, and remembers what it counted."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, ...], int] = OrderedDict()

    def tokens(
        self, dialect: str, model: str, names: tuple[str, str], stored: Mapping[str, bytes]
    ) -> int:
        """Tokens of a frame with the first message, if that is a system message.

        `names` are the hashes of both; what cannot be read counts nothing.
        """
        key = (dialect, model, *names)
        if key not in self._known:
            frame, first = (stored.get(name, b"") for name in names)
            self._known[key] = _counted(dialect, model, frame, first)
            while len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)
        return self._known[key]


def _counted(dialect: str, model: str, frame: bytes, first: bytes) -> int:
    if not frame:  # a policy that refuses secrets has kept it out of the store
        return 0
    try:
        parts = count(_opened(dialect, frame, first), model=model).parts
    except HoldfastError:
        return 0
    return parts.system + parts.tools


def _opened(dialect: str, frame: bytes, first: bytes) -> Conversation:
    around = unpack(frame)
    hollow = read(around.hollow, dialect)
    if hollow.frame.bare or not first:
        return hollow
    begun = read(around.head + first + around.tail, dialect)
    return begun if begun.messages[0].role == "system" else hollow
