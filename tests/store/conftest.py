"""What the tests of all stores share."""

from __future__ import annotations

from tests.store.postgres_server import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]
