"""Put small faults into the code, one at a time, and see which ones no test notices.

    python tools/mutate.py --sample 200 --seed 1 --out build/mutants.jsonl src/holdfast/fitting

The files are never changed. The tests are collected once; for each fault a forked copy of that
process exchanges the code of one function in memory and runs the tests that enter the function,
the fastest first, until one fails. A fault is killed by a failing test, or by running for far
longer than the tests should take. Results are lines of JSON; what is in the file is not run again,
so a run may be broken off and taken up. Needs a system with fork.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # as a script, this file sees only its own folder

from tools.faults import Fault, faults, put_in  # noqa: E402

TESTS = {
    "src/holdfast/fitting": (
        "tests/fitting",
        "tests/trim",
        "tests/proxy/test_final_turn.py",
        "tests/proxy/test_chained.py",
        "tests/proxy/test_opening.py",
        "tests/wire/test_thinking.py",
    ),
    "src/holdfast/engine": ("tests/engine", "tests/proxy/test_expansions.py"),
    "src/holdfast/wire/rules": (
        "tests/wire/test_rules.py",
        "tests/wire/test_repair.py",
        "tests/wire/test_thinking.py",
        "tests/provider/test_rules.py",
    ),
    "src/holdfast/expand": ("tests/expand", "tests/facades", "tests/test_offers.py"),
    "src/holdfast/calling/expansions.py": (
        "tests/proxy/test_expansions.py",
        "tests/proxy/test_expansion_room.py",
    ),
    "src/holdfast/surfaces/proxy/app.py": (
        "tests/proxy/test_errors.py",
        "tests/proxy/test_told_errors.py",
    ),
}
"""Which tests may notice a fault in which code: fast ones, that start no other process."""

CHOSEN = "not slow and not campaign"
_LONGER = 10
"""Times that a fault may make tests run longer before it is taken for a loop without end."""
_NOT_PUT_IN = 2
_WALL_SECONDS = 180
"""A fault may also wait for ever; on a busy machine nothing else takes this long."""

Entered = dict[tuple[str, str], list[str]]
"""The tests that enter a function, by its file and name, the fastest first."""


# --- one fault, in a copy of this process ---------------------------------------------------------


def _forked(work: Callable[[], int], *, cpu_seconds: float = 0, place: Path) -> int:
    """What work gives when it is done in a copy of this process; -1 if it had no end."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what a test has started
        return -1 if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    code = _NOT_PUT_IN
    try:
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (1, 2):
            os.dup2(silence, stream)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(place)  # what tests leave behind goes with it
        if cpu_seconds:
            # By the processor's clock, so that a busy machine kills no mutant.
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds) + 1, resource.RLIM_INFINITY))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(_WALL_SECONDS)
        code = work()
    finally:
        os._exit(code)


# --- the session: tests are collected once, and run in copies of this process --------------------


