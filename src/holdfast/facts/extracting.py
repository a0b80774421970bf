"""extracting: messages and tool results as facts, without a model.

extracting: after statements, values and dates, before ledger. Every fact is copied from its source:
behind the name of who says so stand the very words, and beside days that are told by today the
days that are meant. A text that holds a secret gives no fact.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped]

from holdfast.facts.clauses import clauses
from holdfast.facts.dates import with_dates
from holdfast.facts.pronouns import stands_alone
from holdfast.facts.statements import Statement, is_whole, statement_of
from holdfast.facts.values import things_in
from holdfast.store.fact_shelf import MOST_CHARACTERS, FactKind

MOST_FACTS = 50
"""Of one message."""
_MACHINES = frozenset({"assistant", "ai", "model", "tool", "function", "system", "developer"})

# What an assistant did, with what it did it to: the only statements of its own that are kept, for
# the rest of its answers is advice that it would give again.
_DONE = re2.compile(
    r"(?i)^I(?:'ve| have)? (?:now |just |successfully |already )*(?:created|booked|sent|updated"
    r"|deployed|fixed|scheduled|cancelled|canceled|refunded|merged|opened|closed|deleted|removed"
    r"|added|changed|moved|renamed|committed|pushed|published|uploaded|paid|ordered|reserved"
    r"|assigned|processed|exchanged|modified)\b"
)
_YOUR = re2.compile(r"(?i)\byour\b")
_NAMED_VALUE = re2.compile(r"[#\w./-]*\d[\w./-]*|`[^`]+`|https?://")
_OWN = re2.compile(
    r"(?i)\b(?:my|our|the) ((?:[\w'-]+ ){1,4}?)(?:is|are|will be|was|were)"
    r"(?: now| currently| still)? ((?:\w+ ){0,2}?)([$€£]?\d[\w.,:%/-]*(?: \w+)?)"
)
_FAVOURITE = re2.compile(r"(?i)\bmy favou?rite ((?:[\w'-]+ ){1,4}?)(?:is|are)\b")
_HOME = re2.compile(
    r"(?i)\bI(?:'ve)? (?:now |just |recently )?(?:live|moved|relocated) (?:in|to) [A-Z]"
)
_NAME = re2.compile(r"(?i)\b(?:my name is|call me|refer to me as|address me as) [A-Z]")
_MONTHS = frozenset("jan feb mar apr may jun jul aug sep oct nov dec".split())
# Not RE2: its wrapper counts the signs before each match anew in a text that is not ASCII.
_CLASS = re.compile(r"(?i)%|[$€£]|[a-z]+")


class Said(NamedTuple):
    """A message as facts are looked for in it."""

    text: str
    ref: str
    """Its id."""
    speaker: str
    is_user: bool = True
    at: float | None = None


class Candidate(NamedTuple):
    """A fact that was found, before it is stored."""

    text: str
    kind: FactKind
    ref: str
    place: str
    subject: str = ""
    said_by: str = ""
    standing: bool = False
    at: float | None = None
    tags: tuple[str, ...] = ()


def said(message: Mapping[str, Any], session: str) -> Said:
    """A message of a conversation; one without an id is named by what it says."""
    text = _text_of(message.get("content"))
    role = str(message.get("role") or "user")
    name = str(message.get("name") or message.get("speaker") or "").strip()
    at = message.get("at")
    ref = str(message.get("id") or "") or _id_of(session, role, name, text)
    speaker = name if name and len(name) <= 60 and name.isprintable() else role.capitalize()
    moment = float(at) if isinstance(at, int | float) else None
    return Said(text, ref, speaker, role.lower() not in _MACHINES, moment)


def _id_of(*parts: str) -> str:
    told = "\0".join(parts).encode("utf-8", "surrogatepass")
    return f"msg_{hashlib.sha256(told).hexdigest()[:24]}"


def _text_of(content: object) -> str:
    """The text of a message's content, in whatever parts it comes."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "\n".join(part for part in parts if isinstance(part, str))
    return ""


def from_messages(messages: Iterable[Mapping[str, Any]], session: str) -> list[Candidate]:
    """What the messages of a session state, and the results among them."""
    facts: list[Candidate] = []
    for each in messages:
        message = said(each, session)
        if str(each.get("role")) in ("tool", "function"):
            tool = str(each.get("name") or "")
            facts += from_result(message.text, message.ref, tool, message.at)
        else:
            facts += from_message(message)
    return facts


def from_message(message: Said) -> list[Candidate]:
    """What a message states, in its order."""
    statements = _stated(message) if message.is_user else _done(message)
    candidates = (_told(message, statement) for statement in statements)
    return list(islice((candidate for candidate in candidates if candidate), MOST_FACTS))


def _stated(message: Said) -> Iterator[Statement]:
    for clause in clauses(message.text):
        statement = statement_of(clause)
        if statement is not None:
            yield statement


def _done(message: Said) -> Iterator[Statement]:
    for clause in clauses(message.text):
        if clause.asks or len(clause.text) > MOST_CHARACTERS // 2:
            continue
        of_user = _YOUR.sub("the user's", clause.plain)
        if not _DONE.match(of_user) or not _NAMED_VALUE.search(of_user):
            continue
        if is_whole(clause) and stands_alone(of_user, of_user.lower().split()):
            yield Statement(clause.text, "fact", False, clause.start, clause.stop)


def _told(message: Said, statement: Statement) -> Candidate | None:
    dated = with_dates(statement.text, message.at)
    text = f"{message.speaker}: {dated}"
    if len(text) > MOST_CHARACTERS or not text.isprintable():
        return None
    return Candidate(
        text=text,
        kind=statement.kind,
        ref=message.ref,
        place=f"characters {statement.start}-{statement.stop}",
        subject=subject_of(statement.text, message.speaker),
        said_by=message.speaker,
        standing=statement.standing,
        at=message.at,
    )


def subject_of(text: str, speaker: str) -> str:
    """What a statement gives the one value of; empty if that is not sure.

    A thing may have many properties, but only one of a kind: `the deadline` one date, `our budget`
    one sum. So the kind of the value belongs to the subject.
    """
    about = ""
    if _NAME.search(text):
        about = "name"
    elif favourite := _FAVOURITE.search(text):
        about = f"favourite {favourite[1].strip()}"
    elif _HOME.search(text):
        about = "home"
    elif own := _OWN.search(text):
        about = f"{own[1].strip()} in {_unit(own[2], own[3])}"
    return f"{speaker}: {about}".lower()[:200] if about else ""


def _unit(before: str, value: str) -> str:
    """What kind of value it is: a day, or what it is counted in."""
    if any(word[:3].lower() in _MONTHS for word in (*before.split(), *value.split()[1:])):
        return "days"
    units = _CLASS.findall(value)
    return units[-1].lower() if units else "numbers"


def from_result(content: str, ref: str, tool: str, at: float | None) -> list[Candidate]:
    """What a tool's result says of things that have a name."""
    return [
        Candidate(
            text=thing.text,
            kind=thing.kind,
            ref=ref,
            place=thing.place,
            subject=thing.subject[:200],
            tags=(tool,) if tool else (),
            at=at,
        )
        for thing in things_in(content)
        if len(thing.text) <= MOST_CHARACTERS and thing.text.isprintable()
    ]
