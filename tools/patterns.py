"""Every regular expression of the package: where it stands, its engine, and how it is used.

Compiled patterns are found where they live (globals, class attributes, and whatever containers
hold them), those written inside functions in the source. What is neither is listed without its
pattern, so that nothing escapes: `tests/hardening` attacks all of them, docs/reference shows them.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import os
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
import re2  # type: ignore[import-untyped]
from tools.linear import BOUNDED, PROVEN, judge

import holdfast

_REGEXP = type(re2.compile("x"))
_ENGINES = ("re", "re2")
_DEEPEST = 5
"""Containers in containers; tables of patterns are flat."""
METHODS = frozenset({"search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn"})


class Argument(NamedTuple):
    """Why a pattern that no machine has proven takes no time all the same."""

    why: str
    characters: int = 0
    """As many as its caller lets it see; 0: another reason, or it is made at run time."""


ARGUED = {
    "condense.alerts._KEY": Argument("sees keys of at most 64 bytes", 64),  # _KEY_BYTES
    "surfaces.cli._gemini_cli._COMMENT": Argument(
        "the user's own settings; each alternative ends at its closing sign or at the end"
    ),
    "expand.options._LINES": Argument("longer values are refused", 60),
    "document.json_text._FLAT": Argument("runs only where _FLAT_ELEMENTS has matched all of it"),
    "document.json_text._FLAT_PAIR": Argument("runs only where _FLAT_PAIRS has matched all of it"),
    "condense.marks._any_of()": Argument("a set of RE2 made of the patterns beside it"),
    "expand.pattern._compiled()": Argument("the model's own, in windows and under limits"),
    "privacy.detector.compiled()": Argument("those of CREDENTIALS and PERSONAL, which are listed"),
    "tokens.price_list._check_clause()": Argument("only compiled; the price list is ours"),
    "fitting.policy._compiled()": Argument("RE2, of the settings or a header, on names of tools"),
    "researching.places.find()": Argument(
        "words of one quotation in a row, each behind one run of spaces: a step a word"
    ),
    "summarise.support._names()": Argument("spellings of one unit, which are ours; no repeats"),
    "tokens.price_list.matches()": Argument("of the price list, on the names of models"),
}
"""By place: patterns that are not proven, and those that no list can show."""


class Use(NamedTuple):
    """A regular expression, and what is done with it."""

    place: str
    """`wire.frame._GAP`, or the function whose source holds it: `wire.validate.sorted_by()`."""
    engine: str
    pattern: str | bytes | None
    """None where it is made at run time."""
    methods: frozenset[str] = frozenset()
    compiled: Any = None


@cache  # a search through its automaton; the tests ask it more than once
def proof(use: Use) -> str:
    """How it is known that a pattern is linear; empty if it is not."""
    if use.place in ARGUED:
        return f"argued: {ARGUED[use.place].why}"
    if use.engine == "re2":
        return "RE2"
    if use.pattern is None:
        return ""
    verdict = judge(use.pattern, use.compiled.flags, use.methods)
    if verdict.proof == BOUNDED:
        return f"bounded: {verdict.factor} steps a sign"
    return verdict.proof if verdict.proof == PROVEN else ""


@cache
def inventory() -> tuple[Use, ...]:
    """All of them, in the order of their places."""
    sources = {module.__name__: _Source(module) for module in _modules()}
    uses: dict[object, Use] = {}
    for source in sources.values():
        for use in source.uses(sources):
            # Of tables made of other tables' rows the first is listed.
            in_table = "[" in use.place and use.compiled is not None
            uses.setdefault(id(use.compiled) if in_table else use.place + str(use.pattern), use)
    ordered = sorted(uses.values(), key=lambda use: (_natural(use.place), str(use.pattern)))
    return tuple(ordered)


def _natural(place: str) -> list[tuple[int, str]]:
    """`[9]` before `[10]`."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", place)]


def unreached() -> list[str]:
    """Modules that compile more patterns than the inventory has of them."""
    missing = []
    for module in _modules():
        source = _Source(module)
        held = {use.pattern for use in source.held({})}
        if len(held) < len(source.calls_outside()):
            missing.append(module.__name__)
    return missing


def _modules() -> Iterator[ModuleType]:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network
    for info in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


