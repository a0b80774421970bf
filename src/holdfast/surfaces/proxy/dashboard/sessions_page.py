"""The list of sessions with its search, and the page of one session.

sessions_page: after pulse, before overview. Values in, HTML out.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.store.records import SessionRecord, UsageTotal
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.frame import current
from holdfast.surfaces.proxy.dashboard.html import Html, a, element, h2, p, section
from holdfast.surfaces.proxy.dashboard.layout import (
    button,
    facts,
    moment,
    number,
    owner_cell,
    page,
    pager,
    percent,
    remark,
    requests,
    saved_money,
    savings,
    session_link,
    share,
    size,
    table,
    turn_link,
)
from holdfast.surfaces.proxy.dashboard.lost_page import Proof, proof_panel
from holdfast.surfaces.proxy.dashboard.pulse import parts_chart
from holdfast.surfaces.proxy.dashboard.trouble import status_word
from holdfast.surfaces.proxy.dashboard.views import SHOWN, SessionRow, TurnRow, totals
from holdfast.surfaces.proxy.report import about

_SHOWN_NAMES = {
    "all": "All",
    "failed": "With failures",
    "opened": "Something was opened",
    "loss": "Cost more than without",
    "side": "Side requests",
}


class SessionsShown(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the list of sessions."""

    rows: Sequence[SessionRow]
    words: str = ""
    show: str = "all"
    matches: int = 0
    """How many sessions there are to be shown, on all pages."""
    looked_at: int = 0
    newer: str = ""
    older: str = ""


def sessions_page(shown: SessionsShown) -> str:
    """The list of sessions."""
    summary = f"{shown.matches:,} of the {shown.looked_at:,} sessions last used."
    return page(
        "Sessions",
        search_form(shown.words, shown.show),
        remark(summary),
        _deletable(shown.rows) if shown.rows else p("No session is like that."),
        pager(shown.newer, shown.older, words=("Newer", "Older")),
        here="Sessions",
    )


def _deletable(rows: Sequence[SessionRow]) -> Html:
    """Return sessions with check boxes, and the button that deletes the selected ones."""
    return element(
        "form",
        sessions_table(rows, has_boxes=True),
        element(
            "details",
            element("summary", "Delete the checked sessions"),
            p("Their turns, and the originals that only they used, are gone then. There is no way "
              "back."),
            element("button", "Delete them for good", class_="danger"),
        ),
        method="post",
        action=links.delete_sessions(),
    )  # fmt: skip


def search_form(words: str = "", show: str = "all") -> Html:
    """Words to look for, and which sessions to show."""
    options = [
        element("option", _SHOWN_NAMES[name], value=name, selected=name == show) for name in SHOWN
    ]
    return element(
        "form",
        element("label", "Title, name or model",
                element("input", type="search", name="q", value=words, maxlength=200)),
        element("label", "Show", element("select", options, name="show")),
        element("button", "Search"),
        method="get",
        action=links.sessions(),
        role="search",
        aria_label="Search the sessions",
    )  # fmt: skip


def sessions_table(rows: Sequence[SessionRow], *, has_boxes: bool = False) -> Html:
    """Sessions, the last used first; with a check box each, if they can be chosen."""
    owned = any(row.tenant for row in rows)
    columns: tuple[str, ...] = (
        "Session", "Model", "Turns", "Side requests", "Tokens asked", "Tokens saved", "Money saved",
        "Failed", "Used (UTC)",
    )  # fmt: skip
    columns += (current().noun.title(),) if owned else ()
    cells = [_line(row, owned) for row in rows]
    if has_boxes:
        columns = (*columns, "Choose")
        cells = [(*line, _box(row)) for line, row in zip(cells, rows, strict=True)]
    return table("Sessions, the last used first", columns, cells, words=(1, 8, 9, 10))


def _box(row: SessionRow) -> Html:
    name = row.record.session
    return element(
        "input",
        type="checkbox",
        name="session",
        value=links.choice(name, row.tenant),
        aria_label=f"Choose {row.record.title or name}",
    )


def _line(row: SessionRow, owned: bool) -> tuple[Html | str, ...]:
    cells = (
        session_link(row.record.session, row.record.title, row.tenant),
        row.record.model,
        f"{row.turns:,}",
        number(row.side_requests),
        about(row.totals.estimated) + number(row.totals.untouched),
        about(row.totals.estimated) + share(row.totals.saved, row.totals.untouched),
        saved_money(row.totals),
        number(row.totals.failed),
        moment(row.record.updated_at),
    )
    return (*cells, owner_cell(row.owner)) if owned else cells


