"""The stores of older designs, each a thin view of the one store: nothing is kept twice.

content_store → action_results → actions; content_store → payload; content_archive stands alone.
"""

from holdfast.compat.content_archive import ContentArchive
from holdfast.compat.content_store import ContentStore, StoredContent
from holdfast.compat.payload import Payload, SourceRecord
from holdfast.expand.excerpts import ContentExcerpt

__all__ = [
    "ContentArchive",
    "ContentExcerpt",
    "ContentStore",
    "Payload",
    "SourceRecord",
    "StoredContent",
]
