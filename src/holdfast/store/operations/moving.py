"""Export and restore: lines of all records of a scope, read in pages and written one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.store import transfer
from holdfast.store.operations import (
    contents,
    facts,
    journal,
    originals,
    sessions,
    summaries,
    turn_records,
    turns,
)
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Values

LINES: tuple[Callable[[Scope, Any], Operation[transfer.Page]], ...] = (
    sessions.lines,
    turn_records.lines,
    sessions.link_lines,
    originals.lines,
    turn_records.message_lines,
    facts.lines,
    summaries.lines,
    turns.lines,
    journal.lines,
    sessions.calibration_lines,
    originals.entry_lines,
)
"""Each returns a page of lines after a key: see `transfer.Page`."""


def packed(batch: Iterable[transfer.Line]) -> list[Values]:
    """Return the contents of some lines as they will lie on disk."""
    contents_of = {
        line.sha256: line.data
        for line in batch
        if isinstance(line, transfer.RefLine | transfer.MessageLine) and line.data is not None
    }
    return contents.packed(contents_of)


def prepare(scope: Scope, rows: list[Values]) -> Operation[None]:
    """Store the packed contents of lines, before the lines that refer to them."""
    yield from contents.lock_to_add(scope)
    yield from contents.keep(scope, rows)


def restore(scope: Scope, line: transfer.Line) -> Operation[bool]:
    """Write a line whose content is stored; return whether it was new."""
    match line:
        case transfer.RefLine():
            write = originals.restore(scope, line)
        case transfer.MessageLine():
            write = turn_records.restore_message(scope, line)
        case transfer.FactLine(fact=fact):
            write = facts.restore(scope, fact)
        case transfer.SummaryLine(summary=summary):
            write = summaries.restore(scope, summary)
        case transfer.RememberedLine():
            write = turns.restore(scope, line)
        case transfer.JournalLine():
            write = journal.restore(scope, line)
        case transfer.SessionLine(record=record):
            write = sessions.restore(scope, record)
        case transfer.TurnLine(session=session, record=turn):
            write = turn_records.restore(scope, session, turn)
        case transfer.LinkLine(name=name, session=session):
            write = sessions.restore_link(scope, name, session)
        case transfer.CalibrationLine(data=data):
            write = sessions.restore_calibration(scope, data)
        case transfer.AuditLine(entry=entry):
            write = originals.restore_entry(scope, entry)
        case _:
            return False
    return (yield from write)
