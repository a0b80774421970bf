"""Two ways to fit a session's requests, side by side.

The requests are rebuilt from the store and fitted again by engine/session_replay.py, up to a limit
of requests and bytes; nothing is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import msgspec

from holdfast.cite import CitePolicy
from holdfast.engine.session_replay import ReplayResult, Way, replay
from holdfast.errors import HoldfastError
from holdfast.store.records import OFFLINE, SessionRecord
from holdfast.surfaces.proxy.dashboard import links
from holdfast.surfaces.proxy.dashboard.html import Html, div, element, h2, p, section
from holdfast.surfaces.proxy.dashboard.layout import (
    money,
    number,
    page,
    percent,
    remark,
    share,
    table,
)
from holdfast.surfaces.proxy.dashboard.tenant_reader import TenantReader
from holdfast.wire import Conversation, read

MOST_REQUESTS = 40
"""The last requests of a session: each is rebuilt and fitted three times."""
MOST_BYTES = 20_000_000
"""Of all of them together."""
LARGEST_LIMIT = 100_000_000
_ASSEMBLE = "assemble"
_WAYS = {
    "auto": "cite where it pays",
    "always": "cite every long result",
    "never": "cite nothing when it arrives",
    _ASSEMBLE: "assemble each turn",
}


class ComparisonValues(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page."""

    record: SessionRecord
    ways: Sequence[Way]
    requests: int = 0
    """Number of fitted requests."""
    asked: ReplayResult | None = None
    """As the client asked; None until somebody wants to know."""
    sides: Sequence[ReplayResult] = ()
    why: str = ""
    """Why nothing can be compared."""


def ways_in(asked: Mapping[str, str]) -> list[Way]:
    """The two ways that an address names: where it names none, as it is and as the seed has it."""
    return [_way(asked, "a", "auto"), _way(asked, "b", "always")]


def _way(asked: Mapping[str, str], side: str, fallback: CitePolicy) -> Way:
    name, limit = asked.get(side, fallback), asked.get(f"{side}_limit", "")
    tokens = int(limit) if limit.isascii() and limit.isdigit() and len(limit) < 10 else 0
    tokens = min(tokens, LARGEST_LIMIT)
    if name == _ASSEMBLE:
        return Way(mode="assemble", limit=tokens)
    policy = next((each for each in get_args(CitePolicy) if each == name), fallback)
    return Way(policy=policy, limit=tokens)


async def compared(
    gathering: TenantReader, record: SessionRecord, ways: Sequence[Way]
) -> ComparisonValues:
    """Make the last requests of a session ready in both ways."""
    values = ComparisonValues(record=record, ways=ways)
    try:
        requests = await _requests(gathering, record)
    except HoldfastError as error:
        return msgspec.structs.replace(values, why=f"Its requests cannot be rebuilt: {error.what}")
    if not requests:
        return msgspec.structs.replace(values, why="Its last request is too large to be compared.")
    engine, model = gathering.engine, record.model.removesuffix(OFFLINE)
    return msgspec.structs.replace(
        values,
        requests=len(requests),
        asked=await replay(engine, requests, model, None),
        sides=[await replay(engine, requests, model, way) for way in ways],
    )


async def _requests(gathering: TenantReader, record: SessionRecord) -> list[Conversation]:
    """The last requests, in their order, as many as the bounds allow."""
    requests: list[Conversation] = []
    remaining = MOST_BYTES
    for turn in range(record.turns, max(0, record.turns - MOST_REQUESTS), -1):
        body = await gathering.asked(record.session, turn)
        remaining -= len(body)
        if remaining < 0:
            break
        requests.append(read(body, record.dialect))
    return requests[::-1]


# --- the page ------------------------------------------------------------------------------------


def comparing_page(shown: ComparisonValues) -> str:
    """Return the form and the results of the comparison."""
    record = shown.record
    title = record.title or record.session
    return page(
        "Compare two settings",
        remark("The requests of this session, made ready again in two ways. Nothing is sent, and "
               "nothing of it is kept."),
        _form(shown),
        p(shown.why, class_="notice") if shown.why else None,
        _result(shown, shown.asked) if shown.asked is not None else None,
        crumbs=[("Sessions", links.sessions()), (title, links.session(record.session))],
        here="Sessions",
    )  # fmt: skip


def _form(shown: ComparisonValues) -> Html:
    sides = [_side(name, way) for name, way in zip("ab", shown.ways, strict=True)]
    return element(
        "form",
        sides,
        element("button", "Compare"),
        method="get",
        action=links.compare(shown.record.session),
        aria_label="What to compare",
    )


def _side(name: str, way: Way) -> Html:
    chosen = _ASSEMBLE if way.mode == "assemble" else way.policy
    options = [
        element("option", words, value=value, selected=value == chosen)
        for value, words in _WAYS.items()
    ]
    limit = str(way.limit) if way.limit else ""
    return div(
        element("label", f"{name.upper()}: ", element("select", options, name=name)),
        element("label", "Most tokens of a request",
                element("input", type="number", name=f"{name}_limit", value=limit, min=1,
                        max=LARGEST_LIMIT, placeholder="the model's own")),
    )  # fmt: skip


def _result(shown: ComparisonValues, asked: ReplayResult) -> Html:
    sides = [asked, *shown.sides]
    rows = [
        ("tokens sent", *(number(side.tokens) for side in sides)),
        ("tokens saved", *(share(asked.tokens - side.tokens, asked.tokens) for side in sides)),
        ("largest request", *(number(side.largest) for side in sides)),
        ("cost of the input", *(money(side.cost) for side in sides)),
        ("results cited", *(number(side.cited) for side in sides)),
        ("requests folded or assembled", *(number(side.folded) for side in sides)),
        ("needed and hidden", *(number(side.needed) for side in sides)),
        ("start unchanged", *(percent(side.kept, 1) for side in sides)),
        ("requests that do not fit", *(number(side.refused) for side in sides)),
    ]
    ways = [f"{name}: {_words(way)}" for name, way in zip("AB", shown.ways, strict=True)]
    columns = ("What", "As asked", *ways)
    is_all = shown.requests == shown.record.turns
    return section(
        h2("What each would have come to"),
        table("Both ways, side by side", columns, rows),
        remark(f"{'All' if is_all else 'The last'} {shown.requests:,} of {shown.record.turns:,} "
               "requests. Cost is reckoned with what the vendor's cache would hold, and without "
               "what models would have opened. Needed and hidden: results and messages of which "
               "the model wrote at least 24 characters word for word in its next answer, and "
               "could not see then."),
    )  # fmt: skip


def _words(way: Way) -> str:
    words = _WAYS[_ASSEMBLE if way.mode == "assemble" else way.policy]
    return f"{words}, at most {number(way.limit)}" if way.limit else words
