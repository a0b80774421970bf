"""Shared by all tests: the program as a separate process, in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.load_profile("default")


class RunHoldfast(Protocol):
    """Runs `holdfast …` in an empty folder and returns what it did."""

    def __call__(
        self, *arguments: str, stdin: bytes = b"", **variables: str
    ) -> subprocess.CompletedProcess[bytes]: ...


@pytest.fixture
def run_holdfast(tmp_path: Path) -> RunHoldfast:
    def run(
        *arguments: str, stdin: bytes = b"", **variables: str
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "holdfast", *arguments],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env=_environment(tmp_path) | variables,
            timeout=60,
            check=False,
        )

    return run


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return kept | {"HOME": str(home), "PYTHONUTF8": "1", "COLUMNS": "120"}
