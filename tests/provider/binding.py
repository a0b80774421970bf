"""Preserved thinking: each thinking block is signed together with the conversation before it.

On models that preserve thinking the provider signs system, tools and messages before a block, its
own text, and the previous thinking block. `cache_control` is not signed, and a string equals its
single text block. Thinking may be removed from the front of a history, because a signature does
not cover earlier thinking; if it is removed from the middle, the next block lacks its neighbour.
An invalid signature is refused, or dropped if the request asks for that.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.provider.claude_rules import joined
from tests.wire.responses.streams import Script

PRESERVING = (
    *("claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-1", "claude-mythos-5-2"),
    *("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"),
)
BETA = "thinking-binding-controls-2026-08-01"
_KEY = b"the provider's own"
_SIGNED = "signed "
_NONE = "0" * 16
_REFUSAL = (
    "messages.{}.content.{}: Invalid `signature` in `thinking` block. The block is bound to a "
    "different conversation."
)
_FORGED = "messages.{}.content.{}: Invalid `signature` in `thinking` block"


@dataclass(frozen=True)
class Judgement:
    """The provider's verdict on the thinking in a request."""

    refusal: str
    """Empty if it may pass."""
    dropped: tuple[dict[str, str], ...]
    """Blocks that were left out, as the answer lists them in `input_transformations`."""
    last: str
    """The tag of the last thinking block that stays."""


def preserves(model: str) -> bool:
    return model.startswith(PRESERVING)


def judge(value: dict[str, Any], model: str, betas: str) -> Judgement:
    """Check every thinking block of a request against the conversation before it."""
    controls = (value.get("thinking") or {}).get("block_binding")
    if controls is not None and BETA not in betas:
        refusal = "thinking.block_binding: Extra inputs are not permitted"
        return Judgement(refusal, (), _NONE)
    drops = (controls or {}).get("prefix_mismatch_behavior") == "drop_block"
    dropped: list[dict[str, str]] = []
    last = _NONE
    for message, place, block, digest in _thoughts(value):
        if not preserves(model):
            if not _is_ours(block):
                return Judgement(_FORGED.format(message, place), (), _NONE)
            continue
        neighbour, _, mac = str(block.get("signature")).partition(".")
        # Without an earlier block, it is the first of a history whose front may be missing.
        whole = last in (neighbour, _NONE)
        if whole and hmac.compare_digest(mac, _mac(digest, neighbour, block["thinking"])):
            last = mac[:16]
        elif drops:
            path = f"messages.{message}.content.{place}"
            dropped.append({"type": "thinking_dropped", "path": path, "reason": "prefix_mismatch"})
        else:
            return Judgement(_REFUSAL.format(message, place), (), _NONE)
    return Judgement("", tuple(dropped), last)


def signed(script: Script, value: dict[str, Any], last: str) -> Script:
    """An answer whose thinking is bound to the request that it answers."""
    digest = _digest(value, value["messages"])
    parts = []
    for part in script.parts:
        if part.kind == "thinking":
            mac = _mac(digest, last, part.text)
            parts.append(replace(part, signature=f"{last}.{mac}"))
            last = mac[:16]
        else:
            parts.append(part)
    return replace(script, parts=tuple(parts))


def _is_ours(block: dict[str, Any]) -> bool:
    """Return whether a block has our signature: then its text must be the signed one (A12).

    Tests also send thinking of their own; only blocks with our mark are checked.
    """
    signature = str(block.get("signature", ""))
    return not signature.startswith(_SIGNED) or signature == _SIGNED + str(block["thinking"])


def _thoughts(value: dict[str, Any]) -> Iterator[tuple[int, int, dict[str, Any], bytes]]:
    for number, message in enumerate(value["messages"]):
        content = message.get("content")
        thoughts = [
            (place, block)
            for place, block in enumerate(content if isinstance(content, list) else ())
            if block.get("type") == "thinking"
        ]
        if thoughts:
            digest = _digest(value, value["messages"][:number])
            yield from ((number, place, block, digest) for place, block in thoughts)


def _digest(value: dict[str, Any], messages: list[Any]) -> bytes:
    system = value.get("system") or []
    frame = {
        "system": [{"type": "text", "text": system}] if isinstance(system, str) else system,
        "tools": value.get("tools") or [],
        "messages": joined(messages),
    }
    return hashlib.sha256(json.dumps(_bare(frame), sort_keys=True).encode()).digest()


def _bare(value: Any) -> Any:
    """Return a value without its unsigned parts: cache marks and thinking."""
    if isinstance(value, list):
        inner = (_bare(item) for item in value)
        return [item for item in inner if not _is_thought(item)]
    if isinstance(value, dict):
        return {k: _bare(v) for k, v in value.items() if k != "cache_control"}
    return value


def _is_thought(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in ("thinking", "redacted_thinking")


def _mac(digest: bytes, neighbour: str, words: str) -> str:
    signed_words = digest + neighbour.encode() + words.encode()
    return hmac.new(_KEY, signed_words, hashlib.sha256).hexdigest()
