"""The stores of older designs, each a thin view of the one store: nothing is kept twice.

content_store → action_results → actions; content_store → payload; content_archive stands alone.
"""

from holdfast.expand.excerpts import ContentExcerpt
from holdfast.facades.content_archive import ContentArchive
from holdfast.facades.content_store import ContentStore, StoredContent
from holdfast.facades.payload import Payload, SourceRecord

__all__ = [
    "ContentArchive",
    "ContentExcerpt",
    "ContentStore",
    "Payload",
    "SourceRecord",
    "StoredContent",
]
