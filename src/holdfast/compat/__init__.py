"""Interfaces of older designs as views of the one store: no content is stored twice."""

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
