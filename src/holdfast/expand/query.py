"""Find the passages of a content that answer a question.

query: after region. Fields that the question names come first, then the passages of the content's
condenser by relevance.
"""

from __future__ import annotations

from holdfast.condense.condenser import Passage
from holdfast.condense.excerpt import excerpt
from holdfast.condense.fields import fields
from holdfast.condense.kinds import condenser_for
from holdfast.condense.places import labelled, without_path
from holdfast.document import find
from holdfast.expand.content import OpenContent
from holdfast.expand.options import ExpandOptions
from holdfast.expand.region import Region, blocks, listed
from holdfast.expand.rows import NoSuchPart
from holdfast.quoting import item
from holdfast.search.passages import rank

_MOST_PASSAGES = 60
_MOST_TIMES = 3
_SHARE = 1.5
"""Characters of one passage per token of the page, so that two or three passages always fit."""


def by_query(opened: OpenContent, options: ExpandOptions) -> Region:
    """Return the passages that match the question, each with its place."""
    passages = condenser_for(opened.source, opened.kind).passages(opened.source)
    ranked = rank(options.query, passages)
    named = fields(opened.source, options.query)
    if not ranked and not named:
        raise NoSuchPart("no passage matches the question")
    most = int(options.max_tokens * _SHARE)
    chosen = [passages[entry.index] for entry in ranked[:_MOST_PASSAGES]]
    candidates = [*named, *(as_it_stands(opened, passage) for passage in chosen)]
    texts = [
        item(labelled(excerpt(without_path(each), options.query, most)[0], each.where))
        for each in candidates
    ]
    region = blocks(texts, listed([passage.where for passage in candidates]), "passages")
    region.total = f" ({len(ranked):,} of {len(passages):,} passages match)"
    return region


def as_it_stands(opened: OpenContent, passage: Passage) -> Passage:
    """Return a JSON value as written in the content; a passage may quote it in a shorter way."""
    if opened.source.document is None or not passage.where.startswith("$"):
        return passage
    matches, _ = find(opened.source.document, passage.where)
    if len(matches) != 1:
        return passage
    document, node = matches[0]
    # Of a long value a passage is only a piece, and must stay one.
    is_whole = node.end - node.start <= _MOST_TIMES * len(passage.text) + 200
    return Passage(document.text[node.start : node.end], passage.where) if is_whole else passage
