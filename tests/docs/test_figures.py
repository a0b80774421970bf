"""Measured figures in the documentation: each has a record, and no record is older than its code.

A section with figures has a record in benchmarks/figures.json, with the time and method of the
measurement. Numbers that are properties of the code are compared with it in test_claims.py.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks import figures
from benchmarks.figures import Record

from tests.docs.test_claims import without_claims

ROOT = Path(__file__).parents[2]
UNCHECKED = {
    "docs/benchmarks.md",  # generated from the other pages, with the origin of each plot
    "docs/discussions/mutation.md",  # names the commit of each run
}
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "reference" not in path.parts and path.relative_to(ROOT).as_posix() not in UNCHECKED
]
FIGURE = re.compile(
    r"\b\d[\d,.]*(?: ?(?:ms|µs|MB|GB|%)(?!\w)| (?:times|a second|points)\b| s\b)"
    r"|(?<![\w.$])\.\d{3,4}\b|\bp(?:50|90|95|99)\b"
)
_FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1[^\n]*$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`]*`")
_CELL = re.compile(r"-?[\d.]")


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield each heading with the text up to the next one; code is left out."""
    heading = ""
    lines: list[str] = []
    for line in _FENCE.sub("", text).splitlines():
        if line.startswith("#"):
            yield heading, "\n".join(lines)
            heading, lines = line, []
        else:
            lines.append(line)
    yield heading, "\n".join(lines)


def _unmarked(page: str, text: str) -> list[str]:
    """Return the measured figures of sections without a record, with their headings."""
    unmarked = []
    for heading, section in _sections(text):
        if figures.MARK.search(section):
            continue
        text_left = _CODE.sub("", without_claims(page, section))
        unmarked += [f"{heading}: {match[0]}" for match in FIGURE.finditer(text_left)]
        unmarked += [f"{heading}: {line}" for line in text_left.splitlines() if _is_row(line)]
    return unmarked


def _is_row(line: str) -> bool:
    """Return whether a line is a row of a table with two figures or more."""
    cells = [cell.strip(" *`") for cell in line.strip().strip("|").split("|")[1:]]
    return line.startswith("|") and sum(_CELL.match(cell) is not None for cell in cells) >= 2


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_measured_figure_has_a_record(path: Path) -> None:
    page = path.relative_to(ROOT).as_posix()
    assert _unmarked(page, path.read_text("utf-8")) == [], (
        "add a record to benchmarks/figures.json and its mark to the section; "
        "what the code says belongs to tests/docs/test_claims.py"
    )


def test_no_figure_is_older_than_the_code_it_measures() -> None:
    stale = {name: known.command for name, known in figures.load().items() if known.is_stale()}
    assert stale == {}, (
        "run each command, then `make docs`; or `python -m benchmarks.figures --history NAME`"
    )


def test_pages_show_what_the_records_say() -> None:
    assert figures.stale_pages() == [], "run `make docs`"


def test_records_and_marks_belong_together() -> None:
    marks = [
        name for path in figures.pages() for name in figures.MARK.findall(path.read_text("utf-8"))
    ]
    assert sorted(marks) == sorted(set(figures.load()) - {"peers-count", "peers-wire"})


def test_every_record_says_when_where_and_how() -> None:
    for name, known in figures.load().items():
        assert re.fullmatch(r"[0-9a-f]{7,}", known.commit), name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", known.date), name
        assert known.command, name
        assert known.history or (known.sources and known.machine), name
        assert all(known.data.values()), name


def test_every_commit_of_a_record_is_in_the_history() -> None:
    if _git("rev-parse", "--is-shallow-repository").strip() != "false":
        pytest.skip("the history is not here")
    commits = sorted({known.commit for known in figures.load().values()})
    kinds = _git("cat-file", "--batch-check=%(objecttype)", stdin="\n".join(commits)).split("\n")
    assert [c for c, kind in zip(commits, kinds, strict=False) if kind != "commit"] == []


def _git(*arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=ROOT, input=stdin, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout


def _record(**values: object) -> Record:
    fields = {"command": "make bench", "commit": "0123abc", "date": "2026-11-18", **values}
    return Record(**fields)  # type: ignore[arg-type]


def test_figures_are_stale_when_their_code_changes_and_not_when_its_comments_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    module = tmp_path / "module.py"
    module.write_text('"""Count."""\n\n\ndef count():\n    return 1\n')
    known = _record(sources=["module.py"], sources_hash=figures.hash_sources(["module.py"]))
    assert not known.is_stale()
    module.write_text(
        '"""Return one."""\n\n\ndef count():\n    "The reason."\n    return 1  # one\n'
    )
    assert not known.is_stale()
    module.write_text('"""Count."""\n\n\ndef count():\n    return 2\n')
    assert known.is_stale()
    known.history = True
    assert not known.is_stale()
    assert "History: 2026-11-18, 0123abc" in known.origin()


def test_a_page_is_filled_with_text_and_origin_and_stays_so() -> None:
    page = "# A\n\n<!-- figures: speed -->\nold\n<!-- end of figures -->\n\nMore.\n"
    filled = figures.fill(page, {"speed": _record(text=["| 7 ms |"], machine="2 cores")})
    assert "old" not in filled
    assert "| 7 ms |\n\n*Measured 2026-11-18 at 0123abc with `make bench`, 2 cores.*" in filled
    assert filled.endswith("<!-- end of figures -->\n\nMore.\n")
    assert figures.fill(filled, {"speed": _record(text=["| 7 ms |"], machine="2 cores")}) == filled


def test_a_figure_without_a_record_is_noticed_and_one_with_it_is_not() -> None:
    bare = "# A\n\nIt takes 7 ms.\n\n## B\n\n| | a | b |\n|---|--:|--:|\n| x | 1 | 2 |\n"
    assert _unmarked("page.md", bare) == ["# A: 7 ms", "## B: | x | 1 | 2 |"]
    marked = bare.replace("7 ms.", "7 ms.\n\n<!-- figures: a -->")
    assert _unmarked("page.md", marked) == ["## B: | x | 1 | 2 |"]
    assert _unmarked("page.md", "```\n7 ms\n```\n") == []
