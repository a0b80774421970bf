"""Records written as lines of an export, and read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from holdfast.store import transfer
from holdfast.store.answer_store import StoredAnswer
from holdfast.store.fact_store import Fact
from holdfast.store.queue import Job
from tests.store.oracle.records import Ref, Shelf


def lines_of(
    shelf: Shelf,
    contents: Mapping[str, bytes],
    jobs: Iterable[Job],
    facts: Iterable[Fact],
    answers: Iterable[StoredAnswer],
) -> Iterator[transfer.Line]:
    """Yield every record of a shelf, and other records of its owner, after a header."""
    yield transfer.Header()
    for record in sorted(shelf.sessions.values(), key=lambda record: record.session):
        yield transfer.SessionLine(record)
    for session, turns in sorted(shelf.turns.items()):
        for number in sorted(turns):
            yield transfer.TurnLine(session, turns[number])
    for name, session in sorted(shelf.links.items()):
        yield transfer.LinkLine(name, session)
    for ref in list(shelf.refs.values()):
        yield ref.line(None if ref.removed else contents[ref.sha256])
    for sha256, sessions in sorted(shelf.messages.items()):
        named, data = tuple(sorted(sessions)), contents[sha256]
        yield transfer.MessageLine(sha256=sha256, sessions=named, data=data)
    for _, summary in sorted(shelf.summaries.items()):
        yield transfer.SummaryRecordLine.of(summary)
    yield from map(transfer.JobLine.of, jobs)
    yield from map(transfer.FactLine, facts)
    yield from map(transfer.AnswerLine, answers)
    if shelf.calibration is not None:
        yield transfer.CalibrationLine(shelf.calibration)
    for entry in sorted(shelf.audit, key=lambda entry: entry.at):
        yield transfer.AuditLine(entry)


def add_line(shelf: Shelf, contents: dict[str, bytes], line: transfer.Line) -> bool:
    """Put a record on a shelf; whether it was not there before."""
    match line:
        case transfer.RefLine():
            return _add_ref(shelf, contents, line)
        case transfer.MessageLine(sha256=sha256, sessions=sessions, data=data):
            is_new = sha256 not in shelf.messages
            contents[sha256] = data
            shelf.messages.setdefault(sha256, set()).update(sessions)
            return is_new
        case transfer.SummaryRecordLine(key=key, summary=summary):
            return shelf.summaries.setdefault(key, summary) is summary
        case _:
            return _add_told(shelf, line)


def _add_told(shelf: Shelf, line: transfer.Line) -> bool:
    """Add a record to a shelf that neither is nor depends on a content."""
    match line:
        case transfer.SessionLine(record=record):
            return shelf.sessions.setdefault(record.session, record) is record
        case transfer.TurnLine(session=session, record=turn):
            return shelf.turns.setdefault(session, {}).setdefault(turn.number, turn) is turn
        case transfer.LinkLine(name=name, session=session):
            is_new = name not in shelf.links
            shelf.links.setdefault(name, session)
            return is_new
        case transfer.CalibrationLine(data=data) if shelf.calibration is None:
            shelf.calibration = data
            return True
        case transfer.AuditLine(entry=entry) if entry not in shelf.audit:
            shelf.audit.append(entry)
            return True
        case _:
            return False


def _add_ref(shelf: Shelf, contents: dict[str, bytes], line: transfer.RefLine) -> bool:
    earlier = shelf.refs.get((line.kind, line.sha256))
    if line.data is not None:
        contents[line.sha256] = line.data
    if earlier is not None and (not earlier.removed or line.data is None):
        earlier.uses.update(line.uses)
        return False
    shelf.add(Ref.of(line))
    return True
