"""The context inspector: the client's request and the sent request, side by side.

Values in, HTML out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from holdfast.store.records import Turn
from holdfast.store.refs import REF
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.edit_views import Wishes, details, edits_section, reasons
from holdfast.surfaces.proxy.dashboard.html import (
    Html,
    a,
    code,
    div,
    element,
    h2,
    join,
    li,
    p,
    pre,
    section,
    span,
    strong,
    td,
    th,
    tr,
    ul,
)
from holdfast.surfaces.proxy.dashboard.inspection import (
    CLIENT,
    SENT,
    MessageExcerpt,
    PairRow,
    ShownBlock,
)
from holdfast.surfaces.proxy.dashboard.layout import (
    change,
    cost,
    counted,
    facts,
    moment,
    number,
    page,
    pager,
    percent,
    ref_link,
    remark,
    saved_money,
    share,
    size,
)
from holdfast.surfaces.proxy.dashboard.lost_page import Proof, turn_proof
from holdfast.surfaces.proxy.dashboard.trouble import status_word, why_failed
from holdfast.surfaces.proxy.report import about
from holdfast.wire import Conversation
from holdfast.wire.blocks import text_of
from holdfast.wire.tools import offered_tools

_MOST_SYSTEM = 3_000
_MOST_TOOLS = 200
_LABELS = {
    "text": "",
    "call": "calls",
    "result": "result of",
    "thinking": "thinking",
    "raw": "as it stands",
    "other": "other block",
}


class OpenedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part that the model opened while it answered, hidden from the client."""

    call: str
    """The arguments of its call."""
    result: str
    """The beginning of the opened text."""


