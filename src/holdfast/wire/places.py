"""Where something stands in a conversation: the hash of all that the client said before it.

places: after message and notes, before answers. Messages are compared by what they say, in their
normal form: cache marks move with every request, a text is a string or a list with one part, and
many clients drop thinking from older turns. Two histories with one hash say the same.

The normal form of a message: two messages that say the same to a provider have the same one.
Clients write one message in several shapes. Claude Code sends a new prompt as a list with one
marked text block and in the next request as a string; cache marks move with every request;
libraries leave empty fields out or write them. Compared by their bytes, such a history counts as
rewritten: the session splits, and all that was folded is sent again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.wire.conversation import Conversation
from holdfast.wire.message import Message
from holdfast.wire.notes import SingleNote
from holdfast.wire.running import RunningNote
from holdfast.wire.strict import sha256_of

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

CACHE_MARKS = ("cache_control", "prompt_cache_breakpoint")
"""Keys that mark a part for the prompt cache: Anthropic's (OpenRouter and LiteLLM take it in Chat
messages too), and OpenAI's."""
CACHE_POINT = "cachePoint"
"""Bedrock Converse marks with a part of its own."""
TEXT_KINDS = ("text", "input_text", "output_text")
"""The `type` of a text part; OpenAI's Responses names it by who speaks."""

_EMPTY: tuple[Any, ...] = ([], "")
_TEXT = {"text"}
_MARK_FIELDS = frozenset(CACHE_MARKS)
_CONTENTS = frozenset(("content", "parts", "output"))
"""Fields of a message that hold its parts, or one text."""
_HOLDING = _CONTENTS | {"toolResult"}
_DEEPEST = 2
"""Levels of parts in parts: those of a tool result, which Converse wraps once more. Nothing deeper
is looked at; a client may nest lists until Python's stack ends."""
_DEFAULTS: tuple[tuple[str, Any], ...] = (("is_error", False), ("status", "success"))
"""Fields of a tool result that say nothing when they have this value."""
_NAMED_ITEMS = tuple(
    "message function_call function_call_output custom_tool_call custom_tool_call_output".split()
)
"""Items of Responses that are what they say. Their `id` and `status` are the provider's notes,
which clients keep or drop; the id of any other item may be all there is to it."""
_CAMEL_CASE = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "inline_data": "inlineData",
    "file_data": "fileData",
}
"""Gemini takes its own names in both spellings."""
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
"""Types of blocks and items that hold thinking: Anthropic's two, and OpenAI's of Responses."""
_THOUGHT_FIELDS = frozenset(
    # As DeepSeek, vLLM and OpenRouter name it on chat messages; Gemini signs parts of a turn.
    "reasoning reasoning_content reasoning_details thoughtSignature thought_signature".split()
)


class _Form(NamedTuple):
    """What the normal form of a part depends on beside the part."""

    dialect: str
    keeps_thinking: bool
    dropped: frozenset[str]
    """Fields of a part that are left out."""


def normal_form(value: Any, dialect: str, *, keeps_thinking: bool = True) -> Any:
    """Return a message without cache marks and empty fields, each text in one shape.

    Without thinking, None is returned for a message that is nothing else.
    """
    if isinstance(value, str):  # a request of Responses or Cohere may be one text
        value = {"role": "user", "content": value}
    if not isinstance(value, dict):
        return value
    if not keeps_thinking and value.get("type") in _THOUGHTS:
        return None
    dropped = _MARK_FIELDS if keeps_thinking else _MARK_FIELDS | _THOUGHT_FIELDS
    form = _Form(dialect, keeps_thinking, dropped)
    if dialect == "openai-responses" and value.get("type", "message") in _NAMED_ITEMS:
        dropped |= {"id", "status", "type"} if "role" in value else {"id", "status"}
    fields: dict[str, Any] = {"role": "user"} if dialect == "gemini" else {}
    for key in sorted(value):
        if key not in dropped:
            inner = value[key]
            if key in _CONTENTS:
                inner = _content(inner, form)
            if not (inner is None or inner in _EMPTY):
                fields[key] = inner
    return fields


def _content(content: Any, form: _Form, depth: int = 0) -> Any:
    """Return parts in their normal form; a single text part is its text."""
    if isinstance(content, dict) and form.dialect == "gemini":
        content = [content]  # the brackets may be left out
    if not isinstance(content, list):
        return content
    parts = [
        _part(part, form, depth)
        for part in content
        if not is_point(part) and (form.keeps_thinking or not _is_thinking(part))
    ]
    if len(parts) == 1 and isinstance(parts[0], dict) and parts[0].keys() == _TEXT:
        return parts[0]["text"]
    return parts


