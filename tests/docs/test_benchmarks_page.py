"""docs/benchmarks.md: generated from tables and ratios in the repository, losses included."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from benchmarks import page, ratios
from benchmarks.bars import Bar, drawn
from benchmarks.tables import Table, number, table

DOCS = Path(__file__).parents[2] / "docs"


def test_page_and_plots_are_what_the_tables_say_now() -> None:
    assert page.stale() == [], "run `make docs`"


def test_every_plot_has_bars_of_ours_and_most_have_peers() -> None:
    drawings = [page.bars_of(plot, page._table(plot)) for plot in page.PLOTS]
    assert all(any(bar.ours for bar in bars) for bars in drawings)
    assert sum(any(not bar.ours for bar in bars) for bars in drawings) >= len(drawings) - 1


def test_peer_that_is_better_is_named_and_one_that_is_not_is_not() -> None:
    bars = [Bar("holdfast", 3, "3", True), Bar("a", 2, "2", False), Bar("b", 4, "4", False)]
    fewer = page.PLOTS[4]
    assert not fewer.more_is_better
    assert page.losses(fewer, bars) == [f"{fewer.title}: a 2, ours 3"]
    more = page.PLOTS[1]
    assert page.losses(more, bars) == [f"{more.title}: b 4, ours 3"]


def test_ratio_below_one_against_a_peer_stands_among_the_losses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ratios, "saved", lambda: {"x: y, litellm": 0.5, "x: z, litellm": 2.0})
    _, lost = page.pages()[page.FILE].split("## Figures where a peer is better")
    assert "x: y, litellm: 0.5 times its speed" in lost
    assert "x: z" not in lost


def test_plots_are_drawings_without_script_or_address() -> None:
    for plot in page.PLOTS:
        tree = ET.fromstring((DOCS / plot.file).read_text("utf-8"))
        names = {element.tag.rpartition("}")[2] for element in tree.iter()}
        assert names == {"svg", "style", "text", "rect"}
        assert not any("href" in key for element in tree.iter() for key in element.attrib)


def test_longest_bar_fills_the_width_and_texts_are_escaped() -> None:
    svg = drawn("a < b", [Bar("x & y", 2, "2", True), Bar("z", 1, "1", False)])
    widths = [
        float(rect.get("width", "")) for rect in ET.fromstring(svg).iter() if "rect" in rect.tag
    ]
    assert widths[0] == 2 * widths[1]


@pytest.mark.parametrize(
    ("cell", "part", "figure"),
    [("7.4", 0, 7.4), ("1,965", 0, 1965), ("0.00 / 0.7", 1, 0.7), (".953/.925", 0, 0.953),
     ("7 (see below)", 0, 7), ("-", 0, None), ("97.4 %", 0, 97.4), ("5", 1, None)],
)  # fmt: skip
def test_figure_of_a_cell(cell: str, part: int, figure: float | None) -> None:
    assert number(cell, part) == figure


def test_table_that_is_not_there_is_an_error_that_names_the_page() -> None:
    with pytest.raises(LookupError, match=r"counting\.md has 0 tables"):
        table("discussions/counting.md", "median / p95", "nobody")


def test_table_of_a_page_is_found_by_a_heading_and_a_label() -> None:
    counting = table("discussions/counting.md", "median / p95", "all")
    assert isinstance(counting, Table)
    first, last = counting.lines
    lines = (DOCS / counting.page).read_text("utf-8").splitlines()[first - 1 : last]
    assert lines[0].startswith("| provider |")
    assert lines[-1].startswith("| all |")
