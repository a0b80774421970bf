"""The store in one file: SQLite through apsw, which only this folder imports."""

from holdfast.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
