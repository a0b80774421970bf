"""A PostgreSQL for the tests that take it away."""

from __future__ import annotations

from tests.store.postgres_server import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]
