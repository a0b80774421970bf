"""Read tool definitions of any shape.

MCP, OpenAI (Chat and Responses), Anthropic, Gemini and Bedrock write a name, a description and a
schema of the arguments under different keys. The definition itself is kept unchanged. It comes from
the server and may be hostile, so nothing in it is trusted.
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
"""Maximum characters of a name; providers allow 64 or 128, and a gateway adds the server's name."""
MOST_BYTES = 2_000_000
"""Maximum bytes of a definition; the largest real one seen has 40,000."""
_GROUPS = ("functionDeclarations", "function_declarations", "tools")
"""Keys of lists of tools: Gemini's, a namespace's, a `tools/list` response."""
_WRAPS = ("function", "toolSpec", "custom")
_SCHEMAS = (
    *("inputSchema", "input_schema", "parameters"),
    *("parametersJsonSchema", "parameters_json_schema"),
)
_BESIDE = ("outputSchema", "annotations", "title")
"""Other fields of an MCP definition that are pinned: a tool declared read-only must stay so."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's name, server, description and parameters."""

    name: str
    server: str = ""
    """Its MCP server or namespace; empty if it has none."""
    description: str = ""
    parameters: Any = None
    """The JSON schema of its arguments."""
    definition: bytes = b""
    """The original definition as JSON."""
    hash: str = ""
    """Hash of everything but the name: tools with the same hash are equal, in any shape."""
    tokens: int = 0
    """Approximate tokens of its definition in a request: its JSON in o200k."""

    @property
    def key(self) -> tuple[str, str]:
        """Return the server and the name, which identify the tool."""
        return (self.server, self.name)

    @property
    def full_name(self) -> str:
        """Return the name with the server's name before it, as gateways write it."""
        return f"{self.server}__{self.name}" if self.server else self.name

    def __repr__(self) -> str:
        return f"<Tool {self.full_name[:80]!r}, {self.tokens} tokens>"


class InvalidTool(NamedTuple):
    """A definition that is not a tool, and the reason."""

    name: str
    why: str


def read_tools(definitions: Any, server: str = "") -> list[Tool]:
    """Return the tools of a list in any shape, or of an object that holds such a list.

    Raises:
        ToolError: if one of them cannot be read.
    """
    return [_read(definition, owner) for definition, owner in _iterate(definitions, server)]


def read_valid_tools(definitions: Any, server: str = "") -> tuple[list[Tool], list[InvalidTool]]:
    """Return the valid tools of a list, and the definitions that cannot be read."""
    tools: list[Tool] = []
    invalid: list[InvalidTool] = []
    for definition, owner in _iterate(definitions, server):
        try:
            tools.append(_read(definition, owner))
        except ToolError as error:
            invalid.append(InvalidTool(error.where, error.what))
    return tools, invalid


def read_tool(definition: Any, server: str = "") -> Tool:
    """Return one tool from its definition.

    Raises:
        ToolError: if it has no name, has several tools, or is not JSON that a provider accepts.
    """
    tools = read_tools([definition], server)
    if len(tools) != 1:
        raise _invalid("", f"it holds {len(tools)} tools")
    return tools[0]


def _iterate(definitions: Any, server: str) -> Iterator[tuple[Any, str]]:
    """Yield every definition with its server; groups are opened one level deep."""
    members: Iterable[Any]
    if isinstance(definitions, (Mapping, Tool)) or hasattr(definitions, "model_dump"):
        members = (definitions,)
    elif isinstance(definitions, Iterable) and not isinstance(definitions, (str, bytes)):
        members = definitions
    else:
        raise _invalid("", "tools are a list of definitions, or an object that holds one")
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
    """Return a definition as JSON values: objects of the SDKs are converted."""
    if hasattr(definition, "model_dump"):
        try:
            return definition.model_dump(mode="json", by_alias=True, exclude_none=True)
        except (RecursionError, ValueError):
            return None
    return definition


def _read(definition: Any, server: str) -> Tool:
    if isinstance(definition, Tool):
        return definition if definition.server or not server else _with_server(definition, server)
    if not isinstance(definition, Mapping):
        raise _invalid("", "it is no object")
    fields = next(
        (definition[key] for key in _WRAPS if isinstance(definition.get(key), Mapping)), definition
    )
    name = fields.get("name")
    if not isinstance(name, str) or not _is_name(name):
        kind = definition.get("type")
        raise _invalid(
            kind if isinstance(kind, str) else "",
            f"it has no name of 1 to {MOST_NAME} visible characters",
        )
    if server and not _is_name(server):
        raise _invalid(name, f"its server has no name of 1 to {MOST_NAME} visible characters")
    description = fields.get("description")
    description = description if isinstance(description, str) else ""
    parameters = next(
        (fields[key] for key in _SCHEMAS if isinstance(fields.get(key), Mapping)), None
    )
    if parameters is not None and isinstance(parameters.get("json"), Mapping):
        parameters = parameters["json"]  # Bedrock wraps the schema
    pinned = {"description": description, "parameters": parameters}
    pinned |= {key: fields[key] for key in _BESIDE if key in fields}
    written = _to_json(definition, name)
    return Tool(
        name=name,
        server=server,
        description=description,
        parameters=parameters,
        definition=written,
        hash=hashlib.sha256(_to_json(pinned, name, ordered=True)).hexdigest(),
        tokens=count(written.decode()),
    )


def _is_name(name: str) -> bool:
    return bool(name.strip()) and len(name) <= MOST_NAME and name.isprintable()


def _with_server(tool: Tool, server: str) -> Tool:
    return msgspec.structs.replace(tool, server=server)


def _to_json(value: Any, name: str, *, ordered: bool = False) -> bytes:
    """Return a value as JSON; with sorted keys, equal values have equal bytes."""
    try:
        written = orjson.dumps(value, option=orjson.OPT_SORT_KEYS if ordered else None)
    except (TypeError, RecursionError):
        # Integers beyond 64 bits and lone surrogates are JSON too; a value nested too deep is not.
        try:
            written = json.dumps(value, sort_keys=ordered, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError):
            raise _invalid(name, "it is no JSON, or nested too deep") from None
    if len(written) > MOST_BYTES:
        raise _invalid(name, f"it has more than {MOST_BYTES:,} bytes")
    return written


def _invalid(name: str, why: str) -> ToolError:
    return ToolError(
        f"this definition of a tool cannot be read: {why}",
        where=name[:100],
        fix="Give tools as MCP, OpenAI, Anthropic or Gemini define them.",
    )
