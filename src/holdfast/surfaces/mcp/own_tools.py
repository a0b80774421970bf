"""The engine's own tools: cite, open, search, recall, facts, count and fit.

Each tool is a row of one table with its schemas and its function. A result has a text for the model
and a value for programs. Arguments are untrusted and checked against the schema first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import Any, NamedTuple

import msgspec

from holdfast.cite import count as count_text
from holdfast.condense.condenser import Passage
from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError, PrivacyError
from holdfast.expand.calls import parse_call
from holdfast.expand.tool import DESCRIPTION, NAME, PARAMETERS
from holdfast.privacy import Policy, apply, find
from holdfast.quoting import in_one_line, item
from holdfast.search.passages import rank
from holdfast.store import RefInfo
from holdfast.tokens import count
from holdfast.toolbox.argument_checks import find_problems
from holdfast.toolbox.tool import Tool, read_tool

MOST_CHARACTERS = 4_000_000
"""Maximum characters per argument; the transport limits the request too."""
_MODEL = "gpt-4o"
"""Model for counting if none is given: most models have about the same counts."""
_MOST_TITLE = 200
_SEARCHED = 500
"""Newest stored contents that a search looks at."""

Answer = tuple[str, dict[str, Any]]
"""Text for the model and value for programs."""


class OwnTool(NamedTuple):
    """A tool of the engine."""

    name: str
    title: str
    description: str
    parameters: dict[str, Any]
    result: dict[str, Any] | None
    """The schema of its structured result; None if it has only a text."""
    work: Callable[[Holdfast, dict[str, Any]], Awaitable[Answer]]
    reads_only: bool = True


# --- functions ------------------------------------------------------------------------------------


async def _cite(engine: Holdfast, arguments: dict[str, Any]) -> Answer:
    citation = await engine.cite(
        arguments["content"], question=arguments.get("question"), source_url=arguments.get("url")
    )
    return citation.text, {
        "ref_id": citation.ref_id,
        "kind": citation.kind,
        "text": citation.text,
        "from_tokens": citation.fidelity.from_tokens,
        "to_tokens": citation.fidelity.to_tokens,
        "flags": list(citation.fidelity.flags),
    }


async def _expand(engine: Holdfast, arguments: dict[str, Any]) -> Answer:
    ref, options = parse_call(arguments)
    part = await engine.expand_ref(ref, options)
    return part.text, {
        "where": part.where,
        "complete": part.complete,
        "remaining": part.remaining,
        "unit": part.unit,
        "next": part.next,
        "reason": part.reason,
    }


async def _search(engine: Holdfast, arguments: dict[str, Any]) -> Answer:
    stored = await engine.store.refs(engine.scope, limit=_SEARCHED)
    passages = [Passage(f"{info.summary}\n{info.compressed}", info.ref_id) for info in stored]
    size = sum(len(passage.text) for passage in passages)
    order = await engine.workers.off_loop(size, partial(rank, arguments["query"], passages))
    hits = [stored[ranked.index] for ranked in order[: arguments.get("limit", 10)]]
    summaries = [visible_summary(info, engine.options.rules.privacy) for info in hits]
    lines = [
        item(f"{info.ref_id}: {in_one_line(summary)[:_MOST_TITLE]}")
        for info, summary in zip(hits, summaries, strict=True)
    ]
    text = "\n".join([f"Stored contents, opened with {NAME}:", *lines])
    values = [
        {"ref_id": info.ref_id, "kind": info.kind, "summary": summary, "tokens": info.tokens}
        for info, summary in zip(hits, summaries, strict=True)
    ]
    return text if hits else "No stored content has to do with this.", {"contents": values}


async def _recall(engine: Holdfast, arguments: dict[str, Any]) -> Answer:
    recalled = await engine.recall(
        arguments["query"],
        session=arguments.get("session"),
        token_budget=arguments.get("max_tokens", 1000),
    )
    text = recalled.text or "No earlier messages match."
    return text, {"text": recalled.text, "tokens": count_text(recalled.text)}


async def _facts(engine: Holdfast, arguments: dict[str, Any]) -> Answer:
    ranked = await engine.facts.top(
        arguments["query"], arguments.get("session"), k=arguments.get("limit", 12)
    )
    facts = [
        {"text": each.fact.text, "kind": each.fact.kind, "source_ref": each.fact.source_ref}
        for each in ranked
    ]
    lines = [item(fact["text"]) for fact in facts]
    return "\n".join(lines) if lines else "No fact has to do with this.", {"facts": facts}


async def _count(engine: Holdfast, arguments: dict[str, Any]) -> Answer:
    body: Any = arguments.get("request", arguments.get("text"))
    if body is None:  # not in the schema, because providers reject `anyOf` at its top
        raise HoldfastError("there is nothing to count", fix="Give text or request.")
    model = arguments.get("model") or (None if "request" in arguments else _MODEL)
    work = partial(count, body, model=model, calibration=engine.calibration)
    counted = await engine.workers.off_loop(len(str(body)), work)
    value = {"tokens": counted.tokens, "accuracy": counted.accuracy}
    return f"{counted.tokens:,} tokens ({counted.accuracy})", value


async def _fit(engine: Holdfast, arguments: dict[str, Any]) -> Answer:
    fitted = await engine.fit(arguments["request"], limit=arguments.get("limit"))
    body = fitted.body.decode("utf-8", "replace")
    edits = [
        {"what": edit.what, "why": edit.why, "where": edit.where, "ref_id": edit.ref_id}
        for edit in fitted.edits
    ]
    return body, {"request": msgspec.json.decode(fitted.body), "edits": edits}


# --- the table -----------------------------------------------------------------------------------

_TEXT: dict[str, Any] = {"type": "string"}
_NUMBER: dict[str, Any] = {"type": "integer"}
_LONG: dict[str, Any] = {"type": "string", "maxLength": MOST_CHARACTERS}
_QUERY: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 4_000}
_LIMIT: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 50}


def _object(required: str = "", **properties: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": required.split()} if required else schema


def _list(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": _object(" ".join(properties), **properties)}


# Without a structured result: a host that shows both would pay for the content twice, and one that
# shows only the structured one would miss it. Values for programs are in `_meta`.
OPENER = OwnTool(NAME, "Open a citation", DESCRIPTION, PARAMETERS, None, _expand)

OWN_TOOLS: tuple[OwnTool, ...] = (
    OPENER,
    OwnTool(
        "cite",
        "Store and cite",
        "Stores a long content and gives a short citation of it, which expand_ref opens again.",
        _object("content", content=_LONG, question=_QUERY, url=_TEXT),
        _object(
            "ref_id kind text from_tokens to_tokens",
            ref_id=_TEXT, kind=_TEXT, text=_TEXT, from_tokens=_NUMBER, to_tokens=_NUMBER,
            flags={"type": "array", "items": _TEXT},
        ),
        _cite,
        reads_only=False,
    ),
    OwnTool(
        "search",
        "Search stored contents",
        "Finds stored contents that have to do with a question, by what their citations say.",
        _object("query", query=_QUERY, limit=_LIMIT),
        _object(
            "contents", contents=_list(ref_id=_TEXT, kind=_TEXT, summary=_TEXT, tokens=_NUMBER)
        ),
        _search,
    ),
    OwnTool(
        "recall",
        "Recall what was said",
        "Finds what was said in earlier turns that a question needs.",
        _object(
            "query", query=_QUERY, session=_TEXT,
            max_tokens={"type": "integer", "minimum": 50, "maximum": 8_000},
        ),
        _object("text tokens", text=_TEXT, tokens=_NUMBER),
        _recall,
    ),
    OwnTool(
        "facts",
        "Facts",
        "Finds the current facts that have most to do with a question, with their sources.",
        _object("query", query=_QUERY, session=_TEXT, limit=_LIMIT),
        _object("facts", facts=_list(text=_TEXT, kind=_TEXT, source_ref=_TEXT)),
        _facts,
    ),
    OwnTool(
        "count",
        "Count tokens",
        "Counts the tokens of a text, or of a whole request to a provider before it is sent.",
        _object(text=_LONG, request={"type": "object"}, model=_TEXT),
        _object("tokens accuracy", tokens=_NUMBER, accuracy=_TEXT),
        _count,
    ),
    OwnTool(
        "fit",
        "Make a request fit",
        "Makes a request to a provider fit a limit of tokens; what leaves it is stored and cited.",
        _object("request", request={"type": "object"}, limit={"type": "integer", "minimum": 1}),
        _object(
            "request edits", request={"type": "object"},
            edits=_list(what=_TEXT, why=_TEXT, where=_TEXT, ref_id=_TEXT),
        ),
        _fit,
        reads_only=False,
    ),
)  # fmt: skip


@cache
def _checkable(name: str) -> Tool:
    """Return a tool for checks; it counts tokens, which takes 150 ms the first time."""
    (tool,) = (tool for tool in OWN_TOOLS if tool.name == name)
    return read_tool({"name": tool.name, "inputSchema": tool.parameters})


def find_argument_faults(tool: OwnTool, arguments: dict[str, Any]) -> list[str]:
    """Return the invalid arguments with reasons. `expand_ref` parses leniently instead."""
    return [] if tool is OPENER else find_problems(_checkable(tool.name), arguments)


def visible_summary(info: RefInfo, policy: Policy) -> str:
    """Return a content's summary as far as the policy allows; otherwise its kind.

    The summary may be older than the policy, from a time when secrets were allowed.
    """
    try:
        return apply(policy, info.summary, find(info.summary))
    except PrivacyError:
        return info.kind


def resource_of(info: RefInfo, policy: Policy) -> dict[str, Any]:
    """Return a stored content as a resource."""
    return {
        "uri": f"{REF_SCHEME}{info.ref_id}",
        "name": info.ref_id,
        "title": in_one_line(visible_summary(info, policy))[:_MOST_TITLE] or info.kind,
        "mimeType": "text/plain",
        "size": info.size,
    }


REF_SCHEME = "holdfast://refs/"
