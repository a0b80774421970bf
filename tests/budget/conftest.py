from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads that take turns as often as they can, so that a missing lock shows."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)
