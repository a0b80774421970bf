"""Put small faults into the code, one at a time, and list those that no test notices.

    python tools/mutate.py --sample 200 --seed 1             # 200 faults of the whole package
    python tools/mutate.py src/holdfast/fitting              # every fault of one package
    python tools/mutate.py --faults faults.jsonl             # faults written by hand

No file is changed. The faults are tried package by package. The tests of a package are collected
once; for each fault a forked copy of that process replaces the code of one function in memory and
runs the tests that enter the function, fastest first, until one fails. A fault is killed by a
failing test, or by running far longer than the tests should take. Results are lines of JSON, and a
fault that has a result is not tried again, so an interrupted run can be resumed. Needs fork.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # as a script, this file sees only its own folder

from tools import entered  # noqa: E402
from tools.faults import Fault, faults, handwritten, put_in  # noqa: E402
from tools.survivors import PAGE, explained, stale  # noqa: E402

PACKAGE = "src/holdfast"
TESTS: dict[str, tuple[str, ...]] = {
    "answer_cache": ("tests/answer_cache", "tests/surfaces/proxy/test_answers.py"),
    "assemble": (
        "tests/assemble",
        "tests/engine/test_assemble.py",
        "tests/surfaces/proxy/test_assemble.py",
    ),
    "upstream": (
        "tests/upstream",
        "tests/client",
        *(
            f"tests/surfaces/proxy/test_{n}.py"
            for n in ("expansions", "expansion_room", "upstreams")
        ),
        *(f"tests/surfaces/proxy/test_{n}.py" for n in ("connections", "offline", "lazy_tools")),
    ),
    "engine": ("tests/engine", "tests/surfaces/proxy/test_expansions.py"),
    "expand": ("tests/expand", "tests/compat", "tests/cite/test_offers.py"),
    "extract": ("tests/extract", "tests/researching/test_sources.py"),
    "fitting": (
        "tests/fitting",
        "tests/trim",
        *(f"tests/surfaces/proxy/test_{n}.py" for n in ("final_turn", "chained", "opening")),
        "tests/wire/test_bound_thinking.py",
    ),
    "settings": (
        "tests/test_settings.py",
        "tests/test_settings_in_fit.py",
        "tests/test_settings_wiring.py",
        "tests/surfaces/cli/test_config.py",
    ),
    "surfaces/cli": ("tests/surfaces",),
    "surfaces/mcp": ("tests/surfaces/mcp",),
    "surfaces/proxy": ("tests/surfaces/proxy",),
    "trim": ("tests/trim", "tests/fitting/test_budgets.py"),
    "toolbox": ("tests/toolbox", "tests/surfaces/cli/test_tools.py", "tests/store/test_tools.py"),
    "wire": ("tests/wire", "tests/provider/test_rules.py"),
}
"""Tests that may notice a fault in a package, where they are not just `tests/<package>`."""

CHOSEN = "not slow and not campaign"
_LONGER = 10
"""Times that a fault may make tests run longer before it counts as an endless loop."""
_NOT_PUT_IN = 2
_WALL_SECONDS = 180
"""A fault may also wait forever; on a busy machine nothing else takes this long."""
_SAME_TESTS = "tests/test_*.py"
"""Tests of the modules outside any package."""

KnownMessage = dict[str, tuple[list[tuple[str, str]], float]]
"""For each test that passes: the functions that it enters, as file and name, and its seconds."""


# --- one fault, in a copy of this process ---------------------------------------------------------


def _in_copy(work: Callable[[], int], *, cpu_seconds: float = 0, place: Path) -> int:
    """Return the result of `work` in a forked copy of this process; -1 if a signal ended it."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # processes that a test has started
        return -1 if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    code = _NOT_PUT_IN
    try:
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (1, 2):
            os.dup2(silence, stream)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(place)  # removed with the files of the tests
        if cpu_seconds:
            # By the processor's clock, so that a busy machine kills no fault.
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds) + 1, resource.RLIM_INFINITY))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(_WALL_SECONDS)
        code = work()
    finally:
        os._exit(code)


# --- the session: tests are collected once, and run in copies of this process --------------------


