from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.settings import Settings
from tests.support.scripts import load

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "holdfast"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
"""Inline code, in which brackets are no link."""


def test_generated_files_are_what_the_code_says_now() -> None:
    generate = load(ROOT / "docs" / "generate.py")
    assert generate.stale_files() == [], "run `make docs`"


def test_sample_settings_file_is_valid_with_every_line_uncommented(tmp_path: Path) -> None:
    sample = (ROOT / "docs" / "reference" / "holdfast.sample.toml").read_text("utf-8")
    uncommented = re.sub(r"^#(?! )", "", sample, flags=re.MULTILINE)
    assert uncommented != sample
    (tmp_path / "holdfast.toml").write_text(uncommented)
    assert Settings.check(cwd=tmp_path, environ={}) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = CODE.sub("", page.read_text("utf-8"))
    targets = [t for t in LINK.findall(text) if "://" not in t]
    assert [t for t in targets if not (page.parent / t).exists()] == []


def test_every_page_can_be_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    pages = (ROOT / "docs").rglob("*.md")
    names = {page.relative_to(ROOT / "docs").as_posix() for page in pages} - {"index.md"}
    assert names - set(LINK.findall(index)) == set()


def tree_in_readme() -> set[str]:
    """The files and folders that the README's tree draws below src/holdfast/."""
    readme = (ROOT / "README.md").read_text("utf-8")
    (drawing,) = re.findall(r"^```\nsrc/holdfast/\n(.*?)^(?=\S)", readme, re.DOTALL | re.MULTILINE)
    found, folders = set(), [""]
    for line in drawing.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        name = line.split()[0]
        path = "".join(folders[:depth]) + name
        found.add(path)
        if name.endswith("/"):
            folders[depth:] = [name]
    return found


def tree_on_disk() -> set[str]:
    """Return the files at the top, and every folder."""
    files = [
        path
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    ]
    below = {path.relative_to(PACKAGE).as_posix() for path in files}
    folders = {f"{p.as_posix()}/" for name in below for p in Path(name).parents} - {"./"}
    return {name for name in below if "/" not in name} | folders


def test_tree_in_the_readme_is_the_tree_on_disk() -> None:
    assert tree_in_readme() == tree_on_disk()
