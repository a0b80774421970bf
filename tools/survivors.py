"""Reasons for surviving faults, read from the documentation page that lists them.

survivors: after faults, before mutate. The page names a fault by its file, function and change, so
that a row stays valid when other lines of the file move.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tools.faults import Fault

PAGE = Path(__file__).parents[1] / "docs" / "discussions" / "mutation.md"
_SECTION = "\n## Survivors, and why\n"
"""Other tables of the page report samples: their faults need not exist any more."""
_ROW = re.compile(r"^\| `(?P<path>[^`]+\.py)` \| `(?P<change>.+)` \| (?P<reason>[^|]+) \|$", re.M)


def explained(page: Path = PAGE) -> dict[str, str]:
    """Return the reason for each fault that the page lists, by the fault's name."""
    if not page.exists():
        return {}
    rows = _ROW.finditer(page.read_text("utf-8").partition(_SECTION)[2])
    return {
        f"src/holdfast/{row['path']}:" + row["change"].replace("\\|", "|"): row["reason"]
        for row in rows
    }


def stale(faults: Iterable[Fault], page: Path = PAGE) -> list[str]:
    """Return the names of listed faults that the code no longer allows."""
    return sorted(set(explained(page)) - {fault.name for fault in faults})
