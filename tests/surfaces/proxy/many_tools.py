"""Sixty tools with long schemas, as a few MCP servers bring them."""

from __future__ import annotations

from typing import Any

LONG = (
    "Reads or changes records of this kind, page by page, with filters and an order of rows. " * 6
)


def tool(number: int) -> dict[str, Any]:
    """One of very many tools, with a schema of some hundred tokens."""
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": LONG},
            "days": {"type": "integer", "minimum": 1, "description": LONG},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    name = f"office_{number}__lookup_{number}"
    return {
        "name": name,
        "description": f"Looks up the office {number}. {LONG}",
        "parameters": schema,
    }


MANY = [tool(number) for number in range(60)]
