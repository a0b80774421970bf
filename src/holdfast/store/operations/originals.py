"""Originals of refs: put, open, list and remove them, and keep the audit trail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from holdfast.store import rules
from holdfast.store.operations import contents, facts, summaries
from holdfast.store.operations.ref_rows import WIDTH, Detail, StoredRef, entry_values, ref_values
from holdfast.store.records import AuditEntry, Content, Damage, Stored
from holdfast.store.refs import RefName, parse
from holdfast.store.scope import Scope
from holdfast.store.statements import Operation, Row, Runner, Values, load
from holdfast.store.transfer import CONTENTS_PAGE, PAGE, AuditLine, Page, RefLine

TABLES = ("contents", "refs", "uses", "summaries", "jobs", "facts", "fact_sources", "answers")
"""Those from which records go with a ref."""
_TOGETHER = 8
"""Contents that one thread hashes and compresses, while others do the next."""
_NEWEST = 2**62
"""Above the number of every ref."""

_sql = load("originals")


# --- storing -------------------------------------------------------------------------------------


async def put(
    runner: Runner, scope: Scope, originals: Sequence[Content], clock: Callable[[], float]
) -> None:
    """Store originals, all or none."""
    if sum(len(content.data) for content in originals) <= contents.AT_ONCE_BYTES:
        packed = _checked(originals)
    else:
        starts = range(0, len(originals), _TOGETHER)
        work = [runner.compute(_checked, originals[at : at + _TOGETHER]) for at in starts]
        packed = contents.joined(await asyncio.gather(*work))
    await runner.write(store, scope, originals, packed, clock())


def _checked(originals: Sequence[Content]) -> list[Values]:
    for content in originals:
        rules.check_content(content)
    return contents.packed({content.sha256: content.data for content in originals})


def store(
    scope: Scope, originals: Sequence[Content], packed: list[Values], now: float
) -> Operation[None]:
    """Store checked originals and note that the scope's session uses them."""
    yield from contents.lock_to_add(scope)
    yield from contents.keep(scope, packed)
    known_refs = yield from _known(scope, [(each.ref_id, each.sha256) for each in originals])
    keys = {(content.sha256, content.kind) for content in originals}
    # A removed ref is stored anew, and is the last in the order of storing.
    yield from _remove(scope, [row for row in known_refs if row.removed and row.key in keys])
    lines = {row.key: row.line((), None) for row in known_refs if not row.removed}
    writes: list[tuple[bool, Values]] = []
    for content in originals:
        earlier = lines.get((content.sha256, content.kind))
        line = _new(content, now) if earlier is None else _refreshed(earlier, content, now)
        lines[content.sha256, content.kind] = line
        entry = AuditEntry(
            at=now,
            session=scope.session,
            ref_id=line.ref_id,
            sha256=line.sha256,
            action="stored" if earlier is None else "seen again",
            size=line.size,
            from_tokens=line.tokens,
            to_tokens=content.compressed_tokens,
            flags=line.flags,
        )
        writes.append((earlier is not None, ref_values(line) | entry_values(entry)))
    # In the order given, which is that of the audit; mostly all are new, or all are known.
    for is_known, run in groupby(writes, key=itemgetter(0)):
        statement = _sql.put_known if is_known else _sql.put_new
        yield statement.many(scope, (values for _, values in run))


def _known(scope: Scope, names: Sequence[tuple[str, str]]) -> Operation[list[StoredRef]]:
    """Return the refs of these names or hashes that are there.

    Raises:
        RefCollisionError: a ref is, or would be, that of two contents.
    """
    by_ref: dict[str, str] = {}
    for ref_id, sha256 in names:
        if by_ref.setdefault(ref_id, sha256) != sha256:
            raise rules.collision()
    prefixes = {name.digits for name in map(parse, by_ref) if name is not None}
    hashes = rules.distinct(by_ref.values())
    rows = yield _sql.known(scope, prefixes=sorted(prefixes), refs=list(by_ref), hashes=hashes)
    refs = {row.key: row for row in map(StoredRef._make, rows)}.values()
    if any(by_ref.get(row.ref_id, row.sha256) != row.sha256 for row in refs):
        raise rules.collision()
    return [row for row in refs if row.sha256 in hashes]


