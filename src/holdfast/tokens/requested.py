"""Compute the output tokens that a request allows, and the input limit that follows.

Where input and output share a window, the requested output reduces the input: the API refuses a
request with `max_tokens` of 64,000 to a window of 200,000 above 136,000 input tokens, however short
the answer would be.
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
"""Paths of the actual request inside a token-count request, by dialect."""

_CAPS: dict[str, tuple[_Path, ...]] = {
    "anthropic": (("max_tokens",),),
    "openai-chat": (("max_completion_tokens",), ("max_tokens",)),
    "openai-responses": (("max_output_tokens",),),
    # Protocol buffers accept both spellings of a name.
    "gemini": (
        ("generationConfig", "maxOutputTokens"),
        ("generationConfig", "max_output_tokens"),
        ("generation_config", "maxOutputTokens"),
        ("generation_config", "max_output_tokens"),
    ),
    "converse": (("inferenceConfig", "maxTokens"),),
    "cohere": (("max_tokens",),),
}
"""Paths of the maximum answer length, reasoning included, by dialect."""

_THINKING: dict[str, tuple[_Path, ...]] = {
    "anthropic": (("thinking", "budget_tokens"),),
    # OpenRouter's field, and Claude's behind OpenAI-compatible endpoints.
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
"""Paths of the maximum thinking tokens. Thinking is part of the answer and exceeds the answer's
limit only with Claude's interleaved thinking.
"""


def requested_output(conversation: Conversation) -> int | None:
    """Return the output tokens that a request allows; None if it does not state them.

    Invalid numbers are ignored; the provider will refuse them.
    """
    caps = list(_numbers(conversation, _CAPS))
    thinking = list(_numbers(conversation, _THINKING))
    if caps:
        return max(caps + thinking)
    # A thinking budget alone does not limit the visible text after it. The default reserve covers
    # both unless the budget exceeds it.
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
            # Gemini uses -1 for "no limit"; JSON may contain 64000.0.
            if isinstance(tokens, int | float) and not isinstance(tokens, bool) and tokens >= 0:
                yield int(tokens)


def _at(value: Any, path: _Path) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
