"""Every module can be imported, on every Python: what a version took away shows here first."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import holdfast

_RUN_WHEN_IMPORTED = ("__main__",)
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(holdfast.__path__, "holdfast.")
    if not module.name.endswith(_RUN_WHEN_IMPORTED)
)


@pytest.mark.parametrize("package", sorted({".".join(name.split(".")[:2]) for name in MODULES}))
def test_every_module_of_a_package_is_imported(package: str) -> None:
    for name in MODULES:
        if name == package or name.startswith(f"{package}."):
            importlib.import_module(name)
