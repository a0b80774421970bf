"""The same content through the older action "Retrieve Stored Content".

retrieval: after tool and options. Unlike the action it stands for, it never gives more than a
page: what remains, and the call that gets it, is said beside the content. A page begins at an
offset, not at a number, so that pages of different sizes still leave out nothing and repeat
nothing. Where no term is found, the answer says which, and what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.condense.condenser import Passage
from holdfast.condense.cutting import last_break, shortened
from holdfast.condense.kinds import condenser_for
from holdfast.condense.relevance import excerpt, rank
from holdfast.condense.source import Source
from holdfast.expand.expansion import Count, shorten
from holdfast.expand.options import LEAST_TOKENS, MOST_TOKENS
from holdfast.expand.tool import read_arguments, write
from holdfast.store.records import Stored
from holdfast.wire.blocks import Tool

NAME = "retrieve_stored_content"
ACTION = "Retrieve Stored Content"
EXCERPT_CHARACTERS = 500
_MOST_EXCERPTS = 5
_MOST_TERMS = 20
"""Terms that are looked for one by one, to say which of them are missing."""
_CHARACTERS_PER_TOKEN = 6
"""More than most texts have, so that the first guess of a page is not too small."""

DESCRIPTION = """\
Retrieve Stored Content: gives stored content by its citation id. Use the excerpt in the citation \
first, then ExcerptOnly with SearchTerms; retrieve full content sparingly, when excerpts lack the \
fact, structure is needed, or sources are compared in detail. Example: \
{"ContentID": "content_abc123def4567890", "ExcerptOnly": true, "SearchTerms": "timeline, cost"}. \
Long content comes in pages: call again with the Offset that is given as next."""

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ContentID": {"type": "string"},
        "ExcerptOnly": {"type": "boolean", "description": "default false"},
        "SearchTerms": {"type": "string", "description": "comma separated"},
        "Offset": {"type": "integer", "description": "characters to pass over; default 0"},
    },
    "required": ["ContentID"],
}


class Request(msgspec.Struct, frozen=True):
    """The parameters of the action."""

    content_id: str
    excerpt_only: bool
    terms: tuple[str, ...]
    offset: int = 0
    """Where the page begins, in characters."""


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
    offset = _offset(given.get("offset"))
    if offset is None:
        return _failed("Offset must be a whole number from 0, as the page before gave it")
    return Request(
        content_id.strip(),
        only is True or str(only).strip().lower() in ("true", "1", "yes"),
        tuple(term.strip() for term in split if term.strip()),
        offset,
    )


def _offset(given: object) -> int | None:
    """A number as models write it; None if it is none."""
    if given is None or given == "":
        return 0
    digits = str(given).strip().removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 13 else None


def retrieve(
    request: Request, stored: Stored | None, *, count: Count, max_tokens: int = MOST_TOKENS
) -> Retrieved:
    """The action's answer, of at most `max_tokens`."""
    if stored is None:
        return _failed(f"Content not found for ID: {request.content_id}")
    length = len(_text(stored))
    if request.offset and request.offset >= length:
        return _failed(f"Offset is beyond the end: the content has {length:,} characters")
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
    answer = _head(request, stored) | {"totalLength": len(source.text), "excerpts": fitting}
    missed = _missed(request.terms, passages)
    if not shown:
        answer["reason"] = f"none of these terms stands in the content: {', '.join(missed)}"
        answer["next"] = "Other SearchTerms, or the content itself without ExcerptOnly"
    elif missed:
        answer["notFound"] = missed
    if len(fitting) < len(shown):
        answer["remaining"] = f"{len(shown) - len(fitting)} excerpts for which there was no room"
    return answer


def _missed(terms: Sequence[str], passages: Sequence[Passage]) -> list[str]:
    """The terms that no part of the content has."""
    return [shortened(term, 80) for term in terms[:_MOST_TERMS] if not rank(term, passages)]


def _page(request: Request, stored: Stored, count: Count, room: int) -> dict[str, Any]:
    """The content from the offset on, as much of it as fits."""
    text = _text(stored)
    end = _page_end(text, request.offset, room, count)
    page = _head(request, stored) | {
        "contentType": stored.info.meta.get("content_type", stored.info.kind),
        "content": text[request.offset : end],
        "metadata": {k: shorten(v, 100, count) for k, v in list(stored.info.meta.items())[:20]},
    }
    if request.offset:
        page["offset"] = request.offset
    if end < len(text):
        page["remaining"] = f"{len(text) - end:,} characters"
        page["next"] = {"ContentID": request.content_id, "Offset": end}
    return page


def _page_end(text: str, start: int, room: int, count: Count) -> int:
    """Where the page ends: behind a line if there is one in its second half, else behind a word."""
    size = room * _CHARACTERS_PER_TOKEN
    while size > 1 and count(text[start : start + size]) > room:
        size = size * 4 // 5
    end = start + max(1, size)
    if end >= len(text):
        return len(text)
    line = text.rfind("\n", start + size // 2, end) + 1
    return line or max(last_break(text, start + size // 2, end), start + 1)


def _text(stored: Stored) -> str:
    return Source(stored.data).text
