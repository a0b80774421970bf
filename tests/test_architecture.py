"""What the import contract in pyproject.toml cannot say."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast

PACKAGE = Path(holdfast.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
DRAWING = {"click", "rich", "typer"}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def environment_reads(tree: ast.AST) -> Iterator[int]:
    """Yield each line that reaches for the environment: os.environ, os.getenv and their kin."""
    names = {"environ", "environb", "getenv", "getenvb"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names and _is_os(node.value):
            yield node.lineno
        if (
            isinstance(node, ast.ImportFrom)
            and node.module == "os"
            and names & {alias.name for alias in node.names}
        ):
            yield node.lineno


def _is_os(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "os"


def imported_packages(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_settings_reads_the_environment(path: Path) -> None:
    reads = list(environment_reads(ast.parse(path.read_text("utf-8"))))
    assert not reads or name_of(path).startswith("settings/"), (
        f"lines {reads}: ask holdfast.settings"
    )


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_the_command_line_imports_what_draws(path: Path) -> None:
    drawing = DRAWING & imported_packages(ast.parse(path.read_text("utf-8")))
    assert not drawing or name_of(path).startswith("surfaces/cli/")


@pytest.mark.parametrize(
    "code", ["import os\nos.environ['X']", "import os\nos.getenv('X')", "from os import environ"]
)
def test_the_search_for_environment_reads_finds_them(code: str) -> None:
    assert list(environment_reads(ast.parse(code)))


def test_everything_but_postgresql_works_without_the_extras() -> None:
    extras = ("asyncpg", "opentelemetry")
    blocked = f"import sys; sys.modules.update(dict.fromkeys({extras!r}))"
    code = f"{blocked}; import holdfast.surfaces.cli, holdfast.surfaces.proxy.server"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_it_loads_nothing_that_takes_long() -> None:
    slow = ("numpy", "aiohttp", "pydantic_ai", "rich", "wordllama")
    code = f"import sys, holdfast; print(*(set({slow!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.strip()


def test_an_adapter_is_short() -> None:
    adapters = [path for path in (PACKAGE / "integrations").glob("*.py") if path.name[0] != "_"]
    long = [name_of(path) for path in adapters if len(path.read_text().splitlines()) > 200]
    assert adapters
    assert not long, "what is not the framework's own belongs into _session.py, once"


VAGUE = frozenset("found made known one said kept got listed".split())
"""Names that say that something was found, and not what."""
_MOST_VAGUE = 0.03
"""Share of all names that are given; it may only be lowered. The code we admire has under 0.004."""


def names_given(tree: ast.AST) -> Iterator[str]:
    """Yield every name that a value is given: of variables, of loops, of arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        if isinstance(node, ast.arg):
            yield node.arg


def test_values_are_named_by_what_they_are() -> None:
    named = Counter(n for path in MODULES for n in names_given(ast.parse(path.read_text("utf-8"))))
    vague = sum(named[name] for name in VAGUE)
    assert vague / named.total() <= _MOST_VAGUE, f"{vague} of {named.total()}: name the thing"
