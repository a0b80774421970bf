"""The rules of the tests share nothing with the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_IMPORT = """
import sys
import tests.surfaces.proxy.faults, tests.surfaces.proxy.spoken, tests.surfaces.proxy.upstream
print([name for name in sys.modules if name.partition(".")[0] == "holdfast"])
"""


def test_the_upstream_imports_nothing_of_the_package() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _IMPORT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"
