"""Fitting and trimming are pure: no await, clock, chance or environment, and no call back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast

PACKAGE = Path(holdfast.__file__).parent
FILES = sorted(path for room in ("fitting", "trim") for path in (PACKAGE / room).glob("*.py"))
WORLD = frozenset(
    {
        "aiohttp",
        "asyncio",
        "concurrent",
        "multiprocessing",
        "os",
        "random",
        "secrets",
        "socket",
        "subprocess",
        "tempfile",
        "time",
        "uuid",
    }
)
"""Modules by which code waits, looks at a clock, draws lots or reads its environment."""
CLOCKS = frozenset({"now", "today", "utcnow", "monotonic", "perf_counter"})


def _names(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.fixture(params=FILES, ids=_names)
def tree(request: pytest.FixtureRequest) -> ast.Module:
    path: Path = request.param
    return ast.parse(path.read_text("utf-8"))


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_nothing_waits(tree: ast.Module) -> None:
    waits = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    assert [node.lineno for node in ast.walk(tree) if isinstance(node, waits)] == []


def test_nothing_of_the_world_is_imported(tree: ast.Module) -> None:
    assert {name for name in _imports(tree) if name.partition(".")[0] in WORLD} == set()


def test_no_clock_is_read(tree: ast.Module) -> None:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    read = {call.attr for call in calls if isinstance(call, ast.Attribute)} & CLOCKS
    assert read == set()


def test_no_parameter_is_somebody_who_cites_or_searches() -> None:
    """Contents to read are yielded as values: see `fitting/reads.py`."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
                written = ast.unparse(node.annotation)
                calls_back = "Callable" in written and any(
                    word in written for word in ("Citation", "ContentMatch", "Awaitable")
                )
                assert not calls_back, f"{_names(path)}:{node.lineno}"
