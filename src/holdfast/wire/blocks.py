"""The typed blocks that messages are made of, the same in every dialect.

blocks: after strict, before the dialects; knows nothing about how a provider spells them.

A block is a view: `place` says where it stands inside its message, so an edit can be made in the
raw data. The representations hold sizes, never text, so that a block may be logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from holdfast.wire.pointing import Place, dotted

if TYPE_CHECKING:
    from holdfast.wire.message import Message

Role = Literal["system", "user", "assistant", "tool"]
"""Who speaks. `developer` reads as system, `model` as assistant, `function` as tool."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """What all blocks share; not a kind of its own."""

    place: Place = ()
    """Where the block stands inside its message (inside the body, for system blocks)."""
    slot: Place = ()
    """Where a replacement of its content goes."""
    owner: Message | None = None
    """The message that holds it; None for a system block outside the list of messages."""

    @property
    def path(self) -> str:
        """The place as a path from the message: `content[0]`."""
        return dotted(self.place, root="").lstrip(".")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.path or '?'}>"


class Text(Block, frozen=True, kw_only=True):
    """Plain text."""

    text: str

    def __repr__(self) -> str:
        return f"<Text at {self.path or '?'}, {len(self.text)} characters>"


class ToolCall(Block, frozen=True, kw_only=True):
    """The model asks for a tool."""

    id: str
    """The call's id; empty where the dialect has none (Gemini before 3)."""
    name: str
    arguments: Any
    """As the dialect carries them: JSON text (OpenAI) or a JSON value (the others)."""


class ToolResult(Block, frozen=True, kw_only=True):
    """The answer to a call."""

    call_id: str
    name: str = ""
    """The tool's name, where the dialect repeats it."""
    text: str
    """The text of the result; a JSON value is given as compact JSON text."""
    is_error: bool = False
    parts: tuple[Block, ...] = ()
    """The blocks inside the result, where the dialect allows a list."""

    def __repr__(self) -> str:
        return f"<ToolResult at {self.path or '?'}, {len(self.text)} characters>"


class Thinking(Block, frozen=True, kw_only=True):
    """Reasoning of the model; signed or encrypted as a rule, so never edited."""

    text: str

    def __repr__(self) -> str:
        return f"<Thinking at {self.path or '?'}, {len(self.text)} characters>"


class Media(Block, frozen=True, kw_only=True):
    """An image, a sound, a film or a document."""

    kind: Literal["image", "audio", "video", "document"]
    media_type: str = ""
    """As the request states it, such as `image/png`; empty if it does not."""


class Opaque(Block, frozen=True, kw_only=True):
    """Anything else: kept and written as it is."""

    type: str
    opens: str = ""
    """The id by which a later block refers to it, such as a server tool's result to its use."""
    closes: str = ""
    """The id of the earlier block that it belongs to."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the request offers."""

    name: str
    description: str = ""
    parameters: Any = None
    """The JSON schema of the arguments."""
    place: Place = ()
    """Where the definition stands inside the body."""
    hosted: bool = False
    """True for a tool that the provider runs itself (web search, code execution)."""

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"


def hollow(block: Block) -> Block:
    """The same block without its texts: where it stands, and what can be written there."""
    if isinstance(block, ToolResult):
        return msgspec.structs.replace(block, text="", parts=tuple(map(hollow, block.parts)))
    return msgspec.structs.replace(block, text="") if isinstance(block, Text) else block


def text_of(block: Block) -> str:
    """The text a block carries; empty for media, opaque blocks and calls."""
    return block.text if isinstance(block, (Text, ToolResult, Thinking)) else ""
