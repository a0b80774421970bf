"""Holdfast: a context engine for LLM agents. Every call fits; nothing is lost."""

from holdfast.errors import HoldfastError
from holdfast.settings import Settings
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
    "Conversation",
    "Exchange",
    "HoldfastError",
    "Media",
    "Message",
    "Opaque",
    "Settings",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
    "Violation",
    "convert",
    "detect",
    "read",
    "repair",
    "validate",
    "write",
]
