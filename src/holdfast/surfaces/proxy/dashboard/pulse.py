"""The live part of the first page: the three answers, and the list of requests.

The page and the stream of events render it with the same code.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.charts import LOW, Bar, stacked
from holdfast.surfaces.proxy.dashboard.html import (
    Html,
    a,
    div,
    element,
    h2,
    join,
    li,
    nav,
    p,
    section,
    span,
    ul,
)
from holdfast.surfaces.proxy.dashboard.layout import (
    change,
    clock,
    counted,
    facts,
    number,
    percent,
    saved_money,
    savings,
    session_link,
    short,
    turn_link,
)
from holdfast.surfaces.proxy.dashboard.trouble import Failures, status_word
from holdfast.surfaces.proxy.dashboard.views import PARTS, PERIODS, Totals, TurnRow
from holdfast.surfaces.proxy.report import about

_NAMES = {
    "today": "Today",
    "yesterday": "Yesterday",
    "week": "7 days",
    "month": "30 days",
    "all": "All time",
}
MOST_LIVE = 8


class Pulse(msgspec.Struct, frozen=True, kw_only=True):
    """The values that change while the page is open."""

    period: str = "all"
    totals: Totals = Totals()
    """Of the period."""
    sessions: int = 0
    """Over all time, as are the following fields."""
    refs: int = 0
    """Originals that were set aside."""
    damaged: int = 0
    """Number of these that cannot be opened any more."""
    size: int = 0
    """Bytes of all originals."""
    rows: Sequence[TurnRow] = ()
    """The last requests, the newest first."""
    failures: Failures = Failures()
    """Of the period."""


def three_answers(pulse: Pulse) -> Html:
    """Return the three answers about edits, savings and hidden contents."""
    return join([_periods(pulse.period), div(_saved(pulse.totals), _did(pulse), _hidden(pulse),
                                             class_="answers")])  # fmt: skip


def _periods(current: str) -> Html:
    items = [
        li(a(_NAMES[period], href=links.overview(period=period),
             aria_current="true" if period == current else None))
        for period in PERIODS
    ]  # fmt: skip
    return nav(ul(items), class_="periods", aria_label="Period (UTC)")


def _saved(sums: Totals) -> Html:
    spent = "saved" if sums.saved >= 0 else "more than without it"
    how = (
        *savings(sums),
        (
            "of it, opened again",
            f"{number(sums.expansion_tokens)} in {counted(sums.expansions, 'opening')}",
        ),
        (
            "read from vendors' caches",
            f"{number(sums.cached)} ({percent(sums.cached, sums.billed)})",
        ),
    )
    return section(
        h2("What did it save?"),
        p(span(about(sums.estimated) + short(sums.saved), class_="hero"), f" tokens {spent}"),
        p(" · ".join([f"{percent(sums.saved, sums.untouched)} of what clients asked",
                      *_money(sums)])),
        element(
            "details",
            element("summary", "How this is computed"),
            p("Saved are the tokens asked less the tokens billed over all calls; every share is "
              "a share of tokens asked. What models opened again is billed, so it is in "
              "it. Money also counts what the vendors' caches would have held without us. A minus "
              "is a loss."),
            facts(how),
        ),
        class_="answer",
    )  # fmt: skip


def _money(sums: Totals) -> list[str]:
    """Return the money saved; nothing for a period without requests, which has no prices."""
    if sums.cost or sums.saved_cost or sums.demo_cost:
        return [f"{saved_money(sums)} saved"]
    return ["no model here has a price"] if sums.requests else []


def _did(pulse: Pulse) -> Html:
    sums = pulse.totals
    return section(
        h2("What did it do?"),
        p(span(short(sums.requests), class_="hero"),
          " request" if sums.requests == 1 else " requests"),
        p(f"{about(sums.estimated)}{number(sums.untouched)} tokens asked", _apart(pulse)),
        p(f"Models opened {counted(sums.expansions, 'hidden part')}"),
        p(_lazy(sums)) if sums.lazy else None,
        p(a(counted(pulse.sessions, "session"), href=links.sessions()), " · ",
          a("CSV", href=links.export("csv")), " · ", a("JSON", href=links.export("json"))),
        class_="answer",
    )  # fmt: skip


def _lazy(sums: Totals) -> str:
    """Return the number of requests without tool schemas, and the result."""
    return (
        f"{number(sums.lazy_saved)} tokens of tool schemas set aside in {sums.lazy:,} requests; "
        f"{sums.lazy_calls:,} of {sums.tool_calls:,} tool calls were of these, after "
        f"{sums.tool_searches:,} searches"
    )


def _apart(pulse: Pulse) -> str:
    """Return how many requests failed, were refused, or were answered from memory."""
    sums, refused = pulse.totals, pulse.failures.refused_count
    counts = [f"{f'{sums.failed:,}' if sums.failed else 'none'} failed"]
    counts += [f"{refused:,} refused"] if refused else []
    counts += [f"{sums.answered:,} answered from memory"] if sums.answered else []
    return "".join(f" · {each}" for each in counts)


def _hidden(pulse: Pulse) -> Html:
    if pulse.damaged:
        fate = (f"{pulse.damaged:,} are damaged and cannot be opened: "
                "`holdfast store verify` names them.")  # fmt: skip
    else:
        fate = "All can be opened; nothing was lost."
    return section(
        h2("What is hidden?"),
        p(span(short(pulse.refs), class_="hero"),
          " original" if pulse.refs == 1 else " originals"),
        p(fate),
        p(a("Open them", href=links.refs()), " · ", a("Prove it", href=links.lost())),
        class_="answer",
    )  # fmt: skip


def live_list(pulse: Pulse) -> Html:
    """The last requests, the newest first."""
    return ul([_live(row) for row in pulse.rows[:MOST_LIVE]], aria_label="The last requests")


def _live(row: TurnRow) -> Html:
    turn, usage = row.turn, row.turn.usage
    state = "bad" if usage.failed else "warn" if turn.warnings else "good"
    # Colour alone conveys nothing to people who cannot distinguish it.
    warned = ", warned" if state == "warn" else ""
    return li(
        span(status_word(turn), warned, class_=f"state {state}", title="; ".join(turn.warnings)),
        element("time", clock(turn.started_at)),
        session_link(row.session, row.title, row.tenant),
        turn_link(row.session, turn.number, row.tenant),
        span(
            f"{about(usage.estimated)}{short(usage.untouched)} asked → "
            f"{about(usage.unreported)}{short(usage.input)} billed",
            class_="amount",
        ),
        span(change(usage.saved, usage.untouched), class_="amount"),
    )


def parts_chart(name: str, rows: Sequence[TurnRow]) -> Html:
    """Return requests as bars with their parts, and below each the hidden tokens.

    There are two charts, because a long session may hide a hundred times as much as it sends: on
    one scale the parts of the sent requests would be invisible.
    """
    bars = [_bar(row) for row in rows]
    visible_bars = [msgspec.structs.replace(bar, parts=(*bar.parts[:-1], 0)) for bar in bars]
    nothing = (0,) * (len(PARTS) - 1)
    # Only the upper bars are links: by the keyboard every request is one stop.
    hidden = [
        msgspec.structs.replace(bar, parts=(*nothing, bar.parts[-1]), link="") for bar in bars
    ]
    any_hidden = any(bar.parts[-1] for bar in hidden)
    below = stacked(f"{name}: hidden", PARTS, hidden, height=LOW)
    return join([stacked(f"{name}: sent", PARTS, visible_bars), below if any_hidden else None])


def _bar(row: TurnRow) -> Bar:
    label = ", ".join(
        f"{name} {tokens:,}" for name, tokens in zip(PARTS, row.parts, strict=True) if tokens
    )
    return Bar(
        label=clock(row.turn.started_at),
        title=f"{(row.title or row.session)[:40]}, turn {row.turn.number}: {label}",
        parts=row.parts,
        link=links.turn(row.session, row.turn.number, tenant=row.tenant),
    )
