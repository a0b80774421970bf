"""Every test asserts something: one that only runs code passes whatever the code returns."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
_RAISING = frozenset({"raises", "warns", "fail", "found", "import_module"})
"""Calls that are assertions themselves; a campaign fails by what it has found."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_EMPTY = frozenset({"[]", "{}", "()", "''", "set()"})


@cache
def definitions(file: Path) -> dict[str, _Definition]:
    """Return the functions and classes of a file of tests, nested ones too, by their names."""
    tree = ast.parse(file.read_text("utf-8"))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, _Definition)}


@cache
def imports(file: Path) -> dict[str, tuple[Path, str]]:
    """Return the names that a file takes from other files of tests."""
    taken: dict[str, tuple[Path, str]] = {}
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            if not node.level and parts[0] != FOLDER.name:
                continue
            base = file.parents[node.level - 1] if node.level else FOLDER.parent
            source = base.joinpath(*parts).with_suffix(".py")
            taken |= {alias.asname or alias.name: (source, alias.name) for alias in node.names}
    return taken


def name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def asserts(file: Path, name: str, seen: frozenset[tuple[Path, str]] = frozenset()) -> bool:
    """Return whether a function asserts something, itself or through helpers of the tests."""
    file, name = imports(file).get(name, (file, name)) if file.exists() else (file, name)
    if (file, name) in seen or not file.exists() or name not in definitions(file):
        return False
    mentioned = set()
    for node in ast.walk(definitions(file)[name]):
        if isinstance(node, ast.Assert | ast.Raise):
            return True
        if isinstance(node, ast.Call) and (
            name_of(node.func) in _RAISING or any(k.arg == "check" for k in node.keywords)
        ):
            return True
        mentioned.add(name_of(node))
    seen |= {(file, name)}
    return any(asserts(file, other, seen) for other in mentioned - {""})


def test_every_test_asserts_something() -> None:
    silent = [
        f"{file.relative_to(FOLDER)}: {name}"
        for file in sorted(FOLDER.rglob("test_*.py"))
        for name in definitions(file)
        if name.startswith("test_") and not asserts(file, name)
    ]
    assert silent == []


def test_no_assertion_compares_two_empty_values() -> None:
    hollow = [
        f"{file.relative_to(FOLDER)}: {ast.unparse(node)}"
        for file in FOLDER.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Compare)
        and {ast.unparse(side) for side in (node.left, *node.comparators)} <= _EMPTY
    ]
    assert hollow == []
