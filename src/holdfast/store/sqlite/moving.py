"""moving: what `export` reads and `restore` writes, in SQL.

moving: after sessions. Each function is a job for a connection, inside of a transaction. Reads
go page by page, each behind the key that ended the last, so that no store is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import apsw
import msgspec

from holdfast.store import rules, transfer
from holdfast.store.operations import facts, journal, summaries, turns
from holdfast.store.pack import Packed
from holdfast.store.records import AuditEntry, SessionRecord, Turn
from holdfast.store.scope import Scope
from holdfast.store.sqlite import (
    answers,
    contents,
    jobs,
    originals,
    sessions,
    tools,
)
from holdfast.store.sqlite.running import run
from holdfast.store.sqlite.ticking import Ticking
from holdfast.store.transfer import PAGE, Page

Read = Callable[[apsw.Connection, Scope, Any], Page]


def _pages(
    db: apsw.Connection, sql: str, scope: Scope, after: tuple[Any, ...]
) -> tuple[list[tuple[Any, ...]], bool]:
    rows = list(db.execute(sql, (scope.workspace, scope.user, *after, PAGE)))
    return rows, len(rows) == PAGE


def session_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Sessions by name."""
    rows, more = _pages(
        db,
        "SELECT session, record FROM sessions WHERE workspace = ? AND owner = ? AND session > ?"
        " ORDER BY session LIMIT ?",
        scope,
        (after or "",),
    )
    lines: list[transfer.Line] = [
        transfer.SessionLine(rules.from_json(record, SessionRecord)) for _, record in rows
    ]
    return lines, rows[-1][0] if more else None


def turn_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Turns by session and number."""
    rows, more = _pages(
        db,
        "SELECT session, number, record FROM turns WHERE workspace = ? AND owner = ?"
        " AND (session, number) > (?, ?) ORDER BY session, number LIMIT ?",
        scope,
        after or ("", 0),
    )
    lines: list[transfer.Line] = [
        transfer.TurnLine(session, rules.from_json(record, Turn)) for session, _, record in rows
    ]
    return lines, rows[-1][:2] if more else None


def link_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Links by name."""
    rows, more = _pages(
        db,
        "SELECT name, session FROM links WHERE workspace = ? AND owner = ? AND name > ?"
        " ORDER BY name LIMIT ?",
        scope,
        (after or "",),
    )
    lines: list[transfer.Line] = [transfer.LinkLine(name, session) for name, session in rows]
    return lines, rows[-1][0] if more else None


def ref_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Refs in the order of storing, with their contents."""
    rows, more = _pages(
        db,
        "SELECT id FROM refs WHERE workspace = ? AND owner = ? AND id > ? ORDER BY id LIMIT ?",
        scope,
        (after or 0,),
    )
    ids = [id_ for (id_,) in rows]
    lines: list[transfer.Line] = [_ref_line(db, row) for row in originals.with_ids(db, scope, ids)]
    return lines, ids[-1] if more else None


def _ref_line(db: apsw.Connection, row: originals.RefRow) -> transfer.RefLine:
    detail = row.detail
    uses = db.execute("SELECT session FROM uses WHERE ref = ? ORDER BY session", (row.id,))
    return transfer.RefLine(
        ref_id=row.ref_id,
        kind=row.kind,
        sha256=row.sha256,
        size=row.size,
        tokens=row.tokens,
        summary=detail.summary,
        compressed=detail.compressed,
        meta=detail.meta,
        flags=detail.flags,
        created_at=row.created_at,
        written_at=row.written_at,
        expires_at=row.expires_at,
        accessed_at=row.accessed_at,
        accesses=row.accesses,
        uses=tuple(session for (session,) in uses),
        data=originals.original(db, row),
    )


def message_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Messages by their place in the store."""
    rows, more = _pages(
        db,
        "SELECT DISTINCT c.id, c.sha256 FROM messages AS m JOIN contents AS c ON c.id = m.content"
        " WHERE m.workspace = ? AND m.owner = ? AND c.id > ? ORDER BY c.id LIMIT ?",
        scope,
        (after or 0,),
    )
    lines: list[transfer.Line] = []
    for message in sessions.stored_messages(db, scope, [sha256 for _, sha256 in rows]):
        named = db.execute(
            "SELECT session FROM messages WHERE content = ? AND owner = ? AND workspace = ?"
            " ORDER BY session",
            (message.content, scope.user, scope.workspace),
        )
        data = message.original()
        if data is not None:
            names = tuple(session for (session,) in named)
            lines.append(transfer.MessageLine(sha256=message.sha256, sessions=names, data=data))
    return lines, rows[-1][0] if more else None


def summary_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Summaries by their keys."""
    return run(db, summaries.lines(scope, after))


def job_lines(ticking: Ticking, db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Jobs in the order of queueing."""
    page, last = jobs.page(db, scope, after or 0, PAGE, ticking.moment(db))
    return [transfer.JobLine.of(job) for job in page], last or None


def remembered_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """What was remembered, in that order."""
    return run(db, turns.lines(scope, after))


def fact_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Facts by their ids."""
    return run(db, facts.lines(scope, after))


def answer_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Answers in the order they were kept."""
    page, last = answers.page(db, scope, after or 0, PAGE)
    return [transfer.AnswerLine(answer) for answer in page], last or None


