"""Answers of a model in one piece, in each provider's form; streams are in tests/answers.

Like those, they are written from the providers' documentation and share nothing with the package
that is tested with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.surfaces.proxy.gatekeeper import Got
from tests.wire.responses.passing_streams import cohere_body, converse_body
from tests.wire.responses.streams import Part, Script, claude_cache, events, signature, write

REF = re.compile(r"ref:[a-z][a-z0-9_]*:[0-9a-f]{16,64}")
"""Text that a model would take for a ref."""


def text(*pieces: str) -> Part:
    return Part("text", pieces)


def call(name: str, arguments: dict[str, Any], call_id: str) -> Part:
    written = json.dumps(arguments)
    return Part("call", (written[:7], written[7:]), call_id, name)


def thinking(words: str) -> Part:
    return Part("thinking", (words,))


def says(*parts: Part) -> Script:
    """One answer; its usage is filled in by the upstream."""
    return Script(parts)


def opens(lines: str, *more: str) -> Callable[[Got], Script]:
    """Say something and open the first citation; `more` are paths to read in the same turn."""

    def turn(got: Got) -> Script:
        cited = REF.search(got.texts)
        assert cited, "the request holds no citation"
        asked = call("expand_ref", {"ref_id": cited[0], "lines": lines}, "call_01")
        others = [call("read_log", {"path": path}, f"call_1{n}") for n, path in enumerate(more)]
        return says(text("Let me ", "look. "), asked, *others)

    return turn


def whole(script: Script, dialect: str) -> dict[str, Any]:
    """The answer as a client gets it that did not ask for a stream."""
    return {
        "openai-chat": _chat,
        "openai-responses": _responses,
        "anthropic": _anthropic,
        "gemini": _gemini,
        "converse": converse_body,
        "cohere": cohere_body,
    }[dialect](script)


def _joined(script: Script, kind: str) -> str:
    return "".join(part.text for part in script.parts if part.kind == kind)


def _chat(script: Script) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": _joined(script, "text") or None}
    if script.calls:
        message["tool_calls"] = [
            {
                "id": part.id,
                "type": "function",
                "function": {"name": part.name, "arguments": part.text},
            }
            for part in script.calls
        ]
    stop = "length" if script.cut else "tool_calls" if script.calls else "stop"
    return {
        "id": f"chatcmpl-{script.id}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "gpt-5",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": stop}],
        "usage": {
            "prompt_tokens": script.input,
            "completion_tokens": script.output,
            "total_tokens": script.input + script.output,
            "prompt_tokens_details": {"cached_tokens": script.cached},
        },
    }


def _responses(script: Script) -> dict[str, Any]:
    """The last event of a stream holds the whole."""
    response: dict[str, Any] = events(write(script, "openai-responses")[-1])[0][1]["response"]
    return response


def _anthropic(script: Script) -> dict[str, Any]:
    def block(part: Part) -> dict[str, Any]:
        if part.kind == "call":
            given = json.loads(part.text)
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": given}
        if part.kind == "thinking":
            bond = part.signature or f"signed {part.text}"
            return {"type": "thinking", "thinking": part.text, "signature": bond}
        return {"type": "text", "text": part.text}

    return {
        "id": f"msg_{script.id}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [block(part) for part in script.parts],
        "stop_reason": "max_tokens" if script.cut else "tool_use" if script.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": script.input,
            **claude_cache(script),
            "output_tokens": script.output,
        },
    }


def _gemini(script: Script) -> dict[str, Any]:
    def part_of(part: Part) -> dict[str, Any]:
        if part.kind == "call":
            given = {"id": part.id} if part.id and not part.anonymous else {}
            function = {**given, "name": part.name, "args": json.loads(part.text)}
            return {"functionCall": function, "thoughtSignature": signature(part)}
        return {"text": part.text, **({"thought": True} if part.kind == "thinking" else {})}

    content = {"role": "model", "parts": [part_of(part) for part in script.parts]}
    stop = "MAX_TOKENS" if script.cut else "STOP"
    return {
        "candidates": [{"content": content, "finishReason": stop, "index": 0}],
        "usageMetadata": {
            "promptTokenCount": script.input,
            "candidatesTokenCount": script.output,
            "cachedContentTokenCount": script.cached,
            "totalTokenCount": script.input + script.output,
        },
        "modelVersion": "gemini-2.5-flash",
        "responseId": script.id,
    }
