"""Holdfast: a context engine for LLM agents. Every call fits; nothing is lost."""

from holdfast.errors import HoldfastError
from holdfast.settings import Settings
from holdfast.tokens import (
    Calibration,
    ModelContextLimits,
    ModelContextRegistry,
    TokenCount,
    TokenCounter,
    count,
    estimate_tokens,
    get_effective_context,
    register_counter,
)
from holdfast.wire import (
    Block,
    Conversation,
    Exchange,
    Media,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Violation,
    convert,
    detect,
    read,
    repair,
    validate,
    write,
)

__version__ = "0.1.0"

__all__ = [
    "Block",
    "Calibration",
    "Conversation",
    "Exchange",
    "HoldfastError",
    "Media",
    "Message",
    "ModelContextLimits",
    "ModelContextRegistry",
    "Opaque",
    "Settings",
    "Text",
    "Thinking",
    "TokenCount",
    "TokenCounter",
    "ToolCall",
    "ToolResult",
    "Violation",
    "convert",
    "count",
    "detect",
    "estimate_tokens",
    "get_effective_context",
    "read",
    "register_counter",
    "repair",
    "validate",
    "write",
]
