"""Convert a request to another dialect, and list what is lost.

The conversion goes through dialect-independent entries.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Any

import msgspec

from holdfast.wire.answer_options import FIELDS, GEMINI_CONFIG, json_schema, read_answer_options
from holdfast.wire.blocks import Text, Tool, ToolCall, ToolResult
from holdfast.wire.conversation import Conversation
from holdfast.wire.dialect import Dialect, Entry, Loss
from holdfast.wire.entries import (
    RESULTS_HOLD_MEDIA,
    custom_tools,
    entries_of,
    media_after_results,
    merge_entries,
)
from holdfast.wire.json_places import dotted
from holdfast.wire.option_writers import Recipient, write_answer_options
from holdfast.wire.reader import dialect_named, read
from holdfast.wire.repair import repair
from holdfast.wire.strict import Limits, encode
from holdfast.wire.values import inner, join_text

_DEFAULT_LIMITS = Limits()


class Conversion(msgspec.Struct, frozen=True):
    """A converted request with its losses."""

    body: bytes
    lost: tuple[Loss, ...]

    def __repr__(self) -> str:
        return f"<Converted, {len(self.body)} bytes, {len(self.lost)} losses>"


class Answerer(msgspec.Struct, frozen=True, kw_only=True):
    """The model that will answer, if it differs from the requested one."""

    model: str = ""
    """Name of the model; parameters that it is not known to accept are dropped."""
    streams: bool | None = None
    """Whether to stream; None keeps the request's own value, which Gemini requests lack."""
    output_limit: int = 4096
    """Maximum answer tokens for Anthropic, which requires a limit, if the request has none."""


_AS_ASKED = Answerer()


def convert(
    body: object,
    to: str,
    dialect: str | None = None,
    *,
    answerer: Answerer = _AS_ASKED,
    limits: Limits = _DEFAULT_LIMITS,
) -> Conversion:
    """Convert a request from `dialect` (or the detected one) to the dialect `to`.

    Messages with images and documents, system text, client tools, the answer's format and the
    common parameters are converted. Earlier thinking, hosted tools and dialect-specific features
    are listed as lost.
    """
    source = body if isinstance(body, Conversation) else read(body, dialect, limits=limits)
    target = dialect_named(to)
    lost: list[Loss] = []
    system, entries = _system_and_entries(source, target, lost)
    tools = _tools(source, target, entries, lost)
    params = _params(source, target, answerer, lost)
    converted = target.envelope(system, tools, params)
    lost.extend(Loss(f"$.{name}", "the new dialect cannot express it") for name in params)
    lost.extend(_unknown_fields(source))
    model = answerer.model or _shared_model(source, target)
    recipient = Recipient(model, converted, _ends_with_results(entries), lost)
    write_answer_options(read_answer_options(source.rest, source.dialect), target.NAME, recipient)
    [key] = target.LISTS[0]
    converted[str(key)] = target.compose(entries)
    if target.NAME == "openai-chat":
        _speak_as_service(converted, model, lost)
    elif target.NAME == "gemini" and _SIGNED_MODELS.search(model):
        _stand_in_for_signatures(converted["contents"], lost)
    # A prefill, a leading answer, text that only one dialect allows: repairs for the new dialect
    # are losses as well.
    repaired = repair(encode(converted), to, limits=limits)
    lost.extend(
        Loss(action.path, f"{action.message} ({action.rule})") for action in repaired.actions
    )
    return Conversion(repaired.body, tuple(lost))


def _system_and_entries(
    source: Conversation, target: Dialect, lost: list[Loss]
) -> tuple[str, list[Entry]]:
    """Return the system text and the messages where the target dialect expects them."""
    entries = entries_of(source, target.NAME, lost)
    system = join_text(dialect_named(source.dialect).system(source.rest))
    if target.INLINE_SYSTEM:
        if system:
            entries.insert(0, Entry("system", (Text(text=system),)))
            system = ""
    else:
        inline = [block for entry in entries if entry.role == "system" for block in entry.blocks]
        system = "\n\n".join(filter(None, (system, join_text(inline))))
        entries = [entry for entry in entries if entry.role != "system"]
        # only instructions: Anthropic requires a user message, so they become one
        if system and not entries:
            entries, system = [Entry("user", (Text(text=system),))], ""
    entries = merge_entries(entries)
    if target.NAME not in RESULTS_HOLD_MEDIA:
        entries = media_after_results(entries)
    return system, entries


def _ends_with_results(entries: list[Entry]) -> bool:
    latest = takewhile(lambda entry: entry.role != "assistant", reversed(entries))
    return any(entry.role == "tool" for entry in latest)