def _new(content: Content, now: float) -> RefLine:
    return RefLine(
        ref_id=content.ref_id,
        kind=content.kind,
        sha256=content.sha256,
        size=len(content.data),
        tokens=content.tokens,
        summary=content.summary,
        compressed=content.compressed,
        meta=content.meta,
        flags=content.flags,
        created_at=now,
        written_at=now,
        expires_at=rules.expiry(now, content.ttl_seconds),
        accessed_at=None,
        accesses=0,
        uses=(),
        data=None,
    )


def _refreshed(known: RefLine, content: Content, now: float) -> RefLine:
    """Return a known ref, completed by what its content brings along."""
    return msgspec.structs.replace(
        known,
        tokens=known.tokens or content.tokens,
        summary=known.summary or content.summary,
        compressed=known.compressed or content.compressed,
        meta=known.meta or content.meta,
        flags=known.flags or content.flags,
        written_at=now,
        expires_at=rules.longer(known.expires_at, rules.expiry(now, content.ttl_seconds)),
    )


# --- reading -------------------------------------------------------------------------------------


async def get(
    runner: Runner, scope: Scope, ref: str, clock: Callable[[], float], *, peek: bool
) -> Stored | None:
    """Open a ref, and count the access unless it is a `peek`."""
    row, data = await runner.fetch(_open, scope, ref)
    if row is None:
        return None
    if data is None:
        await runner.write(set_apart, scope, [row.sha256], clock())
        raise rules.damaged(row.ref_id)
    now = clock()
    if not peek:
        await runner.note(_note_access, scope, row, now)
        row = row._replace(accesses=row.accesses + 1, accessed_at=now)
    return Stored(row.info(now), data)


def _open(scope: Scope, ref: str) -> Operation[tuple[StoredRef | None, bytes | None]]:
    """Return a ref that was not removed, and its content; None for one that is damaged."""
    name = parse(ref)
    if name is None:
        return None, None
    low, high = rules.hash_range(name)
    rows = yield _sql.open(scope, low=low, high=high, kind=name.kind)
    row = _chosen(name, rows)
    if row is None or row[11]:
        return None, None
    return StoredRef._make(row[:WIDTH]), contents.opened(row[2], *row[WIDTH:])


def _chosen(name: RefName, rows: Sequence[Row]) -> Row | None:
    return rules.choose(name, rows, lambda row: (row[0], row[2]))


def _note_access(scope: Scope, row: StoredRef, now: float) -> Operation[None]:
    yield _sql.note_access(scope, sha256=row.sha256, kind=row.kind, now=now)


def find(scope: Scope, ref: str) -> Operation[StoredRef | None]:
    """Return the ref that a name means."""
    name = parse(ref)
    if name is None:
        return None
    low, high = rules.hash_range(name)
    row = _chosen(name, (yield _sql.find(scope, low=low, high=high, kind=name.kind)))
    return None if row is None else StoredRef._make(row)


def newest(scope: Scope, *, kind: str, limit: int, before: str) -> Operation[list[StoredRef]]:
    """Return the refs stored last, of the scope's session if it names one."""
    conditions: Values = {"limit": max(limit, 0), "below": _NEWEST}
    if before:
        conditions["below"] = yield from _number(scope, before)
    if scope.session:
        rows = yield _sql.newest_of_session(scope, kind=kind, **conditions)
    elif kind:
        rows = yield _sql.newest_of_kind(scope, kind=kind, **conditions)
    else:
        rows = yield _sql.newest(scope, **conditions)
    return [StoredRef._make(row) for row in rows]


