"""Recall runs over every kind of store."""

from __future__ import annotations

from tests.store.conftest import (
    opener,
    postgres_server,
    postgres_store_url,
    postgres_url,
    shared_postgres_url,
    store_url,
)

__all__ = [
    "opener",
    "postgres_server",
    "postgres_store_url",
    "postgres_url",
    "shared_postgres_url",
    "store_url",
]
