"""sessions: sessions, their turns and messages, usage and what was learnt, in SQL.

sessions: after originals. Each function is a job for a connection, inside of a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import apsw
import msgspec

from holdfast.store import rules
from holdfast.store.operations import facts, journal
from holdfast.store.operations import turns as remembered
from holdfast.store.pack import Packed, unpack
from holdfast.store.records import (
    NANO,
    AuditEntry,
    ClientKey,
    Erased,
    SessionRecord,
    Turn,
    UsageTotal,
)
from holdfast.store.scope import Scope
from holdfast.store.sqlite import answers, contents, jobs, originals
from holdfast.store.sqlite.running import run

_OF_SESSION = "WHERE workspace = ? AND owner = ? AND session = ?"

_WITH_HASHES = (
    "json_each(?4) AS h CROSS JOIN contents AS c ON c.workspace = ?1 AND c.sha256 = h.value"
)
_OF_USER = (
    "EXISTS (SELECT 1 FROM messages AS m"
    " WHERE m.content = c.id AND m.owner = ?2 AND m.workspace = ?1)"
)
"""Of a workspace, the contents that turns of this user name: no others are theirs to name."""

_DOLLARS = f"sum(CAST(round({{}} * {NANO}) AS INTEGER)) / {NANO}.0"
"""The sum of a column of dollars, in whole billionths: see `records.sum_dollars`."""
SUMS = (
    "count(*), sum(predicted), sum(untouched), sum(input), sum(cached), sum(output),"
    f" sum(expansions), sum(expansion_tokens), {_DOLLARS.format('cost')},"
    f" {_DOLLARS.format('saved_cost')}, sum(failed), sum(answered), sum(lazy_saved > 0),"
    " sum(lazy_saved), sum(tool_searches), sum(tool_calls), sum(lazy_calls),"
    " sum(cache_written), sum(cache_written_hour),"
    f" {_DOLLARS.format('demo_cost')}, {_DOLLARS.format('demo_saved_cost')},"
    " sum(unreported), sum(estimated), sum(assumed), sum(unpriced),"
    " sum(overflows)"
)
"""The fields of `UsageTotal` behind its name, summed over turns."""
_NAMES = {"model": "model", "session": "session", "day": "date(started_at, 'unixepoch')"}


def _key(scope: Scope) -> tuple[str, str, str]:
    return (scope.workspace, scope.user, scope.session)


def read_any(db: apsw.Connection) -> None:
    """Read from the file, whatever is there."""
    db.execute("SELECT session FROM sessions LIMIT 1").fetchall()


def get(db: apsw.Connection, scope: Scope) -> SessionRecord | None:
    """The session that the scope names."""
    record = db.execute(f"SELECT record FROM sessions {_OF_SESSION}", _key(scope)).get  # noqa: S608
    return None if record is None else rules.from_json(record, SessionRecord)


def get_beside(
    db: apsw.Connection, scope: Scope, journal_name: str
) -> tuple[SessionRecord | None, int]:
    """The session that the scope names, and how long one of its journals is."""
    row = db.execute(
        f"SELECT (SELECT record FROM sessions {_OF_SESSION}),"  # noqa: S608 - constants
        f" (SELECT max(sequence) FROM journal {_OF_SESSION} AND name = ?)",
        (*_key(scope), *_key(scope), journal_name),
    ).get
    record, length = row or (None, None)
    return record and rules.from_json(record, SessionRecord), length or 0


def latest(
    db: apsw.Connection, scope: Scope, *, limit: int, before: str, client_session: str
) -> list[SessionRecord]:
    """Return the sessions last used."""
    place: tuple[float, str] = (float("inf"), "")
    if before:
        last = get(db, scope.of(before))
        if last is None:
            raise rules.no_place_to_go_on(before)
        place = (last.updated_at, last.session)
    of_client = " AND client_session = ?" if client_session else ""
    rows = db.execute(
        f"SELECT record FROM sessions WHERE workspace = ? AND owner = ?{of_client}"  # noqa: S608
        " AND (updated_at, session) < (?, ?) ORDER BY updated_at DESC, session DESC LIMIT ?",
        (
            *(scope.workspace, scope.user),
            *filter(None, [client_session]),
            *place,
            max(limit, 0),
        ),
    )
    return [rules.from_json(record, SessionRecord) for (record,) in rows]


def with_head(
    db: apsw.Connection, scope: Scope, heads: Sequence[str], client: ClientKey | None
) -> SessionRecord | None:
    """Return the open session with the first of these heads, of one client or of any."""
    of_client = "" if client is None else " AND s.client_session = ? AND s.client_agent = ?"
    # Without being told which index, SQLite goes through all sessions of the user for each head.
    record = db.execute(
        "SELECT s.record FROM json_each(?) AS h"  # noqa: S608 - constants
        " CROSS JOIN sessions AS s INDEXED BY sessions_by_head ON s.head = h.value"
        f" WHERE s.workspace = ? AND s.owner = ? AND s.closed_at IS NULL{of_client}"
        " ORDER BY h.key, s.updated_at DESC, s.session DESC LIMIT 1",
        (
            json.dumps([head for head in heads if head]),
            *(scope.workspace, scope.user),
            *(client or ()),
        ),
    ).get
    return None if record is None else rules.from_json(record, SessionRecord)


def save(db: apsw.Connection, scope: Scope, record: SessionRecord) -> None:
    """Write a session's record."""
    db.execute(
        "INSERT INTO sessions (workspace, owner, session, head, updated_at, closed_at, record,"
        " client_session, client_agent, purpose)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET head = excluded.head,"
        " updated_at = excluded.updated_at, closed_at = excluded.closed_at,"
        " record = excluded.record, client_session = excluded.client_session,"
        " client_agent = excluded.client_agent, purpose = excluded.purpose",
        (
            *(scope.workspace, scope.user, record.session, record.head),
            *(record.updated_at, record.closed_at, rules.to_json(record)),
            *(*record.client_key, record.purpose),
        ),
    )


