"""The store for many machines: PostgreSQL through asyncpg, which only this folder imports."""

from holdfast.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