class Session:
    """A pytest plugin that tries faults instead of running the tests once."""

    def __init__(self, chosen: list[Fault], options: argparse.Namespace) -> None:
        self._faults = chosen
        self._out: Path = options.out
        self._jobs: int = options.jobs
        self._seconds: float = options.seconds
        self._loop_seconds: float = options.loop_seconds

    def pytest_configure(self) -> None:
        """Draw the same few examples every time; a failure is enough, shrinking takes long."""
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
        """Record which tests enter which functions, then try the faults."""
        if session.testsfailed:
            raise session.Interrupted("tests could not be collected")
        gc.unfreeze()  # frozen by conftest.py; frozen functions would not be found to be replaced
        items = {item.nodeid: item for item in session.items}
        known = self._known(list(items.values()))
        _say(f"{len(known)} of {len(items)} tests pass; {len(self._faults)} faults to try")
        _each_in_a_process(
            lambda n: self._work(self._faults[n :: self._jobs], items, known), self._jobs
        )
        return True

    def _known(self, items: list[pytest.Item]) -> KnownMessage:
        """Return what each test enters: as an earlier run of the same files noted, or by a run."""
        digest = _digest({item.path for item in items})
        kept = self._out.parent / "mutants-entered" / f"{digest}.json"
        if kept.exists():
            return KnownMessage(json.loads(kept.read_text("utf-8")))
        files = list(dict.fromkeys(item.path for item in items))
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)

            def enter(n: int) -> None:
                part = [item for item in items if files.index(item.path) % self._jobs == n]
                _enter(part, place / str(n))

            _each_in_a_process(enter, self._jobs)
            known: KnownMessage = {}
            for notes in sorted(place.glob("*/entered")):
                known |= json.loads(notes.read_text("utf-8"))
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(known), "utf-8")
        return known

    def _work(self, share: list[Fault], items: dict[str, pytest.Item], known: KnownMessage) -> None:
        """Try a share of the faults."""
        entering: dict[tuple[str, str], list[str]] = {}
        for test in sorted(known, key=lambda test: known[test][1]):
            # A constant of the module may be read in all its functions.
            for file, name in {(f, n) for f, function in known[test][0] for n in ("", function)}:
                entering.setdefault((file, name), []).append(test)
        for n, fault in enumerate(share, 1):
            tests = self._affordable(entering.get((fault.path, fault.mutation.function), []), known)
            began = time.monotonic()
            most = max(self._loop_seconds, _LONGER * sum(known[t][1] for t in tests))
            outcome = _outcome(fault, [items[t] for t in tests], most)
            result = {
                "name": fault.name,
                "path": fault.path,
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

    def _affordable(self, tests: list[str], known: KnownMessage) -> list[str]:
        """Return the first tests, as many as there is time for."""
        total = 0.0
        for n, test in enumerate(tests):
            total += known[test][1]
            if total > self._seconds:
                return tests[: n + 1]
        return tests


def _each_in_a_process(work: Callable[[int], None], jobs: int) -> None:
    """Call `work` with each number below `jobs`, all at once, in forked copies; wait for them."""
    children = []
    for n in range(jobs):
        if (child := os.fork()) == 0:
            try:
                work(n)
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def _digest(files: Iterable[Path]) -> str:
    """Return a name for the state of the package and of these files of tests."""
    digest = hashlib.sha256()
    for file in (*sorted((ROOT / "src").rglob("*.py")), *sorted(files)):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _enter(items: list[pytest.Item], place: Path) -> None:
    """Run tests once, in a copy, and write down what each enters and how long it takes."""
    place.mkdir()

    def work() -> int:
        known: KnownMessage = {}
        for item, following in zip(items, [*items[1:], None], strict=True):
            entered.functions.clear()
            began = time.process_time()
            if _passes(item, following):
                # A server's thread may enter something at this moment.
                known[item.nodeid] = (sorted(entered.functions.copy()), time.process_time() - began)
        (place / "entered").write_text(json.dumps(known), "utf-8")
        return 0

    _in_copy(work, place=place)


def _outcome(fault: Fault, tests: Sequence[pytest.Item], seconds: float) -> str:
    if not tests:
        return "unreached"
    source = (ROOT / fault.path).read_text("utf-8")

    def work() -> int:
        try:
            put_in(fault, source)
        except (LookupError, SyntaxError, ValueError):
            return _NOT_PUT_IN  # a fault of this tool, which must not count as killed
        following = [*tests[1:], None]
        return int(not all(map(_passes, tests, following)))

    place = Path(tempfile.mkdtemp())
    code = _in_copy(work, cpu_seconds=seconds, place=place)
    shutil.rmtree(place, ignore_errors=True)
    return {0: "survived", -1: "endless", 1: "killed"}.get(code, "broken")


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not any(r.failed for r in runtestprotocol(item, nextitem=following, log=False))


# --- the command ---------------------------------------------------------------------------------


def _say(text: str) -> None:
    sys.__stdout__.write(text + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]


def results(out: Path) -> list[dict[str, Any]]:
    """Return the results in a file."""
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def forget_survivors(out: Path) -> set[str]:
    """Remove survivors from a file of results, so that new tests are tried on them."""
    tried = results(out)
    noticed = [result for result in tried if result["outcome"] in ("killed", "endless")]
    out.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in noticed), "utf-8")
    return {result["name"] for result in tried} - {result["name"] for result in noticed}


