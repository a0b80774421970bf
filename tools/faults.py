"""Faults of the files of a project, and how to put one into a running process.

faults: after mutations, before mutate. No file is written: the code of a function is replaced in
memory, wherever the function is referenced.
"""

from __future__ import annotations

import ast
import gc
import importlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from tools.mutations import Mutation, mutated, mutations

ROOT = Path(__file__).parents[1]


class Fault(NamedTuple):
    """A mutation of a file, generated or written by hand."""

    path: str
    mutation: Mutation
    old: str = ""
    """Source text of a fault written by hand; empty for a generated one."""
    new: str = ""

    @property
    def name(self) -> str:
        """The fault's name in the results."""
        return f"{self.path}:{self.mutation.name}"

    def faulty(self, source: str) -> ast.Module:
        """Return the module with this fault."""
        if not self.old:
            return mutated(source, self.mutation.number)
        return ast.parse(_replaced(source, self.mutation.function, self.old, self.new))


def faults(paths: Iterable[str], *, match: str = "") -> list[Fault]:
    """All faults of the files and folders, in the order of the files."""
    files = [file for path in paths for file in sorted((ROOT / path).rglob("*.py"))]
    files += [ROOT / path for path in paths if path.endswith(".py")]
    listed = (
        Fault(str(file.relative_to(ROOT)), mutation)
        for file in dict.fromkeys(files)
        for mutation in mutations(file.read_text("utf-8"))
    )
    return [f for f in listed if match in f"{f.path}:{f.mutation.function}:{f.mutation.name}"]


def handwritten(file: Path) -> list[Fault]:
    """Read faults from lines of JSON with `path`, `function`, `old` and `new`.

    For faults that no generator makes: a setting that is ignored, arguments that are swapped, a
    condition dropped from a query. `old` must stand exactly once in the function.
    """
    listed = []
    for number, line in enumerate(file.read_text("utf-8").splitlines()):
        path, function, old, new = (json.loads(line)[k] for k in ("path", "function", "old", "new"))
        source = (ROOT / path).read_text("utf-8")
        ast.parse(_replaced(source, function, old, new))
        listed.append(Fault(path, Mutation(number, 0, function, old, new), old, new))
    return listed


def _replaced(source: str, function: str, old: str, new: str) -> str:
    """Return the source with `new` for `old` in one function, with as many lines as before."""
    node: Any = ast.parse(source)
    for name in function.split("."):
        node = next(n for n in node.body if getattr(n, "name", "") == name)
    lines = source.splitlines(keepends=True)
    text = "".join(lines[node.lineno - 1 : node.end_lineno])
    if text.count(old) != 1:
        raise ValueError(f"{function} has {text.count(old)} times: {old}")
    behind = "".join(lines[node.end_lineno :])
    # Functions are found by their first line, so those that follow must stay where they are.
    behind = "\n" * max(0, old.count("\n") - new.count("\n")) + behind
    return "".join(lines[: node.lineno - 1]) + text.replace(old, new) + behind


def put_in(fault: Fault, source: str) -> None:
    """Replace the code of a function wherever it is referenced, or a constant of a module."""
    file = str(ROOT / fault.path)
    # Commands and other rooms are imported when they are first used, which may be in the test.
    importlib.import_module(fault.path.removeprefix("src/").removesuffix(".py").replace("/", "."))
    code = compile(fault.faulty(source), file, "exec", dont_inherit=True)
    if not fault.mutation.function:
        _set_constant(file, code, fault.mutation, source)
        return
    new = {(c.co_qualname, c.co_firstlineno): c for c in _codes(code)}
    exchanged = 0
    # Decorators, properties and imports all hold the same function: the collector knows them all.
    for held in gc.get_objects():
        if isinstance(held, FunctionType) and held.__code__.co_filename == file:
            old = held.__code__
            other = new.get((old.co_qualname, old.co_firstlineno))
            if other is not None and old.co_qualname == fault.mutation.function:
                held.__code__ = other
                exchanged += 1
    if not exchanged:
        raise LookupError(f"{fault.path} has no {fault.mutation.function} in memory")


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _set_constant(file: str, code: CodeType, mutation: Mutation, source: str) -> None:
    """Set a number of a module, there and where it was imported by its name."""
    name = source.splitlines()[mutation.line - 1].split("=")[0].split(":")[0].strip()
    module = next(m for m in _modules() if getattr(m, "__file__", None) == file)
    names: dict[str, Any] = {"__name__": module.__name__, "__file__": file}
    names["__package__"] = module.__package__
    exec(code, names)  # noqa: S102 - our own module, with one number changed
    old = getattr(module, name)
    for other in _modules():
        if vars(other).get(name) is old:
            setattr(other, name, names[name])


def _modules() -> list[Any]:
    return [module for module in list(sys.modules.values()) if hasattr(module, "__dict__")]
