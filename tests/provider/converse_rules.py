"""What Bedrock's Converse refuses, in its words, and AWS' check of a signature; written by hand.

The rules are those of its API reference and of errors in public issues (B1 to B7); the signature is
that of "AWS Signature Version 4", step by step as the documentation has it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

_FIELDS = {
    *("messages", "system", "inferenceConfig", "toolConfig", "guardrailConfig"),
    *("additionalModelRequestFields", "additionalModelResponseFieldPaths", "promptVariables"),
    *("requestMetadata", "performanceConfig", "serviceTier", "outputConfig"),
}
_KINDS = {
    *("text", "image", "document", "video", "audio", "toolUse", "toolResult", "guardContent"),
    *("cachePoint", "reasoningContent", "citationsContent", "searchResult"),
}
_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def violations(value: dict[str, Any]) -> Iterator[str]:
    if unknown := value.keys() - _FIELDS:
        yield f"extraneous key {sorted(unknown)} is not permitted"
    messages = value["messages"]
    if not messages or messages[0].get("role") != "user":
        yield "A conversation must start with a user message. Try again with a conversation that "
    for number, message in enumerate(messages):
        yield from _message(message, f"messages.{number}.content")
    yield from _exchanges(messages)
    tools = (value.get("toolConfig") or {}).get("tools")
    if tools is not None and not tools:
        yield "The provided request is not valid: toolConfig.tools: minimum length: 1"
    if not tools and any(_parts(message, kind) for message in messages for kind in _TOOL_KINDS):
        yield "The toolConfig field must be defined when using toolUse and toolResult content."
    for tool in tools or ():
        spec = tool.get("toolSpec", {})
        if "toolSpec" in tool and not _NAME.fullmatch(str(spec.get("name"))):
            yield f"Value '{spec.get('name')}' at 'toolConfig.tools' failed to satisfy constraint"


_TOOL_KINDS = ("toolUse", "toolResult")


def _parts(message: dict[str, Any], kind: str) -> list[Any]:
    return [part[kind] for part in message["content"] if kind in part]


def _message(message: dict[str, Any], path: str) -> Iterator[str]:
    if message.get("role") not in ("user", "assistant"):
        yield f"Value '{message.get('role')}' at '{path}' is not one of [user, assistant]"
    if not isinstance(message.get("content"), list) or not message["content"]:
        yield f"The content field in the Message object at {path} is empty."
    for part in message["content"]:
        if len(part) != 1 or not part.keys() <= _KINDS:
            yield f"The value at {path} is no member of ContentBlock: {sorted(part)}"
        if "text" in part and not part["text"].strip():
            yield f"The text field in the ContentBlock object at {path} is blank."
    for call in _parts(message, "toolUse"):
        if not _ID.fullmatch(str(call.get("toolUseId"))) or not isinstance(call.get("input"), dict):
            yield f"The toolUse at {path} is invalid."
    for result in _parts(message, "toolResult"):
        if result.get("status") == "error" and not result.get("content"):
            yield f"The toolResult at {path} cannot be empty when status is error."


def _exchanges(messages: list[Any]) -> Iterator[str]:
    end = {"role": "user", "content": []}
    before: dict[str, Any] = end
    for number, message in enumerate([*messages, end]):  # nothing follows the last call
        called = [call.get("toolUseId") for call in _parts(before, "toolUse")]
        given = [result.get("toolUseId") for result in _parts(message, "toolResult")]
        if set(called) - set(given):
            yield f"Expected toolResult blocks at messages.{number}.content for {called}"
        if set(given) - set(called) or len(given) != len(set(given)):
            yield (
                f"The number of toolResult blocks at messages.{number}.content exceeds the number "
                "of toolUse blocks of previous turn."
            )
        before = message


# --- the signature ---------------------------------------------------------------------------


def signature_holds(
    secret: str, method: str, raw_path: str, headers: Mapping[str, str], body: bytes
) -> bool:
    """Whether an `Authorization` of AWS was made with a secret, over these very bytes."""
    lower = {name.lower(): value for name, value in headers.items()}
    scheme, _, rest = lower.get("authorization", "").partition(" ")
    fields = dict(field.strip().split("=", 1) for field in rest.split(",") if "=" in field)
    if scheme != "AWS4-HMAC-SHA256" or "Credential" not in fields:
        return False
    _, day, region, service, end = fields["Credential"].split("/")
    names = fields["SignedHeaders"].split(";")
    canonical = "\n".join(
        [
            method,
            quote(raw_path, safe="/-_.~"),  # twice encoded: everywhere but in S3
            "",
            *(f"{name}:{' '.join(lower.get(name, '').split())}" for name in names),
            "",
            fields["SignedHeaders"],
            hashlib.sha256(body).hexdigest(),
        ]
    )
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    date = lower.get("x-amz-date", "")
    to_sign = "\n".join([scheme, date, f"{day}/{region}/{service}/{end}", hashed])
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, end):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    expected = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    return "host" in names and hmac.compare_digest(expected, fields.get("Signature", ""))
