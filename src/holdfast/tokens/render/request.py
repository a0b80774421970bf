"""Dialect-independent views of a request's frame and messages, for the renderers."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from holdfast.tokens.render.parts import UnknownContent, arguments_value, unknown_content
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


class NeighbourFacts(NamedTuple):
    """The facts about neighbouring messages that affect a message's count."""

    in_turn: bool = False
    """Whether the message follows the last question, so that its reasoning is still rendered."""
    joined: bool = False
    """Whether the provider renders the message as part of the previous one."""
    answers: tuple[tuple[str, int, int], ...] = ()
    """For each result: the tool's name, the call's index in its message, and the calls there."""


class MessageView(msgspec.Struct, frozen=True):
    """A message as renderers see it."""

    dialect: str
    speaker: str
    """One of system, user, assistant and tool."""
    value: Any
    """The message as sent."""
    texts: tuple[str, ...]
    text: str
    """All texts, joined as providers join them."""
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    media: tuple[Media, ...]
    reasoning: str
    """Reasoning in a separate field, as OpenAI-compatible services send it."""
    thoughts: str
    """Reasoning inside the content."""
    unknown_content: UnknownContent = UnknownContent()
    """Content of blocks that no renderer knows."""

    @property
    def role(self) -> str:
        """Return the role as written in the message."""
        return take(self.value, "role") or ("user" if self.speaker == "user" else "assistant")


def message_view(message: Message, dialect: str) -> MessageView:
    """Return a message as renderers see it."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    media: list[Media] = []
    separate_reasoning: list[str] = []
    inline_reasoning: list[str] = []
    unknown_blocks: list[Opaque] = []
    for block in message.blocks:
        match block:
            case Text():
                texts.append(block.text)
            case ToolCall():
                calls.append(block)
            case ToolResult():
                results.append(block)
                media.extend(part for part in block.parts if isinstance(part, Media))
                # The result's text already contains Converse's JSON values.
                unknown_blocks.extend(
                    part for part in block.parts if isinstance(part, Opaque) and part.type != "json"
                )
            case Media():
                media.append(block)
            case Thinking():
                is_separate = len(block.place) == 1 and block.place != ("content",)
                (separate_reasoning if is_separate else inline_reasoning).append(block.text)
            case Opaque():
                unknown_blocks.append(block)
    value = message.parsed
    return MessageView(
        dialect,
        message.role,
        value,
        tuple(texts),
        "".join(texts),
        tuple(calls),
        tuple(results),
        tuple(media),
        # Some services send the same reasoning in two fields.
        next(filter(None, separate_reasoning), ""),
        "".join(inline_reasoning),
        unknown_content([_at(value, block) for block in unknown_blocks])
        if unknown_blocks
        else UnknownContent(),
    )


def _at(value: Any, block: Block) -> Any:
    for step in block.place:
        value = value[step]
    return value


class RequestFrame(msgspec.Struct, frozen=True):
    """A request without its messages."""

    dialect: str
    rest: Any
    """The body as sent, with an empty list of messages."""
    system: tuple[str, ...]
    """System texts outside the messages."""
    tools: tuple[Tool, ...]
    choice: Any
    """One of auto, required, none, {"name": …}, an unknown value as sent, or None."""
    first_system: str | None
    """End of the first message's text if that is a system message."""
    has_system: bool
    """Whether the request has any system text."""
    last_speaker: str

    def definition(self, tool: Tool) -> dict[str, Any]:
        """Return a tool's definition as sent."""
        value = self.rest
        for step in tool.place:
            value = value[step]
        return value if isinstance(value, dict) else {}

    @property
    def is_forced(self) -> bool:
        """Return whether the model must call a tool."""
        return isinstance(self.choice, dict) or self.choice in ("required", "any")


def request_frame(conversation: Conversation, *, has_system: bool) -> RequestFrame:
    """Return the request without its messages.

    `has_system` states whether one of its messages is a system message.
    """
    dialect = DIALECTS[conversation.dialect]
    body = conversation.rest
    system = tuple(_text(block) for block in dialect.system(body))
    first = conversation.messages[0] if conversation.messages else None
    is_system = first is not None and first.role == "system"
    text_end = "".join(map(_text, first.blocks))[-40:] if first is not None and is_system else None
    return RequestFrame(
        conversation.dialect,
        body,
        system,
        conversation.tools,
        dialect.params(body).get("tool_choice"),
        text_end,
        bool(system) or has_system,
        conversation.messages[-1].role if conversation.messages else "",
    )


def _text(block: Block) -> str:
    return block.text if isinstance(block, Text) else ""


class AnswerSchema(NamedTuple):
    """The JSON schema that an answer must follow."""

    name: str
    description: str
    schema: Any
    whole: Any
    """The object that contains the schema and its name."""


def answer_schema(request: RequestFrame) -> AnswerSchema | None:
    """Return the JSON schema that the answer must follow, if the request has one."""
    body = request.rest
    match request.dialect:
        case "openai-chat" | "cohere":
            form = inner(body, "response_format")
            spec = inner(form, "json_schema")
        case "openai-responses":
            form = spec = inner(body, "text", "format")
        case "anthropic":
            form = inner(body, "output_format") or inner(body, "output_config", "format")
            spec = form
        case "converse":
            text = inner(body, "outputConfig", "textFormat")
            form = {"type": "json_schema"} if text else {}
            spec = inner(text, "structure", "jsonSchema")
        case _:
            return None
    if form.get("type") != "json_schema":
        return None
    schema = spec.get("schema")
    schema = arguments_value(schema)  # Converse sends it as text
    return AnswerSchema(take(spec, "name"), take(spec, "description"), schema or {}, spec)


def has_thinking(request: RequestFrame) -> bool:
    """Return whether the request enables Claude's thinking, in any of its spellings."""
    body = request.rest
    extra = inner(body, "additionalModelRequestFields")
    for thinking in (
        inner(body, "thinking"),
        inner(extra, "thinking"),
        inner(extra, "reasoning_config"),
    ):
        if thinking.get("type") == "enabled":
            return True
    reasoning = inner(body, "reasoning")
    return request.dialect == "openai-chat" and bool(
        reasoning.get("enabled") or reasoning.get("effort")
    )
