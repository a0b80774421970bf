"""The first page: the edits, the savings, and the hidden contents that can be opened.

Values in, HTML out; nothing here reads the store.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.store.queue import Depth
from holdfast.store.records import RefInfo, UsageTotal
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.charts import Bar, stacked
from holdfast.surfaces.proxy.dashboard.frame import current
from holdfast.surfaces.proxy.dashboard.html import (
    Html,
    a,
    code,
    div,
    element,
    h2,
    li,
    p,
    pre,
    section,
    ul,
)
from holdfast.surfaces.proxy.dashboard.layout import (
    facts,
    moment,
    number,
    page,
    percent,
    ref_link,
    remark,
    session_link,
    table,
    turn_link,
)
from holdfast.surfaces.proxy.dashboard.pulse import Pulse, live_list, parts_chart, three_answers
from holdfast.surfaces.proxy.dashboard.sessions_page import search_form, sessions_table
from holdfast.surfaces.proxy.dashboard.tenants_page import tenants_section
from holdfast.surfaces.proxy.dashboard.trouble import failures_section
from holdfast.surfaces.proxy.dashboard.views import (
    KindRow,
    RefRow,
    SessionRow,
    TenantRow,
    TurnRow,
)

_CURL = """\
curl {url}/v1/chat/completions -H 'content-type: application/json' \\
  -d '{{"model": "gpt-4o", "messages": [{{"role": "user", "content": "Hello?"}}]}}'"""
_DAY_PARTS = ("billed, from vendors' caches", "billed, new", "saved")
_MOST_SUMMARY = 90


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the first page."""

    url: str
    """Where the proxy is, for the example."""
    pulse: Pulse
    days: Sequence[UsageTotal]
    recent: Sequence[TurnRow] = ()
    """The last requests of all sessions, in order."""
    warned: Sequence[TurnRow] = ()
    sessions: Sequence[SessionRow] = ()
    largest: Sequence[RefRow] = ()
    kinds: Sequence[KindRow] = ()
    queue: Sequence[Depth] | None = None
    """Work in the background of all tenants; None for people who see only one."""
    tenants: Sequence[TenantRow] = ()
    """The tenants last used, where there are several."""


def overview_page(shown: Overview) -> str:
    """The first page."""
    if not shown.sessions:
        failures = shown.pulse.failures
        failures_part = failures_section(failures) if failures.refused_count else None
        return page(_title(), _welcome(shown.url), failures_part, here="Overview")
    return page(
        _title(),
        div(three_answers(shown.pulse), id="answers"),
        section(
            h2("Live"),
            div(live_list(shown.pulse), id="live", class_="live", data_live=links.live()),
        ),
        tenants_section(shown.tenants) if shown.tenants else None,
        _requests_chart(shown.recent),
        div(_contributors(shown.largest), _kinds(shown.kinds), class_="pair"),
        div(_rates(shown), None if shown.queue is None else _queue(shown.queue), class_="pair"),
        div(failures_section(shown.pulse.failures), id="failures"),
        _warnings(shown.warned),
        _days_chart(shown.days),
        _sessions(shown.sessions),
        here="Overview",
        script="/static/live.js",
    )


def _title() -> str:
    frame = current()
    return frame.name if frame.tenant and frame.choices else "Dashboard"


def _welcome(url: str) -> Html:
    return section(
        h2("Nothing was sent yet"),
        p("This page shows what clients sent, what the models saw instead, and what that saved. "
          "Send a first request; without an upstream it needs no key:"),
        pre(code(_CURL.format(url=url)), class_="example", tabindex="0"),
        p("Or let a client of yours use the proxy, and load this page again:"),
        ul(
            li("OpenAI: ", code(f"export OPENAI_BASE_URL={url}/v1")),
            li("Anthropic: ", code(f"export ANTHROPIC_BASE_URL={url}")),
            li("Gemini: ", code(f"export GOOGLE_GEMINI_BASE_URL={url}")),
        ),
    )  # fmt: skip


def _requests_chart(recent: Sequence[TurnRow]) -> Html | None:
    if not recent:
        return None
    return section(
        h2("Tokens over time, by part"),
        parts_chart("Tokens of the last requests by part", recent),
        remark("Above: what was sent, a bar for each request, which leads to it. Below it, on a "
               "scale of its own: what the client asked beyond that; it is stored and can be "
               "opened. Messages share their tokens by their bytes."),
    )  # fmt: skip


