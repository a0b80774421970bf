"""The page of a ref: the facts about a stored content, and the requested part of it.

Values in, HTML out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from holdfast.expand import Expansion
from holdfast.store.records import RefInfo
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.frame import current
from holdfast.surfaces.proxy.dashboard.html import (
    Html,
    a,
    div,
    element,
    h2,
    p,
    pre,
    section,
    strong,
)
from holdfast.surfaces.proxy.dashboard.layout import (
    facts,
    moment,
    owner_cell,
    page,
    pager,
    ref_link,
    remark,
    size,
    table,
)
from holdfast.surfaces.proxy.dashboard.views import RefRow

_FIELDS = (
    ("query", "Question", "What failed?"),
    ("lines", "Lines", "40-120"),
    ("path", "JSON path", "$.items[3]"),
)
_MOST_CITATION = 8_000
_MOST_SUMMARY = 120


class RefsShown(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the list of hidden contents."""

    refs: Sequence[RefRow]
    kinds: Mapping[str, int]
    """By kind, how many there are."""
    kind: str = ""
    """Only this one."""
    newest: str = ""
    older: str = ""


def refs_page(shown: RefsShown) -> str:
    """All that is hidden and can be opened, the newest first."""
    options = [element("option", "All kinds", value="")] + [
        element("option", f"{kind} ({count:,})", value=kind, selected=kind == shown.kind)
        for kind, count in sorted(shown.kinds.items())
    ]
    owned = any(row.tenant for row in shown.refs)
    rows = [_line(row, owned) for row in shown.refs]
    columns: tuple[str, ...] = (
        "Original",
        "Tool",
        "What it is",
        "Tokens",
        "Opened",
        "State",
        "Stored (UTC)",
    )
    columns += (current().noun.title(),) if owned else ()
    return page(
        "What is hidden and can be opened",
        element(
            "form",
            element("label", "Kind", element("select", options, name="kind")),
            element("button", "Show"),
            method="get",
            action=links.refs(),
            aria_label="Choose a kind",
        ),
        table("Originals, the newest first", columns, rows, words=(1, 2, 5, 6, 7))
        if rows
        else remark("Nothing was hidden yet."),
        pager(shown.newest, shown.older, words=("Newest", "Older")),
        here="Hidden",
    )


def _line(row: RefRow, owned: bool) -> tuple[Html | str, ...]:
    info = row.info
    cells = (
        ref_link(info.ref_id, row.tenant),
        info.meta.get("tool", ""),
        f"holds {', '.join(info.flags)}" if info.flags else info.summary[:_MOST_SUMMARY],
        f"{info.tokens:,}",
        f"{info.accesses:,}",
        info.state,
        moment(info.created_at),
    )
    return (*cells, owner_cell(row.owner)) if owned else cells


class ContentShown(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page of a ref."""

    info: RefInfo
    options: Mapping[str, str]
    """The requested options, as written."""
    page: int
    opened: Expansion | None = None
    """None if the text is not to be shown yet, or the request for it is refused."""
    refused: str = ""
    shown: bool = True
    """False while the reader has not asked for a text that holds secrets or personal data."""


def content_page(shown: ContentShown) -> str:
    """The page of a ref."""
    info = shown.info
    notice = _notice(shown) if info.flags else None
    if not shown.shown:
        return page(info.ref_id, _known(info), notice, here="Hidden")
    summary = remark(info.summary) if info.summary else None
    return page(
        info.ref_id,
        summary,
        _content(shown, notice),
        _citation(info),
        _known(info),
        here="Hidden",
    )


def _known(info: RefInfo) -> Html:
    never = "never"
    items = facts(
        (
            ("kind", info.kind),
            ("state", info.state),
            ("size", size(info.size)),
            ("tokens", f"{info.tokens:,}"),
            *((name, value[:500]) for name, value in sorted(info.meta.items())[:20]),
            ("flags", ", ".join(info.flags) or "none"),
            ("stored (UTC)", moment(info.created_at)),
            ("stale from (UTC)", moment(info.expires_at) if info.expires_at else never),
            ("opened", f"{info.accesses:,} times"),
        )
    )
    return section(h2("What is known of it"), items)


def _notice(shown: ContentShown) -> Html:
    kinds = ", ".join(shown.info.flags)
    link = links.ref(shown.info.ref_id, **shown.options, page=shown.page, show="yes")
    return div(
        p(strong("Careful: "), f"this content holds {kinds}."),
        None if shown.shown else p(a("Show it all the same", href=link)),
        class_="notice",
        role="note",
    )


def _citation(info: RefInfo) -> Html | None:
    if not info.compressed:
        return None
    cut = info.compressed[:_MOST_CITATION]
    more = " …" if len(info.compressed) > len(cut) else ""
    return section(h2("The citation in its place"), pre(cut, more, tabindex="0"))


def _content(shown: ContentShown, notice: Html | None) -> Html:
    info = shown.info
    if info.state in ("removed", "damaged"):
        return section(h2("The original"), remark("It cannot be opened: it is ", info.state, "."))
    return section(
        h2("The original"),
        notice,
        _form(shown),
        p(a("Download the very bytes", href=links.raw(info.ref_id), download=True)),
        remark("SHA-256 ", info.sha256),
        p(shown.refused, class_="notice", role="alert") if shown.refused else None,
        _part(shown) if shown.opened is not None else None,
    )


def _form(shown: ContentShown) -> Html:
    fields = [
        element(
            "label",
            label,
            element("input", name=name, value=shown.options.get(name, ""), placeholder=hint,
                    autocomplete="off", maxlength=500),
        )
        for name, label, hint in _FIELDS
    ]  # fmt: skip
    if shown.info.flags:
        fields.append(element("input", type="hidden", name="show", value="yes"))
    return element(
        "form",
        fields,
        element("button", "Open"),
        method="get",
        action=links.ref(shown.info.ref_id),
        aria_label="Open a part of the content",
    )


def _part(shown: ContentShown) -> Html | None:
    opened = shown.opened
    if opened is None:
        return None
    if opened.reason:
        return p(opened.text, class_="notice", role="status")

    def at(number: int) -> str:
        agreed = {"show": "yes"} if shown.info.flags else {}
        return links.ref(shown.info.ref_id, **shown.options, **agreed, page=number)

    remaining = f"; {opened.remaining:,} {opened.unit} remain" if opened.remaining else ""
    return div(
        remark(f"{opened.where or 'all of it'}, page {shown.page:,}{remaining}."),
        pre(opened.content, tabindex="0"),
        pager(
            at(shown.page - 1) if shown.page > 1 else "",
            at(shown.page + 1) if opened.next is not None else "",
        ),
    )
