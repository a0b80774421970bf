"""Measured figures of the documentation, in `figures.json`: how old each is, and how to renew it.

A record names the command that measures, the commit, the day, the machine, the data and the
source paths that the result depends on, with their hash. A page holds `<!-- figures: NAME -->`, and
`make docs` writes the record's text and origin below it. `make check` fails on a record whose
sources have changed since. Then either measure again or mark the figures as history:

History from before this file existed has the commit that its page names, else the one that last
changed the section: the figures are at least as old as that.

    python -m benchmarks.figures                   list the records and their state
    python -m benchmarks.figures --record NAME     figures on the page were measured just now
    python -m benchmarks.figures --history NAME    keep the figures, and show them as history
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("figures.json")
DATA = Path(os.environ.get("HOLDFAST_DATA") or ROOT.parent / "shared" / "data")
MARK = re.compile(r"<!-- figures: ([a-z0-9-]+) -->")
BLOCK = re.compile(r"<!-- figures: ([a-z0-9-]+) -->\n.*?<!-- end of figures -->", re.DOTALL)
"""The place of a record in a page, filled by `make docs`."""


_NO_COMMAND = ("by hand", "command not recorded")


class Record(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Figures that one command measured at one commit."""

    command: str
    commit: str
    date: str
    machine: str = ""
    data: dict[str, str] = {}
    """SHA-256 of the data that was measured on, by path below the data folder."""
    sources: list[str] = []
    """Files and folders, below the repository, that the figures depend on."""
    sources_hash: str = ""
    history: bool = False
    text: list[str] = []
    """Markdown lines that pages show; empty if the page's own section holds the figures."""

    def is_stale(self) -> bool:
        """Return whether the measured code has changed and the figures are not history."""
        return not self.history and self.sources_hash != hash_sources(self.sources)

    def stamp(self) -> str:
        """Return commit and day, and whether the figures are history."""
        return f"{self.commit}, {self.date}" + (", history" if self.history else "")

    def origin(self) -> str:
        """Return the line below the figures that says where they come from."""
        how = self.command if self.command in _NO_COMMAND else f"with `{self.command}`"
        if self.history:
            return f"*History: {self.date}, {self.commit}, {how}; not measured again since.*"
        return f"*Measured {self.date} at {self.commit} {how}, {self.machine}.*"


def load() -> dict[str, Record]:
    """Return all records by name."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Record])


def save(records: dict[str, Record]) -> None:
    """Write all records, sorted by name."""
    encoded = msgspec.json.encode(dict(sorted(records.items())))
    FILE.write_bytes(msgspec.json.format(encoded, indent=1) + b"\n")


def record(name: str, text: Sequence[str] = ()) -> None:
    """Store figures that were measured just now under the name of an existing record."""
    records = load()
    if name not in records:
        sys.exit(f"There is no record {name}: add it to {FILE.name} with command and sources.")
    known = records[name]
    known.text = list(text) or known.text
    known.commit = _git("rev-parse", "--short=7", "HEAD")
    known.date = datetime.now(UTC).date().isoformat()
    known.machine = (
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}, Python {platform.python_version()}"
    )
    known.data = {path: _hash_data(DATA / path) for path in known.data}
    known.sources_hash = hash_sources(known.sources)
    known.history = False
    save(records)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table as lines, with figures to the right."""
    lines = (f"| {' | '.join(cells)} |" for cells in (head, *rows))
    return [next(lines), "|---|" + "--:|" * (len(head) - 1), *lines]


def mark_as_history(name: str) -> None:
    """Show a record's figures as history from now on."""
    records = load()
    if name not in records:
        sys.exit(f"There is no record {name}. Run without options for the list.")
    records[name].history = True
    save(records)


def fill(page: str, records: dict[str, Record]) -> str:
    """Return a page with the text and origin of each record in its place."""

    def block(match: re.Match[str]) -> str:
        known = records[match[1]]
        lines = [*known.text, "", known.origin()] if known.text else [known.origin()]
        # Blank lines, for Python-Markdown reads no table beside a comment.
        return "\n".join(
            [f"<!-- figures: {match[1]} -->", "", *lines, "", "<!-- end of figures -->"]
        )

    return BLOCK.sub(block, page)


def pages() -> Iterator[Path]:
    """Yield the pages that hold figures of records."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if MARK.search(path.read_text("utf-8")):
            yield path


def stale_pages() -> list[Path]:
    """Return the pages that do not show what the records say."""
    records = load()
    texts = ((path, path.read_text("utf-8")) for path in pages())
    return [path for path, text in texts if fill(text, records) != text]


def write_pages() -> list[Path]:
    """Fill the stale pages, and return them."""
    stale, records = stale_pages(), load()
    for path in stale:
        path.write_text(fill(path.read_text("utf-8"), records), "utf-8")
    return stale


def hash_sources(sources: Sequence[str]) -> str:
    """Return a hash over the code below some paths; comments and docstrings do not change it."""
    digest = hashlib.sha256()
    for path in sorted(_files(sources)):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        text = path.read_bytes()
        digest.update(_code_of(text) if path.suffix == ".py" else text)
    return digest.hexdigest()[:16]


def _files(sources: Sequence[str]) -> Iterator[Path]:
    for source in sources:
        path = ROOT / source
        if path.is_file():
            yield path
        elif path.is_dir():
            yield from (p for p in path.rglob("*") if p.is_file() and p.suffix != ".pyc")
        else:
            raise FileNotFoundError(f"{FILE.name} names {source}, which is not there")


def _code_of(text: bytes) -> bytes:
    return repr(_shape(ast.parse(text))).encode()


def _shape(node: Any) -> Any:
    """Return a syntax tree as tuples without empty fields, which differ between Pythons."""
    if isinstance(node, list):
        return tuple(_shape(each) for each in node if not _is_docstring(each))
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
        return (type(node).__name__, *((name, _shape(value)) for name, value in fields))
    return node


def _is_docstring(node: Any) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _hash_data(path: Path) -> str:
    digest = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(path.rglob("*.gz")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603, S607
    return done.stdout.strip()


def main() -> None:
    """Run the command line that the module's docstring shows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--record", metavar="NAME", help="the figures were measured just now")
    action.add_argument("--history", metavar="NAME", help="show the figures as history")
    options = parser.parse_args()
    if options.record:
        record(options.record)
    elif options.history:
        mark_as_history(options.history)
    else:
        for name, known in load().items():
            state = "history" if known.history else "STALE" if known.is_stale() else "current"
            print(f"{state:8} {known.date} {known.commit} {name}: {known.command}")


if __name__ == "__main__":
    main()
