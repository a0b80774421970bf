"""Small faults for Python source, one at a time: what tests must notice.

mutations: before mutate. Pure: source comes in, a list of places and the tree with one fault come
out. A fault stands inside a function, or is another number in a constant of the module. Not
touched: texts, annotations, decorators, defaults of arguments and of classes, which are made when
a module is read, and `__repr__`.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
"""Each comparison turned round, and where there is a boundary, moved by one."""
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
MODULE = "(module)"
"""Stands for the function's name in the name of a fault in a constant."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Change = tuple[ast.AST, ast.AST | None]
"""A node, and what takes its place; None: nothing does."""


class Mutation(NamedTuple):
    """One fault, and where it is."""

    number: int
    """Index in the list of the file's faults, by which it is made."""
    line: int
    function: str
    """The outermost function around it, as `Class.method`; empty for the module."""
    was: str
    now: str
    same: int = 0
    """How many equal changes come before it in its function."""

    @property
    def name(self) -> str:
        """Function and change; stays valid when the rest of the file changes."""
        which = f"#{self.same + 1}" if self.same else ""
        return f"{self.function or MODULE}{which}: {self.was} -> {self.now}"


def mutations(source: str) -> list[Mutation]:
    """Return every fault that can be made in a module."""
    listed = []
    seen: Counter[tuple[str, str, str]] = Counter()
    for number, (function, (old, new)) in enumerate(_changes(ast.parse(source))):
        change = (function, _shown(old), _shown(new))
        line = getattr(old, "lineno", 0)
        listed.append(Mutation(number, line, *change, same=seen[change]))
        seen[change] += 1
    return listed


def mutated(source: str, number: int) -> ast.Module:
    """The module with one of its faults; lines stay where they are."""
    tree = ast.parse(source)
    changes = list(_changes(tree))
    _, (old, new) = changes[number]
    _Replacing(old, new).visit(tree)
    return ast.fix_missing_locations(tree)


class _Replacing(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST | None) -> None:
        self._old = old
        self._new = new

    def visit(self, node: ast.AST) -> ast.AST:
        if node is not self._old:
            return self.generic_visit(node)
        # A body may not be empty, so what goes leaves a `pass`.
        return ast.copy_location(self._new or ast.Pass(), node)


def _changes(tree: ast.Module) -> Iterator[tuple[str, _Change]]:
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            value = statement.value
            numbers = _numbers(value) if isinstance(value, ast.Constant) else ()
            yield from (("", change) for change in numbers)
    for name, function in _functions(tree.body, ""):
        for statement in function.body:
            yield from ((name, change) for change in _inside(statement))


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, _Function]]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from _functions(statement.body, f"{prefix}{statement.name}.")
        elif isinstance(statement, _Function) and statement.name != "__repr__":
            yield prefix + statement.name, statement


def _inside(node: ast.AST) -> Iterator[_Change]:
    for kind, changes in _KINDS:
        if isinstance(node, kind):
            yield from changes(node)
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "args") and not isinstance(
            node, ast.Call
        ):
            continue  # made when a function is, or read by nobody
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _inside(child)


def _compare(node: ast.Compare) -> Iterator[_Change]:
    for n, operator in enumerate(node.ops):
        for other in _COMPARISONS[type(operator)]:
            new = copy.copy(node)
            new.ops = [*node.ops[:n], other(), *node.ops[n + 1 :]]
            yield node, new


def _bool(node: ast.BoolOp) -> Iterator[_Change]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield node, ast.BoolOp(other, node.values)


def _unary(node: ast.UnaryOp) -> Iterator[_Change]:
    if isinstance(node.op, ast.Not):
        yield node, node.operand


def _arithmetic(node: ast.BinOp) -> Iterator[_Change]:
    other = _OPERATORS.get(type(node.op))
    if other is not None:
        yield node, ast.BinOp(node.left, other(), node.right)


def _numbers(node: ast.Constant) -> Iterator[_Change]:
    value = node.value
    if isinstance(value, bool):
        yield node, ast.Constant(not value)
    elif isinstance(value, int):
        yield node, ast.Constant(value + 1)
        yield node, ast.Constant(value - 1)
    elif isinstance(value, float) and value:  # half of 0.0 is no fault
        yield node, ast.Constant(value * 2)
        yield node, ast.Constant(value / 2)


def _branch(node: ast.If | ast.IfExp | ast.While) -> Iterator[_Change]:
    """The branches swapped; a comparison or a `not` is turned round by its own change."""
    turned = isinstance(node.test, ast.UnaryOp) or (
        isinstance(node.test, ast.Compare) and len(node.test.ops) == 1
    )
    if not turned:
        yield node.test, ast.UnaryOp(ast.Not(), node.test)


def _filters(node: ast.comprehension) -> Iterator[_Change]:
    for condition in node.ifs:
        yield condition, ast.Constant(value=True)


def _return(node: ast.Return) -> Iterator[_Change]:
    value = node.value
    if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
        yield node, ast.Return(ast.Constant(value=None))


def _statement(node: ast.stmt) -> Iterator[_Change]:
    called = isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant | ast.Yield)
    gone = isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break | ast.Delete)
    if called or gone:
        yield node, None


_KINDS: tuple[tuple[type[ast.AST], Callable[..., Iterator[_Change]]], ...] = (
    (ast.Compare, _compare),
    (ast.BoolOp, _bool),
    (ast.UnaryOp, _unary),
    (ast.BinOp, _arithmetic),
    (ast.Constant, _numbers),
    (ast.If, _branch),
    (ast.IfExp, _branch),
    (ast.While, _branch),
    (ast.comprehension, _filters),
    (ast.Return, _return),
    (ast.stmt, _statement),
)


def _shown(node: ast.AST | None) -> str:
    """One line of a node, for a list that people read."""
    if node is None:
        return "pass"
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 90 else f"{text[:60]} … {text[-27:]}"
