"""Streams as providers write them, and a client that takes only well-formed ones.

Both are written here from the providers' documentation and share nothing with the package: a
stream is drawn as a script and spelled in a dialect; the client reads it back into a script.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
HIDDEN = "expand_ref"


def hidden(name: str) -> bool:
    return name == HIDDEN


@dataclass(frozen=True)
class Part:
    kind: str  # text, call or thinking
    pieces: tuple[str, ...]  # of the text, or of the arguments as JSON
    id: str = ""
    name: str = ""
    signature: str = ""  # of Claude's thinking; empty for the plain mark
    anonymous: bool = False  # a call that Gemini gives no id
    freeform: bool = False  # a call of one of OpenAI's custom tools, which take any text
    summarised: bool = False  # thinking that OpenAI's Responses tell as a summary

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class Script:
    """One upstream answer."""

    parts: tuple[Part, ...]
    id: str = "first"
    input: int = 10
    output: int = 5
    cached: int = 3
    written: int = 0  # to the prompt cache
    written_hour: int = 0  # of these, for an hour
    cut: bool = False

    @property
    def calls(self) -> list[Part]:
        return [part for part in self.parts if part.kind == "call"]

    @property
    def texts(self) -> list[str]:
        return [part.text for part in self.parts if part.kind == "text"]


def signature(part: Part) -> str:
    """Gemini's signatures are bytes in base64."""
    return base64.b64encode((part.id or part.name).encode()).decode()


def sse(value: Any, name: str = "") -> bytes:
    data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data}\n\n".encode()


# --- writing -----------------------------------------------------------------------------------


def write(script: Script, dialect: str) -> list[bytes]:
    return {
        "openai-chat": _chat,
        "openai-responses": _responses,
        "anthropic": _anthropic,
        "gemini": _gemini,
    }[dialect](script)


def _chat(script: Script) -> list[bytes]:
    def chunk(delta: dict[str, Any], stop: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}
        return sse({**same, "choices": [choice], "usage": None})

    same = {
        "id": f"chatcmpl-{script.id}",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "gpt-5",
        "service_tier": "default",
        "system_fingerprint": "fp_1",
    }
    events = [chunk({"role": "assistant", "content": "", "refusal": None})]
    number = 0
    for part in script.parts:
        if part.kind == "call":
            head = {"index": number, "id": part.id, "type": "function"}
            start = {**head, "function": {"name": part.name, "arguments": ""}}
            events.append(chunk({"tool_calls": [start]}))
            events.extend(
                chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
                for piece in part.pieces
            )
            number += 1
        else:
            key = "content" if part.kind == "text" else "reasoning_content"
            events.extend(chunk({key: piece}) for piece in part.pieces)
    stop = "length" if script.cut else "tool_calls" if number else "stop"
    usage = {
        "prompt_tokens": script.input,
        "completion_tokens": script.output,
        "total_tokens": script.input + script.output,
        "prompt_tokens_details": {"cached_tokens": script.cached},
    }
    events.append(chunk({}, stop))
    events.append(sse({**same, "choices": [], "usage": usage}))
    return [*events, sse("[DONE]")]


def _anthropic(script: Script) -> list[bytes]:
    def event(value: dict[str, Any]) -> bytes:
        return sse(value, value["type"])

    message: dict[str, Any] = {
        "id": f"msg_{script.id}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": script.input, **claude_cache(script), "output_tokens": 1},
    }
    events = [event({"type": "message_start", "message": message}), event({"type": "ping"})]
    for n, part in enumerate(script.parts):
        start: dict[str, Any] = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in part.pieces]
        if part.kind == "call":
            start = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": p} for p in part.pieces]
        elif part.kind == "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": p} for p in part.pieces]
            bond = part.signature or f"signed {part.text}"
            deltas.append({"type": "signature_delta", "signature": bond})
        events.append(event({"type": "content_block_start", "index": n, "content_block": start}))
        events.extend(
            event({"type": "content_block_delta", "index": n, "delta": delta}) for delta in deltas
        )
        events.append(event({"type": "content_block_stop", "index": n}))
    stop = "max_tokens" if script.cut else "tool_use" if script.calls else "end_turn"
    delta = {"stop_reason": stop, "stop_sequence": None}
    usage = {"output_tokens": script.output}
    events.append(event({"type": "message_delta", "delta": delta, "usage": usage}))
    return [*events, event({"type": "message_stop"})]


