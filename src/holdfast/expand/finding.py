"""The tools that a model finds and calls others with: `find_tools(query)`, `call_tool(name, …)`.

finding: after recalling. Where a request offers very many tools, their schemas are set aside; these
two stand for them, and the directory of names stands in the first one's description. What a call
asks for is read here; who answers it knows the tools.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.errors import ExpandError
from holdfast.expand import recalling
from holdfast.expand.tool import read_arguments, write
from holdfast.wire.blocks import Tool
from holdfast.wire.conversation import Conversation
from holdfast.wire.tools import offered_tools

FIND = "find_tools"
CALL = "call_tool"
_OTHER = "holdfast_"
"""Put before both names where the client has a tool of such a name."""
_LEAD = "Finds tools by what they do or by name, and gives their parameters; then "
_QUERY: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
}
_LONGEST_QUERY = 2_000


class ToolPair(NamedTuple):
    """What the two tools are called in a request."""

    find: str = FIND
    call: str = CALL


PAIRS = (ToolPair(), ToolPair(_OTHER + FIND, _OTHER + CALL))
FINDERS = frozenset(pair.find for pair in PAIRS)
CALLERS = frozenset(pair.call for pair in PAIRS)
OUR_TOOLS = recalling.OUR_TOOLS | FINDERS | CALLERS
"""What a tool of ours may be called: whoever offers one answers its calls."""


def free_pair(conversation: Conversation) -> ToolPair | None:
    """Names that no tool of the client's has; None if it has taken all of them."""
    taken = {tool.name for tool in offered_tools(conversation)}
    return next((pair for pair in PAIRS if taken.isdisjoint(pair)), None)


def offered_pair(conversation: Conversation) -> ToolPair | None:
    """The two tools as a request offers them; None if it does not."""
    descriptions = {tool.name: tool.description for tool in conversation.tools}
    return next((pair for pair in PAIRS if descriptions.get(pair.find, "").startswith(_LEAD)), None)


def finder(dialect: str, pair: ToolPair, directory: str, *, native: bool = False) -> dict[str, Any]:
    """The tool that finds others, as an entry of a request's list of tools.

    `native`: the provider loads what is found, and no other tool is needed to call it.
    """
    then = "call them by their names" if native else f"use {pair.call}"
    description = f"{_LEAD}{then}.\n{directory}".rstrip()
    return write(dialect, Tool(name=pair.find, description=description, parameters=_QUERY))


def caller(dialect: str, pair: ToolPair) -> dict[str, Any]:
    """The tool that calls others, as an entry of a request's list of tools."""
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
    """What a call of the finder looks for."""
    query = read_arguments(arguments).get("query")
    if not isinstance(query, str) or not query.strip():
        raise ExpandError(
            "query is missing", where="query", fix="Say in some words what the tool should do."
        )
    return query.strip()[:_LONGEST_QUERY]


def parse_tool_call(arguments: object) -> tuple[str, dict[str, Any]]:
    """The tool that a call of the caller means, and the arguments for it.

    Models write the arguments as an object, as JSON text, or beside the name; all are meant alike.
    """
    given = read_arguments(arguments)
    name = given.pop("name", None)
    if not isinstance(name, str) or not name.strip():
        raise ExpandError("name is missing", where="name", fix="Give the name of the tool.")
    inside = given.pop("arguments", None)
    if inside is None or inside == "":
        return name.strip(), given
    return name.strip(), read_arguments(inside)
