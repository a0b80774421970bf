"""llmtrim's `compress` without a preset, as its package gives it; nothing can be asked back."""

from __future__ import annotations

import json
from typing import Any

import llmtrim

from benchmarks.peers.conversation import Shrunk, messages, serve


def shrink(text: str, question: str) -> Shrunk:
    sent = messages(text, question)
    body = json.dumps({"model": "gpt-4o", "messages": sent})
    output = llmtrim.compress(body, llmtrim.Provider.OPEN_AI, None)
    ours = {message["content"] for message in sent if message["role"] != "tool"}
    left = [_text(m.get("content")) for m in json.loads(output.request_json)["messages"]]
    shown = "\n".join(content for content in left if content not in ours)
    return Shrunk(shown, None, whole=shown == text)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


if __name__ == "__main__":
    serve(shrink)
