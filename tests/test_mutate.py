"""The tool behind `make mutate`: a strong test kills what a weak one lets live."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools.faults import faults
from tools.mutate import PACKAGE, ROOT, covering_tests
from tools.mutations import MODULE, mutated, mutations
from tools.survivors import explained

TOOLS = Path(__file__).parents[1] / "tools"
SMALL = '''"""A small module."""

_LEAST = 3


class Gate:
    @property
    def least(self) -> int:
        return _LEAST

    def opens(self, size: int, known: bool) -> bool:
        """Whether it does."""
        if size > 9 and not known:
            return False
        return size >= self.least


def never_called() -> int:
    return 1


def wait(size: int) -> int:
    while size > 0:
        size -= 1
    return size
'''
STRONG = """
from small import Gate, wait


def test_it_opens_from_three_to_nine_and_for_whom_it_knows() -> None:
    gate = Gate()
    opened = [n for n in range(12) if gate.opens(n, known=False)]
    assert opened == [3, 4, 5, 6, 7, 8, 9]
    assert gate.opens(12, known=True) is True
    assert gate.opens(2, known=True) is False
    assert gate.opens(12, known=False) is False


def test_waiting_ends() -> None:
    assert wait(3) == 0
"""
WEAK = """
from small import Gate


def test_it_says_something() -> None:
    Gate().opens(5, known=False)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    for name in ("mutate.py", "faults.py", "mutations.py", "survivors.py"):
        shutil.copy(TOOLS / name, tmp_path / "tools" / name)
    files = {"src/small.py": SMALL, "tests/test_strong.py": STRONG, "tests/test_weak.py": WEAK}
    files["pyproject.toml"] = (
        '[tool.pytest.ini_options]\npythonpath = ["src"]\nmarkers = ["slow", "campaign"]\n'
    )
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


def outcomes(project: Path, test: str, *options: str) -> dict[str, str]:
    """What became of each fault, by its place and change."""
    command = [sys.executable, "tools/mutate.py", "src/small.py", "--out", "out.jsonl"]
    command += ["--loop-seconds", "2"]
    environment = os.environ | {"PYTEST_ADDOPTS": ""}
    subprocess.run(
        [*command, "--tests", f"tests/{test}", *options],
        cwd=project,
        env=environment,
        check=True,
        timeout=240,
        capture_output=True,
    )
    lines = (project / "out.jsonl").read_text("utf-8").splitlines()
    results = [json.loads(line) for line in lines]
    assert len({result["name"] for result in results}) == len(results), "none was tried twice"
    return {f"{r['function']}: {r['was']} -> {r['now']}": r["outcome"] for r in results}


@pytest.mark.slow
def test_a_strong_test_kills_what_it_reaches(project: Path) -> None:
    told = outcomes(project, "test_strong.py")
    lives = {fault for fault, outcome in told.items() if outcome == "survived"}
    assert lives <= {"wait: 0 -> -1", "wait: size > 0 -> size >= 0"}
    assert told["never_called: return 1 -> return None"] == "unreached"
    assert told[": 3 -> 4"] == "killed"
    assert told["Gate.least: return _LEAST -> return None"] == "killed", "a property's code too"
    assert told["wait: size -= 1 -> pass"] == "endless"
    assert (project / "src" / "small.py").read_text("utf-8") == SMALL, "files are never changed"


@pytest.mark.slow
def test_a_weak_test_lets_faults_live_and_a_run_can_be_taken_up(project: Path) -> None:
    first = outcomes(project, "test_weak.py", "--match", "Gate.opens", "--sample", "3")
    assert len(first) == 3
    told = outcomes(project, "test_weak.py", "--match", "Gate.opens")
    assert len(told) > 3
    assert told["Gate.opens: size >= self.least -> size < self.least"] == "survived"
    assert "broken" not in told.values()


def test_every_fault_can_be_compiled_and_changes_the_code() -> None:
    source = (TOOLS / "mutations.py").read_text("utf-8")
    whole = compile(source, "mutations.py", "exec")
    listed = mutations(source)
    assert len(listed) > 30
    for mutation in listed:
        changed = compile(mutated(source, mutation.number), "mutations.py", "exec")
        assert changed != whole, mutation.name


def test_texts_annotations_and_defaults_are_left_alone() -> None:
    source = "def f(a: int = 1) -> 'int':\n    '''Text of 1.'''\n    b: 'list[1]'\n    return a\n"
    assert [mutation.was for mutation in mutations(source)] == ["return a"]


@pytest.mark.slow
def test_a_fault_written_by_hand_is_put_in(project: Path) -> None:
    fault = {"path": "src/small.py", "function": "Gate.opens", "old": " and not known", "new": ""}
    (project / "faults.jsonl").write_text(json.dumps(fault) + "\n", "utf-8")
    assert outcomes(project, "test_weak.py", "--faults", "faults.jsonl") == {
        "Gate.opens:  and not known -> ": "survived"
    }
    (project / "out.jsonl").unlink()
    assert outcomes(project, "test_strong.py", "--faults", "faults.jsonl") == {
        "Gate.opens:  and not known -> ": "killed"
    }


def test_names_of_faults_stay_when_lines_are_added_above() -> None:
    names = [mutation.name for mutation in mutations(SMALL)]
    assert len(set(names)) == len(names)
    moved = SMALL.replace("class Gate", "# One line more.\n\n\nclass Gate")
    assert [mutation.name for mutation in mutations(moved)] == names


def test_the_page_of_survivors_names_functions_that_exist() -> None:
    rows = explained()
    assert rows
    files = {name.partition(":")[0] for name in rows}
    known = {(fault.path, fault.mutation.function) for fault in faults(sorted(files))}
    for name in rows:
        path, function = name.split(":")[:2]
        assert (path, function.partition("#")[0].replace(MODULE, "")) in known, name


def test_only_the_table_of_survivors_gives_reasons(tmp_path: Path) -> None:
    """The faults of a reported sample would be printed as faults that no longer exist."""
    page = tmp_path / "page.md"
    table = "| file | fault | why |\n|---|---|---|\n| `a.py` | `f: {} -> 2` | killed |\n\n"
    page.write_text(table.format(0) + "## Survivors, and why\n\n" + table.format(1))
    assert explained(page) == {"src/holdfast/a.py:f: 1 -> 2": "killed"}


def test_a_number_that_stays_the_same_is_no_fault() -> None:
    names = [mutation.name for mutation in mutations("def f(x):\n    return max(x, 0.0, 3.0)\n")]
    assert not any("0.0 -> 0.0" in name for name in names)
    assert any("3.0 -> 1.5" in name for name in names)


def test_every_package_has_tests_that_exist() -> None:
    packages = {str(file.parent.relative_to(ROOT)) for file in (ROOT / PACKAGE).rglob("*.py")}
    for package in packages:
        for test in covering_tests(f"{package}/any.py"):
            assert (ROOT / test).exists(), (package, test)
