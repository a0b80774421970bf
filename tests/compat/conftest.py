from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.harness import Opener


@pytest.fixture(params=["memory", "sqlite"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    return Opener("memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db")
