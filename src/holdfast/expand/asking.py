"""The passages of a content that answer a question, best first.

asking: after region. The fields that the question names come first; then the passages that the
content's condenser cuts it into, as relevance orders them.
"""

from __future__ import annotations

from holdfast.condense.condenser import Passage
from holdfast.condense.excerpt import excerpt
from holdfast.condense.fields import fields
from holdfast.condense.kinds import condenser_for
from holdfast.condense.places import labelled, without_path
from holdfast.document import find
from holdfast.expand.opened import Opened
from holdfast.expand.options import ExpandOptions
from holdfast.expand.region import Region, blocks, listed
from holdfast.expand.rows import Nothing
from holdfast.quoting import item
from holdfast.search.passages import rank

_MOST_PASSAGES = 60
_MOST_TIMES = 3
_SHARE = 1.5
"""Characters of one passage per token of the page: two or three passages fit in any case."""


def by_query(opened: Opened, options: ExpandOptions) -> Region:
    """The passages that have to do with the question, each with its place."""
    passages = condenser_for(opened.source, opened.kind).passages(opened.source)
    ranked = rank(options.query, passages)
    named = fields(opened.source, options.query)
    if not ranked and not named:
        raise Nothing("no passage has to do with the question")
    most = int(options.max_tokens * _SHARE)
    chosen = [passages[entry.index] for entry in ranked[:_MOST_PASSAGES]]
    shown = [*named, *(as_it_stands(opened, passage) for passage in chosen)]
    texts = [
        item(labelled(excerpt(without_path(each), options.query, most)[0], each.where))
        for each in shown
    ]
    region = blocks(texts, listed([passage.where for passage in shown]), "passages")
    region.total = f" ({len(ranked):,} of {len(passages):,} passages match)"
    return region


def as_it_stands(opened: Opened, passage: Passage) -> Passage:
    """A value of JSON as it is written; a passage may quote it in a shorter way."""
    if opened.source.document is None or not passage.where.startswith("$"):
        return passage
    matches, _ = find(opened.source.document, passage.where)
    if len(matches) != 1:
        return passage
    document, node = matches[0]
    # Of a long value a passage is only a piece, and must stay one.
    is_whole = node.end - node.start <= _MOST_TIMES * len(passage.text) + 200
    return Passage(document.text[node.start : node.end], passage.where) if is_whole else passage