class _Source:
    """A module, as it runs and as it is written."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.place = module.__name__.removeprefix("holdfast.")
        self.text = inspect.getsource(module)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def uses(self, sources: Mapping[str, _Source]) -> Iterator[Use]:
        yield from self.held(sources)
        for name, call in self.calls_inside():
            yield self._written(name, call)

    # --- as it runs ------------------------------------------------------------------------------

    def held(self, sources: Mapping[str, _Source]) -> Iterator[Use]:
        """The compiled patterns that the module's own names lead to."""
        seen: set[tuple[str, str | bytes]] = set()
        values = {name: list(_compiled(value, name, 0)) for name, value in self._values()}
        values = {name: patterns for name, patterns in values.items() if patterns}
        own = self._own_names() if values else []
        for name, patterns in values.items():
            for path, compiled in patterns if name in own else ():
                if (path, compiled.pattern) in seen:
                    continue
                seen.add((path, compiled.pattern))
                methods = self._methods(name)
                for other in sources.values():
                    methods |= other.methods_of_import(self.module.__name__, name)
                yield Use(
                    f"{self.place}.{path}",
                    "re" if isinstance(compiled, re.Pattern) else "re2",
                    compiled.pattern,
                    frozenset(methods or self._any_methods()),
                    compiled,
                )

    def _values(self) -> list[tuple[str, Any]]:
        return [
            (name, value)
            for name, value in vars(self.module).items()
            if not name.startswith("__")
            and not (isinstance(value, type) and value.__module__ != self.module.__name__)
        ]

    def _own_names(self) -> list[str]:
        """What the module itself assigns or defines, not what it imports."""
        names: list[str] = []
        for node in self.tree.body:
            targets: list[ast.expr] = []
            if isinstance(node, ast.Assign):
                targets = node.targets
            elif isinstance(node, ast.AnnAssign):
                targets = [node.target]
            elif isinstance(node, ast.ClassDef):
                names.append(node.name)
            for target in targets:
                names += [leaf.id for leaf in ast.walk(target) if isinstance(leaf, ast.Name)]
        return list(dict.fromkeys(names))

    @cached_property
    def _used(self) -> dict[str, set[str]]:
        """By name: the methods of patterns that are taken of it."""
        used: dict[str, set[str]] = {}
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in METHODS
                and isinstance(node.value, ast.Name)
            ):
                used.setdefault(node.value.id, set()).add(node.attr)
        return used

    @cached_property
    def _imported(self) -> dict[tuple[str | None, str], str]:
        """By module and name: what an imported name is called here."""
        return {
            (node.module, alias.name): alias.asname or alias.name
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def _methods(self, name: str) -> set[str]:
        return set(self._used.get(name, ()))

    def _any_methods(self) -> set[str]:
        """What could be done with a pattern of a table: all that is done in the module."""
        attributes = {node.attr for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)}
        return (attributes & (METHODS - {"split"})) or {"search"}

    def methods_of_import(self, module: str, name: str) -> set[str]:
        """How this module uses a name that it imports from another."""
        if name not in self.text:
            return set()
        return self._methods(self._imported.get((module, name), ""))

    # --- as it is written ------------------------------------------------------------------------

    def calls_outside(self) -> list[ast.Call]:
        """Calls of the engines that run when the module is imported."""
        if "import re" not in self.text:
            return []
        inside = {id(call) for _, call in self.calls_inside()}
        return [call for call in _calls(self.tree) if id(call) not in inside]

    def calls_inside(self) -> list[tuple[str, ast.Call]]:
        """Calls of the engines inside functions, with the function's name."""
        if "import re" not in self.text:
            return []
        calls: dict[int, tuple[str, ast.Call]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for call in _calls(node):
                    calls[id(call)] = (node.name, call)  # the innermost is walked last
        return list(calls.values())

    def _written(self, function: str, call: ast.Call) -> Use:
        engine, method = ast.unparse(call.func).split(".")
        place = f"{self.place}.{function}()"
        methods = frozenset({method} if method in METHODS else {"search", "finditer"})
        if method == "Set" or not call.args:
            return Use(place, engine, None)
        try:
            pattern, flags = self._value(call.args[0]), self._flags(call)
        except NameError:
            return Use(place, engine, None)
        compiled = re.compile(pattern, flags) if engine == "re" else re2.compile(pattern)
        return Use(place, engine, pattern, methods, compiled)

    def _flags(self, call: ast.Call) -> int:
        """The arguments that are flags, wherever the function takes them."""
        given = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
        written = [node for node in given if ast.unparse(node).startswith("re.")]
        return sum(int(self._value(node)) for node in written)

    def _value(self, node: ast.expr) -> Any:
        expression = compile(ast.Expression(node), "<pattern>", "eval")
        return eval(expression, vars(self.module))  # noqa: S307 it is our own source


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in _ENGINES
            and (node.func.attr in METHODS or node.func.attr == "compile")
        ):
            yield node


def _compiled(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """The compiled patterns in a value, each with its path."""
    if isinstance(value, re.Pattern | _REGEXP):
        yield path, value
        return
    if depth == _DEEPEST or isinstance(value, str | bytes | int | float | ModuleType):
        return
    for step, inner in _parts(value):
        yield from _compiled(inner, path + step, depth + 1)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, type):
        yield from ((f".{name}", inner) for name, inner in vars(value).items())
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from ((f"[{key!r:.30}]", part) for part in (key, inner))
    elif isinstance(value, tuple | list | set | frozenset):
        yield from ((f"[{index}]", inner) for index, inner in enumerate(value))
    elif isinstance(value, msgspec.Struct):
        names = (*value.__struct_fields__, "compiled")  # a Detector compiles when it is asked
        yield from ((f".{name}", getattr(value, name, None)) for name in names)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield f".{field.name}", getattr(value, field.name)
