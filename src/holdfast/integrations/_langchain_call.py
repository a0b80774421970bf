"""What LangChain knows of a call beside its messages: its thread, its answer's tools, its usage.

langchain_call: beside langchain_messages, before langchain.
"""

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
    """The tools that structured answers come in: LangChain adds them behind all middleware."""
    wanted = request.response_format
    specs = wanted.schema_specs if isinstance(wanted, ToolStrategy) else ()
    return [
        {"type": "function", "function": {"name": spec.name, "parameters": spec.json_schema}}
        for spec in specs
    ]


def usage_of(response: Any) -> dict[str, Any] | None:
    """What a call used, in the words of the dialect; None if the model does not say."""
    if isinstance(response, ExtendedModelResponse):
        response = response.model_response
    messages = response.result if isinstance(response, ModelResponse) else [response]
    used = next((m.usage_metadata for m in messages if isinstance(m, AIMessage)), None)
    if not used:
        return None
    cached = (used.get("input_token_details") or {}).get("cache_read", 0)
    return {
        "prompt_tokens": used["input_tokens"],
        "completion_tokens": used["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def session_name(messages: Sequence[BaseMessage]) -> str:
    """The thread, and within it the subagent; without a thread, the run by its first message."""
    try:
        configurable = get_config().get("configurable", {})
    except RuntimeError:  # outside a graph
        configurable = {}
    thread = configurable.get("thread_id")
    # The last part of the namespace is the node that calls the model, the others who called that.
    above = str(configurable.get("checkpoint_ns", "")).rpartition("|")[0]
    first = messages[0].id if messages else None
    name = f"{thread}|{above}" if thread and above else str(thread or first or "")
    return name if len(name) <= _MOST_NAME else sha256(name.encode()).hexdigest()
