"""Which functions of the package are entered: each says so itself, in its first statement.

entered: before mutate. A tracer is called for every call of every library, which makes the tests
take three times as long; here only our own functions pay, with one call of a set's `add`.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
_PACKAGE = "holdfast"
_ADD = "__note_that_a_function_is_entered__"

functions: set[tuple[str, str]] = set()
"""File and outermost name of each function entered; whoever records clears it between tests."""


def install() -> None:
    """Have modules of the package note what is entered; before the first of them is imported."""
    if _PACKAGE in sys.modules:
        raise RuntimeError(f"{_PACKAGE} is imported already")
    setattr(builtins, _ADD, functions.add)
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != _PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Return the code compiled anew: what Python has cached notes nothing."""
        path = self.get_filename(fullname)
        return compile(noting(self.get_data(path), path), path, "exec", dont_inherit=True)


def noting(source: bytes | str, path: str) -> ast.Module:
    """Return the module whose functions note that they are entered; all lines stay in place."""
    tree = ast.parse(source)
    name = str(Path(path).relative_to(ROOT)) if path.startswith(f"{ROOT}/") else path
    _instrument(tree, name, "", inside=False)
    return tree


def _instrument(node: Any, file: str, qualified: str, *, inside: bool) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            # What is defined inside a function goes by the outer name, as faults do.
            name = qualified if inside else f"{qualified}{child.name}"
            _instrument(child, file, name, inside=True)
            _note_first(child, (file, name))
        elif isinstance(child, ast.ClassDef) and not inside:
            _instrument(child, file, f"{qualified}{child.name}.", inside=False)
        else:
            _instrument(child, file, qualified, inside=inside)


def _note_first(function: ast.FunctionDef | ast.AsyncFunctionDef, key: tuple[str, str]) -> None:
    first = 1 if ast.get_docstring(function, clean=False) is not None else 0
    called = ast.Name(_ADD, ast.Load())
    place_name = ast.Tuple([ast.Constant(part) for part in key], ast.Load())
    note = ast.Expr(ast.Call(called, [place_name], []))
    place = function.body[min(first, len(function.body) - 1)]
    function.body.insert(first, ast.fix_missing_locations(ast.copy_location(note, place)))
