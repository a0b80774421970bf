"""Convert items, models and tools of the OpenAI Agents SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents import Agent, FunctionTool, TResponseInputItem, handoff
from agents.handoffs import Handoff


class Items:
    """The SDK's items, which are those of the dialect."""

    dialect = "openai-responses"

    def write(self, message: TResponseInputItem) -> Sequence[Mapping[str, Any]]:
        """Return an item unchanged."""
        return (message,)

    def read(
        self, parts: Sequence[tuple[Any, TResponseInputItem | None]]
    ) -> Sequence[TResponseInputItem]:
        """Return the items to send unchanged."""
        return [value for value, _ in parts]


def model_of(agent: Agent[Any]) -> str:
    name = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", "")
    return name if isinstance(name, str) else ""


def declare_tool(tool: Any) -> dict[str, Any]:
    """Return a tool as the API declares it; hosted tools by name only."""
    if not isinstance(tool, FunctionTool):
        return {"type": tool.name}
    return _function(tool.name, tool.description, tool.params_json_schema)


def declare_handoff(other: Any) -> dict[str, Any]:
    """Return a handoff to another agent, which the model sees as a tool."""
    to = other if isinstance(other, Handoff) else handoff(other)
    return _function(to.tool_name, to.tool_description, to.input_json_schema)


def _function(name: str, description: str, parameters: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": parameters,
    }
