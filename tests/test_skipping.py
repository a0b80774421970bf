"""A run of the tests says what it left out, and leaves nothing out that it could have run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # pytest is started as a process

ROOT = Path(__file__).parents[1]


def run(data: Path) -> subprocess.CompletedProcess[str]:
    """Run a test that needs the recorded data, told that the data is here."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0"]
    return subprocess.run(
        [*command, "tests/tokens/test_recorded.py"],
        cwd=ROOT,
        env={**os.environ, "HOLDFAST_DATA": str(data)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_was_skipped_is_told_with_its_reason(tmp_path: Path) -> None:
    ran = run(tmp_path / "nowhere")
    assert ran.returncode == 0, ran.stdout
    assert "recorded requests are not on this machine; set HOLDFAST_DATA" in ran.stdout


def test_where_the_data_is_no_test_of_it_is_skipped(tmp_path: Path) -> None:
    ran = run(tmp_path)
    assert ran.returncode == 1, ran.stdout
    assert "is on this machine, and yet skipped" in ran.stdout


def test_a_merge_is_judged_by_fixed_examples() -> None:
    code = (
        "import tests.conftest; from hypothesis import settings;"
        "print(settings.default.derandomize, settings(max_examples=5).derandomize)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "CI": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "True"]
