"""Lists of e-mails: senders, subjects, dates, recipients.

Reads JSON rows with `from` and `subject`, as Gmail's API returns them (headers in a list), or text
with headers, one e-mail after another.

The patterns use `re`, because a text may have a header in every line and RE2 takes ten times as
long for each match. They are linear: each is anchored to the start of a line, or to a newline that
no other match can begin with, and its repeats are possessive or at its end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.json_rows import passages as json_passages
from holdfast.condense.objects import first_of, listing, objects_near_top
from holdfast.condense.pieces import line
from holdfast.condense.rows import brief
from holdfast.condense.source import Source, once
from holdfast.condense.spans import Span, cut, passages_of, until_next, where

kind = "email_list"

_SHOWN = 25
_SENDERS = ("from", "sender", "from_address", "fromaddress", "from_email")
_DATES = ("date", "receiveddatetime", "received_at", "sentdatetime", "sent_at", "internaldate")
_BODIES = ("snippet", "bodypreview", "preview", "body", "text", "content")
_HEADER = re.compile(r"(?m)^(From|To|Subject|Date):[ \t]*+(.*)$")
_START = re.compile(r"(?m)^From (?=\S++ )|^(?:From|Date|Subject|Message-ID|Received|Return-Path):")
_BLANK = re.compile(r"\n[ \t\r]*+\n")


class Email(msgspec.Struct, frozen=True):
    """The shown fields of an e-mail."""

    sender: str
    subject: str
    date: str
    preview: str
    where: str


def sniff(source: Source) -> float:
    """Sure of rows with sender and subject, and of headers in text."""
    mails = emails(source)
    if not mails:
        return 0.0
    return 0.93 if source.document is not None else 0.88


def condense(source: Source) -> Condensed:
    """The e-mails in a line each, and who wrote most."""
    mails = emails(source)
    if not mails:
        return Condensed(title="E-mails, none", unit="e-mails", total=0, notes=())
    notes = listing(source, [(_said(mail), mail.where) for mail in mails], _SHOWN, "e-mails")
    senders: dict[str, int] = {}
    for mail in mails:
        senders[mail.sender] = senders.get(mail.sender, 0) + 1
    often = sorted(senders.items(), key=lambda entry: -entry[1])[:6]
    sender_names = ", ".join(f"{brief(name, limit=60)} ({count:,})" for name, count in often)
    notes.append(Note("outline", f"{len(senders):,} senders: {sender_names}"))
    return Condensed(
        title=f"E-mails: {len(mails):,}", unit="e-mails", total=len(mails), notes=tuple(notes)
    )


def passages(source: Source) -> Sequence[Passage]:
    """Each e-mail, in parts if it is long."""
    if source.document is not None:
        return json_passages(source)
    text = source.text
    spans = _spans(source)
    before = (0, spans[0][0] if spans else len(text))
    parts = (part for start, end in (before, *spans) for part in cut(text, start, end))
    return passages_of(source, parts)


@once
def emails(source: Source) -> list[Email]:
    """The e-mails of a content."""
    document = source.document
    if document is None:
        return _in_text(source)
    if not any(word in source.data for word in (b"ubject", b"SUBJECT")):
        return []
    objects = objects_near_top(source, _fields, alone=False)
    return list(map(_email, *objects)) if objects else []


def _fields(item: Any) -> dict[str, Any] | None:
    """The fields of an e-mail by small names; None if it is none."""
    if not isinstance(item, dict):
        return None
    fields = {key.lower(): value for key, value in item.items()}
    headers = _headers(item)
    fields.update({key: value for key, value in headers.items() if not fields.get(key)})
    has_sender = any(fields.get(name) for name in _SENDERS)
    return fields if has_sender and "subject" in fields else None


def _headers(item: dict[str, Any]) -> dict[str, Any]:
    payload = item.get("payload")
    headers = payload.get("headers") if isinstance(payload, dict) else item.get("headers")
    if not isinstance(headers, list):
        return {}
    return {
        str(header["name"]).lower(): header["value"]
        for header in headers
        if isinstance(header, dict) and "name" in header and "value" in header
    }


def _email(item: dict[str, Any], path: str) -> Email:
    fields = _fields(item) or {}
    return Email(
        _first(fields, _SENDERS),
        _first(fields, ("subject",)),
        _first(fields, _DATES),
        _first(fields, _BODIES),
        path,
    )


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    value = first_of(fields, names)
    if isinstance(value, dict):
        inner = value.get("emailAddress", value)
        value = inner.get("address") or inner.get("email") if isinstance(inner, dict) else inner
    return "" if value is None else line(value)


def _said(one: Email) -> str:
    parts = [
        one.date,
        f"from {one.sender}",
        one.subject or "(no subject)",
        brief(one.preview, limit=100) if one.preview else "",
    ]
    return " | ".join(" ".join(part.split()) for part in parts if part)


@once
def _spans(source: Source) -> list[Span]:
    """Return the span of each e-mail in a text: from its first header to the next e-mail's."""
    text = source.text
    starts: list[int] = []
    at = 0
    for match in _START.finditer(text):
        if match.start() < at or not _follows_blank(text, match.start()):
            continue
        blank = _BLANK.search(text, match.start())
        head = text[match.start() : blank.start() if blank else len(text)]
        names = {header[1] for header in _HEADER.finditer(head)}
        if {"From", "Subject"} <= names:
            starts.append(match.start())
            at = blank.end() if blank else len(text)
    return until_next(starts, len(text))


def _follows_blank(text: str, start: int) -> bool:
    before = text.rfind("\n", 0, max(start - 1, 0)) + 1
    return not text[before:start].strip()


def _in_text(source: Source) -> list[Email]:
    head = source.text[:4000]
    if not _START.match(head.lstrip()) or "Subject:" not in head:
        return []
    text = source.text
    mails = []
    for start, end in _spans(source):
        blank = _BLANK.search(text, start, end)
        close = blank.start() if blank else end
        headers = {match[1]: match[2].strip() for match in _HEADER.finditer(text, start, close)}
        body = text[blank.end() : min(end, blank.end() + 400)] if blank else ""
        place = where(source, start, end)
        mails.append(
            Email(headers["From"], headers["Subject"], headers.get("Date", ""), body, place)
        )
    return mails
