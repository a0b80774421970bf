"""An MCP server on standard input and output that offers any number of tools, for coding agents.

Run it with the number of tools: `python tests/clients/mcp_tools.py 30`. It needs only the
standard library, so every interpreter can run it. `mcp_config` gives the configuration that
Claude Code reads with `--mcp-config`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SERVER = "records"
_SUBJECTS = ("invoice", "shipment", "customer", "ticket", "contract", "sensor", "recipe", "flight")
_ACTIONS = ("find", "list", "create", "update", "archive", "compare", "export", "approve")
_FILTERS = ("region", "owner", "status", "created_after", "created_before", "currency", "priority")


def tool_name(number: int) -> str:
    """Return the name of a tool as the server declares it."""
    action = _ACTIONS[number % len(_ACTIONS)]
    subject = _SUBJECTS[number // len(_ACTIONS) % len(_SUBJECTS)]
    return f"{action}_{subject}_{number}"


def full_name(number: int) -> str:
    """Return the name of a tool as Claude Code shows it to the model."""
    return f"mcp__{SERVER}__{tool_name(number)}"


def answer(name: str, identifier: str) -> str:
    """Return the text that a tool answers with."""
    return f"{name} read record {identifier}: total {len(name) * 1000 + len(identifier)}"


def mcp_config(count: int) -> dict[str, Any]:
    """Return the configuration with which a coding agent starts this server."""
    command = {"command": sys.executable, "args": [str(Path(__file__).resolve()), str(count)]}
    return {"mcpServers": {SERVER: {"type": "stdio", **command}}}


def definition(number: int) -> dict[str, Any]:
    """Return the definition of a tool, as long as those of real servers (about 300 tokens)."""
    name = tool_name(number)
    action, subject, _ = name.split("_")
    properties: dict[str, Any] = {
        "id": {"type": "string", "description": f"The identifier of the {subject}."}
    }
    for field in _FILTERS:
        words = field.replace("_", " ")
        properties[field] = {
            "type": "string",
            "description": f"Only consider the {subject} whose {words} equals this value.",
        }
    schema = {"type": "object", "properties": properties, "required": ["id"]}
    description = (
        f"{action.capitalize()} one {subject} in the record system and return its total. Use this "
        f"tool when the user asks to {action} that {subject}; it never changes any other record."
    )
    return {"name": name, "description": description, "inputSchema": schema}


def result(method: str, params: dict[str, Any], count: int) -> dict[str, Any] | None:
    """Return the result of a request; None if this server does not know the method."""
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": SERVER, "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [definition(number) for number in range(count)]}
    if method == "tools/call":
        identifier = str(params.get("arguments", {}).get("id", ""))
        text = answer(str(params.get("name", "")), identifier)
        return {"content": [{"type": "text", "text": text}]}
    return {} if method == "ping" else None


def serve(count: int) -> None:
    """Answer JSON-RPC requests, one a line, until the input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:  # a notification has no answer
            continue
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        value = result(str(request.get("method")), request.get("params") or {}, count)
        if value is None:
            reply["error"] = {"code": -32601, "message": "method not found"}
        else:
            reply["result"] = value
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
