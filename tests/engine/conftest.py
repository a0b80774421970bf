"""The stores, for tests of the engine that must hold on each of them."""

from __future__ import annotations

from tests.store.conftest import store_url
from tests.store.postgres_server import (
    postgres_server,
    postgres_store_url,
    postgres_url,
    shared_postgres_url,
)

__all__ = [
    "postgres_server",
    "postgres_store_url",
    "postgres_url",
    "shared_postgres_url",
    "store_url",
]
