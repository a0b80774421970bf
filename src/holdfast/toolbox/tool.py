"""A tool as the toolbox knows it, read from whatever shape its definition comes in.

tool: the first of toolbox. MCP, OpenAI (chat and Responses), Anthropic, Gemini and Bedrock write
the same three things under other names: a name, a description, and the schema of the arguments.
The definition itself is kept as it came. What it says is its server's word, and may be hostile:
nothing here goes deeper into a schema than its text, and no text is trusted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import orjson

from holdfast.cite import count
from holdfast.errors import ToolError

MOST_NAME = 256
"""Characters of a name; providers take 64 or 128, and a gateway puts a server's before them."""
MOST_BYTES = 2_000_000
"""Of one definition; the largest real one at hand has 40,000."""
_GROUPS = ("functionDeclarations", "function_declarations", "tools")
"""Under these keys stand several tools: Gemini's, a namespace's, an answer of `tools/list`."""
_WRAPS = ("function", "toolSpec", "custom")
_SCHEMAS = (
    *("inputSchema", "input_schema", "parameters"),
    *("parametersJsonSchema", "parameters_json_schema"),
)
_BESIDE = ("outputSchema", "annotations", "title")
"""What else of an MCP definition is pinned: a tool that says it only reads must go on saying so."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool: what it is called, whose it is, and what it says of itself."""

    name: str
    server: str = ""
    """Whose it is: an MCP server, a namespace; empty where there is none."""
    description: str = ""
    parameters: Any = None
    """The JSON schema of its arguments."""
    definition: bytes = b""
    """The definition as it came, as JSON."""
    hash: str = ""
    """Of all that it says but its name: two of one hash are the same tool, whatever the shape."""
    tokens: int = 0
    """What its definition costs in a request, roughly: its JSON in o200k."""

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from other tools."""
        return (self.server, self.name)

    @property
    def full_name(self) -> str:
        """Its name with its server's before it, as gateways write it."""
        return f"{self.server}__{self.name}" if self.server else self.name

    def __repr__(self) -> str:
        return f"<Tool {self.full_name[:80]!r}, {self.tokens} tokens>"


class Refused(NamedTuple):
    """A definition that is no tool of a toolbox, and why."""

    name: str
    why: str


def read_tools(definitions: Any, server: str = "") -> list[Tool]:
    """The tools of a list in any shape, or of an object that holds such a list.

    Raises:
        ToolError: one of them cannot be read.
    """
    return [_read(definition, owner) for definition, owner in _each(definitions, server)]


def sorted_out(definitions: Any, server: str = "") -> tuple[list[Tool], list[Refused]]:
    """The same, where a definition that cannot be read does not stop the others."""
    tools: list[Tool] = []
    refused: list[Refused] = []
    for definition, owner in _each(definitions, server):
        try:
            tools.append(_read(definition, owner))
        except ToolError as error:
            refused.append(Refused(error.where, error.what))
    return tools, refused


def read_tool(definition: Any, server: str = "") -> Tool:
    """One tool from its definition.

    Raises:
        ToolError: it has no name, more than one tool, or is no JSON that a provider would take.
    """
    tools = read_tools([definition], server)
    if len(tools) != 1:
        raise _no_tool("", f"it holds {len(tools)} tools")
    return tools[0]


def _each(definitions: Any, server: str) -> Iterator[tuple[Any, str]]:
    """Every definition with its server; groups are opened, one level deep."""
    members: Iterable[Any]
    if isinstance(definitions, (Mapping, Tool)) or hasattr(definitions, "model_dump"):
        members = (definitions,)
    elif isinstance(definitions, Iterable) and not isinstance(definitions, (str, bytes)):
        members = definitions
    else:
        raise _no_tool("", "tools are a list of definitions, or an object that holds one")
    for member in members:
        definition = _plain(member)
        group = next((key for key in _GROUPS if _is_list(definition, key)), None)
        if group is None:
            yield definition, server
            continue
        owner = server
        if definition.get("type") == "namespace" and not server:
            owner = str(definition.get("name", ""))
        for inner in definition[group]:
            yield _plain(inner), owner


def _is_list(definition: Any, key: str) -> bool:
    return isinstance(definition, Mapping) and isinstance(definition.get(key), (list, tuple))


def _plain(definition: Any) -> Any:
    """A definition as JSON has it: objects of the SDKs are written out."""
    if hasattr(definition, "model_dump"):
        try:
            return definition.model_dump(mode="json", by_alias=True, exclude_none=True)
        except (RecursionError, ValueError):
            return None
    return definition


def _read(definition: Any, server: str) -> Tool:
    if isinstance(definition, Tool):
        return definition if definition.server or not server else _moved(definition, server)
    if not isinstance(definition, Mapping):
        raise _no_tool("", "it is no object")
    told = next(
        (definition[key] for key in _WRAPS if isinstance(definition.get(key), Mapping)), definition
    )
    name = told.get("name")
    if not isinstance(name, str) or not _is_name(name):
        kind = definition.get("type")
        raise _no_tool(
            kind if isinstance(kind, str) else "",
            f"it has no name of 1 to {MOST_NAME} visible characters",
        )
    if server and not _is_name(server):
        raise _no_tool(name, f"its server has no name of 1 to {MOST_NAME} visible characters")
    description = told.get("description")
    description = description if isinstance(description, str) else ""
    parameters = next((told[key] for key in _SCHEMAS if isinstance(told.get(key), Mapping)), None)
    if parameters is not None and isinstance(parameters.get("json"), Mapping):
        parameters = parameters["json"]  # Bedrock's
    pinned = {"description": description, "parameters": parameters}
    pinned |= {key: told[key] for key in _BESIDE if key in told}
    written = _written(definition, name)
    return Tool(
        name=name,
        server=server,
        description=description,
        parameters=parameters,
        definition=written,
        hash=hashlib.sha256(_written(pinned, name, ordered=True)).hexdigest(),
        tokens=count(written.decode()),
    )


def _is_name(name: str) -> bool:
    return bool(name.strip()) and len(name) <= MOST_NAME and name.isprintable()


def _moved(tool: Tool, server: str) -> Tool:
    return msgspec.structs.replace(tool, server=server)


def _written(value: Any, name: str, *, ordered: bool = False) -> bytes:
    """A value as JSON; with sorted keys two that mean the same are the same."""
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS if ordered else None)
    except (TypeError, RecursionError):
        # Whole numbers beyond 64 bits and lone surrogates are JSON too; what is too deep is not.
        try:
            written = json.dumps(value, sort_keys=ordered, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError):
            raise _no_tool(name, "it is no JSON, or nested too deep") from None
    if len(written) > MOST_BYTES:
        raise _no_tool(name, f"it has more than {MOST_BYTES:,} bytes")
    return written


def _no_tool(name: str, why: str) -> ToolError:
    return ToolError(
        f"this definition of a tool cannot be read: {why}",
        where=name[:100],
        fix="Give tools as MCP, OpenAI, Anthropic or Gemini define them.",
    )
