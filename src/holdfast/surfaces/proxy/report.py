"""What requests cost and saved, summed: by model, by session, by day.

report: before telemetry; the command line uses it too. All of it comes from the store, so that it
outlives the process.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from holdfast.store import Scope, Store
from holdfast.store.records import UsageTotal

By = Literal["model", "session", "day"]
MOST_SESSIONS = 50


async def report(store: Store, scope: Scope, by: tuple[By, ...]) -> dict[str, Any]:
    """The totals, and the rows of each way of summing; of sessions the newest."""
    models = await store.usage(scope, by="model")
    found: dict[str, Any] = {"totals": row(_total(models))}
    for way in by:
        rows = models if way == "model" else await store.usage(scope, by=way)
        if way == "session":
            rows = await _newest(store, scope, rows)
        found[f"by_{way}"] = [row(one) for one in rows]
    return found


def row(total: UsageTotal) -> dict[str, Any]:
    """A sum with what follows from it: saved is untouched less sent, net is less expansions."""
    saved = total.untouched - total.predicted
    made: dict[str, Any] = msgspec.to_builtins(total)
    return made | {"saved": saved, "net_saved": saved - total.expansion_tokens}


async def _newest(store: Store, scope: Scope, rows: list[UsageTotal]) -> list[UsageTotal]:
    by_name = {one.name: one for one in rows}
    records = await store.sessions(scope, limit=MOST_SESSIONS)
    return [by_name[record.session] for record in records if record.session in by_name]


def _total(rows: list[UsageTotal]) -> UsageTotal:
    fields = [name for name in UsageTotal.__struct_fields__ if name != "name"]
    return UsageTotal(
        name="total", **{field: sum(getattr(one, field) for one in rows) for field in fields}
    )
