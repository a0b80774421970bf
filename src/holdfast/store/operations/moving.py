"""Export and restore: lines of all records of a scope, read in pages and written one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.store import transfer
from holdfast.store.operations import (
    answers,
    contents,
    facts,
    journal,
    originals,
    sessions,
    summaries,
    tools,
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
    answers.lines,
    tools.lines,
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


_WRITERS: dict[type[transfer.Line], Callable[[Scope, Any], Operation[bool]]] = {
    transfer.RefLine: originals.restore,
    transfer.MessageLine: turn_records.restore_message,
    transfer.RememberedLine: turns.restore,
    transfer.JournalLine: journal.restore,
    transfer.FactLine: lambda scope, line: facts.restore(scope, line.fact),
    transfer.SummaryRecordLine: lambda scope, line: summaries.restore(scope, line.summary),
    transfer.AnswerLine: lambda scope, line: answers.restore(scope, line.answer),
    transfer.ToolLine: lambda scope, line: tools.restore(scope, line.tool),
    transfer.SessionLine: lambda scope, line: sessions.restore(scope, line.record),
    transfer.TurnLine: lambda scope, line: turn_records.restore(scope, line.session, line.record),
    transfer.LinkLine: lambda scope, line: sessions.restore_link(scope, line.name, line.session),
    transfer.CalibrationLine: lambda scope, line: sessions.restore_calibration(scope, line.data),
    transfer.AuditLine: lambda scope, line: originals.restore_entry(scope, line.entry),
}


def restore(scope: Scope, line: transfer.Line) -> Operation[bool]:
    """Write a line whose content is stored; return whether it was new."""
    write = _WRITERS.get(type(line))
    return False if write is None else (yield from write(scope, line))
