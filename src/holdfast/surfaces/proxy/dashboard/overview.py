"""The first page and the page of a session: totals, charts, warnings and lists.

overview: after layout. Values in, HTML out; nothing here asks the store.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.store.records import SessionRecord, UsageTotal
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.charts import Bar, stacked
from holdfast.surfaces.proxy.dashboard.html import Html, a, code, h2, li, p, pre, section, ul
from holdfast.surfaces.proxy.dashboard.layout import (
    clock,
    facts,
    figures,
    moment,
    money,
    number,
    page,
    pager,
    percent,
    remark,
    requests,
    savings,
    share,
    table,
)
from holdfast.surfaces.proxy.dashboard.views import (
    PARTS,
    SessionRow,
    Totals,
    TurnRow,
    totals,
)

_CURL = """\
curl {url}/v1/chat/completions -H 'content-type: application/json' \\
  -d '{{"model": "gpt-4o", "messages": [{{"role": "user", "content": "Hello?"}}]}}'"""
_DAY_PARTS = ("billed, from vendors' caches", "billed, new", "saved")


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What the first page shows."""

    url: str
    """Where the proxy is, for the example."""
    today: Totals
    ever: Totals
    days: Sequence[UsageTotal]
    refs: int = 0
    """Originals that were set aside."""
    damaged: int = 0
    """Of these, those that cannot be opened any more."""
    recent: Sequence[TurnRow]
    """The last requests of all sessions, in order."""
    warned: Sequence[TurnRow]
    sessions: Sequence[SessionRow]
    older: str = ""
    """Where the list of sessions goes on."""
    first: bool = True
    """The list begins with the newest session."""


def overview_page(shown: Overview) -> str:
    """The first page."""
    if not shown.sessions and shown.first:
        return page("Dashboard", _welcome(shown.url))
    return page(
        "Dashboard",
        figures("Today (UTC)", shown.today),
        figures("Overall", shown.ever),
        remark("Saved: tokens that clients asked with, less those billed over all calls, what "
               "models opened again included; the share is of the tokens asked. Money also counts "
               "what vendors' caches would have saved. A minus is a loss."),
        _set_aside(shown.refs, shown.damaged),
        _requests_chart(shown.recent),
        _days_chart(shown.days),
        _warnings(shown.warned),
        _sessions(shown),
    )  # fmt: skip


def _set_aside(refs: int, damaged: int) -> Html:
    """What became of that which was left out of requests."""
    fate = "and all can be opened."
    if damaged:
        fate = f"but {damaged:,} are damaged and cannot be: `holdfast store verify` names them."
    return remark(f"What was left out is stored: {refs:,} originals, {fate}")


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
        h2("Tokens by part, the last requests"),
        _parts_chart("Tokens of the last requests by part", recent),
        remark("The whole bar is what the client asked, or what was sent if that was more; calls "
               "that failed have none. What was left out is split by the edits made so far; it is "
               "stored, and models can open it."),
    )  # fmt: skip


def _parts_chart(name: str, rows: Sequence[TurnRow]) -> Html:
    return stacked(name, PARTS, [_bar(row) for row in rows])


def _bar(row: TurnRow) -> Bar:
    said = ", ".join(
        f"{name} {tokens:,}" for name, tokens in zip(PARTS, row.parts, strict=True) if tokens
    )
    return Bar(
        label=clock(row.turn.started_at),
        title=f"{row.session[:40]}, turn {row.turn.number}: {said}",
        parts=row.parts,
        link=links.turn(row.session, row.turn.number),
    )


def _days_chart(days: Sequence[UsageTotal]) -> Html | None:
    if len(days) < 2:
        return None
    bars = []
    for day in days:
        parts = (day.cached, day.input - day.cached, day.saved)  # a loss has a number, and no bar
        told = ", ".join(
            f"{name} {number(tokens)}" for name, tokens in zip(_DAY_PARTS, parts, strict=True)
        )
        bars.append(Bar(label=day.name, title=f"{day.name}: {told}", parts=parts))
    return section(h2("Tokens by day"), stacked("Tokens by day", _DAY_PARTS, bars))


