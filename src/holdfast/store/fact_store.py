"""Facts in the store: the record of a fact, and the calls on facts.

A fact has one source, or several if it was repeated; it is removed with the last of them. Of facts
with one subject and speaker, the newest is current; earlier ones are its history, and no call for
current facts returns them. `settled` decides that for all stores, inside the writing transaction.
"""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from holdfast.errors import StoreConflictError, StoreError
from holdfast.store import rules
from holdfast.store.records import Damage
from holdfast.store.refs import digest
from holdfast.store.scope import Scope

FactKind = Literal["decision", "entity", "task", "metric", "link", "fact"]
KINDS: tuple[FactKind, ...] = get_args(FactKind)
MOST_CHARACTERS = 500
"""Of a fact (004-14)."""
MOST_NAME_CHARACTERS = 200
"""Of a subject, a speaker, a tag, a ref or a place."""
MOST_TAGS = 20
MOST_SOURCES = 100
"""Maximum sources of a fact that is repeated often: the first ones and the last are kept."""
LONGEST_HISTORY = 1_000
DAMAGE = "a fact did not match its hash; it was removed"
PAGE = 500


class FactSource(msgspec.Struct, frozen=True, order=True):
    """The message or ref that a fact comes from."""

    ref: str
    """The ref of a stored content, or the id of a message."""
    place: str = ""
    """Where in it: `characters 10-80`, `$.orders[3]`."""
    session: str = ""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A self-contained statement."""

    id: str
    kind: FactKind = "fact"
    text: str
    sources: tuple[FactSource, ...]
    """In order of time."""
    subject: str = ""
    """The subject that the fact gives a value for: a newer fact of the same subject replaces it.
    Empty if the subject may have several values."""
    said_by: str = ""
    """The speaker: facts of two speakers about one subject do not supersede each other."""
    tags: tuple[str, ...] = ()
    """Sorted."""
    standing: bool = False
    """Whether it is a permanent instruction or preference, which matters for every question."""
    created_at: float = 0.0
    """Time of its last source."""
    decay_weight: float = 1.0
    superseded_by: str = ""
    """The id of the fact that took its place; empty: it is current."""

    @property
    def session(self) -> str:
        """The session of its first source."""
        return self.sources[0].session

    @property
    def source_ref(self) -> str:
        """Its first source."""
        return self.sources[0].ref

    @property
    def place(self) -> str:
        """The place in the source."""
        return self.sources[0].place

    @property
    def is_current(self) -> bool:
        """Whether nothing has taken its place."""
        return not self.superseded_by

    def __repr__(self) -> str:
        return f"<Fact {self.id}, {self.kind}, {len(self.text)} characters>"


class NewFact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact on its way into the store."""

    fact: Fact
    supersedes: tuple[str, ...] = ()
    """Ids of facts whose place it takes, beside those of its subject."""
    embedder: str = ""
    """Whose vector it is: those of two are never compared."""
    vector: bytes = b""
    """A signed byte for each dimension."""

    def __repr__(self) -> str:
        return f"<NewFact {self.fact!r}>"


class FactRow(NamedTuple):
    """The fields of a fact that an index needs."""

    id: str
    kind: FactKind
    text: str
    subject: str
    said_by: str
    tags: tuple[str, ...]
    standing: bool
    created_at: float
    decay_weight: float
    superseded_by: str
    sessions: tuple[str, ...]
    embedder: str
    vector: bytes


class FactChanges(NamedTuple):
    """What happened to the facts of a scope since a count."""

    counter: int
    """The count of changes now."""
    rows: list[FactRow]
    """Those added or changed; in the beginning, all that are current."""
    ids: frozenset[str] | None
    """All that are left, if any were forgotten since; None: none was."""


class FactFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the facts that match all given fields."""

    ids: tuple[str, ...] = ()
    session: str = ""
    """Said there, even if elsewhere too."""
    ref: str = ""
    """Said in this content or message."""
    kind: str = ""
    tag: str = ""
    words: str = ""
    """Words in the text, in any case."""

    @property
    def is_empty(self) -> bool:
        """Whether it would mean every fact there is."""
        return self == FactFilter()

    def takes(self, fact: Fact) -> bool:
        """Whether a fact is meant."""
        return (
            (not self.ids or fact.id in self.ids)
            and self.kind in ("", fact.kind)
            and (not self.tag or self.tag in fact.tags)
            and (not self.session or any(s.session == self.session for s in fact.sources))
            and (not self.ref or any(s.ref == self.ref for s in fact.sources))
            and self.words.casefold() in fact.text.casefold()
        )


class FactStore(ABC):
    """The calls on facts, implemented by each store.

    A call is atomic, and durable when it returns. A scope without a session covers all sessions of
    its user and workspace.
    """

    @abstractmethod
    async def add(self, scope: Scope, facts: Sequence[NewFact]) -> list[Fact]:
        """Add facts; return them as stored: merged with existing ones, current or superseded.

        Raises:
            StoreConflictError: a fact to supersede is not current.
            StoreError: a fact has no source, is too long, or contains characters that cannot be
                stored.
        """

    @abstractmethod
    async def get(self, scope: Scope, ids: Sequence[str]) -> list[Fact]:
        """Facts by their ids, in that order, superseded ones too; those not there are left out."""

    @abstractmethod
    async def latest(
        self, scope: Scope, *, kind: str = "", tag: str = "", limit: int = 100, current: bool = True
    ) -> list[Fact]:
        """Return the newest facts, of `scope.session` if it names one."""

    @abstractmethod
    async def before(self, scope: Scope, ids: Sequence[str]) -> list[Fact]:
        """The facts whose place these took."""

    @abstractmethod
    async def page(self, scope: Scope, after: str = "", limit: int = PAGE) -> list[Fact]:
        """All facts by their ids, superseded ones too."""

    @abstractmethod
    async def remove(self, scope: Scope, ids: Sequence[str]) -> int:
        """Remove facts without a trace; return their number."""

    @abstractmethod
    async def changes(self, scope: Scope, since: int = 0) -> FactChanges:
        """What happened since a count; 0: all that is current."""

    @abstractmethod
    async def confirm(self, scope: Scope, ids: Sequence[str], counter: int) -> list[Fact] | None:
        """Facts by their ids, if nothing has changed since a count; None if something has."""

    async def history(self, scope: Scope, fact_id: str) -> list[Fact]:
        """A fact, all that came before it and all that took its place, the oldest first."""
        chain: dict[str, Fact] = {}
        following = await self.get(scope, [fact_id])
        while following and following[0].id not in chain and len(chain) < LONGEST_HISTORY:
            chain[following[0].id] = following[0]
            successor = following[0].superseded_by
            following = await self.get(scope, [successor]) if successor else []
        earlier = list(chain)
        while earlier and len(chain) < LONGEST_HISTORY:
            replaced = await self.before(scope, earlier)
            earlier = [fact.id for fact in replaced if fact.id not in chain]
            chain |= {fact.id: fact for fact in replaced}
        return sorted(chain.values(), key=lambda fact: (fact.created_at, fact.is_current, fact.id))

    async def matching(self, scope: Scope, which: FactFilter) -> list[Fact]:
        """All facts that a filter means, superseded ones too."""
        if which.ids:
            return [fact for fact in await self.get(scope, which.ids) if which.takes(fact)]
        facts: list[Fact] = []
        after = ""
        while part := await self.page(scope, after):
            facts += filter(which.takes, part)
            after = part[-1].id
        return facts


# --- rules of all databases ----------------------------------------------------------------------


def key_of(text: str) -> str:
    """Return the comparison key of a text: case, spaces and the final stop do not count."""
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return digest(plain.rstrip(" .!").encode())


def check(facts: Sequence[NewFact]) -> None:
    """Raise unless facts can be stored."""
    for new in facts:
        if problem := _problem(new):
            raise StoreError(problem, where="fact", fix="See store/fact_store.py for the bounds.")


def is_sound(new: NewFact) -> bool:
    """Whether a fact can be stored."""
    return not _problem(new)


def _problem(new: NewFact) -> str:
    fact = new.fact
    names = [fact.id, fact.subject, fact.said_by, *fact.tags]
    names += [name for source in fact.sources for name in (source.ref, source.place)]
    if not fact.text.strip() or len(fact.text) > MOST_CHARACTERS:
        return f"a fact has no text, or more than {MOST_CHARACTERS} characters"
    if not fact.id or not fact.sources or not all(source.ref for source in fact.sources):
        return "a fact has no id, or no source: a ref or the id of a message"
    if fact.kind not in KINDS:
        return f"a fact is of a kind that there is not; there are {', '.join(KINDS)}"
    if len(fact.tags) > MOST_TAGS or any(len(name) > MOST_NAME_CHARACTERS for name in names):
        return "a fact has too many tags, or a name of it is too long"
    if not all(map(_is_storable, [fact.text, *names])):
        return "a fact holds characters that cannot be stored"
    if not (0.0 <= fact.decay_weight <= 1000.0) or not (abs(fact.created_at) < 1e12):
        return "a fact has a weight or a time that there is not"
    return ""


def _is_storable(text: str) -> bool:
    """Whether a text is what every database and terminal takes: lines of visible characters."""
    return all(character.isprintable() or character == "\n" for character in text)


def named(facts: Sequence[NewFact]) -> list[str]:
    """The ids that are to be superseded by name."""
    return rules.distinct(fact_id for new in facts for fact_id in new.supersedes)


def check_current(facts: Sequence[NewFact], current: Iterable[Fact]) -> None:
    """Raise unless all that is to be superseded by name is current, before anything is written."""
    if not {fact.id for fact in current} >= set(named(facts)):
        raise StoreConflictError(
            "a fact that is to be superseded is not current",
            where="fact",
            fix="Look at its history: it was superseded or forgotten.",
        )


class FactChange(NamedTuple):
    """The effect of a new fact on the existing ones."""

    fact: Fact
    """As it is written: new, or one that is there with one more source."""
    superseded: list[str]
    """Ids whose place it takes."""


def settled(new: NewFact, same: Fact | None, current: Sequence[Fact]) -> FactChange:
    """Return the effect of a new fact.

    `same` is the current fact with the same text; `current` are the current facts of its subject
    and those that it supersedes.
    """
    by_id = {fact.id: fact for fact in current}
    fact = new.fact if same is None else _merged(same, new.fact)
    by_id.pop(fact.id, None)
    rivals = [rival for rival in by_id.values() if _is_rival(fact, rival)]
    later = [rival for rival in rivals if rival.created_at > fact.created_at]
    if later:  # reported late: it was superseded before it was stored
        newest = max(later, key=lambda rival: (rival.created_at, rival.id))
        fact = msgspec.structs.replace(fact, superseded_by=newest.id)
    earlier = {rival.id for rival in rivals if rival not in later}
    replaced = earlier | (by_id.keys() & set(new.supersedes))
    return FactChange(fact, sorted(replaced - {fact.superseded_by}))


def _is_rival(fact: Fact, other: Fact) -> bool:
    return bool(fact.subject) and (fact.subject, fact.said_by) == (other.subject, other.said_by)


def _merged(known: Fact, again: Fact) -> Fact:
    """Return a fact with the sources of its repetition."""
    sources = known.sources + tuple(s for s in again.sources if s not in known.sources)
    if len(sources) > MOST_SOURCES:
        sources = (*sources[: MOST_SOURCES - 1], sources[-1])
    return msgspec.structs.replace(
        known,
        sources=sources,
        subject=known.subject or again.subject,
        tags=tuple(sorted({*known.tags, *again.tags})[:MOST_TAGS]),
        standing=known.standing or again.standing,
        created_at=max(known.created_at, again.created_at),
        decay_weight=max(known.decay_weight, again.decay_weight),
    )


def damage_of(key: str) -> Damage:
    """Return the report of a damaged fact."""
    return Damage(sha256=key, why=DAMAGE, refs=())


def distinct_sessions(sources: Iterable[FactSource]) -> tuple[str, ...]:
    """Return the sessions of the sources, sorted."""
    return tuple(sorted({source.session for source in sources}))


def limited(limit: int) -> int:
    """How many may be asked for."""
    return max(limit, 0)


def ordered(facts: Iterable[Fact], ids: Sequence[str]) -> list[Fact]:
    """Facts in the order of their ids, each once."""
    by_id = {fact.id: fact for fact in facts}
    return [by_id[fact_id] for fact_id in rules.distinct(ids) if fact_id in by_id]
