"""Charts as SVG, drawn by hand: stacked bars, with their numbers as titles.

charts: after html. Colours and sizes of text come from the style sheet, by class.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.surfaces.proxy.dashboard.html import Html, div, element, li, span, ul

WIDTH, HEIGHT = 960, 240
_LEFT, _TOP, _BOTTOM = 64, 10, 24
_WIDEST = 40.0
_STEPS = 4


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One bar: the numbers of its parts, from below."""

    label: str
    """Under the first and the last bar."""
    title: str
    """Read where the pointer rests, and by screen readers."""
    parts: tuple[int, ...]
    link: str = ""


def stacked(name: str, parts: Sequence[str], bars: Sequence[Bar], *, palette: str = "part") -> Html:
    """A chart with its legend; every bar has as many numbers as there are parts."""
    top = even_top(max((sum(max(0, part) for part in bar.parts) for bar in bars), default=0))
    drawn = element(
        "svg",
        _grid(top),
        [_bar(bar, n, len(bars), top, palette) for n, bar in enumerate(bars)],
        _labels(bars),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="group",
        aria_label=name,
        class_="chart",
    )
    present = [n for n in range(len(parts)) if any(bar.parts[n] > 0 for bar in bars)]
    legend = [li(span(class_=f"key {palette}-{n}", aria_hidden="true"), parts[n]) for n in present]
    return div(drawn, ul(legend, class_="legend") if legend else None, class_="figure")


def even_top(most: int) -> int:
    """The least number that is not smaller and whose fourths are easily read."""
    step = 1
    while step * _STEPS < most:
        # 1, 2, 5, 10, 20, 50, …: what stands at the lines is read at a glance.
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return step * _STEPS


def _bar(bar: Bar, n: int, of: int, top: int, palette: str) -> Html:
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
                    class_=f"{palette}-{number}",
                )
            )
    group = element("g", element("title", bar.title), drawn)
    if not bar.link:
        return group
    return element("a", group, href=bar.link, aria_label=bar.title)


def _grid(top: int) -> list[Html]:
    floor = HEIGHT - _BOTTOM
    elements = []
    for line in range(_STEPS + 1):
        y = floor - (floor - _TOP) * line / _STEPS
        elements.append(
            element("line", x1=_LEFT, x2=WIDTH, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid")
        )
        text = element("text", f"{top * line // _STEPS:,}", x=_LEFT - 8, y=f"{y + 4:.1f}",
                       text_anchor="end")  # fmt: skip
        elements.append(text)
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
