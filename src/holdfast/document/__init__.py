"""Parse a content: JSON in any wrapping, rows, tables, paths and lines.

`condense` and `expand` both parse with this package, so that `expand` opens exactly the part that a
citation describes.
"""

from holdfast.document.content_view import ContentView
from holdfast.document.embedded_json import inside, read
from holdfast.document.json_text import Document, Member, Node, Number, step
from holdfast.document.paths import PathMatch, find
from holdfast.document.rows import Rows, Steps, rows_of
from holdfast.document.tables import Table, read_table
from holdfast.document.windows import DocumentWindow, windows

__all__ = [
    "ContentView",
    "Document",
    "DocumentWindow",
    "Member",
    "Node",
    "Number",
    "PathMatch",
    "Rows",
    "Steps",
    "Table",
    "find",
    "inside",
    "read",
    "read_table",
    "rows_of",
    "step",
    "windows",
]