class TurnShown(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the inspector."""

    session: str
    title: str = ""
    turn: Turn
    last: int
    """The number of the session's last turn."""
    around: tuple[Conversation | None, Conversation | None]
    """Both sides without their messages."""
    rows: Sequence[PairRow]
    flags: Mapping[str, tuple[str, ...]] = {}
    """Kinds of secrets and personal data in the contents of refs."""
    counts: tuple[int, int] = (0, 0)
    """Number of the client's messages, and of sent messages."""
    page: int = 1
    pages: int = 1
    proof: Proof
    wishes: Wishes = {}
    opened: Sequence[OpenedPart] = ()
    opened_in_all: int = 0
    """Number of parts that the model opened, shown or not."""
    answer: Sequence[MessageExcerpt] = ()
    """The model's answer, as the client sent it back with its next request."""


def turn_page(shown: TurnShown) -> str:
    """The inspector of a turn."""
    name, number = shown.session, shown.turn.number
    return page(
        f"Turn {number}",
        _turn_facts(shown),
        pager(
            links.turn(name, number - 1) if number > 1 else "",
            links.turn(name, number + 1) if number < shown.last else "",
            words=("Turn before", "Turn after"),
        ),
        div(
            edits_section(name, number, shown.turn.edits, shown.wishes, _places(shown)),
            div(turn_proof(shown.proof), _opened(shown), _answer(shown)),
            class_="pair",
        ),
        _messages(shown),
        _around(*shown.around),
        crumbs=[
            ("Sessions", links.sessions()),
            (f"Session {shown.title or name}", links.session(name)),
        ],
        here="Sessions",
    )


def _places(shown: TurnShown) -> dict[int, str]:
    """Return the anchors of the client's messages on this page, by number."""
    indexes = (row.client[0].index for row in shown.rows if row.client)
    return {index: f"#client-{index}" for index in indexes}


def _turn_facts(shown: TurnShown) -> Html:
    turn, usage = shown.turn, shown.turn.usage
    items = (
        ("time (UTC)", moment(turn.started_at)),
        ("model", turn.model),
        ("status", status_word(turn)),
        ("tokens asked", about(usage.estimated) + number(usage.untouched)),
        ("tokens predicted", number(usage.predicted)),
        ("tokens billed", about(usage.unreported) + number(usage.input)),
        ("tokens saved", about(usage.estimated) + share(usage.saved, usage.untouched)),
        ("cost", cost(usage)),
        ("money saved", saved_money(usage)),
        ("read from cache", f"{usage.cached:,}"),
        ("opened by the model", f"{usage.expansions:,} ({usage.expansion_tokens:,} tokens)"),
        ("start unchanged", percent(turn.prefix_share, 1)),
        ("milliseconds", f"{turn.milliseconds:,.0f}"),
    )
    warnings = [p(strong("Warning: "), warning, class_="notice") for warning in turn.warnings]
    failure = (
        p(strong(f"Failed with status {turn.status}. "), why_failed(turn.status), class_="notice")
        if usage.failed
        else None
    )
    return section(failure or _in_a_sentence(shown), facts(items), warnings)


def _in_a_sentence(shown: TurnShown) -> Html:
    """What became of the request, before all figures."""
    usage = shown.turn.usage
    return p(
        "The client asked with ",
        strong(about(usage.estimated) + number(usage.untouched)),
        " tokens; ",
        strong(about(usage.unreported) + number(usage.input)),
        " were billed",
        f", with {counted(usage.expansions, 'part')} that the model opened"
        if usage.expansions
        else "",
        ": ",
        strong(change(usage.saved, usage.untouched)),
        ".",
    )


def _opened(shown: TurnShown) -> Html:
    if not shown.opened:
        return section(h2("What the model opened"), remark("Nothing, in this turn."))
    items = [
        li(details(each.call or "expand_ref", pre(with_refs(each.result), tabindex="0")))
        for each in shown.opened
    ]
    more = shown.opened_in_all - len(items)
    return section(
        h2("What the model opened"),
        ul(items, class_="opened"),
        remark(f"And {more:,} more.") if more > 0 else None,
    )


def _answer(shown: TurnShown) -> Html:
    if not shown.answer:
        later = "The client has not sent it back yet: it comes with its next request."
        why = later if shown.turn.number == shown.last else "The client did not send it back."
        return section(h2("What the model answered"), remark(why))
    pieces = [pieces_of(message.pieces) for message in shown.answer]
    return section(h2("What the model answered"), div(pieces, class_="message"))


def _around(client: Conversation | None, sent: Conversation | None) -> Html | None:
    """Return system text and tools, with additions and removals."""
    if client is None or sent is None:
        return None
    old, new = ([tool.name for tool in offered_tools(side)] for side in (client, sent))
    before_names, after_names = set(old), set(new)  # a client may send 10,000 tools
    added = [name for name in new if name not in before_names]
    removed = [name for name in old if name not in after_names]
    before, after = _system(client), _system(sent)
    return section(
        h2("System and tools"),
        facts(
            (
                ("tools of the client", _names(old)),
                ("added", _names(added)),
                ("taken away", _names(removed)),
            )
        ),
        details("System text", pre(before, tabindex="0")) if before else None,
        details("System text, as it was sent", pre(after, tabindex="0"))
        if after != before
        else None,
    )


def _system(side: Conversation) -> str:
    text = "\n\n".join(map(text_of, side.system))
    return text if len(text) <= _MOST_SYSTEM else f"{text[:_MOST_SYSTEM]} …"


def _names(names: Sequence[str]) -> Html:
    if not names:
        return span("none", class_="quiet")
    codes = [code(name[:100], " ") for name in names[:_MOST_TOOLS]]
    return join([codes, "…" if len(names) > _MOST_TOOLS else None])


def _messages(shown: TurnShown) -> Html:
    before, after = shown.counts
    head = tr(
        th("What the client sent", scope="col"),
        th("What the model saw", scope="col"),
    )
    body = [_row(shown, row) for row in shown.rows]
    name, number = shown.session, shown.turn.number
    page = shown.page
    turned = pager(
        links.turn(name, number, page=page - 1) if page > 1 else "",
        links.turn(name, number, page=page + 1) if page < shown.pages else "",
        words=("Messages before", "Messages after"),
    )
    return section(
        h2("Messages"),
        remark(f"{before:,} on the client's side, {after:,} on the model's; page {page:,} of "
               f"{shown.pages:,}. Messages are counted from 0. What is the same on both sides "
            "is shown once, and so is what the model opened unseen by the client."),
        element(
            "table",
            element("caption", "Messages side by side"),
            element("thead", head),
            element("tbody", body),
            class_="sides",
        ),
        turned,
    )  # fmt: skip


def _row(shown: TurnShown, row: PairRow) -> Html:
    if row.same:
        both = [_message(shown, SENT, message) for message in row.sent]
        return tr(td(both, colspan=2, data_label="Both sides"), class_="same", id=_anchor(row))
    flagged = sorted({kind for ref in row.refs for kind in shown.flags.get(ref, ())})
    client_cells = [_message(shown, CLIENT, message) for message in row.client]
    if row.more:
        client_cells.append(remark(f"And {row.more:,} messages more, all in the stored original."))
    before: list[Html] | Html = client_cells
    if flagged:
        notice = f"Holds {', '.join(flagged)}. Show it"
        before = details(notice, client_cells, class_="notice")
    elif len(row.client) > 1:
        many = f"{len(row.client) + row.more:,} messages, folded into one"
        before = details(many, client_cells)
    after = [_message(shown, SENT, message) for message in row.sent]
    return tr(
        td(before or span("Nothing: it was added on the way.", class_="quiet"),
           data_label="What the client sent"),
        td(reasons(shown.session, shown.turn.number, row.edits, shown.wishes),
           after or span("Nothing: it was left out.", class_="quiet"),
           data_label="What the model saw"),
        class_="changed",
        id=_anchor(row),
    )  # fmt: skip


def _anchor(row: PairRow) -> str | None:
    return f"client-{row.client[0].index}" if row.client else None


def _message(shown: TurnShown, side: str, message: MessageExcerpt) -> Html:
    link = links.message(shown.session, shown.turn.number, side, message.index)
    return element(
        "article",
        p(span(message.role, class_=f"role role-{message.role}"), f" {message.index}",
          span(f" · {size(message.size)}", class_="quiet"), class_="who"),
        pieces_of(message.pieces),
        p(a(f"Message {message.index} is cut here; see all of it", href=link))
        if message.cut else None,
        class_="message",
    )  # fmt: skip


def pieces_of(pieces: Sequence[ShownBlock]) -> list[Html]:
    """The blocks of a message."""
    return [_piece(piece) for piece in pieces]


def _piece(one: ShownBlock) -> Html:
    label = " ".join(filter(None, (_LABELS.get(one.kind, one.kind), one.name[:200])))
    failed = " (error)" if one.is_error else ""
    return div(
        p(f"{label}{failed}", class_="label") if label else None,
        pre(with_refs(one.text)) if one.text else None,
        class_="piece",
    )


def with_refs(said: str) -> list[str]:
    """A text whose refs can be opened."""
    parts: list[str] = []
    done = 0
    for match in REF.finditer(said):
        parts += [said[done : match.start()], ref_link(match[0])]
        done = match.end()
    return [*parts, said[done:]]
