"""Test runs: failures whole, with their places."""

from __future__ import annotations

import pytest

from holdfast.condense import test_output as condenser
from holdfast.condense.source import Source
from tests.condense.places import opened

PYTEST = """\
+ pytest -q
============================= test session starts ==============================
platform linux -- Python 3.11.7
collected 3 items

tests/test_a.py F.E                                                      [100%]

==================================== ERRORS ====================================
_________________________ ERROR at setup of test_third _________________________

    @pytest.fixture
    def base():
>       raise RuntimeError("no base")
E       RuntimeError: no base

tests/test_a.py:14: RuntimeError
=================================== FAILURES ===================================
__________________________________ test_first __________________________________

    def test_first():
>       assert price(3) == 7.5
E       assert 7.0 == 7.5

tests/test_a.py:5: AssertionError
----------------------------- Captured stdout call -----------------------------
asking http://prices.test/3
==================================== PASSES ====================================
_________________________________ test_second __________________________________
----------------------------- Captured stdout call -----------------------------
calm
=========================== short test summary info ============================
FAILED tests/test_a.py::test_first - assert 7.0 == 7.5
ERROR tests/test_a.py::test_third - RuntimeError: no base
==================== 1 failed, 1 passed, 1 error in 0.12s ======================
"""
UNITTEST = f"""\
test_one (app.tests.T) ... ok
test_two (app.tests.T) ... FAIL

{"=" * 70}
FAIL: test_two (app.tests.T)
{"-" * 70}
Traceback (most recent call last):
  File "/app/tests.py", line 9, in test_two
    self.assertEqual(total, 3)
AssertionError: 2 != 3

{"-" * 70}
Ran 2 tests in 0.003s

FAILED (failures=1)
"""
JEST = """\
FAIL src/sum.test.js
  ✓ adds (2 ms)
  ✕ subtracts (1 ms)

  ● subtracts

    expect(received).toBe(expected)

    Expected: 1
    Received: 3

      at Object.<anonymous> (src/sum.test.js:8:21)

Test Suites: 1 failed, 1 total
Tests:       1 failed, 1 passed, 2 total
"""
GO = """\
=== RUN   TestAdd
--- PASS: TestAdd (0.00s)
=== RUN   TestSub
    sub_test.go:12: got 3, want 1
--- FAIL: TestSub (0.00s)
    sub_test.go:14: also wrong
FAIL
FAIL\texample.org/calc\t0.004s
"""
CARGO = """\
running 2 tests
test tests::adds ... ok
test tests::subs ... FAILED

failures:

---- tests::subs stdout ----
thread 'tests::subs' panicked at src/lib.rs:21:9:
assertion `left == right` failed
  left: 3
 right: 1

failures:
    tests::subs

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
"""
RUNS = {
    "pytest": (PYTEST, ["ERROR at setup of test_third", "test_first"], "RuntimeError: no base"),
    "unittest": (UNITTEST, ["FAIL: test_two (app.tests.T)"], "AssertionError: 2 != 3"),
    "jest": (JEST, ["subtracts"], "Received: 3"),
    "go": (GO, ["TestSub (0.00s)"], "sub_test.go:14: also wrong"),
    "cargo": (CARGO, ["tests::subs"], "left: 3"),
}


@pytest.mark.parametrize("runner", RUNS)
def test_each_runner_is_known_and_its_failures_quoted(runner: str) -> None:
    text, names, reason = RUNS[runner]
    source = Source(text.encode())
    assert condenser.sniff(source) > 0.9
    assert [failure.name for failure in condenser.failures(source)] == names
    condensed = condenser.condense(source)
    assert f"({runner})" in condensed.title
    alerts = [note for note in condensed.notes if note.role == "alert"]
    assert all(name in alerts[0].text for name in names)
    assert any(reason in note.text and note.where for note in alerts)
    for note in alerts:
        if note.where:
            assert note.text.split("\n")[-1] in opened(source, note.where)


@pytest.mark.parametrize("runner", RUNS)
def test_colours_and_noise_before_the_run_change_nothing(runner: str) -> None:
    text, names, _ = RUNS[runner]
    noise = "+ export PATH=/opt/bin\n" * 300
    coloured = "\n".join(f"\x1b[31m{line}\x1b[0m" for line in text.split("\n"))
    source = Source((noise + coloured).encode())
    assert condenser.sniff(source) > 0.9
    assert all(name in condenser.condense(source).notes[0].text for name in names)


def test_the_summary_is_in_the_title() -> None:
    assert (
        "1 failed, 1 passed, 1 error in 0.12s" in condenser.condense(Source(PYTEST.encode())).title
    )
    assert "FAILED (failures=1)" in condenser.condense(Source(UNITTEST.encode())).title


def test_passed_tests_with_output_are_no_failures() -> None:
    names = [failure.name for failure in condenser.failures(Source(PYTEST.encode()))]
    assert "test_second" not in names


def test_a_long_failure_keeps_the_lines_that_say_why() -> None:
    body = "\n".join(f"    step_{n}()" for n in range(300))
    text = PYTEST.replace("    def test_first():", f"    def test_first():\n{body}")
    notes = condenser.condense(Source(text.encode())).notes
    told = next(note.text for note in notes if note.where and "test_first" in note.text)
    assert "E       assert 7.0 == 7.5" in told
    assert "tests/test_a.py:5: AssertionError" in told
    assert len(told) < 1000


def test_many_failures_are_all_listed_with_their_places() -> None:
    one = UNITTEST.split("\n\n", 2)[1] + "\n"
    many = "".join(one.replace("test_two", f"test_number_{n}") + "\n" for n in range(500))
    source = Source(f"{many}{'-' * 70}\nRan 500 tests in 1s\n\nFAILED (failures=500)\n".encode())
    first = condenser.condense(source).notes[0].text
    assert first.startswith("500 failures")
    assert len(first) < 700
    assert f"-{source.line_count - 4}" in first


def test_prose_about_tests_is_no_test_run() -> None:
    assert condenser.sniff(Source(b"Ran into trouble: 3 passed the exam, 2 failed in maths.")) == 0


@pytest.mark.parametrize(
    "outcome",
    ["passed", "failed", "error", "errors", "skipped", "deselected", "xfailed", "warning"],
)
def test_a_run_of_pytest_is_known_by_any_outcome_alone(outcome: str) -> None:
    """A run whose collection failed has only errors."""
    text = f"collected 3 items\n\n===== 3 {outcome} in 0.12s =====\n"
    assert condenser.sniff(Source(text.encode())) > 0.9
