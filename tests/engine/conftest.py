"""The stores, for engine tests that must pass on each of them; and rules that cite often.

The policy decides when citing pays, in tests/fitting/test_policy.py.
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
