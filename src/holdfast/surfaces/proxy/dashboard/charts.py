"""Charts as SVG, drawn by hand: stacked bars, with their numbers as titles.

charts: after html. Colours and sizes of text come from the style sheet, by class.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.surfaces.proxy.dashboard.html import Html, div, element, li, span, ul

WIDTH, HEIGHT = 960, 240
LOW = 110
"""The height of a chart that accompanies another."""
_LEFT, _TOP, _BOTTOM = 68, 16, 24
_WIDEST = 40.0
_STEPS = 4
_EVEN = (1, 2, 3, 4, 5, 6, 8, 10)


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One bar: the numbers of its parts, from below."""

    label: str
    """Under the first and the last bar."""
    title: str
    """Read where the pointer rests, and by screen readers."""
    parts: tuple[int, ...]
    link: str = ""


def stacked(
    name: str,
    parts: Sequence[str],
    bars: Sequence[Bar],
    *,
    palette: str = "part",
    height: int = HEIGHT,
) -> Html:
    """A chart with its legend; every bar has as many numbers as there are parts."""
    top = even_top(max((sum(max(0, part) for part in bar.parts) for bar in bars), default=0))
    drawn = element(
        "svg",
        _grid(top, height),
        [_bar(bar, _place(n, len(bars)), top, palette, height) for n, bar in enumerate(bars)],
        _labels(bars, height),
        viewBox=f"0 0 {WIDTH} {height}",
        role="group",
        aria_label=name,
        class_="chart",
    )
    present = [n for n in range(len(parts)) if any(bar.parts[n] > 0 for bar in bars)]
    legend = [li(span(class_=f"key {palette}-{n}", aria_hidden="true"), parts[n]) for n in present]
    return div(drawn, ul(legend, class_="legend") if legend else None, class_="figure")


def even_top(most: int) -> int:
    """The least number that is not smaller and whose fourths are easily read."""
    power = 1
    while 10 * power * _STEPS < most:
        power *= 10
    # The labels of the lines are easy to read, and at most half of a chart stays empty.
    return next(step * power * _STEPS for step in _EVEN if step * power * _STEPS >= most)


def _place(n: int, of: int) -> tuple[float, float]:
    """Return the start and the width of the nth bar of `of`."""
    step = min(_WIDEST, (WIDTH - _LEFT) / of)
    return _LEFT + n * step, step


def _bar(bar: Bar, place: tuple[float, float], top: int, palette: str, height: int) -> Html:
    x, step = place
    room = height - _TOP - _BOTTOM
    drawn, below = [], 0.0
    for number, part in enumerate(bar.parts):
        tall = room * max(0, part) / top
        below += tall
        if tall > 0:
            drawn.append(
                element(
                    "rect",
                    x=f"{x + step * 0.1:.1f}",
                    y=f"{height - _BOTTOM - below:.1f}",
                    width=f"{step * 0.8:.1f}",
                    height=f"{tall:.1f}",
                    class_=f"{palette}-{number}",
                )
            )
    group = element("g", element("title", bar.title), drawn)
    if not bar.link:
        return group
    return element("a", group, href=bar.link, aria_label=bar.title)


def _grid(top: int, height: int) -> list[Html]:
    floor = height - _BOTTOM
    elements = []
    # In a low chart, lines would be closer together than their labels are high.
    for line in range(0, _STEPS + 1, 1 if height > LOW else 2):
        y = floor - (floor - _TOP) * line / _STEPS
        elements.append(
            element("line", x1=_LEFT, x2=WIDTH, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid")
        )
        text = element("text", _shortly(top * line // _STEPS), x=_LEFT - 8, y=f"{y + 4:.1f}",
                       text_anchor="end")  # fmt: skip
        elements.append(text)
    return elements


def _shortly(count: int) -> str:
    """A count at a line, short enough for the letters of a narrow screen: 1.5 k."""
    for least, sign in ((1_000_000, "M"), (1_000, "k")):
        if count >= least:
            return f"{count / least:,.10g}\u00a0{sign}"
    return str(count)


def _labels(bars: Sequence[Bar], height: int) -> list[Html]:
    if not bars:
        return []
    first = element("text", bars[0].label, x=_LEFT, y=height - 6)
    last_x, step = _place(len(bars) - 1, len(bars))
    end = last_x + step
    if end - _LEFT < 300:
        return [first]  # no room for two
    return [first, element("text", bars[-1].label, x=f"{end:.1f}", y=height - 6, text_anchor="end")]
