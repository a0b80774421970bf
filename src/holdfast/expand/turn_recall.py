"""Define the tool that finds earlier turns: `recall(query)`, written in every dialect.

turn_recall: after tool. It lets a model ask for history that a request omits. The answer is that of
`Holdfast.recall`, within the limits of expansions.
"""

from __future__ import annotations

from typing import Any

from holdfast.errors import ExpandError
from holdfast.expand import tool
from holdfast.expand.tool import read_arguments, write
from holdfast.wire.blocks import Tool
from holdfast.wire.conversation import Conversation
from holdfast.wire.tools import offered_tools

NAME = "recall"
OTHER_NAME = "holdfast_recall"
"""Name for requests in which the client has a tool named `recall`."""

OUR_TOOLS = frozenset({tool.NAME, tool.OTHER_NAME, NAME, OTHER_NAME})
"""Names of the tools that open omitted content."""

DESCRIPTION = "Finds what was said earlier in this conversation."
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
}
_LONGEST_QUERY = 2_000


def definition(dialect: str, name: str = NAME) -> dict[str, Any]:
    """Return the tool as an entry of a request's list of tools."""
    return write(dialect, Tool(name=name, description=DESCRIPTION, parameters=PARAMETERS))


def recall_tool(conversation: Conversation) -> tuple[str, bool]:
    """Return the name of the tool in a request, and whether it is offered already.

    A different tool of the client may have its usual name.
    """
    descriptions = {tool.name: tool.description for tool in offered_tools(conversation)}
    for name in (NAME, OTHER_NAME):
        if name not in descriptions or descriptions[name] == DESCRIPTION:
            return name, name in descriptions
    return OTHER_NAME, True


def parse_query(arguments: object) -> str:
    """Return the query of a call."""
    query = read_arguments(arguments).get("query")
    if not isinstance(query, str) or not query.strip():
        raise ExpandError(
            "query is missing", where="query", fix="Say in some words what to look for."
        )
    return query.strip()[:_LONGEST_QUERY]
