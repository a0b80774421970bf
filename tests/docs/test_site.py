"""mkdocs.yml, from which `make site` builds: every page is in its navigation."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_site_names_every_page_once() -> None:
    _, _, navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")
    names = re.findall(r"^ +- (\S+\.md)$", navigation, re.MULTILINE)
    pages = (p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md"))
    assert sorted(names) == sorted(pages)


def test_site_asks_no_other_address() -> None:
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "font: false" in settings
    assert "://" not in settings
