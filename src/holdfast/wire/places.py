"""Identify a position in a conversation by the hash of everything before it.

Messages are compared in a normal form, because clients write one message in several shapes: Claude
Code sends a new prompt as a list with one marked text block and later as a string, cache marks move
with every request, and libraries omit or write empty fields. Compared by bytes, the session would
split and everything folded would be sent again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.wire.conversation import Conversation
from holdfast.wire.message import Message
from holdfast.wire.notes import SingleNote
from holdfast.wire.prefix_values import PrefixNote
from holdfast.wire.strict import sha256_of

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

CACHE_MARKS = ("cache_control", "prompt_cache_breakpoint")
"""Keys that mark a part for the prompt cache: Anthropic's (which OpenRouter and LiteLLM also accept
in Chat messages) and OpenAI's.
"""
CACHE_POINT = "cachePoint"
"""Bedrock Converse uses a separate part as a mark."""
TEXT_KINDS = ("text", "input_text", "output_text")
"""The `type` of a text part; OpenAI Responses names it by the speaker."""

_EMPTY: tuple[Any, ...] = ([], "")
_TEXT = {"text"}
_MARK_FIELDS = frozenset(CACHE_MARKS)
_CONTENTS = frozenset(("content", "parts", "output"))
"""Fields of a message that contain its parts or a text."""
_HOLDING = _CONTENTS | {"toolResult"}
# Maximum nesting of parts: those of a tool result, which Converse wraps once more. A client may
# nest lists deeper than Python's stack allows.
_DEEPEST = 2
_DEFAULTS: tuple[tuple[str, Any], ...] = (("is_error", False), ("status", "success"))
"""Default values of tool-result fields, which are equivalent to omitting the field."""
# Items of Responses defined by their content. Clients keep or drop their `id` and `status`, which
# the provider assigned; another item may consist only of its id.
_NAMED_ITEMS = tuple(
    "message function_call function_call_output custom_tool_call custom_tool_call_output".split()
)
_CAMEL_CASE = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "inline_data": "inlineData",
    "file_data": "fileData",
}
"""Gemini accepts both spellings of its names."""
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
"""Types of thinking blocks and items: Anthropic's two, and OpenAI's in Responses."""
_THOUGHT_FIELDS = frozenset(
    # The names of DeepSeek, vLLM and OpenRouter on chat messages, and Gemini's signatures of parts.
    "reasoning reasoning_content reasoning_details thoughtSignature thought_signature".split()
)


class _Form(NamedTuple):
    """The options of a part's normal form."""

    dialect: str
    keeps_thinking: bool
    dropped: frozenset[str]
    """Fields of a part that are omitted."""


def normal_form(value: Any, dialect: str, *, keeps_thinking: bool = True) -> Any:
    """Return a message without cache marks and empty fields, with each text in one shape.

    Without thinking, return None for a message that is only thinking.
    """
    if isinstance(value, str):  # a request of Responses or Cohere may be a single text
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
    """Return parts in their normal form; a single text part becomes its text."""
    if isinstance(content, dict) and form.dialect == "gemini":
        content = [content]  # the list may be omitted for a single part
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
    if isinstance(part, str):  # some services with OpenAI's dialect accept bare strings
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
    """Return whether a part is only a cache mark."""
    return isinstance(part, dict) and part.keys() == {CACHE_POINT}


def without_marks(value: Any, depth: int = 0) -> Any:
    """Return a message or parts without cache marks on any level of parts."""
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
"""Number of positions in which a request is searched: clients seldom add more messages at once."""

_DIGEST_BYTES = 32
_FINGERPRINT: SingleNote[bytes] = SingleNote("fingerprint")


class _HashTrail(NamedTuple):
    """Running hash and position digests of a conversation's messages."""

    running: Hash
    """Hash over all messages."""
    digests: bytes = b""
    """Digests of the last `MOST_HEADS` positions, concatenated."""


def _extend_trail(trail: _HashTrail, messages: Sequence[Message]) -> _HashTrail:
    """Return a trail extended by messages."""
    running, digests = trail.running.copy(), [trail.digests]
    unnamed = max(0, len(messages) - MOST_HEADS)
    running.update(b"".join(map(fingerprint, messages[:unnamed])))
    for message in messages[unnamed:]:
        running.update(fingerprint(message))
        digests.append(running.digest())
    return _HashTrail(running, b"".join(digests)[-MOST_HEADS * _DIGEST_BYTES :])


_TRAIL = PrefixNote("trail", _HashTrail(hashlib.sha256()), _extend_trail)


def heads(conversation: Conversation) -> list[str]:
    """Return the names of the conversation's prefixes, longest first, at most `MOST_HEADS`."""
    digests = _TRAIL.over(conversation).digests
    ends = range(len(digests), 0, -_DIGEST_BYTES)
    return [digests[end - _DIGEST_BYTES : end].hex() for end in ends]


def head_of(conversation: Conversation) -> str:
    """Return the name of the complete conversation; empty if it has no messages."""
    return _TRAIL.over(conversation).digests[-_DIGEST_BYTES:].hex()


def places(messages: Sequence[Message], start: int = 0) -> list[str]:
    """Return the names of the positions after `start` messages up to all of them."""
    running = hashlib.sha256(b"".join(map(fingerprint, messages[:start])))
    names = [running.hexdigest()] if start <= len(messages) else []
    for message in messages[start:]:
        running.update(fingerprint(message))
        names.append(running.hexdigest())
    return names


def fingerprint(message: Message) -> bytes:
    """Return the hash of a message's normal form; empty for a message of thinking only.

    Stored session heads consist of these hashes: changing the form splits every session once.
    """
    fingerprint = _FINGERPRINT.get(message)
    if fingerprint is None:
        fingerprint = _FINGERPRINT.put(message, _hash_message(message))
    return fingerprint


def _hash_message(message: Message) -> bytes:
    # Only an assistant's thinking is dropped; the same fields in other messages are content.
    keeps_thinking = message.role != "assistant"
    value = normal_form(message.parsed, message.dialect, keeps_thinking=keeps_thinking)
    return sha256_of(value, message.size) if value is not None else b""
