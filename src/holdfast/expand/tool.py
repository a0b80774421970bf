"""The tool that a model opens refs with: one definition, written in every dialect.

tool: after options. It is added to requests, so every word of it is paid for in each of them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import ExpandError
from holdfast.expand.options import DEFAULT_TOKENS, MOST_TOKENS, ExpandOptions
from holdfast.wire.blocks import Tool
from holdfast.wire.reader import dialect_named

NAME = "expand_ref"
OTHER_NAME = "holdfast_expand_ref"
"""For requests that have a tool named `expand_ref` of their own."""

DESCRIPTION = """\
Opens part of a stored result that is cited by its ref. Read the citation first; open only what it \
lacks. Give one of query, lines, pattern, around, or path/fields/offset/limit."""
"""No example: every citation ends with a call that opens it, and this stands in each request."""

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ref_id": _TEXT,
        "query": {"type": "string", "description": "question to answer"},
        "lines": {"type": "string", "description": "40-120; -20: the last 20"},
        "path": {"type": "string", "description": "JSON: $.items[3].name"},
        "fields": {"type": "array", "items": _TEXT},
        "offset": {"type": "integer", "description": "rows, else lines"},
        "limit": _NUMBER,
        "pattern": {"type": "string", "description": "RE2"},
        "around": {"type": "string", "description": "line, cited place or exact words"},
        "page": _NUMBER,
        "max_tokens": {
            "type": "integer",
            "description": f"default {DEFAULT_TOKENS}, most {MOST_TOKENS}",
        },
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


def parse_call(arguments: object) -> tuple[str, ExpandOptions]:
    """The ref and the options of a call, from its arguments as JSON text or as a value.

    Options may stand beside `ref_id` or in an object `options`.
    """
    given = read_arguments(arguments)
    ref = given.pop("ref_id", None)
    if not isinstance(ref, str) or not ref.strip():
        raise ExpandError(
            "ref_id is missing", where="ref_id", fix="Give the ref as the citation shows it."
        )
    inside = given.pop("options", None)
    if inside and not given:
        return ref.strip(), ExpandOptions.parse(inside)
    if isinstance(inside, dict):
        given = {**inside, **given}
    return ref.strip(), ExpandOptions.parse(given)


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
