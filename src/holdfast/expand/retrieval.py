"""The same content through the older action "Retrieve Stored Content".

retrieval: after tool and reading. Unlike the action it stands for, it never gives more than a
page: what remains, and how to get it, is said beside the content.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.condense.kinds import condenser_for
from holdfast.condense.relevance import excerpt, rank
from holdfast.condense.source import Source
from holdfast.expand.expansion import Count, shorten
from holdfast.expand.options import LEAST_TOKENS, MOST_TOKENS, ExpandOptions
from holdfast.expand.reading import expand
from holdfast.expand.tool import read_arguments, write
from holdfast.store.records import Stored
from holdfast.wire.blocks import Tool

NAME = "retrieve_stored_content"
ACTION = "Retrieve Stored Content"
EXCERPT_CHARACTERS = 500
_MOST_EXCERPTS = 5

DESCRIPTION = """\
Retrieve Stored Content: gives stored content by its citation id. Use the excerpt in the citation \
first, then ExcerptOnly with SearchTerms; retrieve full content sparingly, when excerpts lack the \
fact, structure is needed, or sources are compared in detail. Example: \
{"ContentID": "content_abc123def4567890", "ExcerptOnly": true, "SearchTerms": "timeline, cost"}"""

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ContentID": {"type": "string"},
        "ExcerptOnly": {"type": "boolean", "description": "default false"},
        "SearchTerms": {"type": "string", "description": "comma separated"},
    },
    "required": ["ContentID"],
}


class Request(msgspec.Struct, frozen=True):
    """The parameters of the action."""

    content_id: str
    excerpt_only: bool
    terms: tuple[str, ...]


class Retrieved(msgspec.Struct, frozen=True, kw_only=True):
    """The action's result."""

    success: bool
    result_code: str
    message: str
    """JSON if it succeeded, else what went wrong."""

    def __repr__(self) -> str:
        return f"<Retrieved {self.result_code}, {len(self.message)} characters>"


def retrieval_definition(dialect: str, name: str = NAME) -> dict[str, Any]:
    """The action as an entry of a request's list of tools."""
    return write(dialect, Tool(name=name, description=DESCRIPTION, parameters=PARAMETERS))


def parse_retrieval(arguments: object) -> Request | Retrieved:
    """The parameters of a call, their names in any case; or the error to answer with."""
    given = {name.lower().replace("_", ""): raw for name, raw in read_arguments(arguments).items()}
    content_id = given.get("contentid")
    if not isinstance(content_id, str) or not content_id.strip():
        return _failed("ContentID parameter is required")
    only = given.get("excerptonly")
    terms = given.get("searchterms")
    if isinstance(terms, list):
        terms = ",".join(map(str, terms))
    split = str(terms).split(",") if terms else []
    return Request(
        content_id.strip(),
        only is True or str(only).strip().lower() in ("true", "1", "yes"),
        tuple(term.strip() for term in split if term.strip()),
    )


def retrieve(
    request: Request, stored: Stored | None, *, count: Count, max_tokens: int = MOST_TOKENS
) -> Retrieved:
    """The action's answer, of at most `max_tokens`."""
    if stored is None:
        return _failed(f"Content not found for ID: {request.content_id}")
    max_tokens = min(MOST_TOKENS, max(2 * LEAST_TOKENS, max_tokens))
    make = _excerpts if request.excerpt_only else _page
    room = max_tokens
    while True:
        message = _written(make(request, stored, count, room))
        tokens = count(message)
        if tokens <= max_tokens:
            return Retrieved(success=True, result_code="SUCCESS", message=message)
        if room <= LEAST_TOKENS:
            return _failed("the content's metadata leaves no room for content")
        room = max(LEAST_TOKENS, min(room - 1, int(room * max_tokens / tokens * 0.95)))


def _failed(message: str) -> Retrieved:
    return Retrieved(success=False, result_code="FAILED", message=message)


def _written(value: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _head(request: Request, stored: Stored) -> dict[str, Any]:
    return {
        "contentId": request.content_id,
        "sourceType": stored.info.meta.get("source_type", ""),
        "sourceUrl": stored.info.meta.get("url", ""),
    }


def _excerpts(request: Request, stored: Stored, count: Count, room: int) -> dict[str, Any]:
    """The sections that hold the terms, best first; without terms, the beginning."""
    source = Source(stored.data)
    question = ", ".join(request.terms)
    passages = condenser_for(source, stored.info.kind).passages(source) if question else []
    ranked = rank(question, passages)[:_MOST_EXCERPTS]
    shown = [
        {
            "text": excerpt(passages[entry.index].text, question, EXCERPT_CHARACTERS)[0],
            "location": passages[entry.index].where,
            "relevance": round(entry.score / ranked[0].score, 3),
        }
        for entry in ranked
    ]
    if not question:
        head = excerpt(source.text, "", EXCERPT_CHARACTERS)[0]
        shown = [{"text": head, "location": "beginning", "relevance": 1.0}]
    fitting = []
    for one in shown:
        room -= count(str(one["text"]))
        if room < 0:
            break
        fitting.append(one)
    return _head(request, stored) | {"totalLength": len(source.text), "excerpts": fitting}


def _page(request: Request, stored: Stored, count: Count, room: int) -> dict[str, Any]:
    """The content, or its first page."""
    options = ExpandOptions(max_tokens=room)
    opened = expand(stored.info.ref_id, stored.data, stored.info.kind, options, count=count)
    made = _head(request, stored) | {
        "contentType": stored.info.meta.get("content_type", stored.info.kind),
        "content": opened.content,
        "metadata": {k: shorten(v, 100, count) for k, v in list(stored.info.meta.items())[:20]},
    }
    if not opened.complete:
        made["remaining"] = f"{opened.remaining:,} {opened.unit}"
        made["next"] = f"ExcerptOnly with SearchTerms, or expand_ref {stored.info.ref_id} page 2"
    return made