class Weight(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the last request, by its size."""

    index: int
    role: str
    kind: str
    size: int


class SessionShown(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page of a session."""

    record: SessionRecord
    usage: Sequence[UsageTotal]
    rows: Sequence[TurnRow]
    """Some turns, in order."""
    proof: Proof
    """Whether its last request can be rebuilt."""
    largest: Sequence[Weight] = ()
    """The messages that weigh most in the last request, as it was sent."""
    beside: Sequence[SessionRecord] = ()
    """Other sessions of the same client session, the last used first."""
    newer: str = ""
    older: str = ""


def session_page(shown: SessionShown) -> str:
    """The page of a session: its turns, the newest first."""
    record, sums = shown.record, totals(shown.usage)
    items = (
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
        remark("Its name is ", record.session, ".") if record.title else None,
        facts(items),
        proof_panel([shown.proof]),
        section(h2("Tokens by part"), parts_chart("Tokens of the turns by part", shown.rows)),
        section(h2("Turns"), _turns(shown.rows)),
        pager(shown.newer, shown.older, words=("Newer turns", "Older turns")),
        _largest(shown),
        _beside(shown.beside),
        _another_way(record),
        _keep_or_delete(record),
        crumbs=[("Sessions", links.sessions())],
        here="Sessions",
    )


def _beside(records: Sequence[SessionRecord]) -> Html | None:
    if not records:
        return None
    rows = [
        (
            session_link(record.session, record.title),
            record.purpose or ("subagent" if record.client_agent else "conversation"),
            number(record.turns),
            moment(record.updated_at),
        )
        for record in records
    ]
    columns = ("Session", "What it is", "Turns", "Used (UTC)")
    return section(
        h2("In the same session of the client"),
        table("Conversations and side requests, the last used first", columns, rows, words=(1, 3)),
    )


def _another_way(record: SessionRecord) -> Html:
    return section(
        h2("Would another setting have been better?"),
        p(a("Compare two settings", href=links.compare(record.session)),
          " on the requests of this session: tokens, cost, and what the model needed but could not "
          "see."),
    )  # fmt: skip


def _keep_or_delete(record: SessionRecord) -> Html:
    name = record.session
    return section(
        h2("Keep or delete"),
        p(a("Export as CSV", href=links.export("csv", name), download=True), " · ",
          a("Export as JSON", href=links.export("json", name), download=True)),
        element(
            "details",
            element("summary", "Delete this session"),
            p("Its turns, and the originals that only it used, are gone then. There is no way "
              "back."),
            button("Delete it for good", links.delete(name), class_="danger"),
        ),
    )  # fmt: skip


def _largest(shown: SessionShown) -> Html | None:
    if not shown.largest:
        return None
    name, last = shown.record.session, shown.record.turns
    rows = [
        (
            a(f"message {each.index}", href=links.message(name, last, "sent", each.index)),
            each.role,
            each.kind,
            size(each.size),
        )
        for each in shown.largest
    ]
    columns = ("Message", "Role", "What it is", "Size")
    return section(
        h2("Largest in the last request"),
        table("What the model saw, the largest first", columns, rows, words=(1, 2)),
    )


def _turns(rows: Sequence[TurnRow]) -> Html:
    columns: tuple[str, ...] = (
        "Turn", "Time (UTC)", "Tokens asked", "Tokens billed", "Tokens saved", "Money saved",
        "Edits", "Opened", "Prefix kept", "ms", "Status",
    )  # fmt: skip
    warned = any(row.turn.warnings for row in rows)
    cells = [
        (
            turn_link(row.session, row.turn.number),
            moment(row.turn.started_at),
            about(row.turn.usage.estimated) + number(row.turn.usage.untouched),
            about(row.turn.usage.unreported) + number(row.turn.usage.input),
            about(row.turn.usage.estimated) + share(row.turn.usage.saved, row.turn.usage.untouched),
            saved_money(row.turn.usage),
            len(row.turn.edits),
            row.turn.usage.expansions,
            percent(row.turn.prefix_share, 1),
            f"{row.turn.milliseconds:,.0f}",
            status_word(row.turn),
            *(["; ".join(row.turn.warnings)] if warned else []),
        )
        for row in reversed(rows)
    ]
    if warned:  # the table is wide enough without an empty column
        columns += ("Warnings",)
    return table("Turns, the newest first", columns, cells, words=(1, 10, 11))
