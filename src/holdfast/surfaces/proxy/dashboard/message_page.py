"""The page of one message in full, a part at a time.

message_page: after inspector. Values in, HTML out.
"""

from __future__ import annotations

import msgspec

from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.html import pre
from holdfast.surfaces.proxy.dashboard.inspection import CLIENT, MessageExcerpt
from holdfast.surfaces.proxy.dashboard.inspector import with_refs
from holdfast.surfaces.proxy.dashboard.layout import page, pager, remark, size


class MessageShown(msgspec.Struct, frozen=True, kw_only=True):
    """One message in full, a page at a time."""

    session: str
    number: int
    side: str
    message: MessageExcerpt
    text: str
    """The current page of its text."""
    page: int
    pages: int


def message_page(shown: MessageShown) -> str:
    """The page of one message."""
    name, number, here = shown.session, shown.number, shown.page

    def at(page_number: int) -> str:
        return links.message(name, number, shown.side, shown.message.index, page=page_number)

    who = "from the client" if shown.side == CLIENT else "to the model"
    return page(
        f"Message {shown.message.index} {who}",
        remark(f"{shown.message.role}, {size(shown.message.size)}; page {here:,} of "
               f"{shown.pages:,}."),
        pre(with_refs(shown.text), tabindex="0"),
        pager(at(here - 1) if here > 1 else "", at(here + 1) if here < shown.pages else ""),
        crumbs=[(f"Session {name}", links.session(name)),
                (f"Turn {number}", links.turn(name, number))],
        here="Sessions",
    )  # fmt: skip
