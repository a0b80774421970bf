"""A short citation in the place of a long content: what it is, what matters, how to open it.

cite: after condense and tokens, before fitting. It stores nothing itself: a citation carries the
original, which must be in the store before the citation is shown to a model.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from holdfast.condense.condenser import Condensed, Condenser, Note
from holdfast.condense.cutting import shortened
from holdfast.condense.fields import fields
from holdfast.condense.glance import glance
from holdfast.condense.kinds import condenser_for
from holdfast.condense.relevance import excerpt, rank
from holdfast.condense.source import Source
from holdfast.errors import StoreError
from holdfast.expand.tool import NAME
from holdfast.expand.ways import ways
from holdfast.privacy import Policy, apply, find, flags
from holdfast.store.records import Content
from holdfast.store.refs import DIGITS, KIND, canonical, digest, ref_id
from holdfast.tokens.vocabulary import count_ordinary

VOCABULARY = "o200k_base"
"""Citations are measured with one vocabulary, so that they are the same for every model."""

EXCERPT_CHARACTERS = 500
_SUMMARY_CHARACTERS = 500
_QUESTION_CHARACTERS = 2_000
_BEST_PASSAGES = 12
_FIELD_CHARACTERS = 300
"""Fields after the best one are shown shorter, so that passages have room too."""
_NAMED = 100.0
"""The relevance of a field that the question asks for by name."""
_LEAST_KEY = 80
"""Tokens for what every citation shows, where the room is small: exit code, verdict, ends."""
_FRAME_AND_KEYS = 200
"""Tokens of the first and the last line of a citation, and of what every citation shows."""
_COUNTED_WHOLE = 1_000_000
_LEAST_TOKENS = 40
_LEAST_KEY_TOKENS = 20
"""Below as many tokens a line is left out rather than shortened."""


class CitingRules(msgspec.Struct, frozen=True, kw_only=True):
    """When content is cited, and how."""

    threshold: int = 1_000
    """Content of more characters than this is cited."""
    threshold_bytes: int | None = None
    """And content of more bytes than this, however few characters they are.

    None: three times the characters, so that a higher threshold is not undone by the bytes.
    """
    most_tokens: int = 400
    privacy: Policy = "allow"
    """What happens to secrets and personal data: shown, masked in the citation, or refused."""
    ttl_seconds: float | None = None
    """How long the original stays fresh; None is for good."""
    ref_digits: int = DIGITS
    """Digits of the hash in a ref: more where two contents would share one."""
    opener: str = NAME
    """The name under which the tool that opens refs is offered in this conversation."""


class Excerpt(msgspec.Struct, frozen=True):
    """A part of the original that the citation quotes."""

    text: str
    where: str
    """In source units: `lines 45-67`, `rows 3-3 of $.items`."""
    relevance: float
    """How well it answers the question: above 0 only if there was one."""

    def __repr__(self) -> str:
        return f"<Excerpt of {len(self.text)} characters, {self.where}>"


class Fidelity(msgspec.Struct, frozen=True, kw_only=True):
    """What a citation kept of its original."""

    level: str
    """`cited`, `full` if the content was short enough to stay, or `ends` if it could not be read
    whole: see workers/ends.py."""
    unit: str
    total: int
    """How many units the original has."""
    kept: tuple[str, ...]
    """The places that are quoted."""
    from_tokens: int
    to_tokens: int
    flags: tuple[str, ...] = ()
    """Kinds of secrets and personal data in the original."""
    reason: str = ""
    """Why only the ends are shown, where that is so."""


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """What stays in the conversation."""

    ref_id: str
    """Empty if the content was short enough to stay as it is."""
    kind: str
    text: str
    tokens: int
    excerpts: tuple[Excerpt, ...]
    fidelity: Fidelity
    content: Content | None
    """The original, to be stored before the citation is used."""

    def __repr__(self) -> str:
        return f"<Citation {self.ref_id or 'none'}, {self.tokens} tokens>"


DEFAULT_RULES = CitingRules()


def cite(
    content: Any,
    *,
    kind: str | None = None,
    question: str | None = None,
    source_url: str | None = None,
    tool: str = "",
    rules: CitingRules = DEFAULT_RULES,
) -> Citation:
    """Cite a content: text, bytes or a JSON value. The same input gives the same bytes.

    A content at or under the threshold, or one that a citation could not shorten, stays as it is.
    """
    if kind is not None and not KIND.fullmatch(kind):
        raise StoreError(
            "the kind of a content is no name",
            where="kind",
            fix="Give a word of small letters, digits and underscores, such as build_log.",
        )
    data = canonical(content)
    source = Source(data, tool=tool, url=source_url or "")
    if not is_long(source.text, rules):
        return _unchanged(source, kind)
    tokens = count(source.text)
    found = find(source.text)
    visible = apply(rules.privacy, source.text, found)
    condenser = condenser_for(source, kind)
    shown = source
    if visible is not source.text:
        shown = Source(visible.encode(), tool=tool, url=source.url)
    sha256 = digest(data)
    name = ref_id(kind or condenser.kind, sha256, rules.ref_digits)
    # Half of a content just over the threshold is no more than the frame around a citation: there
    # three quarters are allowed, so that it still says how the content ended.
    half = max(tokens // 2, min(tokens * 3 // 4, _FRAME_AND_KEYS))
    cap = min(rules.most_tokens, max(_LEAST_TOKENS, half))
    handle = _Handle(name, rules.opener, tokens, tuple(ways(source, tokens, visible)))
    made = _compose(handle, shown, condenser, (question or "")[:_QUESTION_CHARACTERS], cap)
    if made.tokens >= tokens:
        return _unchanged(source, kind)
    kept = Content(
        ref_id=name,
        kind=kind or condenser.kind,
        sha256=sha256,
        data=data,
        summary=made.title[:_SUMMARY_CHARACTERS],
        compressed=made.text,
        compressed_tokens=made.tokens,
        tokens=tokens,
        meta={k: v for k, v in (("tool", tool), ("url", source.url)) if v},
        flags=flags(found),
        ttl_seconds=rules.ttl_seconds,
    )
    fidelity = Fidelity(
        level="cited",
        unit=made.unit,
        total=made.total,
        kept=tuple(excerpt.where for excerpt in made.excerpts if excerpt.where),
        from_tokens=tokens,
        to_tokens=made.tokens,
        flags=kept.flags,
    )
    return Citation(
        ref_id=name,
        kind=kept.kind,
        text=made.text,
        tokens=made.tokens,
        excerpts=made.excerpts,
        fidelity=fidelity,
        content=kept,
    )


def is_long(text: str, rules: CitingRules) -> bool:
    """Whether a content is one to be cited."""
    if len(text) > rules.threshold:
        return True
    most = rules.threshold_bytes if rules.threshold_bytes is not None else 3 * rules.threshold
    return len(text.encode("utf-8", "surrogatepass")) > most


def count(text: str) -> int:
    """Tokens of a text; of a very long one, from its first million characters."""
    if len(text) <= _COUNTED_WHOLE:
        return count_ordinary(VOCABULARY, text)
    return round(count_ordinary(VOCABULARY, text[:_COUNTED_WHOLE]) * len(text) / _COUNTED_WHOLE)


def _unchanged(source: Source, kind: str | None) -> Citation:
    tokens = count(source.text)
    fidelity = Fidelity(
        level="full",
        unit="characters",
        total=len(source.text),
        kept=("all",),
        from_tokens=tokens,
        to_tokens=tokens,
    )
    return Citation(
        ref_id="",
        kind=kind or "",
        text=source.text,
        tokens=tokens,
        excerpts=(),
        fidelity=fidelity,
        content=None,
    )


# --- what goes into the text -----------------------------------------------------------------


class _Made(NamedTuple):
    text: str
    title: str
    tokens: int
    excerpts: tuple[Excerpt, ...]
    unit: str
    total: int


class _Handle(NamedTuple):
    """What a citation says of its original: the line above the content, and the one below it."""

    name: str
    opener: str
    tokens: int
    ways: tuple[str, ...]

    def head(self, condensed: Condensed, source: Source, stored: str) -> str:
        return f"[{self.name} · {_size(condensed, len(source.data), self.tokens)} · {stored}]"

    def foot(self) -> str:
        return f'[Open any part: {self.opener}("{self.name}", {" | ".join(self.ways)})]'


def _compose(
    handle: _Handle, source: Source, condenser: Condenser, question: str, cap: int
) -> _Made:
    condensed = condenser.condense(source)
    title = shortened(" ".join(condensed.title.split()), 200)
    first = glance(source)
    head, foot = f"{handle.head(condensed, source, first.stored)}\n{title}", handle.foot()
    room = cap - count(head) - count(foot) - 4
    if room < 0:  # a small cap leaves room for the ref, and what is behind it
        head, foot = head.partition("\n")[0], ""
    answers = _answers(source, condenser, question) if room > _LEAST_TOKENS else []
    taken = _Taken(room, question)
    notes = condensed.notes
    alerts = [note for note in notes if note.role == "alert"]
    # What every citation shows comes first, then what a kind must show: ten URLs of a search take
    # some 250 tokens.
    # A question is what the content was fetched for; alerts must not be lost for it. What one of
    # the two leaves of its share, the other may use.
    least = min(1.0, _LEAST_KEY / max(room, 1))
    taken.add("key", first.notes, share=max(least, 0.3 if answers else 0.4))
    taken.add(
        "key", (note for note in notes if note.role == "key"), share=0.85 if answers else 0.95
    )
    taken.add("alert", alerts, share=0.5 if answers else 0.7)
    # The best answer whole is worth more than two parts, or an outline.
    taken.add("answer", answers[:1], share=1.0)
    taken.add("answer", answers[1:], share=1.0 if not notes else 0.75)
    taken.add("outline", (note for note in notes if note.role == "outline"), share=0.5)
    taken.add("sample", (note for note in notes if note.role == "sample"), share=1.0)
    taken.add("alert", alerts, share=1.0)
    taken.add("answer", answers, share=1.0)
    while True:
        text = "\n".join(filter(None, [head, *taken.lines(), foot]))
        total = count(text)
        if total <= cap or not taken.drop_last():
            return _Made(text, title, total, taken.excerpts(), condensed.unit, condensed.total)


def _answers(source: Source, condenser: Condenser, question: str) -> list[_Answer]:
    if not question.strip():
        return []
    answers = [
        _Answer(
            excerpt(field.text, question, _FIELD_CHARACTERS if n else EXCERPT_CHARACTERS)[0],
            field.where,
            _NAMED,
        )
        for n, field in enumerate(fields(source, question))
    ]
    passages = condenser.passages(source)
    for ranked in rank(question, passages)[:_BEST_PASSAGES]:
        passage = passages[ranked.index]
        text, _, _ = excerpt(passage.text, question, EXCERPT_CHARACTERS)
        answers.append(_Answer(text, passage.where, ranked.score))
    return answers


class _Answer(NamedTuple):
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
        return f"{self.where}: {self.text}" if self.where else self.text


_HEADINGS = {
    "key": "At a glance:",
    "alert": "Errors and warnings:",
    "answer": "On the question:",
    "outline": "Outline:",
    "sample": "Samples:",
}


class _Taken:
    """What was taken into a citation so far, by section, and the room that is left."""

    def __init__(self, room: int, question: str) -> None:
        self.room = room
        self.question = question
        self.sections: dict[str, list[_Line]] = {name: [] for name in _HEADINGS}
        self.order: list[str] = []
        self.places: dict[str, list[str]] = {}

    def add(self, section: str, notes: Iterable[Note | _Answer], *, share: float) -> None:
        """Take notes in their order, as long as they fit the share of the room that is left.

        The first of a section is shortened if it does not fit. So is every answer, to what has most
        of the question in it, and every key: the first line of a content must not be lost for the
        length of the last.
        """
        lines = self.sections[section]
        room = round(self.room * share) - (0 if lines else count(_HEADINGS[section]) + 1)
        for note in notes:
            if room < 8:
                break
            relevance = note.relevance if isinstance(note, _Answer) else 0.0
            line = _Line(note.text.strip("\n"), note.where, relevance, 0)
            line = line._replace(tokens=count(line.shown) + 1)
            if self._is_said(section, line):
                self._credit(line)
                continue
            if line.tokens > room:
                least = _LEAST_KEY_TOKENS if section == "key" else _LEAST_TOKENS
                if room < least or (lines and section not in ("key", "answer")):
                    continue
                shorter = _narrowed if section == "answer" else _shortened
                line = shorter(line, room, self.question)
            self._take(section, line)
            room -= line.tokens

    def _take(self, section: str, line: _Line) -> None:
        if not self.sections[section]:
            self.room -= count(_HEADINGS[section]) + 1
        self.sections[section].append(line)
        self.order.append(section)
        self.places.setdefault(line.where or line.text, []).append(line.text)
        self.room -= line.tokens

    def _is_said(self, section: str, line: _Line) -> bool:
        """Whether a place was shown before; keys and answers may be other parts of the same."""
        said = self.places.get(line.where or line.text, [])
        if section in ("answer", "key"):
            return any(line.text in text for text in said)
        return bool(said)

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
        made = []
        for section, lines in self.sections.items():
            if lines:
                made.append(_HEADINGS[section])
                made.extend(f"- {line.shown}" for line in lines)
        return made

    def excerpts(self) -> tuple[Excerpt, ...]:
        quoted = ("answer", "key", "alert", "sample")
        return tuple(
            Excerpt(shortened(line.text, EXCERPT_CHARACTERS), line.where, line.relevance)
            for section in quoted
            for line in self.sections[section]
        )


def _narrowed(line: _Line, room: int, question: str) -> _Line:
    """The part of a long answer with most of the question in it: its beginning may have none."""
    most = min(room * 4, len(line.text) - 1)
    while most > _LEAST_TOKENS:
        narrow = line._replace(text=excerpt(line.text, question, most)[0])
        tokens = count(narrow.shown) + 1
        if tokens <= room:
            return narrow._replace(tokens=tokens)
        most = most * 3 // 4
    return _shortened(line, room, question)


def _shortened(line: _Line, room: int, _question: str) -> _Line:
    """The beginning of a line that is too long."""
    most = min(room * 4, len(line.text) - 1)
    while most > 0:
        short = line._replace(text=shortened(line.text, most))
        tokens = count(short.shown) + 1
        if tokens <= room:
            return short._replace(tokens=tokens)
        most = most * 2 // 3
    return line._replace(text="…", tokens=count(line.where) + 4)


def _size(condensed: Condensed, size: int, tokens: int) -> str:
    return f"{condensed.total:,} {condensed.unit}, {_bytes(size)}, about {tokens:,} tokens"


def _bytes(size: int) -> str:
    return f"{size:,} bytes" if size < 10_000 else f"{size / 1000:,.0f} KB"
