"""Recalled passages and their rendering as text.

Passages are in time order below a heading for each day. The speaker's name comes before the text,
whose further lines are indented, so that nothing in a turn can pass for one of our lines (see
`quoting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from itertools import groupby

import msgspec

from holdfast import quoting
from holdfast.memory.dates import day_of
from holdfast.store.turn_store import RememberedTurn

GAP = " … "
"""Marks left-out text between two pieces of a turn."""


# Not from `calendar`, whose names depend on the locale.
_MONTHS = " Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ")


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A recalled turn, or parts of it."""

    turn_id: str
    session: str
    role: str
    name: str
    at: float
    number: int
    text: str
    """The text shown: the whole turn, or pieces with gaps between them."""
    whole: bool
    score: float
    signals: Mapping[str, float]
    """What raised or lowered the score of its best piece, strongest first."""

    def __repr__(self) -> str:
        return f"<Passage {self.turn_id}, score {self.score:.2f}>"


class RecallResult(msgspec.Struct, frozen=True, kw_only=True):
    """The passages recalled for a question and their text."""

    passages: tuple[Passage, ...]
    """In time order."""
    text: str
    tokens: int
    """Tokens of `text`, counted after rendering."""
    budget: int
    turns: int
    """Number of turns searched."""

    def __repr__(self) -> str:
        return f"<RecallResult {len(self.passages)} of {self.turns} turns, {self.tokens} tokens>"


def join_spans(turn: RememberedTurn, spans: Sequence[tuple[int, int]]) -> str:
    """Return the text of these spans of a turn, with a gap mark between separate ones."""
    parts: list[list[int]] = []
    for start, end in sorted(spans):
        if parts and parts[-1][1] == start:
            parts[-1][1] = end
        else:
            parts.append([start, end])
    text = GAP.join(turn.content[start:end].strip() for start, end in parts)
    before = "… " if parts[0][0] > 0 else ""
    after = " …" if parts[-1][1] < len(turn.content) else ""
    return f"{before}{text}{after}"


def render_passage(passage: Passage) -> str:
    """Return a passage as a line of text: speaker and content."""
    speaker = quoting.bracketed(passage.name or passage.role)
    return f"{speaker}: {quoting.indented(passage.text)}\n"


def day_heading(at: float) -> str:
    """Return the heading for passages of the day of a timestamp."""
    return f"[{format_day(at)}]"


def shorten_heading(previous: str, heading: str) -> str:
    """Return a heading without its year if the heading before has the same year."""
    day, _, year = heading.rpartition(" ")
    is_same_year = year[:-1].isdigit() and year == previous.rpartition(" ")[2]
    return f"{day}]" if is_same_year else heading


def format_day(at: float) -> str:
    """Return a day as "8 May 2023": few tokens, and no doubt which number is the month."""
    return _format_ordinal(day_of(at))


@lru_cache(maxsize=4_096)
def _format_ordinal(day: int) -> str:
    day_date = date.fromordinal(day)
    return f"{day_date.day} {_MONTHS[day_date.month]} {day_date.year}"


def sort_by_time(passages: Iterable[Passage]) -> list[Passage]:
    """Sort passages by time, keeping those of one session together where times are equal."""
    return sorted(passages, key=lambda each: (each.at, each.session, each.number))


def render_passages(passages: Sequence[Passage]) -> str:
    """Return the text of passages that are in time order."""
    parts, previous = [], ""
    for heading, of_day in groupby(passages, key=lambda each: day_heading(each.at)):
        parts += [f"{shorten_heading(previous, heading)}\n", *map(render_passage, of_day)]
        previous = heading
    return "".join(parts)