def newest_of_many(
    scope: Scope,
    workspaces: Sequence[str],
    *,
    kind: str,
    limit: int,
    before: tuple[Scope, str] | None,
) -> Operation[list[tuple[str, StoredRef]]]:
    """Return the refs stored last in some workspaces of a user, each with its workspace."""
    below = _NEWEST if before is None else (yield from _number(*before))
    rows = yield _sql.newest_of_many(
        scope, workspaces=workspaces, kind=kind, below=below, limit=max(limit, 0)
    )
    return [(workspace, StoredRef._make(row)) for workspace, *row in rows]


def _number(scope: Scope, ref: str) -> Operation[int]:
    last = yield from find(scope, ref)
    if last is None:
        raise rules.no_place_to_go_on(ref)
    return last.number


# --- changing and removing -----------------------------------------------------------------------


def retell(scope: Scope, ref: str, gist: str) -> Operation[None]:
    """Replace the summary of a ref, if it is there."""
    row = yield from find(scope, ref)
    if row is not None:
        yield from _set_detail(scope, row, msgspec.structs.replace(row.detail, summary=gist))


def _set_detail(scope: Scope, row: StoredRef, detail: Detail) -> Operation[None]:
    yield _sql.set_detail(
        scope,
        sha256=row.sha256,
        kind=row.kind,
        summary=detail.summary,
        compressed=detail.compressed,
        detail=rules.to_json(detail),
    )


def forget(scope: Scope, refs: Sequence[str], now: float) -> Operation[int]:
    """Remove refs without a trace; return how many there were."""
    yield from contents.lock_to_remove(scope)
    rows = []
    for ref in rules.distinct(refs):
        row = yield from find(scope, ref)
        if row is not None:
            rows.append(row)
    return (yield from drop(scope, rows, now))


def only_of_session(scope: Scope) -> Operation[list[StoredRef]]:
    """Return the refs that only the scope's session uses."""
    return [StoredRef._make(row) for row in (yield _sql.only_of_session(scope))]


def drop(scope: Scope, rows: Iterable[StoredRef], now: float) -> Operation[int]:
    """Remove refs, and contents that nobody refers to, under the lock to remove."""
    refs_to_drop = list({row.key: row for row in rows}.values())
    if not refs_to_drop:
        return 0
    yield from _remove(scope, refs_to_drop)
    yield from audit(
        scope, [row.entry(scope, "removed", now) for row in refs_to_drop if not row.removed]
    )
    hashes = rules.distinct(row.sha256 for row in refs_to_drop)
    refs = [row.ref_id for row in refs_to_drop]
    yield from summaries.drop_of_sources(scope, hashes)
    yield _sql.remove_jobs(scope, refs=refs)
    yield _sql.remove_answers(scope, refs=refs)
    yield from facts.drop_of_refs(scope, refs)
    yield from contents.sweep(scope, hashes)
    return len(refs_to_drop)


def with_numbers(scope: Scope, numbers: Sequence[int]) -> Operation[list[StoredRef]]:
    """Return refs by their numbers, in the order of storing."""
    return [StoredRef._make(row) for row in (yield _sql.with_numbers(scope, numbers=numbers))]


def remove_contents(scope: Scope, rows: Sequence[StoredRef], now: float) -> Operation[list[int]]:
    """Keep refs as records of removed contents, under the lock to remove.

    Return the sizes of the contents that nobody else refers to.
    """
    if not rows:
        return []
    removed = []
    for row in rows:
        detail = rules.to_json(msgspec.structs.replace(row.detail, compressed=""))
        removed.append({"sha256": row.sha256, "kind": row.kind, "detail": detail})
    yield _sql.remove_content.many(scope, removed)
    yield from audit(scope, [row.entry(scope, "removed", now) for row in rows])
    hashes = rules.distinct(row.sha256 for row in rows)
    yield from summaries.drop_of_sources(scope, hashes)
    return (yield from contents.sweep(scope, hashes))


def _remove(scope: Scope, rows: Sequence[StoredRef]) -> Operation[None]:
    if rows:
        keys = [f"{row.sha256} {row.kind}" for row in rows]
        yield _sql.remove(scope, hashes=[row.sha256 for row in rows], keys=keys)


