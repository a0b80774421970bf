"""What all pages share: the frame around them, tables, and how numbers and times are written.

layout: after charts, before the pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.store.records import TurnUsage
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.frame import Frame, current
from holdfast.surfaces.proxy.dashboard.html import (
    Html,
    a,
    dd,
    div,
    dl,
    document,
    dt,
    element,
    h1,
    li,
    nav,
    p,
    td,
    th,
    tr,
    ul,
)
from holdfast.surfaces.proxy.dashboard.views import Totals
from holdfast.surfaces.proxy.report import about
from holdfast.surfaces.proxy.report import dollars as amount
from holdfast.surfaces.proxy.report import percent as share_in_percent

_DASH = "–"  # noqa: RUF001 a dash is a dash


def page(
    title: str,
    *body: Any,
    crumbs: Sequence[tuple[str, str]] = (),
    here: str = "",
    script: str = "",
) -> str:
    """A whole page; `crumbs` are the names and addresses of the pages above it.

    `here` is the page of the menu that it is, or that it belongs to.
    """
    frame = current()
    above = [li(a(name, href=link)) for name, link in (*_places(frame, here), *crumbs)]
    return document(
        title,
        a("Skip to the content", href="#content", class_="skip"),
        element(
            "header",
            nav(ul(_menu(frame, here)), aria_label="Main"),
            picker(frame, _PATHS.get(here, "")) if frame.choices else None,
            _log_out() if frame.logged_in else None,
        ),
        element(
            "main",
            nav(ul(above), class_="crumbs", aria_label="Pages above") if above else None,
            h1(title),
            *body,
            id="content",
            tabindex="-1",
        ),
        script=script,
    )


_PATHS = {
    "Overview": "",
    "Sessions": "/sessions",
    "Hidden": "/refs",
    "Tools": "/tools",
    "Lost": "/lost",
    "Accuracy": "/accuracy",
}
"""By entry of the menu, where its page is."""


def _places(frame: Frame, here: str) -> list[tuple[str, str]]:
    """Return the pages above all pages of a tenant, where there are several tenants."""
    if not (frame.tenant and frame.choices):
        return []
    above = [(frame.everything, "/")]
    return above if here == "Overview" else [*above, (frame.name, links.overview())]


def picker(frame: Frame, path: str) -> Html:
    """Return the list of tenants in the header; each leads to its page at the same path."""
    chosen = frame.name if frame.tenant else frame.everything
    entries = [(frame.everything, path or "/", not frame.tenant)] + [
        (choice.name, links.tenant(choice.tenant, path), choice.tenant == frame.tenant)
        for choice in frame.choices
    ]
    items = [
        li(a(name, href=link, aria_current="true" if is_chosen else None))
        for name, link, is_chosen in entries
    ]
    items.append(li(a(f"List {frame.count:,} {frame.noun}s", href=links.tenants())))
    return element(
        "details",
        element("summary", chosen, aria_label=f"Choose a {frame.noun}: {chosen}"),
        nav(ul(items), aria_label=f"{frame.noun.title()}s"),
        class_="picker",
    )


def _menu(frame: Frame, here: str) -> list[Html]:
    entries = [
        ("Overview", links.overview()),
        ("Sessions", links.sessions()),
        ("Hidden", links.refs()),
        ("Tools", links.tools()),
        ("Lost", links.lost()),
        ("Accuracy", links.accuracy()),
    ]
    if frame.sees_all:
        entries.append(("Settings", links.settings()))
    brand = li(a("Holdfast", href="/", class_="brand"))
    rest = [li(a(name, href=link, aria_current="page" if name == here else None))
            for name, link in entries]  # fmt: skip
    return [brand, *rest]


def _log_out() -> Html:
    # A form, not a link: a request that only reads must not end a session.
    return element("form", element("button", "Log out"), method="post", action="/logout")


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    words: Iterable[int] = (),
) -> Html:
    """A table; the first column names its row. Columns hold numbers unless they are in `words`."""
    left_columns = {0, *words}
    kind = ["" if n in left_columns else "number" for n in range(len(columns))]
    head = tr([th(name, scope="col", class_=kind[n] or None) for n, name in enumerate(columns)])
    body_rows = []
    for first, *rest in rows:
        cells = [
            td(cell, class_=kind[n] or None, data_label=columns[n])
            for n, cell in enumerate(rest, 1)
        ]
        body_rows.append(tr(th(first, scope="row"), cells))
    drawn = element(
        "table",
        element("caption", caption),
        element("thead", head),
        element("tbody", body_rows),
    )
    return div(drawn, class_="scroll", tabindex="0", role="region", aria_label=caption)


def facts(pairs: Iterable[tuple[str, Any]]) -> Html:
    """Return names and values as a list; each name has a tooltip with its meaning."""
    return dl(
        [div(dt(name, title=MEANINGS.get(name)), dd(value)) for name, value in pairs],
        class_="facts",
    )


MEANINGS = {
    "tokens asked": "Input tokens of the requests as clients asked, before anything was changed.",
    "tokens billed": "Input tokens over all calls of an answer, as providers report them, else as "
    "we count them: what models opened and read again is in it.",
    "tokens saved": "Tokens asked less tokens billed, and their share of tokens asked. A minus is "
    "a loss.",
    "cost": "Of all calls at list price, where prices are known. Nobody bills the offline model: "
    "what it answered is shown at the list price of the model asked for, as a demo.",
    "money saved": "What the requests would have cost as asked, under the same cache rules, less "
    "what they did cost. A minus is a loss. Only of models whose prices are known. An estimate has "
    "≈ in front of it.",
    "requests": "Those that failed have no answer: they save nothing, and cost what was reported. "
    "Those from memory went nowhere, and cost nothing.",
    "read from vendors' caches": "Of the tokens billed, and their share of these.",
    "start unchanged": "How much of a request stood at the start of the one before it, byte for "
    "byte: vendors' caches hold only that.",
}


def savings(sums: Totals) -> list[tuple[str, str]]:
    """Return the savings, with the same labels and numbers on every page."""
    return [
        ("tokens asked", about(sums.estimated) + number(sums.untouched)),
        ("tokens billed", about(sums.unreported) + number(sums.billed)),
        ("tokens saved", about(sums.estimated) + share(sums.saved, sums.untouched)),
        ("cost", cost(sums)),
        ("money saved", saved_money(sums)),
    ]


def cost(figures: Totals | TurnUsage) -> str:
    """What requests cost; where the offline model answered, their list price as a demo."""
    if figures.demo_cost and not figures.cost:
        return f"≈ {money(figures.demo_cost)} at list price (demo)"
    return about(figures.unreported) + money(figures.cost)


def saved_money(figures: Totals | TurnUsage) -> str:
    """What requests saved; of the offline model's answers at list price, as a demo."""
    if figures.demo_cost and not (figures.cost or figures.saved_cost):
        return f"≈ {money(figures.demo_saved_cost)} at list price (demo)"
    return about(figures.assumed) + money(figures.saved_cost)


