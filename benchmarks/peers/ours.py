"""Holdfast at its defaults: cite with the question, then one `expand_ref(query=…)`."""

from __future__ import annotations

from benchmarks.peers.conversation import Shrunk
from holdfast.cite import cite, count
from holdfast.expand import ExpandOptions, expand

MOST_TOKENS = 1_000


def shrink(text: str, question: str) -> Shrunk:
    citation = cite(text, question=question)
    if citation.content is None:
        return Shrunk(citation.text, None, whole=citation.text == text)
    options = ExpandOptions(query=question, max_tokens=MOST_TOKENS)
    data = citation.content.data
    opened = expand(citation.ref_id, data, citation.kind, options, count=count)
    return Shrunk(citation.text, opened.text, whole=data == text.encode())