def add_turn(
    db: apsw.Connection,
    scope: Scope,
    turn: Turn,
    session: SessionRecord,
    messages: Mapping[str, tuple[int, Packed]],
) -> None:
    """Append a turn; a message comes with its size and as it will lie on disk."""
    last = db.execute(f"SELECT max(number) FROM turns {_OF_SESSION}", _key(scope)).get  # noqa: S608
    rules.check_number(turn.number, last or 0)
    insert_turn(db, scope, turn)
    save(db, scope, session)
    if messages:
        contents.keep_all(db, scope, messages)
        _name(db, scope, messages)
    if others := rules.hashes_of(turn) - messages.keys():
        _name(db, scope, others, f" WHERE {_OF_USER}")


def insert_turn(db: apsw.Connection, scope: Scope, turn: Turn) -> None:
    """Write a turn, in the place of one with its number."""
    usage = turn.usage
    db.execute(
        "INSERT OR REPLACE INTO turns (workspace, owner, session, number, started_at, model,"
        " predicted, untouched, input, cached, output, expansions, expansion_tokens,"
        " cost, saved_cost, failed, answered, lazy_saved, tool_searches, tool_calls, lazy_calls,"
        " cache_written, cache_written_hour, demo_cost, demo_saved_cost, unreported, estimated,"
        " assumed, unpriced, overflows, record)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
        " ?, ?, ?, ?)",
        (
            *_key(scope),
            *(turn.number, turn.started_at, turn.model),
            *(usage.predicted, usage.untouched, usage.input, usage.cached, usage.output),
            *(usage.expansions, usage.expansion_tokens),
            *(usage.cost or 0.0, usage.saved_cost or 0.0, usage.failed, usage.answered),
            *(usage.lazy_saved, usage.tool_searches, usage.tool_calls, usage.lazy_calls),
            *(usage.cache_written, usage.cache_written_hour),
            *(usage.demo_cost or 0.0, usage.demo_saved_cost or 0.0),
            *(usage.unreported, usage.estimated, usage.assumed, usage.unpriced),
            usage.overflows,
            rules.to_json(turn),
        ),
    )


