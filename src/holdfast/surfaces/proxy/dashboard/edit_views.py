"""The edits of a turn: what each did, from how much to how much, why, and how to undo it.

editing: after inspection, before inspector. Values in, HTML out. Places are the client's: messages
are counted from 0, as it sent them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.engine.put_back import PutBack
from holdfast.fitting.restore import HIDING
from holdfast.store.records import Edit
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.html import (
    Html,
    a,
    div,
    element,
    h2,
    join,
    li,
    p,
    section,
    span,
    strong,
    ul,
)
from holdfast.surfaces.proxy.dashboard.layout import button, number, percent, ref_link, remark
from holdfast.surfaces.proxy.dashboard.views import Explanation

_MOST_EDITS = 200

Wishes = Mapping[str, PutBack]
"""The contents that people put back, by ref."""


def edits_section(
    session: str, turn: int, edits: Sequence[Edit], wishes: Wishes, places: Mapping[int, str]
) -> Html:
    """The edits of one turn; `places` are the addresses of the client's messages on the page."""
    if not edits:
        return section(h2("Edits of this turn"), remark("Nothing new was changed in this turn."))
    items = [
        li(
            p(strong(edit.action), " · ", _where(edit, places)),
            p(f"{number(edit.from_tokens)} → {number(edit.to_tokens)} tokens", _smaller(edit),
              class_="change") if edit.from_tokens or edit.to_tokens else None,
            p(edit.what, ": " if edit.what else "", edit.why),
            p(span("Original: ", class_="quiet"), ref_link(edit.ref_id)) if edit.ref_id else None,
            put_back_form(session, turn, edit, wishes),
        )
        for edit in edits[:_MOST_EDITS]
    ]  # fmt: skip
    more = len(edits) - _MOST_EDITS
    return section(
        h2("Edits of this turn"),
        ul(items, class_="edits"),
        remark(f"And {more:,} more.") if more > 0 else None,
    )


def _where(edit: Edit, places: Mapping[int, str]) -> Html | str:
    return a(edit.where, href=places[edit.start]) if edit.start in places else edit.where


def _smaller(edit: Edit) -> str:
    if not edit.from_tokens or edit.to_tokens >= edit.from_tokens:
        return ""
    return f" ({percent(edit.from_tokens - edit.to_tokens, edit.from_tokens)} smaller)"


def put_back_form(session: str, turn: int, edit: Edit, wishes: Wishes) -> Html | None:
    """Return the form that puts a content back, and the result of an earlier one."""
    ref = edit.ref_id
    if not ref or edit.action not in HIDING:
        return None
    wish = wishes.get(ref)
    where = [("ref", ref), ("turn", str(turn))]
    if wish is not None and wish.whole:
        return div(
            span("Put back: it is whole from the next request on. ", role="status"),
            button("Let it be hidden again", links.put_back(session), [*where, ("whole", "no")]),
            class_="wish",
        )
    failed = f"It was put back, but {wish.why}. " if wish is not None and wish.why else ""
    name = f"Put back {ref}"
    return div(
        span(failed) if failed else None,
        button("Put back", links.put_back(session), where, aria_label=name, title=name),
        class_="wish",
    )


def reasons(session: str, turn: int, edits: Sequence[Explanation], wishes: Wishes) -> Html | None:
    """Return the reasons for the edits of a message, shown next to it."""
    if not edits:
        return None
    return ul(
        [
            li(
                strong(each.edit.action),
                f" in turn {each.turn}: {each.edit.why}; {each.edit.where}, "
                f"{each.edit.from_tokens:,} → {each.edit.to_tokens:,} tokens. ",
                join([ref_link(each.edit.ref_id), put_back_form(session, turn, each.edit, wishes)])
                if each.edit.ref_id
                else None,
            )
            for each in edits
        ],
        class_="reasons",
    )


def details(summary: str, *inside: object, **how: str) -> Html:
    """Something that opens on a click."""
    return element("details", element("summary", summary, **how), *inside)
