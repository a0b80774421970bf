"""The tool that a model finds earlier turns with: `recall(query)`, written in every dialect.

recalling: after tool. Where history is left out of a request, the model must be able to ask for it;
the answer is what `Holdfast.recall` gives, under the caps of expansions.
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
"""For requests that have a tool named `recall` of their own."""

OUR_TOOLS = frozenset({tool.NAME, tool.OTHER_NAME, NAME, OTHER_NAME})
"""What the tools that open what was left out may be called."""

DESCRIPTION = "Finds what was said earlier in this conversation."
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
}
_LONGEST_QUERY = 2_000


def definition(dialect: str, name: str = NAME) -> dict[str, Any]:
    """The tool as an entry of a request's list of tools."""
    return write(dialect, Tool(name=name, description=DESCRIPTION, parameters=PARAMETERS))


def recall_tool(conversation: Conversation) -> tuple[str, bool]:
    """What the tool is called in a request, and whether it is offered already.

    A client's tool of another meaning may have its usual name.
    """
    descriptions = {tool.name: tool.description for tool in offered_tools(conversation)}
    for name in (NAME, OTHER_NAME):
        if name not in descriptions or descriptions[name] == DESCRIPTION:
            return name, name in descriptions
    return OTHER_NAME, True


def parse_query(arguments: object) -> str:
    """What a call asks for."""
    query = read_arguments(arguments).get("query")
    if not isinstance(query, str) or not query.strip():
        raise ExpandError(
            "query is missing", where="query", fix="Say in some words what to look for."
        )
    return query.strip()[:_LONGEST_QUERY]
