"""Scope conditions that can be dropped without a difference, each with the reason.

sql_equivalents: before mutate_sql, whose names these are. A name changes with its statement: then
the reason must be looked at again.
"""

from __future__ import annotations

_BY_NUMBER = "the number is the table's own key, and was read in this scope in the same call"
_OVER = "days that are over are of no use to anybody"

EQUIVALENT: dict[str, str] = {
    # DELETE FROM tools WHERE workspace = ? AND owner = ? AND number = ? AND sha256 = ?
    "sqlite-a26d091ae008-0": _BY_NUMBER,
    "sqlite-a26d091ae008-1": _BY_NUMBER,
    # DELETE FROM daily_usage WHERE workspace = ?1 AND owner = ?2 AND day < ?3
    "sqlite-92717ad4515e-0": _OVER,
    "sqlite-92717ad4515e-1": _OVER,
    # DELETE FROM holdfast.daily_usage WHERE workspace = $1 AND username = $2 AND day < $3
    "postgres-bc889946fcb9-0": _OVER,
    "postgres-bc889946fcb9-1": _OVER,
}
