"""The store: originals of refs, sessions with their edits, facts, jobs and usage."""

from holdfast.store.opening import open_store
from holdfast.store.protocol import Store
from holdfast.store.records import Content, RefInfo, SessionRecord, Stored, Turn
from holdfast.store.scope import Scope

__all__ = [
    "Content",
    "RefInfo",
    "Scope",
    "SessionRecord",
    "Store",
    "Stored",
    "Turn",
    "open_store",
]