def claude_cache(script: Script) -> dict[str, Any]:
    """What Claude reports of its prompt cache; `input_tokens` are those beside it."""
    return {
        "cache_read_input_tokens": script.cached,
        "cache_creation_input_tokens": script.written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": script.written - script.written_hour,
            "ephemeral_1h_input_tokens": script.written_hour,
        },
    }


def _responses(script: Script) -> list[bytes]:
    values: list[dict[str, Any]] = []
    items = []
    for n, part in enumerate(script.parts):
        at = {"output_index": n, "item_id": f"{part.kind[:2]}_{script.id}_{n}"}
        item = _item(part, f"{script.id}_{n}")
        at["item_id"] = item["id"]
        items.append(item)
        given = "input" if part.freeform else "arguments"
        empty = {**item, **({given: ""} if part.kind == "call" else {})}
        if part.kind == "text":
            empty["content"] = []
        elif part.kind == "thinking":
            empty["summary"] = []
        values.append({"type": "response.output_item.added", "output_index": n, "item": empty})
        if part.kind == "text":
            inside = {**at, "content_index": 0}
            [whole] = item["content"]
            start = {**whole, "text": ""}
            values.append({"type": "response.content_part.added", **inside, "part": start})
            values.extend(
                {"type": "response.output_text.delta", **inside, "delta": piece, "logprobs": []}
                for piece in part.pieces
            )
            done = {"type": "response.output_text.done", **inside, "text": part.text}
            values.append({**done, "logprobs": []})
            values.append({"type": "response.content_part.done", **inside, "part": whole})
        elif part.kind == "call":
            kind = "custom_tool_call_input" if part.freeform else "function_call_arguments"
            kind = f"response.{kind}"
            values.extend({"type": f"{kind}.delta", **at, "delta": p} for p in part.pieces)
            values.append({"type": f"{kind}.done", **at, given: part.text})
        elif part.summarised:
            inside = {**at, "summary_index": 0}
            kind = "response.reasoning_summary"
            [whole] = item["summary"]
            values.append({"type": f"{kind}_part.added", **inside, "part": {**whole, "text": ""}})
            values.extend({"type": f"{kind}_text.delta", **inside, "delta": p} for p in part.pieces)
            values.append({"type": f"{kind}_text.done", **inside, "text": part.text})
            values.append({"type": f"{kind}_part.done", **inside, "part": whole})
        values.append({"type": "response.output_item.done", "output_index": n, "item": item})
    status = "incomplete" if script.cut else "completed"
    begun = _response(script, "in_progress", [])
    ended = {**_response(script, status, items), "usage": _responses_usage(script)}
    if script.cut:
        ended["incomplete_details"] = {"reason": "max_output_tokens"}
    values = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *values,
        {"type": f"response.{status}", "response": ended},
    ]
    return [sse({**v, "sequence_number": n}, v["type"]) for n, v in enumerate(values)]


def _response(script: Script, status: str, output: list[Any]) -> dict[str, Any]:
    return {
        "id": f"resp_{script.id}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "gpt-5",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [{"type": "function", "name": "look_up", "parameters": {}, "strict": False}],
        "usage": None,
    }


def _responses_usage(script: Script) -> dict[str, Any]:
    return {
        "input_tokens": script.input,
        "input_tokens_details": {"cached_tokens": script.cached, "cache_write_tokens": 0},
        "output_tokens": script.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": script.input + script.output,
    }


