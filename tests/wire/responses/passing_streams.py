"""Answers of Bedrock's Converse and of Cohere's v2 chat, whole and as streams.

Written from the vendors' documentation, and sharing nothing with the package: see streams.py.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

from tests.wire.responses.streams import Part, Script

EVENT_STREAM = "application/vnd.amazon.eventstream"


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """A frame of Amazon's event streams, with both of its checksums."""
    written = b"".join(
        bytes([len(name)]) + name.encode() + b"\7" + struct.pack(">H", len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(written) + len(payload), len(written))
    start = prelude + struct.pack(">I", zlib.crc32(prelude)) + written + payload
    return start + struct.pack(">I", zlib.crc32(start))


def event(kind: str, value: dict[str, Any]) -> bytes:
    names = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return frame(names, json.dumps(value).encode())


def exception(kind: str, message: str) -> bytes:
    """How Bedrock ends a stream that fails."""
    names = {":exception-type": kind, ":content-type": "application/json"}
    return frame({**names, ":message-type": "exception"}, json.dumps({"message": message}).encode())


def _used(script: Script) -> dict[str, int]:
    total = script.input + script.output
    return {"inputTokens": script.input, "outputTokens": script.output, "totalTokens": total}


def converse_events(script: Script) -> list[bytes]:
    frames = [event("messageStart", {"role": "assistant"})]
    for number, part in enumerate(script.parts):
        at = {"contentBlockIndex": number}
        if part.kind == "call":
            start = {"toolUse": {"toolUseId": part.id, "name": part.name}}
            frames.append(event("contentBlockStart", {**at, "start": start}))
        for piece in part.pieces:
            delta = {"toolUse": {"input": piece}} if part.kind == "call" else {"text": piece}
            frames.append(event("contentBlockDelta", {**at, "delta": delta, "p": "abcd"}))
        frames.append(event("contentBlockStop", at))
    stop = "tool_use" if script.calls else "end_turn"
    frames.append(event("messageStop", {"stopReason": stop}))
    frames.append(event("metadata", {"usage": _used(script), "metrics": {"latencyMs": 7}}))
    return frames


def converse_body(script: Script) -> dict[str, Any]:
    def block(part: Part) -> dict[str, Any]:
        if part.kind != "call":
            return {"text": part.text}
        call = {"toolUseId": part.id, "name": part.name, "input": json.loads(part.text)}
        return {"toolUse": call}

    message = {"role": "assistant", "content": [block(part) for part in script.parts]}
    return {
        "output": {"message": message},
        "stopReason": "tool_use" if script.calls else "end_turn",
        "usage": _used(script),
        "metrics": {"latencyMs": 7},
    }


def _counted(script: Script) -> dict[str, Any]:
    tokens = {"input_tokens": script.input, "output_tokens": script.output}
    return {"billed_units": {"input_tokens": 3, "output_tokens": script.output}, "tokens": tokens}


def cohere_events(script: Script) -> list[bytes]:
    def sse(kind: str, **value: Any) -> bytes:
        data = json.dumps({"type": kind, **value}, ensure_ascii=False)
        return f"event: {kind}\ndata: {data}\n\n".encode()

    events = [sse("message-start", id=script.id, delta={"message": {"role": "assistant"}})]
    for number, part in enumerate(part for part in script.parts if part.kind == "text"):
        start = {"message": {"content": {"type": "text", "text": ""}}}
        events.append(sse("content-start", index=number, delta=start))
        for piece in part.pieces:
            delta = {"message": {"content": {"text": piece}}}
            events.append(sse("content-delta", index=number, delta=delta))
        events.append(sse("content-end", index=number))
    end = {"finish_reason": "COMPLETE", "usage": _counted(script)}
    return [*events, sse("message-end", id=script.id, delta=end)]


def cohere_body(script: Script) -> dict[str, Any]:
    texts = [{"type": "text", "text": part.text} for part in script.parts if part.kind == "text"]
    message: dict[str, Any] = {"role": "assistant", "content": texts}
    if script.calls:
        message["tool_calls"] = [
            {
                "id": part.id,
                "type": "function",
                "function": {"name": part.name, "arguments": part.text},
            }
            for part in script.calls
        ]
    stop = "TOOL_CALL" if script.calls else "COMPLETE"
    return {"id": script.id, "message": message, "finish_reason": stop, "usage": _counted(script)}
