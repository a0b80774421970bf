"""docs/benchmarks.md and its plots: `python -m benchmarks --page`, and `make docs`.

No figure is typed here. Each comes from a table of the documentation, which says how it was
measured and when, or from `ratios.json`; what is lost is found by comparing, not chosen.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from benchmarks import figures, ratios
from benchmarks.bars import Bar, drawn
from benchmarks.peers.environment import VERSIONS
from benchmarks.tables import ROOT, Table, number, table

FILE = "benchmarks.md"
NOTE = "<!-- Made by benchmarks/page.py from tables of the documentation: run `make docs`. -->\n"
_PEERS = ("tiktoken", "litellm", "openai's", "pydantic-ai", "json.loads")
"""Whose times stand in `ratios.json`, by words in its names; the others are of our own past."""


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A row or a column of a table as bars."""

    section: str
    title: str
    page: str
    command: str
    """Prints the table."""
    heading: str
    """A heading of the table, by which it is known; of the column that is drawn, if no row is."""
    label: str
    """The label of a row of the table, by which it is known too."""
    row: str = ""
    """The label of the row that is drawn."""
    part: int = 0
    """Of cells with several figures between slashes, which."""
    skip: tuple[str, ...] = ()
    """Bars that are left out, by the beginning of their names."""
    ours: tuple[str, ...] = ("holdfast", "Holdfast", "auto")
    """Names of ours begin so; empty: all bars are, and there is no peer."""
    more_is_better: bool = False

    @property
    def file(self) -> str:
        """Where it is drawn, below docs/."""
        return f"images/bench-{re.sub('[^a-z0-9]+', '-', self.title.lower()).strip('-')}.svg"


_CITING = {
    "section": "Citing",
    "page": "discussions/citations.md",
    "command": "python -m benchmarks.peers",
    "label": "litellm.compress, trigger 2,000",
    "more_is_better": True,
}
_REGRET = {
    "section": "Regret and cost",
    "page": "discussions/policy.md",
    "command": "python -m benchmarks regret",
    "skip": ("the same", "always"),  # the default is compared, not the better of two settings
}
_PROXY = {
    "page": "discussions/proxy.md",
    "command": "python -m benchmarks proxy",
    "heading": "two workers",
    "label": "MB in the end",
    "skip": ("two workers", "times ours"),
}
_RESEARCH = {
    "section": "Research",
    "page": "discussions/research.md",
    "command": "python -m benchmarks research",
    "heading": "8,000 tokens",
    "label": "research",
    "ours": ("research",),
    "more_is_better": True,
}
_NATIVE = "LangChain ClearToolUses, its defaults"
_NARROW = "LangChain ClearToolUses"

PLOTS = tuple(
    msgspec.convert(plot, Plot)
    for plot in (
        {
            "section": "Counting",
            "title": "Error of the count, p95, percent",
            "page": "discussions/counting.md",
            "command": "python -m benchmarks count",
            "heading": "median / p95",
            "label": "anthropic",
            "part": 1,
            "ours": (),
        },
        {**_CITING, "title": "Tokens saved, median, percent", "heading": "tokens saved (median)"},
        {**_CITING, "title": "Answer still in the citation, percent", "heading": "answer kept"},
        {**_CITING, "title": "Original exact, percent", "heading": "original exact"},
        {**_REGRET, "title": "Cost, native windows, share", "heading": "cost", "label": _NATIVE},
        {**_REGRET, "title": "Needed and hidden, native windows", "heading": "needs",
         "label": _NATIVE},
        {**_REGRET, "title": "Cost in 16,000 tokens, share", "heading": "cost", "label": _NARROW},
        {**_REGRET, "title": "Needed and hidden in 16,000 tokens", "heading": "needs",
         "label": _NARROW},
        {**_REGRET, "title": "Requests over the window of 16,000",
         "heading": "requests over the window", "label": _NARROW},
        {**_RESEARCH, "title": "Supporting documents cited in 8,000 tokens, share"},
        {**_RESEARCH, "title": "Answers standing in 8,000 tokens, share", "part": 1},
        {**_PROXY, "section": "Speed", "title": "Proxy, known turn of 200 KB, ms added, p50",
         "row": "known turn, added ms, p50"},
        {**_PROXY, "section": "Speed", "title": "Proxy, first sight of 200 KB, ms added, p50",
         "row": "first sight, added ms, p50"},
        {**_PROXY, "section": "Speed", "title": "Proxy, requests of 10 KB a second",
         "row": "requests of 10 KB a second, best of 3", "more_is_better": True},
        {**_PROXY, "section": "Memory", "title": "Proxy, MB in the end",
         "row": "MB in the end"},
    )
)  # fmt: skip


