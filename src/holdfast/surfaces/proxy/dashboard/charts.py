"""Charts as SVG, drawn by hand: stacked bars, with their numbers as titles.

charts: after html. Colours and sizes of text come from the style sheet, by class.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.surfaces.proxy.dashboard.html import Html, div, element, li, span, ul

WIDTH, HEIGHT = 960, 220
_LEFT, _TOP, _BOTTOM = 64, 8, 22
_WIDEST = 40.0


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One bar: the numbers of its parts, from below."""

    label: str
    """Under the first and the last bar."""
    title: str
    """Read where the pointer rests, and by screen readers."""
    parts: tuple[int, ...]
    link: str = ""


def stacked(name: str, parts: Sequence[str], bars: Sequence[Bar]) -> Html:
    """A chart with its legend; every bar has as many numbers as there are parts."""
    top = max((sum(max(0, part) for part in bar.parts) for bar in bars), default=0) or 1
    drawn = element(
        "svg",
        _grid(top),
        [_bar(bar, n, len(bars), top) for n, bar in enumerate(bars)],
        _labels(bars),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="group",
        aria_label=name,
        class_="chart",
    )
    legend = [li(span(class_=f"key part-{n}", aria_hidden="true"), part)
              for n, part in enumerate(parts)]  # fmt: skip
    return div(drawn, ul(legend, class_="legend"), class_="figure")


def _bar(bar: Bar, n: int, of: int, top: int) -> Html:
    step = min(_WIDEST, (WIDTH - _LEFT) / of)
    x = _LEFT + n * step
    room = HEIGHT - _TOP - _BOTTOM
    drawn, below = [], 0.0
    for number, part in enumerate(bar.parts):
        height = room * max(0, part) / top
        below += height
        if height > 0:
            drawn.append(
                element(
                    "rect",
                    x=f"{x + step * 0.1:.1f}",
                    y=f"{HEIGHT - _BOTTOM - below:.1f}",
                    width=f"{step * 0.8:.1f}",
                    height=f"{height:.1f}",
                    class_=f"part-{number}",
                )
            )
    group = element("g", element("title", bar.title), drawn)
    return element("a", group, href=bar.link) if bar.link else group


def _grid(top: int) -> list[Html]:
    floor = HEIGHT - _BOTTOM
    elements = []
    for share in (0.0, 0.5, 1.0):
        y = floor - (floor - _TOP) * share
        elements.append(
            element("line", x1=_LEFT, x2=WIDTH, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid")
        )
        said = element("text", f"{round(top * share):,}", x=_LEFT - 8, y=f"{y + 4:.1f}",
                       text_anchor="end")  # fmt: skip
        elements.append(said)
    return elements


def _labels(bars: Sequence[Bar]) -> list[Html]:
    if not bars:
        return []
    step = min(_WIDEST, (WIDTH - _LEFT) / len(bars))
    first = element("text", bars[0].label, x=_LEFT, y=HEIGHT - 6)
    if len(bars) * step < 300:
        return [first]  # no room for two
    end = _LEFT + len(bars) * step
    return [first, element("text", bars[-1].label, x=f"{end:.1f}", y=HEIGHT - 6, text_anchor="end")]
