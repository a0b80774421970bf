"""Parse, edit and write every provider's requests without losing a byte."""

from holdfast.wire.blocks import (
    Block,
    Media,
    Opaque,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from holdfast.wire.bound_thinking import is_bound, without_thinking
from holdfast.wire.conversation import Conversation
from holdfast.wire.convert import Answerer, Conversion, convert
from holdfast.wire.detect import detect
from holdfast.wire.dialect import Entry, Loss
from holdfast.wire.entries import custom_tools
from holdfast.wire.exchanges import Exchange, stays
from holdfast.wire.message import Message
from holdfast.wire.reader import DIALECTS, read, write
from holdfast.wire.repair import Action, RepairedBody, repair
from holdfast.wire.rules import RULES, Rule, Violation
from holdfast.wire.strict import Limits
from holdfast.wire.validate import validate

__all__ = [
    "DIALECTS",
    "RULES",
    "Action",
    "Answerer",
    "Block",
    "Conversation",
    "Conversion",
    "Entry",
    "Exchange",
    "Limits",
    "Loss",
    "Media",
    "Message",
    "Opaque",
    "RepairedBody",
    "Role",
    "Rule",
    "Text",
    "Thinking",
    "Tool",
    "ToolCall",
    "ToolResult",
    "Violation",
    "convert",
    "custom_tools",
    "detect",
    "is_bound",
    "read",
    "repair",
    "stays",
    "validate",
    "without_thinking",
    "write",
]
