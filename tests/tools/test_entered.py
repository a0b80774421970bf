"""The records of `make mutate`: each function records that it was entered."""

from __future__ import annotations

import ast
import builtins
from typing import Any

import pytest
from tools import entered

SOURCE = '''"""A module."""
from __future__ import annotations

def plain():
    """Only this."""

def outer():
    def inner():
        return 1
    return inner

class Room:
    """A class."""

    @property
    def width(self):
        return 3

    def rows(self):
        """Yield."""
        yield 1

async def waits():
    return __name__
'''


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(builtins, entered._ADD, entered.functions.add, raising=False)
    entered.functions.clear()
    names: dict[str, Any] = {"__name__": "module"}
    exec(compile(entered.noting(SOURCE, "/x/module.py"), "module.py", "exec"), names)
    return names


def test_each_function_notes_its_file_and_outermost_name(names: dict[str, Any]) -> None:
    assert not entered.functions
    inner = names["outer"]()
    names["plain"]()
    assert entered.functions == {("/x/module.py", "outer"), ("/x/module.py", "plain")}
    entered.functions.clear()
    assert inner() == 1
    assert names["Room"]().width == 3
    assert list(names["Room"]().rows()) == [1]
    expected = {"outer", "Room.width", "Room.rows"}
    assert {name for _, name in entered.functions} == expected


def test_lines_and_docstrings_stay_as_they_are(names: dict[str, Any]) -> None:
    plain = {
        node.name: node.lineno
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.FunctionDef)
    }
    assert names["plain"].__code__.co_firstlineno == plain["plain"]
    assert names["outer"].__code__.co_firstlineno == plain["outer"]
    assert names["Room"].rows.__doc__ == "Yield."
    assert names["plain"].__doc__ == "Only this."


def test_paths_are_those_below_the_root() -> None:
    tree = entered.noting("def f(): pass", f"{entered.ROOT}/src/holdfast/x.py")
    assert "'src/holdfast/x.py', 'f'" in ast.unparse(tree)
