"""The thread, the structured answer's tools and the token usage of a LangChain call."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain.agents.middleware.types import ExtendedModelResponse
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.config import get_config

_MOST_NAME = 180


def answer_tools(request: ModelRequest[Any]) -> list[Any]:
    """Return the tools for structured answers, which LangChain adds after all middleware."""
    strategy = request.response_format
    specs = strategy.schema_specs if isinstance(strategy, ToolStrategy) else ()
    return [
        {"type": "function", "function": {"name": spec.name, "parameters": spec.json_schema}}
        for spec in specs
    ]


def usage_of(response: Any) -> dict[str, Any] | None:
    """Return the usage of a call in the dialect's form; None if the model does not report it."""
    if isinstance(response, ExtendedModelResponse):
        response = response.model_response
    messages = response.result if isinstance(response, ModelResponse) else [response]
    usage = next((m.usage_metadata for m in messages if isinstance(m, AIMessage)), None)
    if not usage:
        return None
    cached = (usage.get("input_token_details") or {}).get("cache_read", 0)
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def session_name(messages: Sequence[BaseMessage]) -> str:
    """Return a session name: thread and subagent, or else the first message's id."""
    try:
        configurable = get_config().get("configurable", {})
    except RuntimeError:  # outside a graph
        configurable = {}
    thread = configurable.get("thread_id")
    # The last part of the namespace is the node that calls the model; the others are its callers.
    callers = str(configurable.get("checkpoint_ns", "")).rpartition("|")[0]
    first = messages[0].id if messages else None
    name = f"{thread}|{callers}" if thread and callers else str(thread or first or "")
    return name if len(name) <= _MOST_NAME else sha256(name.encode()).hexdigest()
