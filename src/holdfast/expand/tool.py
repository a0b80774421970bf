"""The tool that a model opens refs with: one definition, written in every dialect.

tool: after options. It is added to requests, so every word of it is paid for in each of them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import ExpandError
from holdfast.wire.blocks import Tool
from holdfast.wire.reader import dialect_named

NAME = "expand_ref"
OTHER_NAME = "holdfast_expand_ref"
"""For requests that have a tool named `expand_ref` of their own."""

DESCRIPTION = "Open a part of the content that a citation stands for."
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ref": {"type": "string", "description": "The ref of the citation."},
        "find": {
            "type": "string",
            "description": "What to open: words, a question, lines 40-80, a JSON path, /pattern/ "
            "or page 2.",
        },
    },
    "required": ["ref"],
}
"""Two parameters: a model of 1.5 billion parameters filled in every option of a longer list at
once. `calls.parse_call` still takes all of them. The definition has 64 tokens for GPT models and
124 for Claude; with the eleven options it had 69 and 185."""

DESCRIPTIONS = frozenset({DESCRIPTION, "Opens what a citation leaves out, in the ways it shows."})
"""With that of earlier versions: a session goes on with the definition that it began with, because
tools stand first in what providers cache."""


def is_opener(tool: Tool) -> bool:
    """Return whether a tool is ours, by its description: a client's may have the same name."""
    return tool.description in DESCRIPTIONS


def definition(dialect: str, name: str = NAME) -> dict[str, Any]:
    """Return the tool as an entry of a request's list of tools."""
    return write(dialect, Tool(name=name, description=DESCRIPTION, parameters=PARAMETERS))


def write(dialect: str, tool: Tool) -> dict[str, Any]:
    """A tool as an entry of the list of tools of a dialect."""
    body = dialect_named(dialect).envelope("", [tool], {})
    tools = body["toolConfig"]["tools"] if "toolConfig" in body else body["tools"]
    # The dialects' writers share our parameters; what a caller changes must not reach the next.
    entry: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(tools[0]))
    return entry


def read_arguments(arguments: object) -> dict[str, Any]:
    """A call's arguments as a dictionary of our own."""
    if isinstance(arguments, str | bytes):
        try:
            arguments = msgspec.json.decode(arguments)
        except (ValueError, RecursionError):
            arguments = None
    if not isinstance(arguments, dict):
        raise ExpandError(
            "the arguments are no JSON object", where="arguments", fix="Give a JSON object."
        )
    return {str(name): value for name, value in arguments.items()}