def _contributors(largest: Sequence[RefRow]) -> Html:
    rows = [
        (
            ref_link(row.info.ref_id, row.tenant),
            _about(row.info),
            number(row.info.tokens),
            number(row.info.accesses),
        )
        for row in largest
    ]
    if not rows:
        return section(h2("Largest contributors"), remark("Nothing was large enough to be hidden."))
    columns = ("Original", "What it is", "Tokens", "Opened")
    return section(
        h2("Largest contributors"),
        table("The ten largest contents that stand behind refs", columns, rows, words=(1,)),
        p(a("All that is hidden", href=links.refs())),
    )


def _about(info: RefInfo) -> str:
    """Return a description of a content: its source, and its own title."""
    if info.flags:
        return f"{info.meta.get('tool', info.kind)}: holds {', '.join(info.flags)}"
    description = info.summary or info.kind
    cut = description if len(description) <= _MOST_SUMMARY else f"{description[:_MOST_SUMMARY]} …"
    return f"{info.meta['tool']}: {cut}" if info.meta.get("tool") else cut


def _kinds(kinds: Sequence[KindRow]) -> Html:
    if not kinds:
        return section(h2("Compression by kind"), remark("Nothing was cited yet."))
    rows = [
        (
            row.kind,
            number(row.contents),
            number(row.from_tokens),
            number(row.to_tokens),
            percent(row.from_tokens - row.to_tokens, row.from_tokens),
            percent(row.opened, row.contents),
        )
        for row in kinds
    ]
    columns = ("Kind", "Contents", "Tokens", "Cited as", "Smaller by", "Opened")
    return section(h2("Compression by kind"), table("Of what was stored last", columns, rows))


def _rates(shown: Overview) -> Html:
    sums = shown.pulse.totals
    turns = [row.turn for row in shown.recent if not row.turn.usage.failed]
    prefix_shares = sum(turn.prefix_share for turn in turns)
    opened, contents = sum(row.opened for row in shown.kinds), sum(k.contents for k in shown.kinds)
    return section(
        h2("Hit rates"),
        facts(
            (
                ("read from vendors' caches", percent(sums.cached, sums.billed)),
                ("start unchanged", percent(prefix_shares, len(turns))),
                ("answered from memory", percent(sums.answered, sums.requests)),
                ("citations opened", percent(opened, contents)),
            )
        ),
    )


def _queue(depths: Sequence[Depth]) -> Html:
    if not depths:
        return section(h2("Queue"), remark("Empty: no work waits in the background."))
    rows = [
        (depth.kind, depth.state, number(depth.jobs), f"{depth.waiting_seconds:,.0f} s")
        for depth in depths
    ]
    columns = ("Job", "State", "Jobs", "Waiting")
    return section(h2("Queue"), table("Work in the background", columns, rows, words=(1,)))


def _warnings(rows: Sequence[TurnRow]) -> Html:
    if not rows:
        return section(h2("Warnings"), remark("None in this period, in the sessions last used."))
    cells = (
        (
            turn_link(row.session, row.turn.number, row.tenant),
            session_link(row.session, row.title, row.tenant),
            "; ".join(row.turn.warnings),
            moment(row.turn.started_at),
        )
        for row in rows
    )
    columns = ("Turn", "Session", "Warning", "Time (UTC)")
    return section(
        h2("Warnings"), table("Warnings, the newest first", columns, cells, words=(1, 2, 3))
    )


def _days_chart(days: Sequence[UsageTotal]) -> Html | None:
    if len(days) < 2:
        return None
    bars = []
    for day in days:
        parts = (day.cached, day.input - day.cached, day.saved)  # a loss has a number, and no bar
        label = ", ".join(
            f"{name} {number(tokens)}" for name, tokens in zip(_DAY_PARTS, parts, strict=True)
        )
        bars.append(Bar(label=day.name, title=f"{day.name}: {label}", parts=parts))
    return section(h2("Tokens by day"), stacked("Tokens by day", _DAY_PARTS, bars, palette="day"))


def _sessions(rows: Sequence[SessionRow]) -> Html:
    return section(
        h2("Sessions"),
        search_form(),
        sessions_table(rows),
        element("p", a("All sessions", href=links.sessions())),
    )