def counted(count: int, what: str) -> str:
    """A count of something: 1 part, 2 parts."""
    return f"{number(count)} {what}{'' if count == 1 else 's'}"


def change(saved: int, asked: int) -> str:
    """Return the change of a request's tokens; "-" before a saving would be misread."""
    return f"{percent(abs(saved), asked)} {'saved' if saved >= 0 else 'more'}"


def requests(sums: Totals) -> str:
    """How many requests, how many of them failed, and how many were answered from memory."""
    apart = {"failed": sums.failed, "from memory": sums.answered}
    counts_text = ", ".join(f"{count:,} {what}" for what, count in apart.items() if count)
    return f"{sums.requests:,}" + (f" ({counts_text})" if counts_text else "")


def pager(before: str, after: str, *, words: tuple[str, str] = ("Previous", "Next")) -> Html | None:
    """Links to the pages before and after, where there are any."""
    if not before and not after:
        return None
    links = [
        before and a(words[0], href=before, rel="prev"),
        after and a(words[1], href=after, rel="next"),
    ]
    return nav(links, class_="pager", aria_label=f"{words[0]}, {words[1].lower()}")


def remark(*what: Any) -> Html:
    """A line of explanation."""
    return p(*what, class_="remark")


def ref_link(ref: str, tenant: str = "") -> Html:
    """A ref that can be opened."""
    return a(ref, href=links.ref(ref, tenant=tenant), class_="ref")


def moment(at: float) -> Html:
    """A time, to the second, in UTC."""
    when = _when(at)
    text = f"{when:%Y-%m-%d %H:%M:%S}"
    return element("time", text, datetime=f"{when:%Y-%m-%dT%H:%M:%SZ}")


def clock(at: float) -> str:
    """A time of the day, in UTC."""
    return f"{_when(at):%H:%M:%S}"


def day(at: float) -> str:
    """The day of a time, as the store names it."""
    return f"{_when(at):%Y-%m-%d}"


def _when(at: float) -> datetime:
    return datetime.fromtimestamp(min(max(at, 0.0), 4e9), UTC)


def percent(part: float, whole: float) -> str:
    """A share; a dash where there is nothing to be a share of."""
    return f"{_minus(share_in_percent(part, whole))}\u00a0%" if whole else _DASH


def number(count: int) -> str:
    """A count; a loss has a minus."""
    return _minus(f"{count:,}")


def share(part: int, whole: int) -> str:
    """A count, and its share of another."""
    return f"{number(part)} ({percent(part, whole)})"


def _minus(written: str) -> str:
    return written.replace("-", "−")  # noqa: RUF001 as numbers are written


def money(dollars: float | None) -> str:
    """An amount in US dollars; a dash if it is not known."""
    if dollars is None:
        return _DASH
    sign = "−" if dollars < 0 else ""  # noqa: RUF001 as numbers are written
    return f"{sign}${amount(dollars)}"


def short(count: int) -> str:
    """A count that is read at a glance: 225 k."""
    for least, sign in ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k")):
        if abs(count) >= least:
            digits = 1 if abs(count) < 10 * least else 0
            return _minus(f"{count / least:.{digits}f}\u00a0{sign}")
    return _minus(str(count))


def owner_cell(name: str) -> Html:
    """Return a tenant's display name, in one line if there is room."""
    return element("span", name, class_="owner")


def session_link(name: str, title: str = "", tenant: str = "") -> Html:
    """A session, by its title if it has one."""
    return a(title or name, href=links.session(name, tenant=tenant), class_="name")


def turn_link(name: str, number: int, tenant: str = "") -> Html:
    """A turn of a session."""
    return a(f"turn {number}", href=links.turn(name, number, tenant=tenant))


def button(text: str, action: str, fields: Iterable[tuple[str, str]] = (), **how: Any) -> Html:
    """Return a form with only a button: a request that only reads must not change anything."""
    hidden = [element("input", type="hidden", name=name, value=value) for name, value in fields]
    return element(
        "form", hidden, element("button", text, **how), method="post", action=action, class_="act"
    )


def size(count: int) -> str:
    """A number of bytes."""
    if count < 1000:
        return f"{count} bytes"
    return f"{count / 1000:,.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:,.1f} MB"
