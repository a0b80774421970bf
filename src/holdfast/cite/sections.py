"""Collect the notes and answers of a citation by section, within its room.

sections: after citation, before composition. Items are taken in the given order, shortened to fit,
and never shown twice; the last one can be dropped again. The sections are shown in the order of
`HEADINGS`, and the best answer is the last line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.cite.citation import Excerpt, count
from holdfast.condense.condenser import Note
from holdfast.condense.cutting import MARK, shortened
from holdfast.condense.excerpt import excerpt
from holdfast.condense.places import labelled, lies_within, short_place
from holdfast.quoting import HEADINGS, item

EXCERPT_CHARACTERS = 500
LEAST_TOKENS = 40
_LEAST_KEY_TOKENS = 20
"""Minimum tokens of a shortened key line; with less room it is left out."""
_ANSWERS = ("answer", "other")
_QUOTES = ("key", "ends", *_ANSWERS)
"""Sections in which lines of the same place are joined into one."""


class AnswerLines(NamedTuple):
    """A part of the content that answers the question."""

    text: str
    where: str
    relevance: float
    hides_place: bool = False
    """Whether the place is not shown, because the model would take it for the answer."""


class _SectionLine(NamedTuple):
    text: str
    where: str
    relevance: float
    tokens: int
    hides_place: bool = False

    @property
    def shown(self) -> str:
        if self.hides_place:
            return item(self.text)
        if self.relevance:
            return item(labelled(self.text, self.where))
        return item(f"{self.where}: {self.text}" if self.where else self.text)


class Sections:
    """The lines of a citation by section, and the remaining room."""

    def __init__(self, room: int, question: str) -> None:
        self.room = room
        self.question = question
        self.sections: dict[str, list[_SectionLine]] = {name: [] for name in HEADINGS}
        self.order: list[str] = []

    def add(self, section: str, notes: Iterable[Note | AnswerLines], *, share: float) -> None:
        """Take notes in their order, as long as they fit into the share of the remaining room.

        The first note of a section is shortened if it does not fit. So is every answer, to the
        part that matches the question best, and every key line: a long last line of the content
        must not displace its first line.
        """
        lines = self.sections[section]
        room = round(self.room * share) - (0 if lines else count(HEADINGS[section]) + 1)
        for note in notes:
            if room < 8:
                break
            line = _line(note)
            if self._is_said(section, line):
                if section == "answer":
                    self._promote(line)
                continue
            cost = self._join(section, line, room)
            if cost is None:
                if line.tokens > room:
                    least = _LEAST_KEY_TOKENS if section == "key" else LEAST_TOKENS
                    if room < least or (lines and section not in ("key", *_ANSWERS)):
                        continue
                    shorter = _narrowed if section in _ANSWERS else _shortened
                    line = shorter(line, room, self.question)
                if not line.text.strip(f"{MARK} \n"):
                    continue
                self._take(section, line)
                cost = line.tokens
            room -= cost

    def _take(self, section: str, line: _SectionLine) -> None:
        if section in ("ends", *_ANSWERS):
            self._remove_replaced(line)
        if not self.sections[section]:
            self.room -= count(HEADINGS[section]) + 1
        self.sections[section].append(line)
        self.order.append(section)
        self.room -= line.tokens

    def _join(self, section: str, line: _SectionLine, room: int) -> int | None:
        """Join a line to another of the same place if the room allows it, and return its cost.

        Return None if no line has this place. A weaker part of the place goes before the part
        that answers the question.
        """
        if section not in _QUOTES or not line.where:
            return None
        for name in dict.fromkeys(("answer", section) if section in _ANSWERS else (section,)):
            for number, section_line in enumerate(self.sections[name]):
                if section_line.where != line.where:
                    continue
                parts = (
                    (line.text, section_line.text)
                    if name == "answer"
                    else (section_line.text, line.text)
                )
                joined = section_line._replace(text=f" {MARK} ".join(parts))
                joined = joined._replace(tokens=count(joined.shown))
                cost = joined.tokens - section_line.tokens
                if cost > room:
                    return 0
                self.sections[name][number] = joined
                self.room -= cost
                return cost
        return None

    def _remove_replaced(self, line: _SectionLine) -> None:
        """Remove lines that are part of a new line, and the outline or sample of its place."""
        for section, number, section_line in self._all_lines():
            is_part = lies_within(section_line.where, line.where) and section_line.text in line.text
            is_brief = section in ("outline", "sample") and section_line.where == line.where
            if section_line.where and section != "answer" and (is_part or is_brief):
                self._remove(section, number)

    def _remove(self, section: str, number: int) -> _SectionLine:
        line = self.sections[section].pop(number)
        self.order.remove(section)
        self.room += line.tokens
        if not self.sections[section]:
            self.room += count(HEADINGS[section]) + 1
        return line

    def _all_lines(self) -> Iterator[tuple[str, int, _SectionLine]]:
        """Yield every line with its section and number, last first, so that it may be removed."""
        for section, lines in self.sections.items():
            for number in reversed(range(len(lines))):
                yield section, number, lines[number]

    def _is_said(self, section: str, line: _SectionLine) -> bool:
        """Return whether a line is shown already; two answers may have the same place."""
        if section in _QUOTES or not line.where:
            return any(
                lies_within(line.where, section_line.where) and line.text in section_line.text
                for _, _, section_line in self._all_lines()
            )
        return any(
            section_line.where == line.where or (name == "ends" and line.text in section_line.text)
            for name, _, section_line in self._all_lines()
        )

    def _promote(self, answer: _SectionLine) -> None:
        """Move a line that was shown for another reason to the answers, because it is one."""
        for section, number, line in self._all_lines():
            if line.where == answer.where and answer.text in line.text:
                relevance = max(line.relevance, answer.relevance)
                promoted = line._replace(relevance=relevance, hides_place=answer.hides_place)
                if section == "answer":
                    self.sections[section][number] = promoted
                else:
                    self._remove(section, number)
                    self._take("answer", promoted)
                return

    def drop_last(self) -> bool:
        """Drop the line that was taken last; return False if there is none."""
        if not self.order:
            return False
        self.sections[self.order.pop()].pop()
        return True

    def lines(self) -> list[str]:
        """Return the sections as they are shown, each under its heading, the best answer last."""
        texts = []
        for section, lines in self.sections.items():
            if lines:
                texts.append(HEADINGS[section])
                in_order = reversed(lines) if section in _ANSWERS else lines
                texts.extend(line.shown for line in in_order)
        return texts

    def excerpts(self) -> tuple[Excerpt, ...]:
        """Return the quoted parts, the best answer first."""
        quoted = ("answer", "other", "key", "alert", "ends", "sample")
        return tuple(
            Excerpt(shortened(line.text, EXCERPT_CHARACTERS), line.where, line.relevance)
            for section in quoted
            for line in self.sections[section]
        )


def _line(note: Note | AnswerLines) -> _SectionLine:
    relevance = note.relevance if isinstance(note, AnswerLines) else 0.0
    hides_place = isinstance(note, AnswerLines) and note.hides_place
    line = _SectionLine(note.text.strip("\n"), short_place(note.where), relevance, 0, hides_place)
    return line._replace(tokens=count(line.shown))


def _narrowed(line: _SectionLine, room: int, question: str) -> _SectionLine:
    """Return the part of a long answer that matches the question best."""
    most = min(room * 4, len(line.text) - 1)
    while most > LEAST_TOKENS:
        narrow = line._replace(text=excerpt(line.text, question, most)[0])
        tokens = count(narrow.shown)
        if tokens <= room:
            return narrow._replace(tokens=tokens)
        most = most * 3 // 4
    return _shortened(line, room, question)


def _shortened(line: _SectionLine, room: int, _question: str) -> _SectionLine:
    """Return the beginning of a line that is too long."""
    most = min(room * 4, len(line.text) - 1)
    while most > 0:
        short = line._replace(text=shortened(line.text, most))
        tokens = count(short.shown)
        if tokens <= room:
            return short._replace(tokens=tokens)
        most = most * 2 // 3
    return line._replace(text="…", tokens=count(line.where) + 4)