def pages() -> dict[str, str]:
    """Return the page and its plots, by their names below docs/."""
    plots = {plot.file: drawn(plot.title, bars_of(plot, _table(plot))) for plot in PLOTS}
    return {FILE: _page(), **plots}


def stale() -> list[str]:
    """Which of these files are not what the tables say now."""
    return [
        name
        for name, text in pages().items()
        if not (file := ROOT / "docs" / name).exists() or file.read_text("utf-8") != text
    ]


def write() -> list[str]:
    """Write what is stale."""
    names = stale()
    made = pages() if names else {}
    for name in names:
        (ROOT / "docs" / name).write_text(made[name], "utf-8")
    return names


@cache
def _table(plot: Plot) -> Table:
    return table(plot.page, plot.heading, plot.label)


def bars_of(plot: Plot, source: Table) -> list[Bar]:
    """The bars of a plot; cells without a figure have none."""
    cells = source.row(plot.row) if plot.row else source.column(plot.heading)
    bars = []
    for name, cell in cells:
        value = number(cell, plot.part)
        if value is not None and not name.startswith(plot.skip or ("\0",)):
            ours = not plot.ours or name.startswith(plot.ours)
            bars.append(Bar(name, value, f"{value:,g}", ours))
    return bars


def losses(plot: Plot, bars: list[Bar]) -> list[str]:
    """Peers that are better than ours, in words."""
    sign = 1 if plot.more_is_better else -1
    return [
        f"{plot.title}: {peer.label} {peer.text}, ours {own.text}"
        for own in bars
        for peer in bars
        if own.ours and not peer.ours and sign * peer.value > sign * own.value
    ]


def _page() -> str:
    compared = {
        name: ratio for name, ratio in ratios.saved().items() if any(p in name for p in _PEERS)
    }
    peers = "".join(f"- {version.replace('==', ' ')}\n" for version in sorted(VERSIONS.values()))
    parts = [
        f"{NOTE}# Benchmarks\n",
        "Every figure comes from a table of the documentation, which explains how it was\n"
        "measured; its commit and day, from `benchmarks/figures.json`, are in brackets. *History*\n"
        "was not measured again since. Milliseconds are of one machine: run them on yours. The\n"
        "versions of other peers are given next to the tables.\n",
        "`make bench` runs the benchmarks and writes this page. The peers that it installs:\n\n"
        f"{peers}",
    ]
    section = ""
    for plot in PLOTS:
        if plot.section != section:
            section = plot.section
            parts.append(f"## {section}\n")
        name = plot.page.removeprefix("discussions/").removesuffix(".md")
        parts.append(
            f"![{plot.title}]({plot.file})\n\n"
            f"[How, and the whole table]({plot.page}): {name} ({_table(plot).origin()}); "
            f"`{plot.command}`\n"
        )
    parts += [_ratios(compared), _lost(compared)]
    return "\n".join(parts)


def _ratios(compared: dict[str, float]) -> str:
    records = figures.load()
    rows = "".join(f"| {name} | {ratio:,g} |\n" for name, ratio in sorted(compared.items()))
    return (
        "## Times a peer's speed\n\n"
        "From `benchmarks/ratios.json`: the peer's time over ours in one run, so that more is\n"
        "better and below 1 is slower. `make bench` fails where one falls by a third. Counting\n"
        f"({records['peers-count'].stamp()}) is compared by CPU time, by turns; the others\n"
        f"({records['peers-wire'].stamp()}) by the fastest run.\n\n"
        f"| | times |\n|---|--:|\n{rows}"
    )


def _lost(compared: dict[str, float]) -> str:
    lines = [line for plot in PLOTS for line in losses(plot, bars_of(plot, _table(plot)))]
    lines += [f"{name}: {ratio:,g} times its speed" for name, ratio in sorted(compared.items())
              if ratio < 1]  # fmt: skip
    return (
        "## Figures where a peer is better\n\n"
        "Every figure above in which a peer is ahead of us, regardless of its other figures:\n\n"
        + "".join(f"- {line}\n" for line in lines)
    )
