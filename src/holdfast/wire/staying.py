"""Which messages must stay where they are, whatever is folded around them.

staying: after blocks; knows types, not dialects.

Some messages act by their place: a compaction stands for all before it and must come first, and
tools that were added or found in the middle can be called only behind the message that brought
them. Moved, folded or dropped, the provider refuses what follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.wire.blocks import Block, Opaque, ToolResult

if TYPE_CHECKING:
    from holdfast.wire.message import Message

STAYING = frozenset(
    {
        # Anthropic: first in messages, signed (errors compaction_block_misplaced, _incomplete_turn)
        "compaction",
        # Anthropic: tools added in the middle; tools that a search has found (CLIProxyAPI#1547)
        "tool_addition",
        "tool_removal",
        "tool_reference",
        "tool_search_tool_result",
        # OpenAI Responses: the same, and the order to compact, which must come last
        "additional_tools",
        "compaction_trigger",
        "tool_search_call",
        "tool_search_output",
        # It stands for an item that nobody here has seen: it may be half of a pair
        "item_reference",
    }
)
"""Types of blocks and items."""


def stays(message: Message) -> bool:
    """Whether a message must neither be moved nor folded nor dropped."""
    return any(isinstance(block, Opaque) and block.type in STAYING for block in _inside(message))


def _inside(message: Message) -> Iterator[Block]:
    for block in message.blocks:
        yield block
        if isinstance(block, ToolResult):
            yield from block.parts
