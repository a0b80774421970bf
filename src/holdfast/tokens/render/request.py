"""What renderers look at: a request's frame and its messages, the same from every dialect.

request: after families; between the wire layer and the renderers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from holdfast.tokens.render.parts import Foreign, arguments_value, foreign
from holdfast.wire import (
    DIALECTS,
    Block,
    Conversation,
    Media,
    Message,
    Opaque,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from holdfast.wire.values import inner, take


class Surroundings(NamedTuple):
    """What the count of a message needs to know about the messages around it."""

    in_turn: bool = False
    """It stands behind the last question, so that its reasoning is still shown to the model."""
    joined: bool = False
    """The provider is shown it as part of the message before."""
    answers: tuple[tuple[str, int, int], ...] = ()
    """For each result: the tool's name, the call's place in its message, how many calls there."""


class View(msgspec.Struct, frozen=True):
    """A message as renderers see it."""

    dialect: str
    speaker: str
    """system, user, assistant or tool."""
    value: Any
    """The message as it was sent."""
    texts: tuple[str, ...]
    text: str
    """All of them, as providers join them."""
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    media: tuple[Media, ...]
    reasoning: str
    """Reasoning beside the content, as OpenAI-compatible services carry it."""
    thoughts: str
    """Reasoning inside the content."""
    foreign: Foreign = Foreign()
    """Blocks that no renderer knows."""

    @property
    def role(self) -> str:
        """The role as it was written."""
        return take(self.value, "role") or ("user" if self.speaker == "user" else "assistant")


def view(message: Message, dialect: str) -> View:
    """Look at a message."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    media: list[Media] = []
    beside: list[str] = []
    inside: list[str] = []
    others: list[Opaque] = []
    for block in message.blocks:
        match block:
            case Text():
                texts.append(block.text)
            case ToolCall():
                calls.append(block)
            case ToolResult():
                results.append(block)
                media.extend(part for part in block.parts if isinstance(part, Media))
                # Converse's JSON values are in the text of the result.
                others.extend(
                    part for part in block.parts if isinstance(part, Opaque) and part.type != "json"
                )
            case Media():
                media.append(block)
            case Thinking():
                beside_content = len(block.place) == 1 and block.place != ("content",)
                (beside if beside_content else inside).append(block.text)
            case Opaque():
                others.append(block)
    value = message.parsed
    return View(
        dialect,
        message.role,
        value,
        tuple(texts),
        "".join(texts),
        tuple(calls),
        tuple(results),
        tuple(media),
        # Some services send the same reasoning under two names.
        next(filter(None, beside), ""),
        "".join(inside),
        foreign([_at(value, block) for block in others]) if others else Foreign(),
    )


def _at(value: Any, block: Block) -> Any:
    for step in block.place:
        value = value[step]
    return value


class BareRequest(msgspec.Struct, frozen=True):
    """Everything of a request but its messages."""

    dialect: str
    rest: Any
    """The body as it was sent, its list of messages empty."""
    system: tuple[str, ...]
    """System texts beside the messages."""
    tools: tuple[Tool, ...]
    choice: Any
    """auto, required, none, {"name": …}, whatever else was sent, or None."""
    first_system: str | None
    """The end of the first message's text, if that is a system message."""
    has_system: bool
    """Whether any system text is in the request."""
    last_speaker: str

    def definition(self, tool: Tool) -> dict[str, Any]:
        """A tool's definition as it was sent."""
        value = self.rest
        for step in tool.place:
            value = value[step]
        return value if isinstance(value, dict) else {}

    @property
    def is_forced(self) -> bool:
        """Whether the model must call a tool."""
        return isinstance(self.choice, dict) or self.choice in ("required", "any")


def request(conversation: Conversation, *, has_system: bool) -> BareRequest:
    """Look at the frame of a request; `has_system` says whether a message is a system one."""
    dialect = DIALECTS[conversation.dialect]
    rest = conversation.rest
    system = tuple(_text(block) for block in dialect.system(rest))
    first = conversation.messages[0] if conversation.messages else None
    inline = first is not None and first.role == "system"
    end = "".join(map(_text, first.blocks))[-40:] if first is not None and inline else None
    return BareRequest(
        conversation.dialect,
        rest,
        system,
        conversation.tools,
        dialect.params(rest).get("tool_choice"),
        end,
        bool(system) or has_system,
        conversation.messages[-1].role if conversation.messages else "",
    )


def _text(block: Block) -> str:
    return block.text if isinstance(block, Text) else ""


class Schema(NamedTuple):
    """The form that an answer must have."""

    name: str
    description: str
    schema: Any
    whole: Any
    """The object that carries it, name and all."""


def answer_schema(made: BareRequest) -> Schema | None:
    """The JSON schema that the answer must follow, where the request states one."""
    rest = made.rest
    match made.dialect:
        case "openai-chat" | "cohere":
            form = inner(rest, "response_format")
            spec = inner(form, "json_schema")
        case "openai-responses":
            form = spec = inner(rest, "text", "format")
        case "anthropic":
            form = inner(rest, "output_format") or inner(rest, "output_config", "format")
            spec = form
        case "converse":
            text = inner(rest, "outputConfig", "textFormat")
            form = {"type": "json_schema"} if text else {}
            spec = inner(text, "structure", "jsonSchema")
        case _:
            return None
    if form.get("type") != "json_schema":
        return None
    schema = spec.get("schema")
    schema = arguments_value(schema)  # Converse carries it as text
    return Schema(take(spec, "name"), take(spec, "description"), schema or {}, spec)


def thinks(made: BareRequest) -> bool:
    """Whether the request asks Claude to think aloud, in any of the ways to say so."""
    rest = made.rest
    extra = inner(rest, "additionalModelRequestFields")
    for thinking in (
        inner(rest, "thinking"),
        inner(extra, "thinking"),
        inner(extra, "reasoning_config"),
    ):
        if thinking.get("type") == "enabled":
            return True
    reasoning = inner(rest, "reasoning")
    return made.dialect == "openai-chat" and bool(
        reasoning.get("enabled") or reasoning.get("effort")
    )
