"""The items of the OpenAI Agents SDK, and an agent's model and tools as the API is told of them.

agents_items: beside session, before openai_agents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents import Agent, FunctionTool, TResponseInputItem, handoff
from agents.handoffs import Handoff


class Items:
    """The SDK's items, which are the dialect's own."""

    dialect = "openai-responses"

    def write(self, message: TResponseInputItem) -> Sequence[Mapping[str, Any]]:
        """An item as it is."""
        return (message,)

    def read(
        self, parts: Sequence[tuple[Any, TResponseInputItem | None]]
    ) -> Sequence[TResponseInputItem]:
        """What goes out, as it is."""
        return [value for value, _ in parts]


def model_of(agent: Agent[Any]) -> str:
    name = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", "")
    return name if isinstance(name, str) else ""


def declared(tool: Any) -> dict[str, Any]:
    """A tool as the API is told of it; hosted tools by their name alone."""
    if not isinstance(tool, FunctionTool):
        return {"type": tool.name}
    return _function(tool.name, tool.description, tool.params_json_schema)


def handed(other: Any) -> dict[str, Any]:
    """Another agent to hand over to, which the model sees as a tool."""
    to = other if isinstance(other, Handoff) else handoff(other)
    return _function(to.tool_name, to.tool_description, to.input_json_schema)


def _function(name: str, description: str, parameters: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": parameters,
    }
