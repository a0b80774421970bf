"""Read, write and validate a request of 1 MB, beside the openai and pydantic-ai models."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import ratios
from benchmarks.measure import best_ms, peak_bytes
from holdfast import read, validate, write

WORDS = (
    "the request holds a list of files and each line names one path with its size and date "
    "error warning build test token context window tool result message number value"
).split()


def conversation(size: int, per_message: int) -> list[dict[str, Any]]:
    """A made agent conversation of `size` characters: a question, then calls and results."""
    chance = random.Random(1)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a careful engineer."},
        {"role": "user", "content": "Find out why the build fails."},
    ]
    total, number = 0, 0
    while total < size:
        number += 1
        arguments = json.dumps({"path": f"src/file_{number}.py", "limit": 100})
        function = {"name": "read_file", "arguments": arguments}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        words = chance.choices(WORDS, k=per_message // 6)
        text = "\n".join(" ".join(words[i : i + 12]) for i in range(0, len(words), 12))
        messages.append({"role": "assistant", "content": "Reading on.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": text})
        total += len(text)
    messages.append({"role": "user", "content": "And now?"})
    return messages


def anthropic_of(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The same conversation for Anthropic."""
    from holdfast import convert  # noqa: PLC0415 - only this helper needs it

    body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": messages}
    return json.loads(convert(body, "anthropic", "openai-chat").body)  # type: ignore[no-any-return]


def openai_models(adapter: Any, raw: bytes) -> object:
    """Parse into the openai SDK's typed messages, and dump again."""
    body = json.loads(raw)
    messages = adapter.validate_python(body["messages"])
    return adapter.dump_json(messages, warnings=False)


def pydantic_ai_models(raw: bytes) -> object:
    """Parse pydantic-ai's own message history, and dump again."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415

    return ModelMessagesTypeAdapter.dump_json(ModelMessagesTypeAdapter.validate_json(raw))


def pydantic_ai_history(messages: list[dict[str, Any]]) -> bytes:
    """The same conversation as pydantic-ai stores it."""
    from pydantic_ai import messages as pa  # noqa: PLC0415

    history: list[Any] = []
    for message in messages:
        if message["role"] == "assistant":
            [call] = message["tool_calls"]
            function = call["function"]
            parts: list[Any] = [
                pa.TextPart(message["content"]),
                pa.ToolCallPart(function["name"], function["arguments"], call["id"]),
            ]
            history.append(pa.ModelResponse(parts=parts))
        elif message["role"] == "tool":
            returned = pa.ToolReturnPart("read_file", message["content"], message["tool_call_id"])
            history.append(pa.ModelRequest(parts=[returned]))
        else:
            history.append(pa.ModelRequest(parts=[pa.UserPromptPart(message["content"])]))
    return pa.ModelMessagesTypeAdapter.dump_json(history)


def run(console: Console) -> None:
    """Print the tables."""
    megabyte = 1_000_000
    messages = conversation(megabyte, 4_000)
    chat = {"model": "gpt-4o", "messages": messages}
    raw = json.dumps(chat, separators=(",", ":")).encode()
    spaced = json.dumps(chat).encode()
    pretty = json.dumps(chat, indent=2).encode()
    many = json.dumps({"messages": conversation(megabyte, 700)}, separators=(",", ":")).encode()
    claude = json.dumps(anthropic_of(messages), separators=(",", ":")).encode()

    table = Table(title=f"A request of 1 MB ({len(messages)} messages; target in brackets)")
    for column in ("what", "ms", "ms per MB", "peak memory / body", "times slower"):
        table.add_column(column, justify="left" if column == "what" else "right")

    base = best_ms(lambda: write(read(raw, "openai-chat")))

    def row(name: str, body: bytes, work: Callable[[], object]) -> None:
        ms = best_ms(work)
        memory = peak_bytes(work) / len(body)
        per_mb = ms / len(body) * megabyte
        ratio = per_mb / (base / len(raw) * megabyte)
        table.add_row(name, f"{ms:.2f}", f"{per_mb:.2f}", f"{memory:.2f}", f"{ratio:.1f}")
        if name.startswith(("limit", "peer")):
            ratios.note(f"wire: read + write, {name}", ratio, 1)
        elif name.startswith("validate"):
            ratios.note("wire: read + write / validate", 1, ratio)

    row("read + write (5 ms, 3x)", raw, lambda: write(read(raw, "openai-chat")))
    row("  with spaces, as json.dumps writes", spaced, lambda: write(read(spaced, "openai-chat")))
    row("  indented", pretty, lambda: write(read(pretty, "openai-chat")))
    row("  in 2,500 messages", many, lambda: write(read(many, "openai-chat")))
    row("  anthropic", claude, lambda: write(read(claude, "anthropic")))
    row("validate (10 ms)", raw, lambda: validate(raw, "openai-chat"))
    row("  in 2,500 messages", many, lambda: validate(many, "openai-chat"))
    row("  anthropic", claude, lambda: validate(claude, "anthropic"))
    row("limit: json.loads + json.dumps", raw, lambda: json.dumps(json.loads(raw)))
    try:
        history = pydantic_ai_history(messages)
        from openai.types.chat import ChatCompletionMessageParam  # noqa: PLC0415
        from pydantic import TypeAdapter  # noqa: PLC0415

        adapter = TypeAdapter(list[ChatCompletionMessageParam])
        row("peer: openai's typed messages", raw, lambda: openai_models(adapter, raw))
        row("peer: pydantic-ai's messages", history, lambda: pydantic_ai_models(history))
    except ImportError:
        console.print("(openai and pydantic-ai are not installed: `make bench` installs them)")
    console.print(table)
    _appended(console)


def _appended(console: Console) -> None:
    table = Table(title="One message appended to a known conversation")
    for column in ("conversation", "read whole, ms", "read with previous, ms", "times faster"):
        table.add_column(column, justify="left" if column == "conversation" else "right")
    for size in (100_000, 1_000_000, 10_000_000):
        messages = conversation(size, 2_000)
        before = json.dumps({"messages": messages}, separators=(",", ":")).encode()
        messages.append({"role": "user", "content": "one more"})
        after = json.dumps({"messages": messages}, separators=(",", ":")).encode()
        previous = read(before, "openai-chat")
        whole = best_ms(lambda raw=after: read(raw, "openai-chat"))  # type: ignore[misc]
        added = best_ms(
            lambda raw=after, known=previous: read(raw, "openai-chat", previous=known)  # type: ignore[misc]
        )
        name = f"{len(after) / 1e6:.1f} MB, {len(messages):,} messages"
        table.add_row(name, f"{whole:.2f}", f"{added:.3f}", f"{whole / added:.0f}")
        ratios.note(f"wire: a message appended to {size / 1e6:.1f} MB", whole, added)
    console.print(table)