def _tools(
    source: Conversation, target: Dialect, entries: list[Entry], lost: list[Loss]
) -> list[Tool]:
    custom = custom_tools(source)
    tools = []
    for tool in source.tools:
        if tool.hosted or not tool.name:
            lost.append(Loss(dotted(tool.place), "a tool that the provider runs itself"))
        elif tool.name in custom:
            tools.append(msgspec.structs.replace(tool, parameters=_ANY_TEXT))
        elif source.dialect == "gemini":
            tools.append(msgspec.structs.replace(tool, parameters=json_schema(tool.parameters)))
        else:
            tools.append(tool)
    if target.NAME == "converse" and not tools:  # Bedrock rejects calls without tool definitions
        tools = _used_tools(entries)
        lost.extend(Loss("$.tools", "the schema of a tool that is used") for _ in tools)
    return tools


def _params(
    source: Conversation, target: Dialect, answerer: Answerer, lost: list[Loss]
) -> dict[str, Any]:
    """Return the common parameters, with the answering model's values."""
    params = dialect_named(source.dialect).params(source.rest)
    for name, value in list(params.items()):
        if value is None or (name == "tool_choice" and not _is_common_choice(value)):
            del params[name]
            lost.append(Loss(f"$.{name}", "no other dialect can express it"))
    if answerer.streams is not None:
        params["stream"] = answerer.streams
    if answerer.model:
        params["model"] = answerer.model
    if target.NAME == "anthropic" and "max_tokens" not in params:
        params["max_tokens"] = answerer.output_limit
        words = f"no limit of the answer: Anthropic demands one, and gets {answerer.output_limit:,}"
        lost.append(Loss("$.max_tokens", words))
    return params


def _shared_model(source: Conversation, target: Dialect) -> str:
    """Return the requested model if both dialects belong to the same provider."""
    return (source.model or "") if _is_openai(source.dialect) and _is_openai(target.NAME) else ""


def _is_openai(dialect: str) -> bool:
    return dialect.startswith("openai-")


_ANY_TEXT = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}


# OpenAI's own models reject `max_tokens`; Ollama and other services accept only that name.
_OPENAI_MODELS = re.compile(r"(?:^|/)(?:o\d|gpt-(?!oss)|chatgpt|codex|computer-use)")
_MOST_STOPS = 4


def _speak_as_service(body: dict[str, Any], model: str, lost: list[Loss]) -> None:
    """Apply the differences between services that use Chat Completions."""
    if "max_completion_tokens" in body and model and not _OPENAI_MODELS.search(model):
        body["max_tokens"] = body.pop("max_completion_tokens")
    stops = body.get("stop")
    if isinstance(stops, list) and len(stops) > _MOST_STOPS:
        body["stop"] = stops[:_MOST_STOPS]
        lost.append(Loss("$.stop", f"stop sequences beyond {_MOST_STOPS}"))
    if body.get("stream") is True:  # the other dialects always report usage
        body["stream_options"] = {"include_usage": True}


# Gemini 3 rejects calls of the current turn without a signature, and documents this value for calls
# of other models: ai.google.dev, thought signatures.
_SIGNED_MODELS = re.compile(r"gemini-(?:[3-9]|\d\d)")
_NO_SIGNATURE = "skip_thought_signature_validator"


def _stand_in_for_signatures(contents: list[Any], lost: list[Loss]) -> None:
    signed = False
    for content in contents:
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls:
            calls[0]["thoughtSignature"] = _NO_SIGNATURE
            signed = True
    if signed:
        lost.append(Loss("$.contents", "signatures of thinking before calls"))


def _used_tools(entries: list[Entry]) -> list[Tool]:
    blocks = (block for entry in entries for block in entry.blocks)
    names = {block.name: None for block in blocks if isinstance(block, (ToolCall, ToolResult))}
    return [Tool(name=name) for name in names]


def _is_common_choice(choice: Any) -> bool:
    """Return whether a tool choice has a form that all dialects share."""
    if isinstance(choice, dict):
        return choice.keys() == {"name"} and isinstance(choice["name"], str)
    return choice in ("auto", "required", "none")


def _unknown_fields(source: Conversation) -> list[Loss]:
    """Return the body's fields that conversion does not know, as losses."""
    known_fields = _KNOWN | FIELDS.get(source.dialect, frozenset()) | {str(source.frame.place[0])}
    losses = [
        Loss(dotted((key,)), "a field of this dialect only")
        for key in source.rest
        if key not in known_fields
    ]
    if source.dialect == "gemini":
        config = inner(source.rest, "generationConfig")
        losses.extend(
            Loss(dotted(("generationConfig", key)), "a field of this dialect only")
            for key in config.keys() - GEMINI_CONFIG
        )
    return losses


_KNOWN = frozenset(
    "model max_tokens max_completion_tokens max_output_tokens temperature top_p p "
    "stop stop_sequences stream tools tool_choice system systemInstruction "
    "system_instruction instructions preamble toolConfig generationConfig "
    "generation_config inferenceConfig functions modelId".split()
)
