"""Detect the dialect of a body from its keys, then from its first messages."""

from __future__ import annotations

from itertools import chain
from typing import Any

import msgspec

from holdfast.errors import ShapeError
from holdfast.wire.frame import top_level
from holdfast.wire.strict import Limits, fields, items, parse, to_checked_bytes
from holdfast.wire.values import take

# Keys that only some dialects use, in the body, a message or a part. Each scores one point, so that
# one unusual key from a gateway does not decide alone. Cohere uses OpenAI's messages and is
# recognised by its own keys; a tie means OpenAI.
_BODY_KEYS: dict[str, frozenset[str]] = {
    "openai-chat": frozenset(
        "max_completion_tokens stream_options response_format n logprobs "
        "parallel_tool_calls frequency_penalty presence_penalty functions "
        "reasoning_effort stop seed logit_bias".split()
    ),
    "anthropic": frozenset(
        "anthropic_version anthropic_beta system stop_sequences thinking output_config "
        "context_management container mcp_servers top_k".split()
    ),
    "converse": frozenset(
        "inferenceConfig toolConfig additionalModelRequestFields guardrailConfig "
        "outputConfig performanceConfig promptVariables schemaVersion requestMetadata "
        "modelId".split()
    ),
    "cohere": frozenset(
        "documents citation_options safety_mode strict_tools p k message preamble "
        "connectors".split()
    ),
}
_MESSAGE_KEYS: dict[str, frozenset[str]] = {
    "openai-chat": frozenset(
        "tool_calls tool_call_id function_call reasoning_content name".split()
    ),
    "cohere": frozenset("tool_calls tool_call_id tool_plan citations".split()),
}
_ROLES = {
    "openai-chat": frozenset({"tool", "function", "system", "developer"}),
    "cohere": frozenset({"tool", "system"}),
}
_PART_TYPES: dict[str, frozenset[str]] = {
    "openai-chat": frozenset({"image_url", "input_audio", "file", "refusal"}),
    "anthropic": frozenset(
        "tool_use tool_result thinking redacted_thinking image document server_tool_use".split()
    ),
}
_LOOKED_AT = 12
_DEFAULT_LIMITS = Limits()


def detect(body: object, *, limits: Limits = _DEFAULT_LIMITS) -> str:
    """Return the most likely dialect of a body; raise `ShapeError` if none fits."""
    return guess(to_checked_bytes(body, limits))


def guess(raw: bytes) -> str:
    """Detect the dialect of bytes that are already checked against the limits."""
    top = top_level(raw)
    if "contents" in top or "generateContentRequest" in top:
        return "gemini"
    if "input" in top and "messages" not in top:
        wrapped = bytes(top["input"])[:1] == b"{" and "converse" in fields(top["input"])
        return "converse" if wrapped else "openai-responses"
    if "messages" in top:
        return _by_messages(top)
    if "message" in top and "model" in top:
        return "cohere"
    raise ShapeError(
        "no dialect fits: the body has no messages, input or contents",
        where="$",
        fix="Send a request body, or name its dialect.",
    )


def _by_messages(top: dict[str, msgspec.Raw]) -> str:
    score = {"openai-chat": 0, "anthropic": 0, "converse": 0, "cohere": 0}
    for dialect, keys in _BODY_KEYS.items():
        score[dialect] += len(keys & top.keys())
    for message in _first_messages(top["messages"]):
        _weigh(message, score)
    if "tools" in top:
        native = b'"input_schema"' in bytes(top["tools"])
        for dialect in ("anthropic",) if native else ("openai-chat", "cohere"):
            score[dialect] += 1
    # A bare name of the vendor's own model; gateways prefix the vendor (`anthropic/…`).
    model = bytes(top.get("model", b""))
    score["anthropic"] += model.startswith((b'"claude', b'"anthropic.claude')) * 3
    score["cohere"] += model.startswith((b'"command', b'"c4ai', b'"north')) * 5
    if "max_tokens" not in top:  # Anthropic requires it except for counting, which never streams
        score["anthropic"] -= 4 if "stream" in top else 2
    if "model" not in top and "anthropic_version" not in top:
        score["converse"] += 1
    best = max(score.values())
    return next(name for name, points in score.items() if points == best)


def _weigh(message: dict[str, Any], score: dict[str, int]) -> None:
    """Add the points that one message scores for each dialect."""
    for dialect, keys in _MESSAGE_KEYS.items():
        score[dialect] += len(keys & message.keys())
    for dialect, roles in _ROLES.items():
        score[dialect] += take(message, "role") in roles
    content = message.get("content")
    if isinstance(content, str):
        score["converse"] -= 1  # Converse content is always a list
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and "type" not in part:
            score["converse"] += 1
        elif isinstance(part, dict):
            for dialect, kinds in _PART_TYPES.items():
                score[dialect] += take(part, "type") in kinds


def _first_messages(span: msgspec.Raw) -> list[dict[str, Any]]:
    if bytes(span)[:1] != b"[":
        return []
    spans = items(span)
    count = len(spans)
    ends = chain(range(min(count, _LOOKED_AT)), range(max(count - 2, _LOOKED_AT), count))
    values = (parse(spans[n], ("messages", n)) for n in ends)
    return [message for message in values if isinstance(message, dict)]
