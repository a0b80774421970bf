"""Lists wait for their servers here: how long they would is for test_starting alone."""

from __future__ import annotations

import pytest

from holdfast.surfaces.mcp import server_starts


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded machine takes longer than a second to start a program."""
    monkeypatch.setattr(server_starts, "LIST_SECONDS", 60.0)
    monkeypatch.setattr(server_starts, "CALL_SECONDS", 60.0)


@pytest.fixture
def brief_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first list does not wait for servers that are still starting."""
    monkeypatch.setattr(server_starts, "LIST_SECONDS", 0.01)
