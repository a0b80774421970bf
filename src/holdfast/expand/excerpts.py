"""Return the best passages of a stored content for each criterion, with place and reason.

excerpts: before retrieval. The best passage of each criterion comes first, then the second best of
each, so that no criterion displaces another. A passage that meets several is shown once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from holdfast.condense.condenser import Passage
from holdfast.condense.cutting import shortened
from holdfast.condense.excerpt import excerpt
from holdfast.condense.kinds import condenser_for
from holdfast.condense.source import Source
from holdfast.search.passages import rank
from holdfast.store.records import RefInfo, Stored

SourceType = Literal["web", "database", "storage", "search"]

EXCERPT_CHARACTERS = 500
MOST_CRITERIA = 20
"""Maximum criteria: each is searched for in the whole content, and models may ask for thousands."""
_MOST_EXCERPTS = 5
_MOST_REASON = 200


class ContentExcerpt(msgspec.Struct, frozen=True, kw_only=True):
    """A relevant part of a content."""

    content_id: str
    excerpt: str
    excerpt_location: str
    """In source units: `lines 45-67`, `paragraph 3`, `section: Introduction`."""
    relevance: str
    """The reason why the part is relevant."""
    criteria: tuple[str, ...] = ()
    """The criteria that the part meets."""
    source_type: SourceType
    source_url: str | None = None

    def __repr__(self) -> str:
        return f"<ContentExcerpt of {self.content_id}, {self.excerpt_location}>"


def excerpts_of(
    stored: Stored, criteria: Sequence[str], most_characters: int = EXCERPT_CHARACTERS
) -> list[ContentExcerpt]:
    """Return the best passages for the criteria; without criteria, the beginning."""
    source = Source(stored.data)
    if not criteria:
        head, _, _ = excerpt(source.text, "", most_characters)
        return [_excerpt(stored.info, head, "beginning", "how it begins")]
    passages = condenser_for(source, stored.info.kind).passages(source)
    return [
        _excerpt(
            stored.info,
            excerpt(passages[index].text, ", ".join(met), most_characters)[0],
            passages[index].where,
            f"on {shortened(', '.join(met), _MOST_REASON)}",
            met,
        )
        for index, met in _best(criteria[:MOST_CRITERIA], passages)
    ]


def _best(
    criteria: Sequence[str], passages: Sequence[Passage]
) -> list[tuple[int, tuple[str, ...]]]:
    """Return the best passages of every criterion, then the second best, with the criteria met."""
    orders = {each: [ranked.index for ranked in rank(each, passages)] for each in criteria}
    numbers: dict[int, None] = {}
    for place in range(_MOST_EXCERPTS):
        for order in orders.values():
            if place < len(order):
                numbers.setdefault(order[place])
    best = list(numbers)[: max(_MOST_EXCERPTS, len(orders))]
    holders = {each: frozenset(order) for each, order in orders.items()}
    return [(n, tuple(each for each in orders if n in holders[each])) for n in best]


def _excerpt(
    info: RefInfo, text: str, where: str, why: str, criteria: tuple[str, ...] = ()
) -> ContentExcerpt:
    return ContentExcerpt(
        content_id=info.ref_id,
        excerpt=text,
        excerpt_location=where,
        relevance=why,
        criteria=criteria,
        source_type=source_type_of(info),
        source_url=info.meta.get("url"),
    )


def source_type_of(info: RefInfo) -> SourceType:
    """Return where a content came from; "storage" if that is unknown."""
    return next((t for t in get_args(SourceType) if t == info.meta.get("source_type")), "storage")
