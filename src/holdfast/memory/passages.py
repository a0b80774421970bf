"""What was recalled: passages in the order of time, and the text that shows them.

passages: after ranking. Days stand above, in lines of ours; who speaks stands before what was said,
whose further lines are set in: so nothing that was said can pass for a line of ours (see voice).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from itertools import groupby

import msgspec

from holdfast import quoting
from holdfast.memory.dates import day_of
from holdfast.store.turn_shelf import Remembered

GAP = " … "
"""Between pieces of a turn that do not follow each other, and where one begins or ends inside."""


_MONTHS = " Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ")  # in every locale


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that was recalled, or parts of it."""

    turn_id: str
    session: str
    role: str
    name: str
    at: float
    number: int
    text: str
    """As it stands in the assembled text: whole, or pieces with a gap between."""
    whole: bool
    score: float
    signals: Mapping[str, float]
    """What raised or lowered the score of its best piece, the strongest first."""

    def __repr__(self) -> str:
        return f"<Passage {self.turn_id}, score {self.score:.2f}>"


class Recalled(msgspec.Struct, frozen=True, kw_only=True):
    """What a question brought back."""

    passages: tuple[Passage, ...]
    """In the order of time."""
    text: str
    tokens: int
    """Of the text, all of it counted."""
    budget: int
    turns: int
    """How many were searched."""

    def __repr__(self) -> str:
        return f"<Recalled {len(self.passages)} of {self.turns} turns, {self.tokens} tokens>"


def shown(turn: Remembered, spans: Sequence[tuple[int, int]]) -> str:
    """The parts of a turn that these spans name, in order, joined where they follow each other."""
    parts: list[list[int]] = []
    for start, end in sorted(spans):
        if parts and parts[-1][1] == start:
            parts[-1][1] = end
        else:
            parts.append([start, end])
    text = GAP.join(turn.content[start:end].strip() for start, end in parts)
    before = "… " if parts[0][0] > 0 else ""
    behind = " …" if parts[-1][1] < len(turn.content) else ""
    return f"{before}{text}{behind}"


def line_of(passage: Passage) -> str:
    """A passage as it stands in the text."""
    speaker = quoting.bracketed(passage.name or passage.role)
    return f"{speaker}: {quoting.indented(passage.text)}\n"


def heading_of(at: float) -> str:
    """The line above what was said on a day."""
    return f"[{day_named(at)}]"


def under(above: str, heading: str) -> str:
    """A heading below another: the year stands where it changes, for in order it is clear."""
    day, _, year = heading.rpartition(" ")
    is_above = year[:-1].isdigit() and year == above.rpartition(" ")[2]
    return f"{day}]" if is_above else heading


def day_named(at: float) -> str:
    """A day as people write it: few tokens, and no doubt which number is the month."""
    return _named(day_of(at))


@lru_cache(maxsize=4_096)
def _named(day: int) -> str:
    named = date.fromordinal(day)
    return f"{named.day} {_MONTHS[named.month]} {named.year}"


def in_order(passages: Iterable[Passage]) -> list[Passage]:
    """Passages in the order of time, those of one session together where they share a time."""
    return sorted(passages, key=lambda each: (each.at, each.session, each.number))


def rendered(passages: Sequence[Passage]) -> str:
    """The text of passages that are in order."""
    parts, above = [], ""
    for heading, of_day in groupby(passages, key=lambda each: heading_of(each.at)):
        parts += [f"{under(above, heading)}\n", *map(line_of, of_day)]
        above = heading
    return "".join(parts)
