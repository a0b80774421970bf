"""What a tool says around the JSON it answers: `Below is untrusted data`, `3 rows affected`.

prose: after rows. It is quoted, and counts as an alert if it warns.
"""

from __future__ import annotations

import re2  # type: ignore[import-untyped]

from holdfast.condense.condenser import Note
from holdfast.condense.rows import brief
from holdfast.document import Document

_WARNS = re2.compile(r"(?i)\b(?:untrusted|warning|error|failed|never follow|denied)\b")
_QUOTED_CHARS = 240


def around_notes(found: Document) -> list[Note]:
    """The texts before and after the JSON, shortened where they are long."""
    return [
        Note("alert" if _WARNS.search(text) else "outline", brief(text, limit=_QUOTED_CHARS), "$")
        for text in found.around
    ]
