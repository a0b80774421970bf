"""The list of tenants: what each sent, and what that saved.

tenants_page: after layout, before overview and pages. Values in, HTML out.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.frame import current
from holdfast.surfaces.proxy.dashboard.html import Html, a, h2, li, p, section, ul
from holdfast.surfaces.proxy.dashboard.layout import (
    moment,
    number,
    page,
    pager,
    remark,
    requests,
    saved_money,
    share,
    table,
)
from holdfast.surfaces.proxy.dashboard.views import TenantRow
from holdfast.surfaces.proxy.report import about

_COLUMNS = (
    "Sessions", "Requests", "Tokens asked", "Tokens billed", "Tokens saved", "Money saved",
    "Used (UTC)",
)  # fmt: skip


class TenantsShown(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the list of tenants."""

    rows: Sequence[TenantRow]
    newer: str = ""
    older: str = ""


def tenants_page(shown: TenantsShown) -> str:
    """Return the list of tenants, the last used first."""
    frame = current()
    return page(
        frame.everything,
        _table(shown.rows),
        pager(shown.newer, shown.older, words=("Newer", "Older")),
        _about_names(),
        crumbs=[("Overview", "/")],
    )


def tenants_section(rows: Sequence[TenantRow]) -> Html:
    """Return the section of the first page: the tenants last used."""
    frame = current()
    more = f"{frame.everything} ({frame.count:,})" if frame.count > len(rows) else frame.everything
    return section(h2(f"{frame.noun.title()}s"), _table(rows), p(a(more, href=links.tenants())))


def _table(rows: Sequence[TenantRow]) -> Html:
    noun = current().noun
    cells = [
        (
            a(row.name, href=links.tenant(row.tenant), class_="name"),
            f"{row.sessions:,}",
            requests(row.totals),
            about(row.totals.estimated) + number(row.totals.untouched),
            about(row.totals.unreported) + number(row.totals.billed),
            about(row.totals.estimated) + share(row.totals.saved, row.totals.untouched),
            saved_money(row.totals),
            moment(row.updated_at) if row.updated_at is not None else "never",
        )
        for row in rows
    ]
    columns = (noun.title(), *_COLUMNS)
    return table(f"{noun.title()}s, the last used first", columns, cells, words=(7,))


def _about_names() -> Html:
    if current().is_personal:
        return remark(
            "Requests with different keys share nothing. Of a key, the last four characters are "
            "stored, and a keyed hash that tells it from others."
        )
    return remark(
        "Tenants share nothing. One without a name of its own is called by a keyed hash of its "
        "key; nothing of the key is stored."
    )


def choice_page(what: str, names: Sequence[tuple[str, str]]) -> str:
    """Return a page for an address that several tenants have; `names` have links to each."""
    return page(
        f"Several {current().noun}s have this {what}",
        p("Choose one:"),
        ul([li(a(name, href=link)) for name, link in names]),
    )