def _is_thinking(part: Any) -> bool:
    return isinstance(part, dict) and (
        part.get("type") in _THOUGHTS or part.get("thought") is True or "reasoningContent" in part
    )


def _part(part: Any, form: _Form, depth: int) -> Any:
    if isinstance(part, str):  # some services that speak OpenAI's dialect take bare strings
        return {"text": part}
    if not isinstance(part, dict):
        return part
    if form.dialect == "gemini":
        part = {_CAMEL_CASE.get(key, key): inner for key, inner in part.items()}
    is_text = part.get("type", "text") in TEXT_KINDS and isinstance(part.get("text"), str)
    fields: dict[str, Any] = {"text": part["text"]} if is_text else {}
    for key in sorted(part):
        if key in form.dropped or (is_text and key in ("text", "type")):
            continue
        inner = part[key]
        if key == "content" and depth < _DEEPEST:
            inner = _content(inner, form, depth + 1)
        elif key == "toolResult" and depth < _DEEPEST:  # Converse's
            inner = _part(inner, form, depth + 1)
        if not (inner is None or inner in _EMPTY or (key, inner) in _DEFAULTS):
            fields[key] = inner
    return fields


# --- cache marks ---------------------------------------------------------------------------------


def is_point(part: Any) -> bool:
    """Return whether a part is nothing but a cache mark."""
    return isinstance(part, dict) and part.keys() == {CACHE_POINT}


def without_marks(value: Any, depth: int = 0) -> Any:
    """Return a message, or parts, without cache marks: on it, on its parts, and on theirs."""
    if isinstance(value, list):
        return [without_marks(part, depth) for part in value if not is_point(part)]
    if not isinstance(value, dict):
        return value
    return {
        key: without_marks(inner, depth + 1) if key in _HOLDING and depth <= _DEEPEST else inner
        for key, inner in value.items()
        if key not in CACHE_MARKS
    }


MOST_HEADS = 200
"""How far back a request is looked for: a client seldom adds more messages at once."""

_DIGEST_BYTES = 32
_FINGERPRINT: SingleNote[bytes] = SingleNote("fingerprint")


class _Trail(NamedTuple):
    """The places behind the messages of a conversation."""

    running: Hash
    """Over all of them."""
    digests: bytes = b""
    """Of the last `MOST_HEADS` places, one behind the other."""


def _followed(trail: _Trail, messages: Sequence[Message]) -> _Trail:
    """The trail with messages behind it."""
    running, digests = trail.running.copy(), [trail.digests]
    unnamed = max(0, len(messages) - MOST_HEADS)
    running.update(b"".join(map(fingerprint, messages[:unnamed])))
    for message in messages[unnamed:]:
        running.update(fingerprint(message))
        digests.append(running.digest())
    return _Trail(running, b"".join(digests)[-MOST_HEADS * _DIGEST_BYTES :])


_TRAIL = RunningNote("trail", _Trail(hashlib.sha256()), _followed)


def heads(conversation: Conversation) -> list[str]:
    """A name for each beginning of a conversation, the longest first; of a long one the last."""
    digests = _TRAIL.over(conversation).digests
    ends = range(len(digests), 0, -_DIGEST_BYTES)
    return [digests[end - _DIGEST_BYTES : end].hex() for end in ends]


def head_of(conversation: Conversation) -> str:
    """The name of a whole conversation; empty if there is nothing in it."""
    return _TRAIL.over(conversation).digests[-_DIGEST_BYTES:].hex()


def places(messages: Sequence[Message], start: int = 0) -> list[str]:
    """The place behind each number of messages, from `start` of them to all."""
    running = hashlib.sha256(b"".join(map(fingerprint, messages[:start])))
    names = [running.hexdigest()] if start <= len(messages) else []
    for message in messages[start:]:
        running.update(fingerprint(message))
        names.append(running.hexdigest())
    return names


def fingerprint(message: Message) -> bytes:
    """Return the hash of what a message says, whatever shape it comes in; empty for thinking alone.

    Stored heads of sessions are made of these: a change here splits every session once.
    """
    fingerprint = _FINGERPRINT.get(message)
    if fingerprint is None:
        fingerprint = _FINGERPRINT.put(message, _hashed(message))
    return fingerprint


def _hashed(message: Message) -> bytes:
    # Thinking is the assistant's; the same fields in anybody else's message are content.
    keeps_thinking = message.role != "assistant"
    value = normal_form(message.parsed, message.dialect, keeps_thinking=keeps_thinking)
    return sha256_of(value, message.size) if value is not None else b""
