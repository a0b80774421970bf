"""Extract facts from messages and tool results by rules, without a model.

Each fact quotes its source word for word, after the speaker's name and with the dates that relative
dates mean. A text that holds a secret gives no fact.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import re2  # type: ignore[import-untyped]

from holdfast.facts.clauses import split_clauses
from holdfast.facts.dates import annotate_dates
from holdfast.facts.pronouns import is_self_contained
from holdfast.facts.statements import FactStatement, is_complete, read_statement
from holdfast.facts.values import find_records
from holdfast.store.fact_store import MOST_CHARACTERS, FactKind

MOST_FACTS = 50
"""Maximum facts per message."""
_MACHINES = frozenset({"assistant", "ai", "model", "tool", "function", "system", "developer"})

# An assistant's report of an action and its object. These are the only statements of assistants
# that are extracted: the rest of a reply is advice that the assistant would give again.
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
# Not RE2: in a text that is not ASCII its wrapper counts the characters before each match again.
_CLASS = re.compile(r"(?i)%|[$€£]|[a-z]+")


class SourceMessage(NamedTuple):
    """A message from which facts are extracted."""

    text: str
    ref: str
    """The id of the message."""
    speaker: str
    is_user: bool = True
    at: float | None = None


class FactCandidate(NamedTuple):
    """A fact before it is stored."""

    text: str
    kind: FactKind
    ref: str
    place: str
    subject: str = ""
    said_by: str = ""
    standing: bool = False
    at: float | None = None
    tags: tuple[str, ...] = ()


def read_message(message: Mapping[str, Any], session: str) -> SourceMessage:
    """Return a message of a conversation; one without an id gets an id made from its content."""
    text = _text_of(message.get("content"))
    role = str(message.get("role") or "user")
    name = str(message.get("name") or message.get("speaker") or "").strip()
    at = message.get("at")
    ref = str(message.get("id") or "") or _id_of(session, role, name, text)
    speaker = name if name and len(name) <= 60 and name.isprintable() else role.capitalize()
    moment = float(at) if isinstance(at, int | float) else None
    return SourceMessage(text, ref, speaker, role.lower() not in _MACHINES, moment)


def _id_of(*parts: str) -> str:
    identity = "\0".join(parts).encode("utf-8", "surrogatepass")
    return f"msg_{hashlib.sha256(identity).hexdigest()[:24]}"


def _text_of(content: object) -> str:
    """Return the text of a message's content: a string, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "\n".join(part for part in parts if isinstance(part, str))
    return ""


def extract_from_messages(
    messages: Iterable[Mapping[str, Any]], session: str
) -> list[FactCandidate]:
    """Extract facts from the messages of a session, including tool results."""
    facts: list[FactCandidate] = []
    for each in messages:
        message = read_message(each, session)
        if str(each.get("role")) in ("tool", "function"):
            tool = str(each.get("name") or "")
            facts += extract_from_result(message.text, message.ref, tool, message.at)
        else:
            facts += extract_from_message(message)
    return facts


def extract_from_message(message: SourceMessage) -> list[FactCandidate]:
    """Extract the facts that a message states, in order."""
    statements = _user_statements(message) if message.is_user else _completed_actions(message)
    candidates = (_candidate(message, statement) for statement in statements)
    return list(islice((candidate for candidate in candidates if candidate), MOST_FACTS))


def _user_statements(message: SourceMessage) -> Iterator[FactStatement]:
    for clause in split_clauses(message.text):
        statement = read_statement(clause)
        if statement is not None:
            yield statement


def _completed_actions(message: SourceMessage) -> Iterator[FactStatement]:
    for clause in split_clauses(message.text):
        if clause.asks or len(clause.text) > MOST_CHARACTERS // 2:
            continue
        of_user = _YOUR.sub("the user's", clause.plain)
        if not _DONE.match(of_user) or not _NAMED_VALUE.search(of_user):
            continue
        if is_complete(clause) and is_self_contained(of_user, of_user.lower().split()):
            yield FactStatement(clause.text, "fact", False, clause.start, clause.stop)


def _candidate(message: SourceMessage, statement: FactStatement) -> FactCandidate | None:
    dated = annotate_dates(statement.text, message.at)
    text = f"{message.speaker}: {dated}"
    if len(text) > MOST_CHARACTERS or not text.isprintable():
        return None
    return FactCandidate(
        text=text,
        kind=statement.kind,
        ref=message.ref,
        place=f"characters {statement.start}-{statement.stop}",
        subject=find_subject(statement.text, message.speaker),
        said_by=message.speaker,
        standing=statement.standing,
        at=message.at,
    )


def find_subject(text: str, speaker: str) -> str:
    """Return the property whose single value a statement gives; empty if that is not certain.

    The kind of value is part of the subject: something may have many properties, but only one of a
    kind, such as one date for `the deadline` and one sum for `our budget`.
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
    """Return the kind of a value: "days", or its unit."""
    if any(word[:3].lower() in _MONTHS for word in (*before.split(), *value.split()[1:])):
        return "days"
    units = _CLASS.findall(value)
    return units[-1].lower() if units else "numbers"


def extract_from_result(content: str, ref: str, tool: str, at: float | None) -> list[FactCandidate]:
    """Extract facts about the objects with an id in a tool's result."""
    return [
        FactCandidate(
            text=record.text,
            kind=record.kind,
            ref=ref,
            place=record.place,
            subject=record.subject[:200],
            tags=(tool,) if tool else (),
            at=at,
        )
        for record in find_records(content)
        if len(record.text) <= MOST_CHARACTERS and record.text.isprintable()
    ]