def set_apart(scope: Scope, hashes: Iterable[str], now: float) -> Operation[list[Damage]]:
    """Mark contents as damaged that were read as such, unless they were healed since."""
    unsound = sorted(set(hashes))
    rows = yield _sql.contents(scope, hashes=unsound)
    marked = [row[0] for row in rows if row[3] is None and contents.opened(*row) is None]
    healed = {row[0] for row in rows if row[3] is None}.difference(marked)
    damaged = [sha256 for sha256 in unsound if sha256 not in healed]
    refs: dict[str, list[str]] = {sha256: [] for sha256 in damaged}
    if damaged:
        if marked:
            yield _sql.mark_damaged(scope, damage=rules.DAMAGE, hashes=marked)
        entries = []
        for row in (yield _sql.of_contents(scope, hashes=damaged)):
            ref = StoredRef._make(row)
            refs[ref.sha256].append(ref.ref_id)
            if ref.sha256 in marked:
                entries.append(ref.entry(scope, "damaged", now))
        yield from audit(scope, entries)
    return [Damage(sha256=key, why=rules.DAMAGE, refs=tuple(sorted(refs[key]))) for key in damaged]


# --- the audit -----------------------------------------------------------------------------------


def audit(scope: Scope, entries: Sequence[AuditEntry]) -> Operation[None]:
    """Add entries to the audit trail."""
    if entries:
        yield _sql.add_entry.many(scope, map(entry_values, entries))


def entries(scope: Scope, *, limit: int, before: int) -> Operation[list[AuditEntry]]:
    """Return the newest entries of the audit trail."""
    rows = yield _sql.entries(scope, limit=max(limit, 0), before=max(before, 0))
    return [rules.from_json(row[0], AuditEntry) for row in rows]


# --- export and restore --------------------------------------------------------------------------


def lines(scope: Scope, after: Any) -> Operation[Page]:
    """Return the exported lines of refs in the order of storing, with their contents."""
    rows = yield _sql.exported(scope, after=after or 0, limit=CONTENTS_PAGE)
    uses: dict[int, list[str]] = {}
    numbers = [row[WIDTH - 1] for row in rows]
    for number, session in (yield _sql.uses(scope, numbers=numbers)):
        uses.setdefault(number, []).append(session)
    exported = []
    for row in rows:
        ref = StoredRef._make(row[:WIDTH])
        data = contents.opened(ref.sha256, *row[WIDTH:])
        exported.append(ref.line(sorted(uses.get(ref.number, ())), data))
    return [*exported], numbers[-1] if len(rows) == CONTENTS_PAGE else None


def entry_lines(scope: Scope, after: Any) -> Operation[Page]:
    """Return the exported lines of the audit trail from its beginning."""
    at, number = after or (float("-inf"), 0)
    rows = yield _sql.exported_entries(scope, at=at, number=number, limit=PAGE)
    exported = [AuditLine(rules.from_json(entry, AuditEntry)) for entry, *_ in rows]
    return [*exported], (rows[-1][2], rows[-1][1]) if len(rows) == PAGE else None


def restore(scope: Scope, line: RefLine) -> Operation[bool]:
    """Write an exported ref whose content is stored; return whether it was new."""
    known_refs = yield from _known(scope, [(line.ref_id, line.sha256)])
    earlier = next((row for row in known_refs if row.kind == line.kind), None)
    is_new = earlier is None or (bool(earlier.removed) and line.data is not None)
    if is_new:
        yield from _remove(scope, [] if earlier is None else [earlier])
        yield _sql.add(scope, **ref_values(line, removed=line.data is None))
    if line.uses:
        key = {"sha256": line.sha256, "kind": line.kind}
        yield _sql.use.many(scope, ({**key, "used_in": session} for session in line.uses))
    return is_new


def restore_entry(scope: Scope, entry: AuditEntry) -> Operation[bool]:
    """Write an exported entry of the audit trail; return whether it was new."""
    if (yield _sql.has_entry(scope, **entry_values(entry))):
        return False
    yield from audit(scope, [entry])
    return True
