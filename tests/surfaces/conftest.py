from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.surfaces.harness import Cli


@pytest.fixture
def cli(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    for name in [name for name in os.environ if name.startswith(("HOLDFAST_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    return Cli(tmp_path, capfd, monkeypatch)
