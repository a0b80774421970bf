"""A page of the menu where there are several tenants to be seen: what each sent, what that saved.

tenants_page: after layout, before pages. Values in, HTML out.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.html import a, h2, section
from holdfast.surfaces.proxy.dashboard.layout import (
    moment,
    number,
    page,
    remark,
    requests,
    saved_money,
    share,
    table,
)
from holdfast.surfaces.proxy.dashboard.views import TenantRow
from holdfast.surfaces.proxy.report import about

_COLUMNS = (
    "Tenant", "Sessions", "Requests", "Tokens asked", "Tokens billed", "Tokens saved",
    "Money saved", "Used (UTC)",
)  # fmt: skip


def tenants_page(rows: Sequence[TenantRow], count: int, here: str, path: str) -> str:
    """The tenants, who was there last first; each leads to the page of theirs at this path."""
    onward = path.rstrip("/")
    cells = [
        (
            a(row.name, href=links.tenant(row.name) + onward, class_="name"),
            f"{row.sessions:,}",
            requests(row.totals),
            number(row.totals.untouched),
            number(row.totals.billed),
            about(row.totals.estimated) + share(row.totals.saved, row.totals.untouched),
            saved_money(row.totals),
            moment(row.updated_at) if row.updated_at is not None else "never",
        )
        for row in rows
    ]
    more = f" The {len(rows):,} last used of {count:,} are shown." if count > len(rows) else ""
    return page(
        "Dashboard" if here == "Overview" else here,
        section(
            h2("Tenants"),
            remark("Requests with different keys share nothing: choose whose to see. A tenant's "
                   "name is a keyed hash of its key, which nobody can read back." + more),
            table("Tenants, the last used first", _COLUMNS, cells, words=(7,)),
        ),
        here=here,
    )  # fmt: skip
