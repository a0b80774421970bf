"""Scope conditions that can be dropped without a difference, each with the reason.

sql_equivalents: before mutate_sql, whose names these are. A name changes with its statement: then
the reason must be looked at again.
"""

from __future__ import annotations

EQUIVALENT: dict[str, str] = {}