def name_message(db: apsw.Connection, scope: Scope, content: int) -> None:
    """Note that the session names a message."""
    db.execute(
        "INSERT OR IGNORE INTO messages (workspace, owner, session, content) VALUES (?, ?, ?, ?)",
        (*_key(scope), content),
    )


def _name(db: apsw.Connection, scope: Scope, hashes: Iterable[str], where: str = "") -> None:
    """Note that the session names messages, all of them in one statement."""
    db.execute(
        "INSERT OR IGNORE INTO messages (workspace, owner, session, content)"  # noqa: S608 - constants
        f" SELECT ?1, ?2, ?3, c.id FROM {_WITH_HASHES}{where}",
        (*_key(scope), json.dumps(list(hashes))),
    )


class StoredMessage(NamedTuple):
    """A message as it lies on disk."""

    content: int
    sha256: str
    size: int
    codec: int
    damage: str | None
    data: bytes

    def original(self) -> bytes | None:
        """The exact bytes; None if they are damaged."""
        if self.damage is not None:
            return None
        return unpack(self.codec, self.data, size=self.size, sha256=self.sha256)


def stored_messages(
    db: apsw.Connection, scope: Scope, hashes: Sequence[str]
) -> list[StoredMessage]:
    """Messages that turns of this user name."""
    rows = db.execute(
        f"SELECT c.id, c.sha256, c.size, c.codec, c.damage, {contents.DATA}"  # noqa: S608
        f" FROM {_WITH_HASHES} WHERE {_OF_USER}",
        (*_key(scope), json.dumps(hashes)),
    )
    return [StoredMessage._make(row) for row in rows]


def turns(db: apsw.Connection, scope: Scope, *, after: int, limit: int) -> list[Turn]:
    """The turns of the session in order."""
    rows = db.execute(
        f"SELECT record FROM turns {_OF_SESSION} AND number > ? ORDER BY number LIMIT ?",  # noqa: S608
        (*_key(scope), after, max(limit, 0)),
    )
    return [rules.from_json(record, Turn) for (record,) in rows]


def link(db: apsw.Connection, scope: Scope, names: Iterable[str]) -> None:
    """Note under which names a provider holds the session's history."""
    db.executemany(
        "INSERT OR REPLACE INTO links (workspace, owner, name, session) VALUES (?, ?, ?, ?)",
        [(scope.workspace, scope.user, name, scope.session) for name in names],
    )


def linked(db: apsw.Connection, scope: Scope, names: Sequence[str]) -> str:
    """The session that has the first of these names."""
    session = db.execute(
        "SELECT l.session FROM json_each(?) AS n CROSS JOIN links AS l ON l.name = n.value"
        " WHERE l.workspace = ? AND l.owner = ? ORDER BY n.key LIMIT 1",
        (json.dumps(names), scope.workspace, scope.user),
    ).get
    return str(session or "")


def scopes(db: apsw.Connection) -> list[Scope]:
    """Everyone who has something here, who used it last first."""
    rows = db.execute(
        "SELECT workspace, owner FROM ("
        " SELECT workspace, owner, max(updated_at) AS used FROM sessions GROUP BY 1, 2"
        " UNION ALL SELECT DISTINCT workspace, owner, 0 FROM refs WHERE content IS NOT NULL"
        " UNION ALL SELECT workspace, owner, 0 FROM remembered_changes AS c WHERE EXISTS ("
        "SELECT 1 FROM remembered AS r WHERE r.workspace = c.workspace AND r.owner = c.owner)"
        " UNION ALL SELECT workspace, owner, 0 FROM fact_counters AS c WHERE EXISTS ("
        "SELECT 1 FROM facts AS f WHERE f.workspace = c.workspace AND f.owner = c.owner)"
        " UNION ALL SELECT DISTINCT workspace, owner, 0 FROM answers"
        " UNION ALL SELECT DISTINCT workspace, owner, 0 FROM journal"
        " UNION ALL SELECT DISTINCT workspace, owner, 0 FROM tools"
        ") GROUP BY 1, 2 ORDER BY max(used) DESC, 1 DESC, 2 DESC"
    )
    return [Scope(owner, workspace) for workspace, owner in rows]


