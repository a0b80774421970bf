"""Open stored content through the older action "Retrieve Stored Content".

retrieval: after tool, options and excerpts. Unlike the original action it never returns more than a
page, with the remaining size and the next call. Pages begin at an offset instead of a number, so
that pages of different sizes omit nothing and repeat nothing. If no term is found, the answer lists
the terms and the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.condense.cutting import last_break, shortened
from holdfast.condense.source import Source
from holdfast.expand.excerpts import MOST_CRITERIA, ContentExcerpt
from holdfast.expand.expansion import Count, shorten
from holdfast.expand.options import LEAST_TOKENS, MOST_TOKENS
from holdfast.expand.tool import read_arguments, write
from holdfast.store.records import Stored
from holdfast.wire.blocks import Tool

NAME = "retrieve_stored_content"
ACTION = "Retrieve Stored Content"
_CHARACTERS_PER_TOKEN = 6
"""Higher than for most texts, so that the first estimate of a page is not too small."""

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
    """Start of the page, in characters."""


class RetrievalResult(msgspec.Struct, frozen=True, kw_only=True):
    """The action's result."""

    success: bool
    result_code: str
    message: str
    """JSON on success, otherwise the error message."""

    def __repr__(self) -> str:
        return f"<RetrievalResult {self.result_code}, {len(self.message)} characters>"


def retrieval_definition(dialect: str, name: str = NAME) -> dict[str, Any]:
    """Return the action as an entry of a request's list of tools."""
    return write(dialect, Tool(name=name, description=DESCRIPTION, parameters=PARAMETERS))


def parse_retrieval(arguments: object) -> Request | RetrievalResult:
    """Return the parameters of a call, with names in any case, or the error as the answer."""
    values = {name.lower().replace("_", ""): raw for name, raw in read_arguments(arguments).items()}
    content_id = values.get("contentid")
    if not isinstance(content_id, str) or not content_id.strip():
        return _failed("ContentID parameter is required")
    only = values.get("excerptonly")
    terms = values.get("searchterms")
    if isinstance(terms, list):
        terms = ",".join(map(str, terms))
    split = str(terms).split(",") if terms else []
    offset = _offset(values.get("offset"))
    if offset is None:
        return _failed("Offset must be a whole number from 0, as the page before gave it")
    return Request(
        content_id.strip(),
        only is True or str(only).strip().lower() in ("true", "1", "yes"),
        tuple(term.strip() for term in split if term.strip()),
        offset,
    )


def _offset(given: object) -> int | None:
    """Return an offset as models write it; None if it is invalid."""
    if given is None or given == "":
        return 0
    digits = str(given).strip().removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 13 else None


def retrieve(
    request: Request,
    stored: Stored | None,
    excerpts: Sequence[ContentExcerpt] = (),
    *,
    count: Count,
    max_tokens: int = MOST_TOKENS,
) -> RetrievalResult:
    """The action's answer, of at most `max_tokens`; `excerpts` are those on the request's terms."""
    if stored is None:
        return _failed(f"Content not found for ID: {request.content_id}")
    length = len(_text(stored))
    if request.offset and request.offset >= length:
        return _failed(f"Offset is beyond the end: the content has {length:,} characters")
    max_tokens = min(MOST_TOKENS, max(2 * LEAST_TOKENS, max_tokens))
    room = max_tokens
    while True:
        message = _written(
            _excerpts(request, stored, excerpts, count, room)
            if request.excerpt_only
            else _page(request, stored, count, room)
        )
        tokens = count(message)
        if tokens <= max_tokens:
            return RetrievalResult(success=True, result_code="SUCCESS", message=message)
        if room <= LEAST_TOKENS:
            return _failed("the content's metadata leaves no room for content")
        room = max(LEAST_TOKENS, min(room - 1, int(room * max_tokens / tokens * 0.95)))


def _failed(message: str) -> RetrievalResult:
    return RetrievalResult(success=False, result_code="FAILED", message=message)


def _written(value: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _head(request: Request, stored: Stored) -> dict[str, Any]:
    return {
        "contentId": request.content_id,
        "sourceType": stored.info.meta.get("source_type", ""),
        "sourceUrl": stored.info.meta.get("url", ""),
    }


def _excerpts(
    request: Request, stored: Stored, excerpts: Sequence[ContentExcerpt], count: Count, room: int
) -> dict[str, Any]:
    """As many of the excerpts as fit, and the terms that none of them is about."""
    fitting = []
    for each in excerpts:
        room -= count(each.excerpt)
        if room < 0:
            break
        fitting.append(
            {"text": each.excerpt, "location": each.excerpt_location, "relevance": each.relevance}
        )
    answer = _head(request, stored) | {"totalLength": len(_text(stored)), "excerpts": fitting}
    missed = _missed(request.terms, excerpts)
    if not excerpts:
        answer["reason"] = f"none of these terms stands in the content: {', '.join(missed)}"
        answer["next"] = "Other SearchTerms, or the content itself without ExcerptOnly"
    elif missed:
        answer["notFound"] = missed
    if len(fitting) < len(excerpts):
        missing = len(excerpts) - len(fitting)
        answer["remaining"] = f"{missing} excerpts for which there was no room"
    return answer


def _missed(terms: Sequence[str], excerpts: Sequence[ContentExcerpt]) -> list[str]:
    """The terms that no part of the content has."""
    met = {term for each in excerpts for term in each.criteria}
    return [shortened(term, 80) for term in terms[:MOST_CRITERIA] if term not in met]


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
    """Return the end of the page: after a line in its second half if possible, or a word."""
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
