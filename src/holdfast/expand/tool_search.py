"""Define the tools that find and call other tools: `find_tools(query)`, `call_tool(name, …)`.

tool_search: after turn_recall. They replace the schemas of a request with very many tools; the
description of the first one lists the names. Calls are parsed here and answered in
upstream/finding.py, which knows the tools.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.errors import ExpandError
from holdfast.expand import turn_recall
from holdfast.expand.tool import read_arguments, write
from holdfast.wire.blocks import Tool
from holdfast.wire.conversation import Conversation
from holdfast.wire.tools import offered_tools

FIND = "find_tools"
CALL = "call_tool"
_OTHER = "holdfast_"
"""Prefix of both names if a tool of the client has one of them."""
_LEAD = "Finds tools by what they do or by name, and gives their parameters; then "
_QUERY: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
}
_LONGEST_QUERY = 2_000


class ToolPair(NamedTuple):
    """The names of the two tools in a request."""

    find: str = FIND
    call: str = CALL


PAIRS = (ToolPair(), ToolPair(_OTHER + FIND, _OTHER + CALL))
FINDERS = frozenset(pair.find for pair in PAIRS)
CALLERS = frozenset(pair.call for pair in PAIRS)
OUR_TOOLS = turn_recall.OUR_TOOLS | FINDERS | CALLERS
"""All names of hidden tools; the code that offers one answers its calls."""


def free_pair(conversation: Conversation) -> ToolPair | None:
    """Return names that no tool of the client has; None if all are taken."""
    used_names = {tool.name for tool in offered_tools(conversation)}
    return next((pair for pair in PAIRS if used_names.isdisjoint(pair)), None)


def offered_pair(conversation: Conversation) -> ToolPair | None:
    """Return the names of the two tools in a request; None if it does not offer them."""
    descriptions = {tool.name: tool.description for tool in conversation.tools}
    return next((pair for pair in PAIRS if descriptions.get(pair.find, "").startswith(_LEAD)), None)


def finder(dialect: str, pair: ToolPair, directory: str, *, native: bool = False) -> dict[str, Any]:
    """Return the tool that finds others, as an entry of a request's list of tools.

    With `native` the provider loads the tools that were found, so they are called directly.
    """
    next_step = "call them by their names" if native else f"use {pair.call}"
    description = f"{_LEAD}{next_step}.\n{directory}".rstrip()
    return write(dialect, Tool(name=pair.find, description=description, parameters=_QUERY))


def caller(dialect: str, pair: ToolPair) -> dict[str, Any]:
    """Return the tool that calls others, as an entry of a request's list of tools."""
    # Gemini refuses objects without properties: "should be non-empty for OBJECT type".
    kind = {"type": "string", "description": "JSON"} if dialect == "gemini" else {"type": "object"}
    parameters = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "arguments": kind},
        "required": ["name", "arguments"],
    }
    description = f"Calls a tool that {pair.find} gave."
    return write(dialect, Tool(name=pair.call, description=description, parameters=parameters))


def parse_search(arguments: object) -> str:
    """Return the query of a call of the finder."""
    query = read_arguments(arguments).get("query")
    if not isinstance(query, str) or not query.strip():
        raise ExpandError(
            "query is missing", where="query", fix="Say in some words what the tool should do."
        )
    return query.strip()[:_LONGEST_QUERY]


def parse_tool_call(arguments: object) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments of the tool to call.

    Models write the arguments as an object, as JSON text, or beside the name; all are accepted.
    """
    values = read_arguments(arguments)
    name = values.pop("name", None)
    if not isinstance(name, str) or not name.strip():
        raise ExpandError("name is missing", where="name", fix="Give the name of the tool.")
    inside = values.pop("arguments", None)
    if inside is None or inside == "":
        return name.strip(), values
    return name.strip(), read_arguments(inside)
