"""requested: how long an answer a request allows, and how much input that leaves to it.

requested: after limits, and over wire; it counts nothing.
Where input and output share a window this room is not there for the input: a request with
`max_tokens` of 64,000 to a window of 200,000 is refused by the API above 136,000 tokens of input,
however short the answer would have been.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.tokens.limits import DEFAULT_OUTPUT_TOKENS, ModelContextRegistry, input_limit
from holdfast.wire import Conversation

_Path = tuple[str, ...]

_WRAPPINGS: dict[str, tuple[_Path, ...]] = {
    "gemini": (("generateContentRequest",),),
    "converse": (("input", "converse"),),
}
"""Where requests to count tokens put the request itself."""

_CAPS: dict[str, tuple[_Path, ...]] = {
    "anthropic": (("max_tokens",),),
    "openai-chat": (("max_completion_tokens",), ("max_tokens",)),
    "openai-responses": (("max_output_tokens",),),
    # Protocol buffers read both spellings of a name.
    "gemini": (
        ("generationConfig", "maxOutputTokens"),
        ("generationConfig", "max_output_tokens"),
        ("generation_config", "maxOutputTokens"),
        ("generation_config", "max_output_tokens"),
    ),
    "converse": (("inferenceConfig", "maxTokens"),),
    "cohere": (("max_tokens",),),
}
"""The most tokens of an answer, reasoning included."""

_THINKING: dict[str, tuple[_Path, ...]] = {
    "anthropic": (("thinking", "budget_tokens"),),
    # OpenRouter's, and Claude's behind endpoints that speak as OpenAI does.
    "openai-chat": (("reasoning", "max_tokens"), ("thinking", "budget_tokens")),
    "gemini": (
        ("generationConfig", "thinkingConfig", "thinkingBudget"),
        ("generation_config", "thinking_config", "thinking_budget"),
    ),
    "converse": (
        ("additionalModelRequestFields", "thinking", "budget_tokens"),
        ("additionalModelRequestFields", "reasoning_config", "budget_tokens"),
    ),
}
"""The most tokens of thinking. It is part of the answer, and may only with Claude's interleaved
thinking be more than the answer's own limit."""


def requested_output(conversation: Conversation) -> int | None:
    """Return the tokens that a request allows for its answer; None if it does not say.

    What is no number of tokens is passed over: it is for the provider to refuse.
    """
    caps = list(_numbers(conversation, _CAPS))
    thinking = list(_numbers(conversation, _THINKING))
    if caps:
        return max(caps + thinking)
    # A budget for thinking alone says nothing about the text behind it: the room that is kept
    # where nobody says anything holds both, unless thinking may fill it.
    most = max(thinking, default=0)
    return most if most > DEFAULT_OUTPUT_TOKENS else None


def request_limit(
    conversation: Conversation,
    registry: ModelContextRegistry,
    *,
    model: str = "",
    output: int | None = None,
) -> int:
    """Return the most input tokens that a request may have; 0 means that it must not be sent.

    `model` is for requests that do not name theirs, or name it otherwise; `output` wins over the
    room that the request itself asks for its answer.
    """
    limits = registry.resolve(model or conversation.model or "unknown:unknown")
    return input_limit(limits, output=requested_output(conversation) if output is None else output)


def _numbers(conversation: Conversation, paths: dict[str, tuple[_Path, ...]]) -> Iterator[int]:
    dialect, body = conversation.dialect, conversation.rest
    for wrapping in ((), *_WRAPPINGS.get(dialect, ())):
        for path in paths.get(dialect, ()):
            tokens = _at(body, (*wrapping, *path))
            # Gemini writes -1 for "as much as the model likes"; JSON may write 64000.0.
            if isinstance(tokens, int | float) and not isinstance(tokens, bool) and tokens >= 0:
                yield int(tokens)


def _at(value: Any, path: _Path) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
