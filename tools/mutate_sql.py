"""Drop the scope conditions of the stores' SQL, one at a time, and see that a test notices each.

    python tools/mutate_sql.py --out build/sql-mutants.jsonl

The statements are those that the tests of the stores run, as the database gets them: constants that
many statements share are mutated in each of them alone. For each mutant a forked copy of this
process runs the tests that use the statement, until one fails: first those that noticed another
mutant of it, then the others, fastest first. Results are lines of JSON; what is in the file is not
run again, and several runs may share it, such as one for each database (`--database`). A survivor
must be in `EQUIVALENT` with a reason, or the exit code is 1. Statements of sql/ that no test runs
are printed. Needs a system with fork.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any

import apsw
import asyncpg  # type: ignore[import-untyped]
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # as a script, this file sees only its own folder

from tools.scope_mutants import Mutant, mutants_of  # noqa: E402
from tools.sql_equivalents import EQUIVALENT  # noqa: E402

TESTS = ("tests/store",)
CHOSEN = "not slow and not campaign"
LEFT_OUT = "not crash and not plan and not another_process and not fresh_file and not lane"
"""Tests that start processes, or look at the plan of a statement."""
_DATABASES = {
    "": "",
    "memory": " and memory and not postgres",
    "sqlite": " and not postgres",
    "postgres": " and postgres",
}
"""Tests of a database alone. A store in memory is SQLite without a disk: the quickest tests of its
statements, to be followed by a run with `--database sqlite --again`."""
_SECONDS, _LONGER = 20, 20
"""A test of a mutant may take so long, or so many times what it takes alone, whichever is more: it
may wait for ever for a lock, or loop."""
_POSTGRES_CALLS = ("execute", "executemany", "fetch", "fetchmany", "fetchrow", "fetchval", "cursor")


class Statements:
    """Sees every statement on its way to a database, and exchanges one of them."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str]] = set()
        """The kind of database, and the statement."""
        self.mutant: Mutant | None = None

    def pass_on(self, database: str, statement: str) -> str:
        """Return the statement to run in the place of this one."""
        # A test that looks at a plan and at no records; a migration, which has run already.
        if statement.startswith("EXPLAIN") or "CREATE " in statement:
            return statement
        if self.mutant is not None:
            return self.mutant.mutated if statement == self.mutant.statement else statement
        self.seen.add((database, statement))
        return statement

    def install(self) -> None:
        """Put this between the stores and the drivers' connections."""
        watch = self

        class Connection(apsw.Connection):
            def execute(self, statements: str, *more: Any, **named: Any) -> Any:
                return super().execute(watch.pass_on("sqlite", statements), *more, **named)

            def executemany(self, statements: str, *more: Any, **named: Any) -> Any:
                return super().executemany(watch.pass_on("sqlite", statements), *more, **named)

        apsw.Connection = Connection  # type: ignore[misc]
        for name in _POSTGRES_CALLS:
            original = getattr(asyncpg.Connection, name)
            setattr(asyncpg.Connection, name, self._watched(original))

    def _watched(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def call(connection: Any, statement: str, *more: Any, **named: Any) -> Any:
            changed = self.pass_on("postgres", statement)
            return original(connection, changed, *more, **named)

        return call


class Session:
    """A plugin of pytest that runs each test once, and then those that a mutant concerns."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._statements = Statements()
        self._seconds: dict[pytest.Item, float] = {}
        """How long each test takes without a mutant."""
        self._kills: Counter[tuple[str, pytest.Item]] = Counter()
        """How many mutants of a statement each test has noticed."""

    def pytest_configure(self) -> None:
        """Draw the same few examples every time, and shrink none."""
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "mutate", deadline=None, derandomize=True, database=None, max_examples=10, phases=phases
        )
        settings.load_profile("mutate")
        self._statements.install()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Learn which tests use which statements, then try the mutants."""
        if session.testsfailed:
            raise session.Interrupted("tests could not be collected")
        items = session.items
        users: dict[tuple[str, str], list[pytest.Item]] = {}
        for item, following in zip(items, [*items[1:], items[0]], strict=True):
            self._statements.seen = set()
            began = time.monotonic()
            # Always with a test to follow, so that the PostgreSQL of the session stays up.
            if _passes(item, following):
                self._seconds[item] = time.monotonic() - began
                for key in self._statements.seen:
                    users.setdefault(key, []).append(item)
        for name in unseen(users):
            print(f"no test runs {name}", flush=True, file=sys.__stdout__)
        known = {result["name"] for result in results(self._options.out)}
        for (database, statement), tests in sorted(users.items(), key=lambda each: each[0]):
            for mutant in mutants_of(statement):
                name = name_of(database, mutant)
                if name not in known and self._options.match in f"{database} {statement}":
                    self._note(name, database, mutant, self._outcome(mutant, tests, items))
        return True

    def _order(self, statement: str, item: pytest.Item) -> tuple[int, bool, float]:
        # The tests for everybody's calls notice most.
        kills = self._kills[statement, item]
        return -kills, "beside_others" not in item.nodeid, self._seconds[item]

    def _outcome(
        self, mutant: Mutant, tests: Sequence[pytest.Item], items: Sequence[pytest.Item]
    ) -> str:
        ordered = sorted(tests, key=partial(self._order, mutant.statement))
        reading, writing = os.pipe()
        child = os.fork()
        if child:
            os.close(writing)
            _, status = os.waitpid(child, 0)
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            with os.fdopen(reading) as killer:
                if place := killer.read():
                    self._kills[mutant.statement, ordered[int(place)]] += 1
            return "endless" if os.WIFSIGNALED(status) else _OUTCOMES[os.WEXITSTATUS(status)]
        code = _BROKEN
        try:
            os.setsid()
            silence = os.open(os.devnull, os.O_RDWR)
            for stream in (1, 2):
                os.dup2(silence, stream)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            self._statements.mutant = mutant
            code = _LIVED
            for place, test in enumerate(ordered):
                signal.alarm(int(max(_SECONDS, _LONGER * self._seconds[test])))
                following = items[0] if test is not items[0] else items[1]
                if not _passes(test, following):
                    code = _KILLED
                    os.write(writing, str(place).encode())
                    break
        finally:
            os._exit(code)

    def _note(self, name: str, database: str, mutant: Mutant, outcome: str) -> None:
        result = {
            "name": name,
            "database": database,
            "condition": mutant.condition,
            "number": mutant.number,
            "statement": " ".join(mutant.statement.split()),
            "outcome": outcome,
        }
        with self._options.out.open("a", encoding="utf-8") as out:
            out.write(json.dumps(result, ensure_ascii=False) + "\n")
        print(f"{outcome:9} {name} {mutant.condition}", flush=True, file=sys.__stdout__)


_LIVED, _KILLED, _BROKEN = 0, 1, 2
_OUTCOMES = {_LIVED: "survived", _KILLED: "killed", _BROKEN: "broken"}


def _passes(item: pytest.Item, following: pytest.Item) -> bool:
    return not any(r.failed for r in runtestprotocol(item, nextitem=following, log=False))


def unseen(seen: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Return the names of the statements in sql/ with scope conditions that are not among these."""
    # Not sooner: the store must meet the connections of `Statements.install`.
    from holdfast.store.statements import load  # noqa: PLC0415

    known = {(database, " ".join(text.split())) for database, text in seen}
    databases = sorted({database for database, _ in known})
    for file in sorted((ROOT / "src/holdfast/store/sql").glob("*.sql")):
        for name, statement in load(file.stem).by_name.items():
            for database in databases:
                for bound in getattr(statement, database):
                    text = " ".join(bound.sql.split())
                    if mutants_of(bound.sql) and (database, text) not in known:
                        yield f"{file.stem}.{name} ({database})"


def name_of(database: str, mutant: Mutant) -> str:
    """Return a name that changes with the statement: a changed one must be judged anew."""
    text = " ".join(mutant.statement.split())
    return f"{database}-{hashlib.sha256(text.encode()).hexdigest()[:12]}-{mutant.number}"


def results(out: Path) -> list[dict[str, Any]]:
    """Return what a file of results holds."""
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def main() -> int:
    """Try all mutants, print the survivors, and return 1 if one has no reason to live."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "sql-mutants.jsonl")
    parser.add_argument("--match", default="", help="only statements that hold this text")
    parser.add_argument("--database", choices=list(_DATABASES), default="", help="default: both")
    parser.add_argument("--again", action="store_true", help="try those that lived once more")
    parser.add_argument("--tests", nargs="*", default=list(TESTS))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if options.again:
        noticed = [each for each in results(options.out) if each["outcome"] == "killed"]
        options.out.write_text("".join(json.dumps(each) + "\n" for each in noticed), "utf-8")
    os.environ["CI"] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # others' plugins cost seconds
    os.chdir(ROOT)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = place
        quiet = ["-q", "-q", "-s", "--no-header", "-p", "no:cacheprovider", "-p", "xdist.plugin"]
        choice = ["-m", CHOSEN, "-k", LEFT_OUT + _DATABASES[options.database]]
        pytest.main([*quiet, *choice, *options.tests], plugins=[Session(options)])
    tried = results(options.out)
    outcomes = Counter(result["outcome"] for result in tried)
    lived = [result for result in tried if result["outcome"] not in ("killed", "endless")]
    unexplained = [result for result in lived if result["name"] not in EQUIVALENT]
    for result in unexplained:
        print(f"{result['name']}: {result['condition']} in {result['statement']}")  # noqa: T201
    spent = time.monotonic() - began
    print(f"{dict(outcomes)}, {len(unexplained)} without a reason, {spent:.0f} s")  # noqa: T201
    return int(bool(unexplained) or not tried)


if __name__ == "__main__":
    sys.exit(main())
