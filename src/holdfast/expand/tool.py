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

DESCRIPTION = "Opens what a citation leaves out, in the ways it shows."
"""Every citation ends with calls that open it, with values of its own content, and every miss is
told with what to do: so no word here explains an option. With such words the tool had 154 tokens
for gpt-5 instead of 69, and short conversations in shops cost 1.02 of what they do untouched."""

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ref_id": _TEXT,
        "query": _TEXT,
        "lines": _TEXT,
        "path": _TEXT,
        "fields": {"type": "array", "items": _TEXT},
        "offset": _NUMBER,
        "limit": _NUMBER,
        "pattern": _TEXT,
        "around": _TEXT,
        "page": _NUMBER,
        "max_tokens": _NUMBER,
    },
    "required": ["ref_id"],
}


def definition(dialect: str, name: str = NAME) -> dict[str, Any]:
    """The tool as an entry of a request's list of tools."""
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
            "the arguments are no JSON object", where="arguments", fix='Give {"ref_id": "…"}.'
        )
    return {str(name): value for name, value in arguments.items()}
