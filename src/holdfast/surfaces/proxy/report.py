"""What requests cost and saved, summed: by model, by session, by day.

report: before telemetry; the command line uses it too. All of it comes from the store, so that it
outlives the process.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Literal

import msgspec

from holdfast.store import Scope, Store
from holdfast.store.records import UsageTotal, summed
from holdfast.surfaces.proxy.session_groups import group_sessions

By = Literal["model", "session", "day"]
MOST_SESSIONS = 50
_GROUPED = 1_000
"""Sessions that are joined by client session: one may have dozens of side requests."""


async def report(store: Store, scopes: Sequence[Scope], by: tuple[By, ...]) -> dict[str, Any]:
    """The totals over some scopes, and the rows of each way of summing; of sessions the newest."""
    models = await _usage(store, scopes, "model")
    told: dict[str, Any] = {"totals": row(summed("total", models))}
    for way in by:
        if way == "session":
            sums = await _newest(store, scopes)
        else:
            sums = models if way == "model" else await _usage(store, scopes, way)
        told[f"by_{way}"] = [row(total) for total in sums]
    return told


async def _usage(store: Store, scopes: Sequence[Scope], by: By) -> list[UsageTotal]:
    """Usage over all of them, a row for each name."""
    rows: defaultdict[str, list[UsageTotal]] = defaultdict(list)
    for scope in scopes:
        for total in await store.usage(scope, by=by):
            rows[total.name].append(total)
    return [summed(name, rows[name]) for name in sorted(rows)]


def row(total: UsageTotal) -> dict[str, Any]:
    """A sum with what follows from it: saved is untouched less input, over all calls."""
    fields: dict[str, Any] = msgspec.to_builtins(total)
    return fields | {"saved": total.saved}


def dollars(amount: float) -> str:
    """Return an amount without its sign: in cents from a dollar on, else with four digits or more.

    A small amount keeps its first digit, so that it is not shown as nothing.
    """
    exact = abs(Decimal(str(amount)))
    digits = 2 if exact >= 1 or not exact else max(4, -exact.adjusted())
    return f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,f}"


def about(estimates: int) -> str:
    """Return the mark in front of a figure that is an estimate, if any part of it is."""
    return "≈ " if estimates else ""


def percent(part: float, whole: float) -> str:
    """A share of a total that is not 0, in percent; a loss is below zero.

    Tenths are shown, and never rounded up, where whole percents would say too much: 99.96 % is
    not all of it, and a small loss not nothing.
    """
    share = 100 * part / whole
    if 0 < abs(share) < 1 or 99 < share < 100:
        return f"{math.floor(share * 10) / 10:.1f}"
    return f"{share:.0f}"


async def _newest(store: Store, scopes: Sequence[Scope]) -> list[UsageTotal]:
    """Return the client sessions last used, and behind them the side requests of no session.

    Two tenants may have sessions of the same name.
    """
    used: list[tuple[float, UsageTotal]] = []
    apart: list[UsageTotal] = []
    for scope in scopes:
        by_name = {total.name: total for total in await store.usage(scope, by="session")}
        records = await store.sessions(scope, limit=_GROUPED)
        groups = group_sessions((scope.of(record.session), record) for record in records)
        for group in groups:
            totals = [by_name[at.session] for at, _ in group.members if at.session in by_name]
            if totals:
                newest = max(record.updated_at for _, record in group.members)
                used.append((newest, summed(group.record.session, totals)))
        joined = {at.session for group in groups for at, _ in group.members}
        apart += [
            by_name[record.session]
            for record in records
            if record.session in by_name and record.session not in joined
        ]
    used.sort(key=lambda pair: pair[0], reverse=True)
    rows = [total for _, total in used[:MOST_SESSIONS]]
    return [*rows, summed("side requests", apart)] if apart else rows