def _warnings(rows: Sequence[TurnRow]) -> Html:
    if not rows:
        return section(h2("Budget warnings"), remark("None in the sessions last used."))
    cells = (
        (
            a(f"turn {row.turn.number}", href=links.turn(row.session, row.turn.number)),
            _session_link(row.session),
            "; ".join(row.turn.warnings),
            moment(row.turn.started_at),
        )
        for row in rows
    )
    columns = ("Turn", "Session", "Warning", "Time (UTC)")
    return section(
        h2("Budget warnings"), table("The newest first", columns, cells, words=(1, 2, 3))
    )


def _session_link(name: str, title: str = "") -> Html:
    return a(title or name, href=links.session(name), class_="name")


def _sessions(shown: Overview) -> Html:
    rows = [
        (
            _session_link(row.record.session, row.record.title),
            row.record.model,
            row.record.dialect,
            f"{row.record.turns:,}",
            number(row.totals.untouched),
            number(row.totals.billed),
            share(row.totals.saved, row.totals.untouched),
            money(row.totals.saved_cost),
            moment(row.record.updated_at),
        )
        for row in shown.sessions
    ]
    columns = (
        "Session", "Model", "Dialect", "Turns", "Tokens asked", "Tokens billed", "Tokens saved",
        "Money saved", "Used (UTC)",
    )  # fmt: skip
    newest = "" if shown.first else links.overview()
    return section(
        h2("Sessions"),
        table("Sessions, the last used first", columns, rows, words=(1, 2, 8)),
        pager(newest, shown.older, words=("Newest", "Older")),
    )


class SessionShown(msgspec.Struct, frozen=True, kw_only=True):
    """What the page of a session shows."""

    record: SessionRecord
    usage: Sequence[UsageTotal]
    rows: Sequence[TurnRow]
    """Some turns, in order."""
    newer: str = ""
    older: str = ""


def session_page(shown: SessionShown) -> str:
    """The page of a session: its turns, the newest first."""
    record, sums = shown.record, totals(shown.usage)
    known = (
        ("model", record.model),
        ("dialect", record.dialect),
        ("requests", requests(sums)),
        *savings(sums),
        ("opened by models", f"{sums.expansions:,}"),
        ("began (UTC)", moment(record.created_at)),
        ("state", "open" if record.closed_at is None else "closed"),
    )
    return page(
        f"Session {record.title or record.session}",
        facts(known),
        section(h2("Tokens by part"), _parts_chart("Tokens of the turns by part", shown.rows)),
        section(h2("Turns"), _turns(shown.rows)),
        pager(shown.newer, shown.older, words=("Newer turns", "Older turns")),
    )


def _turns(rows: Sequence[TurnRow]) -> Html:
    columns = (
        "Turn", "Time (UTC)", "Model", "Tokens asked", "Tokens billed", "Tokens saved",
        "Money saved", "Edits", "Opened", "Prefix kept", "ms", "Status", "Warnings",
    )  # fmt: skip
    cells = [
        (
            a(f"turn {row.turn.number}", href=links.turn(row.session, row.turn.number)),
            moment(row.turn.started_at),
            row.turn.model,
            number(row.turn.usage.untouched),
            number(row.turn.usage.input),
            share(row.turn.usage.saved, row.turn.usage.untouched),
            money(row.turn.usage.saved_cost),
            len(row.turn.edits),
            row.turn.usage.expansions,
            percent(row.turn.prefix_share, 1),
            f"{row.turn.milliseconds:,.0f}",
            row.turn.status or "none",
            "; ".join(row.turn.warnings),
        )
        for row in reversed(rows)
    ]
    return table("Turns, the newest first", columns, cells, words=(1, 2, 12))
