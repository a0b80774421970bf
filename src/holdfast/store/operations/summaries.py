"""summaries: summaries of contents by keys. A damaged one counts as missing, and is made again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.store import rules
from holdfast.store.operations import pages
from holdfast.store.pack import pack, unpack
from holdfast.store.records import Damage, Summary
from holdfast.store.refs import digest
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Row, Runner, Values, load
from holdfast.store.transfer import PAGE, Page, SummaryRecordLine

_sql = load("summaries")


def values_of(summary: Summary) -> Values:
    """Return the values of a summary's row, compressed."""
    packed = pack(summary.value)
    return {
        "key": summary.key,
        "source": summary.source,
        "expires_at": summary.expires_at,
        "sha256": digest(summary.value),
        "size": len(summary.value),
        "codec": packed.codec,
        "data": packed.data,
    }


def _summary(row: Row) -> Summary | None:
    """Return a row as a summary; None if it is damaged."""
    key, source, expires_at, sha256, size, codec, data = row
    value = unpack(codec, data, size=size, sha256=sha256)
    return None if value is None else Summary(key, value, source, expires_at)


def get(scope: Scope, key: str, now: float) -> Operation[bytes | None]:
    """Return the summary of a key; None if it is missing, damaged or expired."""
    rows = yield _sql.by_key(scope, key=key, now=now)
    summary = _summary(rows[0]) if rows else None
    return None if summary is None else summary.value


def put(scope: Scope, values: Values) -> Operation[None]:
    """Write a summary in the place of an earlier one with its key."""
    yield _sql.put(scope, **values)


def restore(scope: Scope, summary: Summary) -> Operation[bool]:
    """Write an exported summary; return whether there was none with its key."""
    return bool((yield _sql.add(scope, **values_of(summary))))


def lines(scope: Scope, after: Any) -> Operation[Page]:
    """Return the exported lines of the summaries after a key; damaged ones are left out."""
    rows = yield _sql.page(scope, after=after or "", limit=PAGE)
    exported = [SummaryRecordLine.of(each) for row in rows if (each := _summary(row)) is not None]
    return [*exported], pages.last_key(rows)


async def verify(runner: Runner, scope: Scope) -> list[Damage]:
    """Remove damaged summaries, unless they were made again meanwhile; return their damages."""
    rows = await pages.damaged_rows(runner, scope, "", _damaged, _remove_damaged)
    return [rules.damaged_summary(row[3]) for row in rows]


def _damaged(scope: Scope, after: str) -> Operation[pages.RowPage]:
    rows = yield _sql.page(scope, after=after, limit=PAGE)
    return [row for row in rows if _summary(row) is None], pages.last_key(rows)


def _remove_damaged(scope: Scope, rows: Sequence[Row]) -> Operation[None]:
    yield _sql.remove_damaged.many(
        scope,
        (
            {"key": key, "sha256": sha256, "codec": codec, "data": data}
            for key, _, _, sha256, _, codec, data in rows
        ),
    )


def drop_of_sources(scope: Scope, sources: Sequence[str]) -> Operation[None]:
    """Remove the summaries of contents that their user no longer has."""
    yield _sql.drop_of_sources(scope, sources=sources)


def remove_expired(scope: Scope, now: float) -> Operation[None]:
    """Remove the summaries that have expired."""
    yield _sql.remove_expired(scope, now=now)