def close(db: apsw.Connection, scope: Scope, now: float) -> None:
    """Note that a session is over."""
    record = get(db, scope)
    if record is not None:
        save(db, scope, msgspec.structs.replace(record, closed_at=now))
    elif db.execute(f"SELECT 1 FROM uses {_OF_SESSION} LIMIT 1", _key(scope)).get:  # noqa: S608
        save(db, scope, rules.closed(scope.session, now))


def delete(db: apsw.Connection, scope: Scope, now: float) -> Erased:
    """Remove a session, its turns and the refs that only it used."""
    only = db.execute(
        f"SELECT ref FROM uses AS u {_OF_SESSION} AND NOT EXISTS"  # noqa: S608 - constants
        " (SELECT 1 FROM uses AS o WHERE o.ref = u.ref AND o.session <> u.session)",
        _key(scope),
    )
    rows = originals.with_ids(db, scope, [ref for (ref,) in only])
    for row in rows:
        originals.drop(db, scope, row, now)
    rows_named = db.execute(f"SELECT content FROM messages {_OF_SESSION}", _key(scope))  # noqa: S608
    named: list[int] = [content for (content,) in rows_named]
    gone = {}
    for table in ("uses", "messages", "turns", "links", "sessions"):
        db.execute(f"DELETE FROM {table} {_OF_SESSION}", _key(scope))  # noqa: S608 - constants
        gone[table] = db.changes()
    for content in named:
        contents.sweep(db, content)
    jobs.drop_of_session(db, scope)
    records = run(db, remembered.drop_of_session(scope))
    records += run(db, facts.drop_of_session(scope))
    records += answers.remove_of_session(db, scope)
    records += run(db, journal.drop_of_session(scope))
    return Erased(sessions=gone["sessions"], turns=gone["turns"], refs=len(rows), records=records)


def usage(
    db: apsw.Connection, scope: Scope, *, by: Literal["model", "session", "day"], since: float
) -> list[UsageTotal]:
    """Usage summed over turns."""
    rows = db.execute(
        f"SELECT {_NAMES[by]} AS name, {SUMS} FROM turns"  # noqa: S608 - constants
        " WHERE workspace = ? AND owner = ? AND ? IN ('', session) AND started_at >= ?"
        " GROUP BY name ORDER BY name",
        (*_key(scope), since),
    )
    return list(map(total_of, rows))


def total_of(row: Iterable[Any]) -> UsageTotal:
    """Return a row of a name and `SUMS` as a record."""
    return UsageTotal(**dict(zip(UsageTotal.__struct_fields__, row, strict=True)))


def calibration(db: apsw.Connection, scope: Scope) -> bytes | None:
    """What was learnt from reported usage."""
    data = db.execute(
        "SELECT data FROM calibrations WHERE workspace = ? AND owner = ?",
        (scope.workspace, scope.user),
    ).get
    return None if data is None else bytes(data)


def save_calibration(db: apsw.Connection, scope: Scope, data: bytes) -> None:
    """Keep what was learnt."""
    db.execute(
        "INSERT OR REPLACE INTO calibrations (workspace, owner, data) VALUES (?, ?, ?)",
        (scope.workspace, scope.user, data),
    )


def audit(db: apsw.Connection, scope: Scope, *, limit: int, before: int) -> list[AuditEntry]:
    """The newest compressions."""
    rows = db.execute(
        "SELECT entry FROM audit WHERE workspace = ? AND owner = ?"
        " ORDER BY at DESC, id DESC LIMIT ? OFFSET ?",
        (scope.workspace, scope.user, max(limit, 0), max(before, 0)),
    )
    return [rules.from_json(entry, AuditEntry) for (entry,) in rows]
