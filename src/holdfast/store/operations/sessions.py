"""Sessions: their records, the names that clients and providers use for them, and deletion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.store import rules
from holdfast.store.operations import contents, facts, journal, originals, turns
from holdfast.store.queue import session_quota
from holdfast.store.records import ClientKey, ErasedRecords, SessionRecord
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Rows, Values, load
from holdfast.store.transfer import PAGE, CalibrationLine, LinkLine, Page, SessionLine

TABLES = (
    "contents", "refs", "uses", "sessions", "turns", "messages", "links", "summaries", "jobs",
    "quotas", "remembered", "facts", "fact_sources", "answers", "journal",
)  # fmt: skip
"""Those from which records go with a session."""

_sql = load("sessions")
_EVERYBODY = Scope()
"""For statements that are about no scope."""


def read_any() -> Operation[None]:
    """Read one row, to see that the store can be read."""
    yield _sql.any(_EVERYBODY)


def get(scope: Scope) -> Operation[SessionRecord | None]:
    """Return the session that the scope names."""
    return _first((yield _sql.get(scope)))


def _first(rows: Rows) -> SessionRecord | None:
    return rules.from_json(rows[0][0], SessionRecord) if rows else None


def get_beside(scope: Scope, name: str) -> Operation[tuple[SessionRecord | None, int]]:
    """Return the session that the scope names, and how long one of its journals is."""
    ((record, length),) = yield _sql.get_beside(scope, journal=name)
    return None if record is None else rules.from_json(record, SessionRecord), length


def latest(
    scope: Scope, *, limit: int, before: str, client_session: str
) -> Operation[list[SessionRecord]]:
    """Return the sessions last used, of one client session if that is given."""
    page: Values = {"limit": max(limit, 0), "updated_at": float("inf"), "before": before}
    if before:
        places = yield _sql.place(scope, before=before)
        if not places:
            raise rules.no_place_to_go_on(before)
        page["updated_at"] = places[0][0]
    if client_session:
        rows = yield _sql.latest_of_client(scope, client_session=client_session, **page)
    else:
        rows = yield _sql.latest(scope, **page)
    return [rules.from_json(record, SessionRecord) for (record,) in rows]


def with_head(
    scope: Scope, heads: Sequence[str], client: ClientKey | None
) -> Operation[SessionRecord | None]:
    """Return the open session with the first of these heads, of one client or of any."""
    client_session, client_agent = client or ("", "")
    rows = yield _sql.with_head(
        scope,
        heads=[head for head in heads if head],
        of_any=client is None,
        client_session=client_session,
        client_agent=client_agent,
    )
    return _first(rows)


def save(scope: Scope, record: SessionRecord) -> Operation[None]:
    """Write the record of a session."""
    yield _sql.save(scope.of(record.session), **_values(record))


def _values(record: SessionRecord) -> Values:
    values = msgspec.structs.asdict(record)
    del values["session"]  # the scope gives it
    values["record"] = rules.to_json(record)
    return values


def close(scope: Scope, now: float) -> Operation[None]:
    """Note that a session is over."""
    record = _first((yield _sql.get_to_change(scope)))
    if record is not None:
        yield from save(scope, msgspec.structs.replace(record, closed_at=now))
    elif (yield _sql.is_used(scope)):
        yield from save(scope, rules.closed(scope.session, now))


def delete(scope: Scope, now: float) -> Operation[ErasedRecords]:
    """Remove a session with all that is its own, under the lock to remove."""
    only = yield from originals.only_of_session(scope)
    refs = yield from originals.drop(scope, only, now)
    yield _sql.remove_uses(scope)
    named = [sha256 for (sha256,) in (yield _sql.remove_messages(scope))]
    turn_rows = yield _sql.remove_turns(scope)
    yield _sql.remove_links(scope)
    removed = yield _sql.remove_record(scope)
    yield from contents.sweep(scope, named)
    yield _sql.remove_jobs(scope)
    yield _sql.remove_quota(scope, name=session_quota(scope.session))
    records = len((yield _sql.remove_answers(scope)))
    records += yield from turns.drop_of_session(scope)
    records += yield from facts.drop_of_session(scope)
    records += yield from journal.drop_of_session(scope)
    return ErasedRecords(sessions=len(removed), turns=len(turn_rows), refs=refs, records=records)


def delete_whole(scope: Scope, now: float) -> Operation[ErasedRecords]:
    """Remove a session with all that is its own."""
    yield from contents.lock_to_remove(scope)
    return (yield from delete(scope, now))


def link(scope: Scope, names: Sequence[str]) -> Operation[None]:
    """Note under which names a provider holds the history of the scope's session."""
    # In one order for all: two who link the same names do not wait for each other in a circle.
    yield _sql.link.many(scope, ({"name": name} for name in sorted(set(names))))


def linked(scope: Scope, names: Sequence[str]) -> Operation[str]:
    """Return the session that has the first of these names which any has."""
    rows = yield _sql.linked(scope, names=names)
    return str(rows[0][0]) if rows else ""


def scopes() -> Operation[list[Scope]]:
    """Return the scopes with records, most recently used first."""
    return [Scope(user, workspace) for workspace, user in (yield _sql.scopes(_EVERYBODY))]


def calibration(scope: Scope) -> Operation[bytes | None]:
    """Return the saved calibration of this workspace."""
    rows = yield _sql.calibration(scope)
    return bytes(rows[0][0]) if rows else None


def save_calibration(scope: Scope, data: bytes) -> Operation[None]:
    """Save the calibration of this workspace."""
    yield _sql.save_calibration(scope, data=data)


# --- export and restore --------------------------------------------------------------------------


def lines(scope: Scope, after: Any) -> Operation[Page]:
    """Return the exported lines of sessions by their names."""
    rows = yield _sql.exported(scope, after=after or "", limit=PAGE)
    page = [SessionLine(rules.from_json(record, SessionRecord)) for _, record in rows]
    return [*page], rows[-1][0] if len(rows) == PAGE else None


def link_lines(scope: Scope, after: Any) -> Operation[Page]:
    """Return the exported lines of links by their names."""
    rows = yield _sql.exported_links(scope, after=after or "", limit=PAGE)
    page = [LinkLine(name, session) for name, session in rows]
    return [*page], rows[-1][0] if len(rows) == PAGE else None


def calibration_lines(scope: Scope, _: Any) -> Operation[Page]:
    """Return the exported line of the calibration, if there is one."""
    data = yield from calibration(scope)
    return [] if data is None else [CalibrationLine(data)], None


def restore(scope: Scope, record: SessionRecord) -> Operation[bool]:
    """Write an exported session; return whether it was new."""
    return bool((yield _sql.add(scope.of(record.session), **_values(record))))


def restore_link(scope: Scope, name: str, session: str) -> Operation[bool]:
    """Write an exported link; return whether it was new."""
    return bool((yield _sql.add_link(scope.of(session), name=name)))


def restore_calibration(scope: Scope, data: bytes) -> Operation[bool]:
    """Save an exported calibration unless there is one; return whether it was new."""
    return bool((yield _sql.add_calibration(scope, data=data)))
