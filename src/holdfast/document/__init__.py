"""What a content is made of: JSON in any wrapping, rows, tables, paths, lines.

json_text → density, python_text → wrapping → paths → rows → windows, tables beside them; reading is
their face. Both condense and expand ask here, so that what a citation says can be opened is what
opens.
"""

from holdfast.document.json_text import Document, Member, Node, Number, step
from holdfast.document.paths import Match, find
from holdfast.document.reading import Reading
from holdfast.document.rows import Rows, Steps, rows_of
from holdfast.document.tables import Table, read_table
from holdfast.document.windows import Window, windows
from holdfast.document.wrapping import inside, read

__all__ = [
    "Document",
    "Match",
    "Member",
    "Node",
    "Number",
    "Reading",
    "Rows",
    "Steps",
    "Table",
    "Window",
    "find",
    "inside",
    "read",
    "read_table",
    "rows_of",
    "step",
    "windows",
]
