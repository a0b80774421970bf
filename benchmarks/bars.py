"""Bars as SVG: small, readable in light and dark, without a plotting library or a script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import msgspec

WIDTH = 720
_LABEL, _VALUE, _ROW, _TOP = 250, 80, 26, 34
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#222}.title{font-weight:600}"
    ".ours{fill:#0b6e4f}.peer{fill:#9aa5b1}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e6e6}.ours{fill:#3fb68b}.peer{fill:#697586}}"
)


class Bar(msgspec.Struct, frozen=True):
    """One bar: whose it is, how long, and what is written at its end."""

    label: str
    value: float
    text: str
    ours: bool


def drawn(title: str, bars: Sequence[Bar]) -> str:
    """The bars below each other; the longest fills the width."""
    longest = max((bar.value for bar in bars), default=0.0) or 1.0
    height = _TOP + _ROW * len(bars) + 6
    label = escape(f"{title}: " + "; ".join(f"{bar.label} {bar.text}" for bar in bars))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{label}">',
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="4" y="20">{escape(title)}</text>',
    ]
    for n, bar in enumerate(bars):
        top = _TOP + _ROW * n
        length = max(1.0, (WIDTH - _LABEL - _VALUE) * bar.value / longest)
        parts += [
            f'<text x="{_LABEL - 8}" y="{top + 15}" text-anchor="end">{escape(bar.label)}</text>',
            f'<rect class="{"ours" if bar.ours else "peer"}" x="{_LABEL}" y="{top}" '
            f'width="{length:.1f}" height="20" rx="2"/>',
            f'<text x="{_LABEL + length + 6:.1f}" y="{top + 15}">{escape(bar.text)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