def summary(tried: Iterable[dict[str, Any]], reasons: dict[str, str]) -> str:
    """Return a line for each package, and the survivors with the reasons that are known."""
    tried = list(tried)
    packages: dict[str, Counter[str]] = {}
    for result in tried:
        packages.setdefault(str(Path(result["path"]).parent), Counter())[result["outcome"]] += 1
    lines = []
    for package, outcomes in sorted(packages.items()):
        noticed = outcomes["killed"] + outcomes["endless"]
        total = outcomes.total()
        lines.append(f"{package}: {noticed} of {total} killed ({noticed / total:.0%})")
    for result in sorted(tried, key=lambda result: str(result["name"])):
        if result["outcome"] not in ("killed", "endless"):
            reason = reasons.get(result["name"])
            lines.append(f"{result['outcome']}: {result['name']}{f' ({reason})' if reason else ''}")
    return "\n".join(lines)


def covering_tests(path: str) -> tuple[str, ...]:
    """Return the tests of the package that a file of the source belongs to."""
    inner = path.removeprefix(f"{PACKAGE}/").removesuffix(".py")
    for length in range(inner.count("/") + 1, 0, -1):
        package = "/".join(inner.split("/")[:length])
        if tests := TESTS.get(package):
            return tests
        if (ROOT / "tests" / package).is_dir():
            return (f"tests/{package}",)
    return tuple(sorted(str(file.relative_to(ROOT)) for file in ROOT.glob(_SAME_TESTS)))


def run(chosen: list[Fault], tests: Sequence[str], options: argparse.Namespace) -> int:
    """Try faults against tests in a process of its own; return pytest's exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.environ["CI"] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # others' plugins cost seconds
    # A database server is started anew in each copy, which takes longer than all the tests.
    choice = ["-m", CHOSEN, "-k", "not postgres"]
    quiet = ["-q", "-q", "-s", "--no-header", "-p", "no:cacheprovider"]
    code = 1
    try:
        entered.install()
        code = int(pytest.main([*quiet, *choice, *tests], plugins=[Session(chosen, options)]))
    finally:
        os._exit(code)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("paths", nargs="*", default=[PACKAGE], help=f"default: {PACKAGE}")
    parser.add_argument("--sample", type=int, default=0, help="only so many faults; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="which faults are in the sample")
    parser.add_argument("--match", default="", help="only faults whose path:function:change has it")
    parser.add_argument("--faults", type=Path, help="faults written by hand, as lines of JSON")
    parser.add_argument("--tests", nargs="*", help="default: the tests of each package")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20, help="of tests for each fault")
    parser.add_argument("--loop-seconds", type=float, default=20, help="before it is endless")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutants.jsonl")
    parser.add_argument("--again", action="store_true", help="only those that survived before")
    parser.add_argument("--list", action="store_true", help="only print the faults")
    return parser.parse_args()


def main() -> int:
    """Read the command line, try the faults and print the survivors."""
    options = _options()
    options.out = options.out.absolute()
    chosen = handwritten(options.faults) if options.faults else faults(options.paths)
    chosen = [fault for fault in chosen if options.match in fault.name]
    if options.sample and options.sample < len(chosen):
        chosen = random.Random(options.seed).sample(chosen, options.sample)  # noqa: S311
    if options.again:
        survivors = forget_survivors(options.out)
        chosen = [fault for fault in chosen if fault.name in survivors]
    if options.list:
        _say("\n".join(fault.name for fault in chosen))
        return 0
    os.chdir(ROOT)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    tried = {result["name"] for result in results(options.out)}
    packages: dict[tuple[str, ...], list[Fault]] = {}
    for fault in chosen:
        if fault.name not in tried:
            tests = tuple(options.tests or covering_tests(fault.path))
            packages.setdefault(tests, []).append(fault)
    codes = [run(part, tests, options) for tests, part in packages.items()]
    names = {fault.name for fault in chosen}
    _say(summary((r for r in results(options.out) if r["name"] in names), explained()))
    if lines := stale(faults([PACKAGE])):
        _say(f"{PAGE.name} explains faults that are no longer there:\n" + "\n".join(lines))
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
