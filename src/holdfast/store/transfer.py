"""transfer: after records. The lines that `export` writes and `restore` reads, for all stores.

Each line is a JSON object with a `type`. The first is the header; contents come as base64 of the
exact bytes, and are checked by their hash when they are read.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from holdfast.errors import StoreError
from holdfast.store import fact_store
from holdfast.store.answer_store import StoredAnswer
from holdfast.store.fact_store import Fact, NewFact
from holdfast.store.journal import JournalEntry
from holdfast.store.queue import PRIORITIES, Job, JobState
from holdfast.store.records import AuditEntry, SessionRecord, Summary, Turn
from holdfast.store.refs import KIND, digest, parse
from holdfast.store.tool_store import StoredTool
from holdfast.store.turn_store import RememberedTurn

VERSION = 5

_MOST_RECORDS = 200
_MOST_BYTES = 4_000_000


class Header(msgspec.Struct, frozen=True, tag="holdfast"):
    """The first line."""

    version: int = VERSION


class SessionLine(msgspec.Struct, frozen=True, tag="session"):
    """A session."""

    record: SessionRecord


class TurnLine(msgspec.Struct, frozen=True, tag="turn"):
    """A turn of a session."""

    session: str
    record: Turn


class LinkLine(msgspec.Struct, frozen=True, tag="link"):
    """A provider's id for a session's history that it holds; since version 2."""

    name: str
    session: str


class RefLine(msgspec.Struct, frozen=True, kw_only=True, tag="ref"):
    """A ref with its content; without, if it was removed or damaged."""

    ref_id: str
    kind: str
    sha256: str
    size: int
    tokens: int
    summary: str
    compressed: str
    meta: dict[str, str]
    flags: tuple[str, ...]
    created_at: float
    written_at: float
    expires_at: float | None
    accessed_at: float | None
    accesses: int
    uses: tuple[str, ...]
    """The sessions that used it; an empty name is a use without one."""
    data: bytes | None

    def __repr__(self) -> str:
        return f"<RefLine {self.ref_id}, {self.size} bytes>"


class MessageLine(msgspec.Struct, frozen=True, kw_only=True, tag="message"):
    """Bytes that turns name."""

    sha256: str
    sessions: tuple[str, ...]
    data: bytes

    def __repr__(self) -> str:
        return f"<MessageLine {self.sha256}, {len(self.data)} bytes>"


class CalibrationLine(msgspec.Struct, frozen=True, tag="calibration"):
    """The calibration of a workspace."""

    data: bytes


class SummaryRecordLine(msgspec.Struct, frozen=True, kw_only=True, tag="summary"):
    """A summary of a content; since version 3."""

    key: str
    source: str
    expires_at: float | None
    data: bytes

    def __repr__(self) -> str:
        return f"<SummaryLine {self.key}, {len(self.data)} bytes>"

    @classmethod
    def of(cls, summary: Summary) -> SummaryRecordLine:
        """The line of a summary."""
        return cls(
            key=summary.key,
            source=summary.source,
            expires_at=summary.expires_at,
            data=summary.value,
        )

    @property
    def summary(self) -> Summary:
        """The summary of the line."""
        return Summary(self.key, self.data, self.source, self.expires_at)


class JobLine(msgspec.Struct, frozen=True, kw_only=True, tag="job"):
    """A job of the queue; one that runs is queued again where it is restored. Since version 3."""

    session: str
    kind: str
    key: str
    ref_id: str
    priority: int
    state: JobState
    attempts: int
    max_attempts: int
    most_cost: int
    cost: int
    error: str
    created_at: float
    next_attempt_at: float | None
    completed_at: float | None

    @classmethod
    def of(cls, job: Job) -> JobLine:
        """The line of a job."""
        fields = {name: getattr(job, name) for name in cls.__struct_fields__ if name != "session"}
        if job.state == "running":  # the attempt stays in this store, and with it its reserved cost
            fields |= {"state": "queued", "next_attempt_at": job.created_at}
        return cls(session=job.scope.session, **fields)


class RememberedLine(msgspec.Struct, frozen=True, kw_only=True, tag="remembered"):
    """A turn that was remembered, with what recall has read in it; since version 4."""

    id: str
    session: str
    role: str
    name: str
    content: str
    at: float
    number: int
    tokens: int
    print: str
    maker: str
    index: bytes

    def __repr__(self) -> str:
        return f"<RememberedLine {self.id}, {len(self.content)} characters>"

    @classmethod
    def of(cls, turn: RememberedTurn, print_: str, maker: str, index: bytes) -> RememberedLine:
        """The line of a turn."""
        return cls(**msgspec.structs.asdict(turn), print=print_, maker=maker, index=index)

    @property
    def turn(self) -> RememberedTurn:
        """The turn of the line."""
        fields = {name: getattr(self, name) for name in RememberedTurn.__struct_fields__}
        return RememberedTurn(**fields)


class FactLine(msgspec.Struct, frozen=True, tag="fact"):
    """A fact of the ledger; its vector is made again. Since version 4."""

    fact: Fact


class AnswerLine(msgspec.Struct, frozen=True, tag="answer"):
    """An answer that may be given again; since version 4."""

    answer: StoredAnswer


class JournalLine(msgspec.Struct, frozen=True, kw_only=True, tag="journal"):
    """An entry of a journal; since version 5."""

    session: str
    name: str
    entry: JournalEntry


class ToolLine(msgspec.Struct, frozen=True, tag="tool"):
    """A tool as it was pinned; since version 5."""

    tool: StoredTool


class AuditLine(msgspec.Struct, frozen=True, tag="audit"):
    """An entry of the audit trail."""

    entry: AuditEntry


Line = (
    Header
    | SessionLine
    | TurnLine
    | LinkLine
    | RefLine
    | MessageLine
    | SummaryRecordLine
    | JobLine
    | RememberedLine
    | FactLine
    | AnswerLine
    | JournalLine
    | ToolLine
    | CalibrationLine
    | AuditLine
)

PAGE = 50
"""Lines that are read in one go."""
CONTENTS_PAGE = 16
"""Lines with contents that are read in one go: all are in memory at once."""
Page = tuple[list[Line], Any]
"""Lines, and the key of the last one; None at the end."""


def encode(line: Line) -> bytes:
    """One line, with its end."""
    # The standard library escapes lone surrogates, which text of a conversation may hold.
    return json.dumps(msgspec.to_builtins(line), separators=(",", ":")).encode() + b"\n"


async def batches(lines: AsyncIterator[bytes]) -> AsyncIterator[list[Line]]:
    """Read lines, check them, and hand them on in parts that fit in memory."""
    number, size, batch, begun = 0, 0, list[Line](), False
    async for text in lines:
        number += 1
        if not text.strip():
            continue
        line = _decode(text, number)
        if isinstance(line, Header) != (not begun):
            raise _unreadable(number, "the first line must be the header, and no other")
        begun = True
        batch.append(line)
        size += len(text)
        if len(batch) >= _MOST_RECORDS or size >= _MOST_BYTES:
            yield batch
            batch, size = [], 0
    if not begun:
        raise _unreadable(1, "the file is empty")
    if batch:
        yield batch


def _decode(text: bytes, number: int) -> Line:
    try:
        line: Line = msgspec.convert(json.loads(text), Line)
    except (ValueError, RecursionError) as error:
        # The message of the reader may quote content.
        raise _unreadable(number, "it is no record of an export") from error.__cause__
    if isinstance(line, Header) and line.version > VERSION:
        raise StoreError(
            f"the export is of version {line.version}, newer than this Holdfast reads ({VERSION})",
            fix="Update Holdfast.",
        )
    if not _is_sound(line):
        raise _unreadable(number, "its data does not match its hash or its ref")
    return line


def _is_sound(line: Line) -> bool:
    match line:
        case RefLine():
            name = parse(line.ref_id)
            return (
                name is not None
                and name.kind == line.kind
                and KIND.fullmatch(line.kind) is not None
                and line.sha256.startswith(name.digits)
                and (line.data is None or _is_of(line.data, line.size, line.sha256))
            )
        case MessageLine():
            return digest(line.data) == line.sha256
        case JobLine():
            return line.priority in PRIORITIES
        case FactLine(fact=fact):
            return fact_store.is_sound(NewFact(fact=fact))
        case _:
            return True


def _is_of(data: bytes, size: int, sha256: str) -> bool:
    return len(data) == size and digest(data) == sha256


def _unreadable(number: int, why: str) -> StoreError:
    return StoreError(
        f"a line of the export cannot be read: {why}",
        where=f"line {number}",
        fix="Export again; nothing of this part was restored.",
    )
