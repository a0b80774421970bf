"""Typed blocks of a message, the same in every dialect.

A block is a view: `place` states its position inside the message, so an edit can change the raw
data. Representations contain sizes, never text, so that blocks may be logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from holdfast.wire.json_places import Place, dotted

if TYPE_CHECKING:
    from holdfast.wire.message import Message

Role = Literal["system", "user", "assistant", "tool"]
"""Speaker of a message. `developer` is read as system, `model` as assistant, `function` as tool."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """The common base of all blocks."""

    place: Place = ()
    """Position of the block inside its message, or inside the body for system blocks."""
    slot: Place = ()
    """Position at which new content is written."""
    owner: Message | None = None
    """The message that contains the block; None for a system block outside the message list."""

    @property
    def path(self) -> str:
        """Return the place as a path from the message: `content[0]`."""
        return dotted(self.place, root="").lstrip(".")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.path or '?'}>"


class Text(Block, frozen=True, kw_only=True):
    """Plain text."""

    text: str

    def __repr__(self) -> str:
        return f"<Text at {self.path or '?'}, {len(self.text)} characters>"


class ToolCall(Block, frozen=True, kw_only=True):
    """A tool call by the model."""

    id: str
    """Id of the call; empty in dialects without ids (Gemini before 3)."""
    name: str
    arguments: Any
    """JSON text (OpenAI) or a JSON value (other dialects), as sent."""


class ToolResult(Block, frozen=True, kw_only=True):
    """The result of a tool call."""

    call_id: str
    name: str = ""
    """The tool's name, if the dialect repeats it."""
    text: str
    """Text of the result; JSON values are given as compact JSON."""
    is_error: bool = False
    parts: tuple[Block, ...] = ()
    """Blocks inside the result, if the dialect allows a list."""

    def __repr__(self) -> str:
        return f"<ToolResult at {self.path or '?'}, {len(self.text)} characters>"


class Thinking(Block, frozen=True, kw_only=True):
    """Reasoning of the model, usually signed or encrypted and therefore never edited."""

    text: str

    def __repr__(self) -> str:
        return f"<Thinking at {self.path or '?'}, {len(self.text)} characters>"


class Media(Block, frozen=True, kw_only=True):
    """An image, audio, video or document."""

    kind: Literal["image", "audio", "video", "document"]
    media_type: str = ""
    """Media type stated in the request, such as `image/png`; may be empty."""


class Opaque(Block, frozen=True, kw_only=True):
    """A block of unknown type, which is kept unchanged."""

    type: str
    opens: str = ""
    """Id by which a later block refers to this one, such as a server tool's result."""
    closes: str = ""
    """Id of the earlier block to which this one belongs."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the request offers."""

    name: str
    description: str = ""
    parameters: Any = None
    """JSON schema of the arguments."""
    place: Place = ()
    """Position of the definition inside the body."""
    hosted: bool = False
    """Whether the provider runs the tool itself (web search, code execution)."""

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"


def hollow(block: Block) -> Block:
    """Return the block without its texts, keeping its position and slot."""
    if isinstance(block, ToolResult):
        return msgspec.structs.replace(block, text="", parts=tuple(map(hollow, block.parts)))
    return msgspec.structs.replace(block, text="") if isinstance(block, Text) else block


def text_of(block: Block) -> str:
    """Return the text of a block; empty for media, opaque blocks and calls."""
    return block.text if isinstance(block, (Text, ToolResult, Thinking)) else ""
