"""What every peer is given, and how it answers. Runs in the peer's environment: stdlib only.

The conversation is one that all of them would act on at their defaults: the result is not among
the last four messages nor in the last two turns, and the last message asks the question.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

RESULT = 2
"""Which message holds the tool's result."""


class Shrunk(NamedTuple):
    """What a peer made of a result."""

    text: str
    """What the model sees in its place."""
    more: str | None
    """What the model gets if it asks once for more; None if the peer has no way to ask."""
    whole: bool
    """Whether the original can be had again, exactly: it is shown, or can be asked for."""


def messages(text: str, question: str) -> list[dict[str, Any]]:
    """A conversation in OpenAI's chat dialect with the result in it."""
    call = {"id": "call_1", "type": "function", "function": {"name": "fetch", "arguments": "{}"}}
    return [
        {"role": "user", "content": "Fetch the document. I will ask about it."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": text},
        {"role": "assistant", "content": "I have it."},
        {"role": "user", "content": "Good."},
        {"role": "assistant", "content": "What would you like to know?"},
        {"role": "user", "content": question},
    ]


def serve(shrink: Callable[[str, str], Shrunk]) -> None:
    """Answer JSON lines of text and question with JSON lines of what the peer made of them."""
    answers, texts = sys.stdout, {}
    with contextlib.redirect_stdout(sys.stderr):  # peers talk
        for line in sys.stdin:
            asked = json.loads(line)
            if "text" in asked:
                texts[asked["id"]] = asked["text"]
                continue
            text = texts[asked["id"]]
            began = time.perf_counter()
            shrunk = shrink(text, asked["question"])
            seconds = time.perf_counter() - began
            answers.write(json.dumps({**shrunk._asdict(), "seconds": seconds}) + "\n")
            answers.flush()