def journal_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Journals by session and name, entry behind entry."""
    return run(db, journal.lines(scope, after))


def calibration_lines(db: apsw.Connection, scope: Scope, _: Any) -> Page:
    """What was learnt, if anything was."""
    data = sessions.calibration(db, scope)
    return [] if data is None else [transfer.CalibrationLine(data)], None


def audit_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """The audit trail from its beginning."""
    rows, more = _pages(
        db,
        "SELECT at, id, entry FROM audit WHERE workspace = ? AND owner = ? AND (at, id) > (?, ?)"
        " ORDER BY at, id LIMIT ?",
        scope,
        after or (float("-inf"), 0),
    )
    lines: list[transfer.Line] = [
        transfer.AuditLine(rules.from_json(entry, AuditEntry)) for _, _, entry in rows
    ]
    return lines, rows[-1][:2] if more else None


def tool_lines(db: apsw.Connection, scope: Scope, after: Any) -> Page:
    """Tools in the order of their revisions."""
    page, last = tools.page(db, scope, after or 0, PAGE)
    lines: list[transfer.Line] = [
        transfer.ToolLine(msgspec.structs.replace(tool, revision=0)) for tool in page
    ]
    return lines, last or None


ALL: tuple[Read, ...] = (
    session_lines,
    turn_lines,
    link_lines,
    ref_lines,
    message_lines,
    summary_lines,
    fact_lines,
    answer_lines,
    calibration_lines,
    audit_lines,
    remembered_lines,
    journal_lines,
    tool_lines,
)


def restore(
    db: apsw.Connection,
    scope: Scope,
    batch: list[transfer.Line],
    packed: Mapping[str, Packed],
    ticking: Ticking,
) -> int:
    """Write lines; how many were new."""
    now = ticking.noted(db)
    return sum(
        jobs.restore(db, scope, line, now)
        if isinstance(line, transfer.JobLine)
        else _restore(db, scope, line, packed)
        for line in batch
    )


def _restore(
    db: apsw.Connection, scope: Scope, line: transfer.Line, packed: Mapping[str, Packed]
) -> bool:
    match line:
        case transfer.RefLine():
            return _restore_ref(db, scope, line, packed)
        case transfer.MessageLine(sha256=sha256, data=data):
            is_new = not sessions.stored_messages(db, scope, [sha256])
            content = contents.keep(db, scope, sha256, len(data), packed[sha256])
            for session in line.sessions:
                sessions.name_message(db, scope.of(session), content)
            return is_new
        case transfer.SummaryLine(summary=summary):
            return run(db, summaries.restore(scope, summary))
        case transfer.RememberedLine():
            return run(db, turns.restore(scope, line))
        case transfer.FactLine(fact=fact):
            return run(db, facts.restore(scope, fact))
        case transfer.AnswerLine(answer=answer):
            return answers.restore(db, scope, answer)
        case transfer.JournalLine():
            return run(db, journal.restore(scope, line))
        case _:
            return _restore_told(db, scope, line)


def _restore_told(db: apsw.Connection, scope: Scope, line: transfer.Line) -> bool:
    """Write a record that is no content and is made of none."""
    match line:
        case transfer.SessionLine(record=record):
            is_new = sessions.get(db, scope.of(record.session)) is None
            if is_new:
                sessions.save(db, scope, record)
            return is_new
        case transfer.TurnLine(session=session, record=turn):
            there = sessions.turns(db, scope.of(session), after=turn.number - 1, limit=1)
            is_new = not there or there[0].number != turn.number
            if is_new:
                sessions.insert_turn(db, scope.of(session), turn)
            return is_new
        case transfer.LinkLine(name=name, session=session):
            is_new = not sessions.linked(db, scope, name)
            if is_new:
                sessions.link(db, scope.of(session), [name])
            return is_new
        case transfer.ToolLine(tool=tool):
            return tools.restore(db, scope, tool)
        case transfer.CalibrationLine(data=data) if sessions.calibration(db, scope) is None:
            sessions.save_calibration(db, scope, data)
            return True
        case transfer.AuditLine(entry=entry) if not _has_entry(db, scope, entry):
            originals.audit(db, scope, entry)
            return True
        case _:
            return False


def _has_entry(db: apsw.Connection, scope: Scope, entry: AuditEntry) -> bool:
    rows = db.execute(
        "SELECT 1 FROM audit WHERE workspace = ? AND owner = ? AND at = ? AND entry = ?",
        (scope.workspace, scope.user, entry.at, rules.to_json(entry)),
    )
    return rows.get is not None


def _restore_ref(
    db: apsw.Connection, scope: Scope, line: transfer.RefLine, packed: Mapping[str, Packed]
) -> bool:
    earlier = originals.claim(db, scope, line.ref_id, line.sha256)
    stored = None
    if line.data is not None:
        stored = contents.keep(db, scope, line.sha256, line.size, packed[line.sha256])
    if earlier is not None and (earlier.content is not None or stored is None):
        originals.use(db, scope, earlier.id, line.uses)
        return False
    if earlier is not None:
        db.execute("DELETE FROM refs WHERE id = ?", (earlier.id,))
    originals.use(db, scope, originals.insert(db, scope, line, stored), line.uses)
    return True
