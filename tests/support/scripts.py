"""Scripts of the repository, which are no package, as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def load(path: Path) -> Any:
    """Run a script that is not the main program, and return its module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
