"""Figures as files: CSV for tables, JSON for programs.

Pure. Contains numbers, ids, times and titles, but no other text of a conversation.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

import msgspec

from holdfast.store.records import SessionRecord, Turn, UsageTotal

CSV = "text/csv; charset=utf-8"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Characters that start a formula in a spreadsheet: names are untrusted."""
_TURN_COLUMNS = (
    "turn", "started_at", "model", "status", "tokens_asked", "tokens_predicted", "tokens_billed",
    "tokens_saved", "cached", "output", "opened", "cost", "saved_cost", "edits", "prefix_kept",
    "milliseconds", "warnings",
)  # fmt: skip
_DAY_COLUMNS = (
    "day", "requests", "failed", "tokens_asked", "tokens_billed", "tokens_saved", "cached",
    "output", "opened", "cost", "saved_cost",
)  # fmt: skip


def turns_csv(turns: Iterable[Turn]) -> bytes:
    """The turns of a session as a table."""
    rows = (
        (
            turn.number, turn.started_at, turn.model, turn.status, turn.usage.untouched,
            turn.usage.predicted, turn.usage.input, turn.usage.saved, turn.usage.cached,
            turn.usage.output, turn.usage.expansions, turn.usage.cost, turn.usage.saved_cost,
            len(turn.edits), round(turn.prefix_share, 4), round(turn.milliseconds, 1),
            "; ".join(turn.warnings),
        )
        for turn in turns
    )  # fmt: skip
    return _csv(_TURN_COLUMNS, rows)


def days_csv(days: Iterable[UsageTotal]) -> bytes:
    """The days as a table."""
    rows = (
        (
            day.name, day.turns, day.failed, day.untouched, day.input, day.saved, day.cached,
            day.output, day.expansions, round(day.cost, 6), round(day.saved_cost, 6),
        )
        for day in days
    )  # fmt: skip
    return _csv(_DAY_COLUMNS, rows)


def turns_json(record: SessionRecord, turns: Sequence[Turn]) -> bytes:
    """A session and its turns: every edit with its reason, every number."""
    fields = {
        "session": msgspec.to_builtins(record),
        "turns": [
            {
                "number": turn.number,
                "started_at": turn.started_at,
                "model": turn.model,
                "status": turn.status,
                "usage": msgspec.to_builtins(turn.usage) | {"saved": turn.usage.saved},
                "parts": {k: getattr(turn.parts, k) for k in turn.parts.__struct_fields__},
                "edits": msgspec.to_builtins(turn.edits),
                "warnings": turn.warnings,
                "asked_sha256": turn.asked,
                "milliseconds": turn.milliseconds,
            }
            for turn in turns
        ],
    }
    return _json(fields)


def days_json(days: Iterable[UsageTotal]) -> bytes:
    """Return the days, each with its savings."""
    return _json([msgspec.to_builtins(day) | {"saved": day.saved} for day in days])


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue().encode("utf-8", "replace")


def _cell(value: object) -> object:
    """A value that no spreadsheet runs."""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value
