"""The stores, for tests of the engine that must hold on each of them; and many citations.

When it pays to cite is the policy's to say, in tests/fitting/test_policy.py.
"""

from __future__ import annotations

import pytest

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


@pytest.fixture(autouse=True)
def cites_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_CITE_POLICY", "always")
