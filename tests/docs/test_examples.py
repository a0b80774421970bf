"""Every example in README and docs runs: Python blocks, and console blocks with their output.

The blocks of a page run in order, in one namespace and in a folder with docs/examples; those of
README in a folder like the root of the clone. A `text` block directly after a Python block is its
output. In a console block each line that starts with `$ ` is run; `...` in its expected output
matches anything.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Example(NamedTuple):
    language: str
    code: str
    line: int


def examples(page: Path) -> list[Example]:
    text = page.read_text("utf-8")
    return [
        Example(match[1], match[2], text.count("\n", 0, match.start()) + 1)
        for match in BLOCK.finditer(text)
    ]


def same(expected: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(expected, printed, LOOSELY)


def run_python(page: Path, example: Example, namespace: dict[str, Any]) -> str:
    """Run the block with the page's line numbers, so that tracebacks name the page's line."""
    code = compile("\n" * example.line + example.code, str(page), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output written below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def run_command(command: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "COLUMNS": "300", "PYTHONUTF8": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    ).stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_of_a_page_do_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # README's blocks are pasted at the root of the clone.
    inside = "docs/examples" if page.parent == ROOT else ""
    folder = tmp_path / "examples"
    shutil.copytree(ROOT / "docs" / "examples", folder / inside)
    monkeypatch.chdir(folder)
    namespace: dict[str, Any] = {"__name__": "example"}
    printed = ""
    for example in examples(page):
        place = f"{page.name}:{example.line}"
        if example.language == "python":
            printed = run_python(page, example, namespace)
        elif example.language == "text":
            assert same(example.code, printed), f"{place}: the block above prints\n{printed}"
        elif example.language == "console":
            for command, expected in commands(example.code):
                output = run_command(command, folder)
                assert same(expected, output), f"{place}: `{command}` prints\n{output}"


def test_python_is_shown_on_the_pages_that_teach_it() -> None:
    teaching = ["README.md", "docs/quickstart.md", "docs/how-to/edit.md"]
    for name in teaching:
        assert any(example.language == "python" for example in examples(ROOT / name)), name


def test_comparison_of_outputs_can_fail() -> None:
    assert same("a ... c\n", "a b\nc\n")
    assert not same("a ... c\n", "a b\n")