def _item(part: Part, number: str) -> dict[str, Any]:
    if part.kind == "text":
        content = [{"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}]
        head: dict[str, Any] = {"id": f"msg_{number}", "type": "message", "status": "completed"}
        return {**head, "role": "assistant", "content": content}
    if part.kind == "call":
        if part.freeform:
            head = {"id": f"ctc_{number}", "type": "custom_tool_call", "status": "completed"}
            return {**head, "call_id": part.id, "name": part.name, "input": part.text}
        head = {"id": f"fc_{number}", "type": "function_call", "status": "completed"}
        return {**head, "call_id": part.id, "name": part.name, "arguments": part.text}
    summary = [{"type": "summary_text", "text": part.text}] if part.summarised else []
    head = {"id": f"rs_{number}", "type": "reasoning", "summary": summary}
    return {**head, "encrypted_content": f"signed {part.text}"}


def _gemini(script: Script) -> list[bytes]:
    def chunk(parts: list[Any], stop: str = "") -> bytes:
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
        usage = {"promptTokenCount": script.input, "totalTokenCount": script.input}
        if stop:
            candidate["finishReason"] = stop
            usage |= {
                "candidatesTokenCount": script.output,
                "cachedContentTokenCount": script.cached,
                "totalTokenCount": script.input + script.output,
            }
        same = {"modelVersion": "gemini-2.5-flash", "responseId": script.id}
        return sse({"candidates": [candidate], "usageMetadata": usage, **same})

    groups: list[list[Any]] = []
    for part in script.parts:
        if part.kind == "call":
            given = {"id": part.id} if part.id and not part.anonymous else {}
            call = {**given, "name": part.name, "args": json.loads(part.text)}
            groups.append([{"functionCall": call, "thoughtSignature": signature(part)}])
        elif part.kind == "thinking":
            groups.extend([{"text": piece, "thought": True}] for piece in part.pieces)
        else:
            groups.extend([{"text": piece}] for piece in part.pieces)
    stop = "MAX_TOKENS" if script.cut else "STOP"
    # Gemini sends its last words together with the end.
    last = groups.pop() if groups and len(groups) % 2 else []
    return [*(chunk(group) for group in groups), chunk(last, stop)]


# --- reading -----------------------------------------------------------------------------------


@dataclass
class Seen:
    """What a client understood."""

    id: str = ""
    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    calls: list[tuple[str, str, str]] = field(default_factory=list)  # id, name, arguments
    stop: str = ""
    usage: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def events(stream: bytes) -> list[tuple[str, Any]]:
    found = []
    for block in stream.decode().split("\n\n"):
        name, data = "", []
        for line in block.split("\n"):
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                data.append(line.removeprefix("data: "))
        if data:
            text = "\n".join(data)
            found.append((name, text if text == "[DONE]" else json.loads(text)))
    return found


def understand(stream: bytes, dialect: str) -> Seen:
    """Read a whole stream; every breach of the dialect's order or numbers is an AssertionError."""
    return {
        "openai-chat": _understand_chat,
        "openai-responses": _understand_responses,
        "anthropic": _understand_anthropic,
        "gemini": _understand_gemini,
    }[dialect](events(stream))


def _understand_chat(found: list[tuple[str, Any]]) -> Seen:
    assert found[-1][1] == "[DONE]"
    seen = Seen(id=found[0][1]["id"])
    calls: list[list[str]] = []
    roles = 0
    words: list[str] = []
    for _, value in found[:-1]:
        assert value["id"] == seen.id
        if not value["choices"]:
            assert seen.stop, "usage stands behind the end"
            assert not seen.usage
            seen.usage = value["usage"]
            continue
        [choice] = value["choices"]
        assert not seen.stop, "nothing stands behind the end"
        delta = choice["delta"]
        roles += "role" in delta
        words.append(delta.get("content") or "")
        seen.thinking.append(delta.get("reasoning_content") or "")
        for piece in delta.get("tool_calls", ()):
            if piece["index"] == len(calls):
                calls.append([piece["id"], piece["function"]["name"], ""])
            assert piece["index"] == len(calls) - 1
            calls[-1][2] += piece["function"]["arguments"]
        seen.stop = choice["finish_reason"] or ""
    assert roles == 1
    assert seen.stop
    seen.texts = ["".join(words)]
    seen.calls = [(a, b, c) for a, b, c in calls]
    return seen


def _understand_anthropic(found: list[tuple[str, Any]]) -> Seen:
    found = [(name, value) for name, value in found if name != "ping"]
    assert all(name == value["type"] for name, value in found)
    (_, start), *middle, (_, delta), (_, stop) = found
    assert [start["type"], delta["type"], stop["type"]] == [
        "message_start",
        "message_delta",
        "message_stop",
    ]
    seen = Seen(id=start["message"]["id"], stop=delta["delta"]["stop_reason"])
    seen.usage = {**start["message"]["usage"], **delta["usage"]}
    blocks: list[dict[str, Any]] = []
    is_open = False
    for _, value in middle:
        if value["type"] == "content_block_start":
            assert not is_open
            assert value["index"] == len(blocks)
            blocks.append({**value["content_block"], "json": ""})
            is_open = True
        elif value["type"] == "content_block_stop":
            assert is_open
            assert value["index"] == len(blocks) - 1
            is_open = False
        else:
            assert value["type"] == "content_block_delta"
            assert is_open
            assert value["index"] == len(blocks) - 1
            change = value["delta"]
            for key in ("text", "thinking", "signature"):
                if key in change:
                    blocks[-1][key] += change[key]
            blocks[-1]["json"] += change.get("partial_json", "")
    assert not is_open
    seen.texts = [block["text"] for block in blocks if block["type"] == "text"]
    seen.thinking = [block["thinking"] for block in blocks if block["type"] == "thinking"]
    seen.calls = [(b["id"], b["name"], b["json"]) for b in blocks if b["type"] == "tool_use"]
    return seen


def _understand_responses(found: list[tuple[str, Any]]) -> Seen:
    assert [value["sequence_number"] for _, value in found] == list(range(len(found)))
    assert all(name == value["type"] for name, value in found)
    assert [name for name, _ in found[:2]] == ["response.created", "response.in_progress"]
    kind, last = found[-1]
    seen = Seen(id=found[0][1]["response"]["id"])
    final = last["response"]
    assert final["id"] == seen.id
    assert all(tool["name"] != HIDDEN for _, v in found for tool in _tools(v))
    items: list[Any] = []
    deltas: dict[int, str] = {}
    for name, value in found[2:-1]:
        index = value["output_index"]
        if name == "response.output_item.added":
            assert index == len(items)
            items.append(None)
        elif name == "response.output_item.done":
            assert items[index] is None
            items[index] = value["item"]
        else:
            assert index == len(items) - 1
        if name in ("response.output_text.delta", "response.function_call_arguments.delta"):
            deltas[index] = deltas.get(index, "") + value["delta"]
    assert items == final["output"]
    for index, item in enumerate(items):
        if item["type"] == "message":
            [part] = item["content"]
            assert part["text"] == deltas.get(index, "")
            seen.texts.append(part["text"])
        elif item["type"] == "function_call":
            assert item["arguments"] == deltas.get(index, "")
            seen.calls.append((item["call_id"], item["name"], item["arguments"]))
        else:
            summary = "".join(part["text"] for part in item["summary"])
            seen.thinking.append(summary or item["encrypted_content"])
    seen.stop = kind.removeprefix("response.")
    seen.usage = final["usage"]
    return seen


def _tools(value: Any) -> list[Any]:
    tools = value.get("response", {}).get("tools", [])
    assert isinstance(tools, list)
    return tools


def _understand_gemini(found: list[tuple[str, Any]]) -> Seen:
    seen = Seen(id=found[0][1]["responseId"])
    words: list[str] = []
    for _, value in found:
        assert value["responseId"] == seen.id
        assert not seen.stop, "nothing stands behind the end"
        [candidate] = value["candidates"]
        seen.usage |= value.get("usageMetadata", {})
        for part in candidate["content"]["parts"]:
            if "functionCall" in part:
                call = part["functionCall"]
                seen.calls.append((call["id"], call["name"], json.dumps(call["args"])))
            elif part.get("thought"):
                seen.thinking.append(part["text"])
            else:
                words.append(part["text"])
        seen.stop = candidate.get("finishReason", "")
    assert seen.stop
    seen.texts = ["".join(words)]
    return seen


# --- drawing -----------------------------------------------------------------------------------

words = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=12
)


@st.composite
def scripts(
    draw: st.DrawFn,
    names: tuple[str, ...] = ("look_up", "search"),
    prefix: str = "c",
    must: tuple[str, ...] = (),
) -> Script:
    """An answer with calls of some names, and surely of those in `must`."""
    parts = []
    some = st.sampled_from(["text", "thinking", *(f"call {name}" for name in names)])
    kinds = draw(st.lists(some, max_size=5 - len(must)))
    for n, drawn in enumerate(draw(st.permutations([*kinds, *(f"call {m}" for m in must)]))):
        kind, _, name = drawn.partition(" ")
        if kind == "call":
            value = json.dumps({"ref": draw(words)}, ensure_ascii=draw(st.booleans()))
            cut = draw(st.integers(0, len(value)))
            pieces = tuple(piece for piece in (value[:cut], value[cut:]) if piece)
            parts.append(Part("call", pieces, f"{prefix}_{n}", name))
        else:
            parts.append(Part(kind, tuple(draw(st.lists(words, min_size=1, max_size=4)))))
    return Script(
        parts=tuple(parts),
        id=prefix,
        input=draw(st.integers(1, 1000)),
        output=draw(st.integers(1, 1000)),
        cached=draw(st.integers(0, 100)),
        cut=draw(st.booleans()),
    )


def chopped(stream: bytes, cuts: list[int]) -> list[bytes]:
    """The stream in chunks, cut at some places."""
    places = sorted({cut % (len(stream) + 1) for cut in cuts})
    return [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]


def as_shown(script: Script) -> Script:
    """A script without its hidden calls."""
    return replace(script, parts=tuple(p for p in script.parts if p.name != HIDDEN))
