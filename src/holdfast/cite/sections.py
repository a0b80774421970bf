"""What goes into a citation: notes and answers by section, as many as there is room for.

sections: after citation, before composing. It takes what it is given in that order, shortens what
does not fit, says nothing twice, and can give the last back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.cite.citation import Excerpt, count
from holdfast.condense.condenser import Note
from holdfast.condense.cutting import shortened
from holdfast.condense.relevance import excerpt
from holdfast.voice import HEADINGS, item

EXCERPT_CHARACTERS = 500
LEAST_TOKENS = 40
_LEAST_KEY_TOKENS = 20
"""Below as many tokens a line is left out rather than shortened."""


class Answer(NamedTuple):
    """A part of the content that answers the question."""

    text: str
    where: str
    relevance: float


class _Line(NamedTuple):
    text: str
    where: str
    relevance: float
    tokens: int

    @property
    def shown(self) -> str:
        return item(f"{self.where}: {self.text}" if self.where else self.text)


class Sections:
    """What was taken into a citation so far, by section, and the room that is left."""

    def __init__(self, room: int, question: str) -> None:
        self.room = room
        self.question = question
        self.sections: dict[str, list[_Line]] = {name: [] for name in HEADINGS}
        self.order: list[str] = []
        self.places: dict[str, list[str]] = {}

    def add(self, section: str, notes: Iterable[Note | Answer], *, share: float) -> None:
        """Take notes in their order, as long as they fit the share of the room that is left.

        The first of a section is shortened if it does not fit. So is every answer, to what has most
        of the question in it, and every key: the first line of a content must not be lost for the
        length of the last.
        """
        lines = self.sections[section]
        room = round(self.room * share) - (0 if lines else count(HEADINGS[section]) + 1)
        for note in notes:
            if room < 8:
                break
            relevance = note.relevance if isinstance(note, Answer) else 0.0
            line = _Line(note.text.strip("\n"), note.where, relevance, 0)
            line = line._replace(tokens=count(line.shown))
            if self._is_said(section, line):
                self._credit(line)
                continue
            if line.tokens > room:
                least = _LEAST_KEY_TOKENS if section == "key" else LEAST_TOKENS
                if room < least or (lines and section not in ("key", "answer")):
                    continue
                shorter = _narrowed if section == "answer" else _shortened
                line = shorter(line, room, self.question)
            self._take(section, line)
            room -= line.tokens

    def _take(self, section: str, line: _Line) -> None:
        if not self.sections[section]:
            self.room -= count(HEADINGS[section]) + 1
        self.sections[section].append(line)
        self.order.append(section)
        self.places.setdefault(line.where or line.text, []).append(line.text)
        self.room -= line.tokens

    def _is_said(self, section: str, line: _Line) -> bool:
        """Whether a place was shown before; keys and answers may be other parts of the same."""
        said = self.places.get(line.where or line.text, [])
        if section in ("answer", "key", "ends"):
            return any(line.text in text for text in said)
        return bool(said) or any(line.text in end.text for end in self.sections["ends"])

    def _credit(self, answer: _Line) -> None:
        """A line that was shown for another reason answers the question too: let it say so."""
        for lines in self.sections.values():
            for n, line in enumerate(lines):
                if line.where == answer.where and answer.text in line.text:
                    lines[n] = line._replace(relevance=max(line.relevance, answer.relevance))

    def drop_last(self) -> bool:
        """Give the last thing back that was taken; False if there is nothing."""
        if not self.order:
            return False
        self.sections[self.order.pop()].pop()
        return True

    def lines(self) -> list[str]:
        """The sections as they are shown, each under its heading."""
        shown = []
        for section, lines in self.sections.items():
            if lines:
                shown.append(HEADINGS[section])
                shown.extend(line.shown for line in lines)
        return shown

    def excerpts(self) -> tuple[Excerpt, ...]:
        """What is quoted, for who reads a citation as a value."""
        quoted = ("answer", "key", "alert", "ends", "sample")
        return tuple(
            Excerpt(shortened(line.text, EXCERPT_CHARACTERS), line.where, line.relevance)
            for section in quoted
            for line in self.sections[section]
        )


def _narrowed(line: _Line, room: int, question: str) -> _Line:
    """The part of a long answer with most of the question in it: its beginning may have none."""
    most = min(room * 4, len(line.text) - 1)
    while most > LEAST_TOKENS:
        narrow = line._replace(text=excerpt(line.text, question, most)[0])
        tokens = count(narrow.shown)
        if tokens <= room:
            return narrow._replace(tokens=tokens)
        most = most * 3 // 4
    return _shortened(line, room, question)


def _shortened(line: _Line, room: int, _question: str) -> _Line:
    """The beginning of a line that is too long."""
    most = min(room * 4, len(line.text) - 1)
    while most > 0:
        short = line._replace(text=shortened(line.text, most))
        tokens = count(short.shown)
        if tokens <= room:
            return short._replace(tokens=tokens)
        most = most * 2 // 3
    return line._replace(text="…", tokens=count(line.where) + 4)