class Session:
    """A plugin of pytest that runs no tests itself, but asks them about faults."""

    def __init__(self, chosen: list[Fault], options: argparse.Namespace) -> None:
        self._faults = chosen
        self._out: Path = options.out
        self._jobs: int = options.jobs
        self._seconds: float = options.seconds
        self._loop_seconds: float = options.loop_seconds

    def pytest_configure(self) -> None:
        """Draw the same examples every time; a failure is enough, its smallest form takes long."""
        settings.register_profile(
            "mutate",
            deadline=None,
            derandomize=True,
            database=None,
            max_examples=20,
            phases=(Phase.explicit, Phase.generate),
        )
        settings.load_profile("mutate")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Learn which tests enter which functions, then try the faults."""
        if session.testsfailed:
            raise session.Interrupted("tests could not be collected")
        items = {item.nodeid: item for item in session.items}
        with tempfile.TemporaryDirectory() as place:
            entered, spent = self._learn(list(items.values()), Path(place))
            _say(f"{len(spent)} of {len(items)} tests pass; {len(self._faults)} faults to try")
            workers = []
            for n in range(self._jobs):
                if (worker := os.fork()) == 0:
                    self._work(self._faults[n :: self._jobs], items, entered, spent)
                workers.append(worker)
            for worker in workers:
                os.waitpid(worker, 0)
        return True

    def _learn(self, items: list[pytest.Item], place: Path) -> tuple[Entered, dict[str, float]]:
        """Run all tests once, in a copy, and note what each enters and how long it takes."""
        notes = place / "entered"
        tracer = _Tracer({str(ROOT / fault.path) for fault in self._faults})

        def work() -> int:
            known: dict[str, tuple[set[tuple[str, str]], float]] = {}
            threading.settrace(tracer)
            for item, following in zip(items, [*items[1:], None], strict=True):
                tracer.functions = set()
                began = time.process_time()
                sys.settrace(tracer)  # each time anew: a test may have taken it away
                if _passes(item, following):
                    known[item.nodeid] = (tracer.functions, time.process_time() - began)
                sys.settrace(None)
            notes.write_bytes(pickle.dumps(known))
            return 0

        _forked(work, place=place)
        known = pickle.loads(notes.read_bytes())  # noqa: S301 - written just now, by a copy of us
        spent = {test: seconds for test, (_, seconds) in known.items()}
        entered: Entered = {}
        for test in sorted(spent, key=spent.__getitem__):
            for function in known[test][0]:
                entered.setdefault(function, []).append(test)
        return entered, spent

    def _work(
        self,
        share: list[Fault],
        items: dict[str, pytest.Item],
        entered: Entered,
        spent: dict[str, float],
    ) -> None:
        """Try a share of the faults, in a process of its own; never returns."""
        for n, fault in enumerate(share, 1):
            tests = self._tests(fault, entered, spent)
            began = time.monotonic()
            most = max(self._loop_seconds, _LONGER * sum(spent[t] for t in tests))
            outcome = _outcome(fault, [items[t] for t in tests], most)
            result = {
                "name": fault.name,
                "path": fault.path,
                "line": fault.mutation.line,
                "function": fault.mutation.function,
                "was": fault.mutation.was,
                "now": fault.mutation.now,
                "outcome": outcome,
                "tests": len(tests),
                "seconds": round(time.monotonic() - began, 2),
            }
            with self._out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(result, ensure_ascii=False) + "\n")
            _say(f"{n}/{len(share)} {outcome:9} {fault.name}")
        os._exit(0)

    def _tests(self, fault: Fault, entered: Entered, spent: dict[str, float]) -> list[str]:
        """The tests that enter the function, as many as there is time for."""
        path, function = str(ROOT / fault.path), fault.mutation.function
        if function:
            tests = entered.get((path, function), [])
        else:  # a constant of the module may be read in all its functions
            names = {t for (file, _), listed in entered.items() if file == path for t in listed}
            tests = sorted(names, key=spent.__getitem__)
        total = 0.0
        for n, test in enumerate(tests):
            total += spent[test]
            if total > self._seconds:
                return tests[: n + 1]
        return tests


def _outcome(fault: Fault, tests: Sequence[pytest.Item], seconds: float) -> str:
    if not tests:
        return "unreached"
    source = (ROOT / fault.path).read_text("utf-8")

    def work() -> int:
        try:
            put_in(fault, source)
        except (LookupError, SyntaxError, ValueError):
            return _NOT_PUT_IN  # a fault of this tool, which must not count as a killed one
        following = [*tests[1:], None]
        return int(not all(map(_passes, tests, following)))

    place = Path(tempfile.mkdtemp())
    code = _forked(work, cpu_seconds=seconds, place=place)
    shutil.rmtree(place, ignore_errors=True)
    return {0: "survived", -1: "endless", 1: "killed"}.get(code, "broken")


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not any(r.failed for r in runtestprotocol(item, nextitem=following, log=False))


class _Tracer:
    """Notes the functions of some files that are entered, by their outermost names.

    One for all tests: a server that one test has started answers the next ones in its thread,
    which keeps the tracer that it began with.
    """

    def __init__(self, files: set[str]) -> None:
        self._files = files
        self.functions: set[tuple[str, str]] = set()

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        del event, arg
        code = frame.f_code
        if code.co_filename in self._files:
            self.functions.add((code.co_filename, code.co_qualname.split(".<locals>")[0]))


# --- the command ---------------------------------------------------------------------------------


def _say(text: str) -> None:
    sys.__stdout__.write(text + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]


def results(out: Path) -> list[dict[str, Any]]:
    """What a file of results holds."""
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def forget_survivors(out: Path) -> set[str]:
    """Take what nobody noticed out of a file of results, to be tried again with new tests."""
    tried = results(out)
    noticed = [result for result in tried if result["outcome"] in ("killed", "endless")]
    out.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in noticed), "utf-8")
    return {result["name"] for result in tried} - {result["name"] for result in noticed}


def summary(tried: Iterable[dict[str, Any]]) -> str:
    """A line for each package, and the faults that nobody noticed."""
    tried = list(tried)
    packages: dict[str, Counter[str]] = {}
    for result in tried:
        packages.setdefault(str(Path(result["path"]).parent), Counter())[result["outcome"]] += 1
    lines = []
    for package, outcomes in packages.items():
        noticed = outcomes["killed"] + outcomes["endless"]
        total = outcomes.total()
        lines.append(f"{package}: {noticed} of {total} killed ({noticed / total:.0%})")
    lines += [
        f"{result['outcome']}: {result['name']}"
        for result in sorted(tried, key=lambda result: (result["path"], result["line"]))
        if result["outcome"] not in ("killed", "endless")
    ]
    return "\n".join(lines)


def run(chosen: list[Fault], tests: Sequence[str], options: argparse.Namespace) -> int:
    """Try faults against tests; what the file of results has already is left out."""
    out: Path = options.out
    seen = {result["name"] for result in results(out)}
    chosen = [fault for fault in chosen if fault.name not in seen]
    if not chosen:
        return 0
    out.parent.mkdir(parents=True, exist_ok=True)
    os.environ["CI"] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # others' plugins cost seconds
    # Databases of their own are started anew in each copy, which takes longer than all the tests.
    choice = ["-m", CHOSEN, "-k", "not postgres"]
    quiet = ["-q", "-q", "-s", "--no-header", "-p", "no:cacheprovider"]
    return int(pytest.main([*quiet, *choice, *tests], plugins=[Session(chosen, options)]))


def _touch(code: str, paths: Iterable[str]) -> bool:
    return any(path.startswith(code) or code.startswith(path) for path in paths)


def main() -> int:
    """Read the command line, try the faults and print what is left."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("paths", nargs="*", help=f"default: {', '.join(TESTS)}")
    parser.add_argument("--sample", type=int, default=0, help="only so many faults; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="which faults are in the sample")
    parser.add_argument("--match", default="", help="only faults whose path:function:change has it")
    parser.add_argument("--tests", nargs="*", help="default: by a table of the packages")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20, help="of tests for each fault")
    parser.add_argument("--loop-seconds", type=float, default=20, help="before it has no end")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutants.jsonl")
    parser.add_argument("--again", action="store_true", help="only those that lived before")
    parser.add_argument("--list", action="store_true", help="only print the faults")
    options = parser.parse_args()
    paths = options.paths or list(TESTS)
    chosen = faults(paths, match=options.match)
    if options.sample and options.sample < len(chosen):
        chosen = random.Random(options.seed).sample(chosen, options.sample)  # noqa: S311
    if options.again:
        lived = forget_survivors(options.out)
        chosen = [fault for fault in chosen if fault.name in lived]
    if options.list:
        for fault in chosen:
            _say(f"{fault.path}:{fault.mutation.function}:{fault.mutation.name}")
        return 0
    named = (test for code, tests in TESTS.items() if _touch(code, paths) for test in tests)
    tests = options.tests or list(dict.fromkeys(named))
    os.chdir(ROOT)
    code = run(chosen, tests, options)
    names = {fault.name for fault in chosen}
    _say(summary(result for result in results(options.out) if result["name"] in names))
    return code


if __name__ == "__main__":
    sys.exit(main())
