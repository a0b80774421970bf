"""Import the names of a package on first use.

`import holdfast` then takes 20 ms instead of a second, and counting a text does not load the proxy.
Type checkers see ordinary imports under `TYPE_CHECKING`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a package's `__getattr__` that imports each name from its module once."""

    def take(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return take


class LazyModule:
    """A module that is imported when one of its names is first used.

    For packages that most processes never need: numpy alone takes 15 MB and 80 ms.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        """Return a name of the module, and keep it, so that the next use costs no call."""
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value
