"""Write a request in another dialect: text and tools are carried over, the rest is listed.

convert: after reader. Goes through entries, the form that belongs to no dialect.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from typing import Any

import msgspec

from holdfast.wire.blocks import Block, Media, Role, Text, Tool, ToolCall, ToolResult
from holdfast.wire.conversation import Conversation
from holdfast.wire.dialect import Entry, Loss
from holdfast.wire.pointing import dotted
from holdfast.wire.reader import dialect_named, read
from holdfast.wire.repair import repair
from holdfast.wire.strict import Limits, encode
from holdfast.wire.values import UniqueNames, join_text

_DEFAULT_LIMITS = Limits()


class Converted(msgspec.Struct, frozen=True):
    """A request in its new dialect, and what it lost on the way."""

    body: bytes
    lost: tuple[Loss, ...]

    def __repr__(self) -> str:
        return f"<Converted, {len(self.body)} bytes, {len(self.lost)} losses>"


def convert(
    body: object, to: str, dialect: str | None = None, *, limits: Limits = _DEFAULT_LIMITS
) -> Converted:
    """Write a request, read in `dialect` or detected, in the dialect `to`.

    Messages, system text, client tools and the common parameters are carried over; thinking,
    media, hosted tools and other parameters are not, and are listed as lost.
    """
    source = body if isinstance(body, Conversation) else read(body, dialect, limits=limits)
    target = dialect_named(to)
    origin = dialect_named(source.dialect)
    lost: list[Loss] = []

    entries = _entries(source, lost)
    system = join_text(origin.system(source.rest))
    if target.INLINE_SYSTEM:
        if system:
            entries.insert(0, Entry("system", (Text(text=system),)))
    else:
        inline = [block for entry in entries if entry.role == "system" for block in entry.blocks]
        system = "\n\n".join(filter(None, (system, join_text(inline))))
        entries = [entry for entry in entries if entry.role != "system"]
        if system and not entries:  # a request of instructions only: they become the question
            entries, system = [Entry("user", (Text(text=system),))], ""

    tools = []
    for tool in source.tools:
        if tool.hosted or not tool.name:
            lost.append(Loss(dotted(tool.place), "a tool that the provider runs itself"))
        else:
            tools.append(tool)

    if target.NAME == "converse" and not tools:  # Bedrock refuses calls without tools (B7)
        tools = _used_tools(entries)
        lost.extend(Loss("$.tools", "the schema of a tool that is used") for _ in tools)

    params = origin.params(source.rest)
    for name, value in list(params.items()):
        if value is None or (name == "tool_choice" and not _is_common_choice(value)):
            del params[name]
            lost.append(Loss(f"$.{name}", "no other dialect can express it"))
    converted = target.envelope(system, tools, params)
    lost.extend(Loss(f"$.{name}", "the new dialect cannot express it") for name in params)
    lost.extend(_unknown_fields(source))
    [key] = target.LISTS[0]
    converted[str(key)] = target.compose(_merge(entries))
    # A prefill, an answer on its own, text that one dialect takes and the other does not: what
    # the new dialect forbids is mended, and is a loss like the others.
    repaired = repair(encode(converted), to, limits=limits)
    lost.extend(
        Loss(action.path, f"{action.message} ({action.rule})") for action in repaired.actions
    )
    return Converted(repaired.body, tuple(lost))


def _used_tools(entries: list[Entry]) -> list[Tool]:
    blocks = (block for entry in entries for block in entry.blocks)
    names = {block.name: None for block in blocks if isinstance(block, (ToolCall, ToolResult))}
    return [Tool(name=name) for name in names]


def _is_common_choice(choice: Any) -> bool:
    """Whether a choice of tools is of a form that the dialects share."""
    if isinstance(choice, dict):
        return choice.keys() == {"name"} and isinstance(choice["name"], str)
    return choice in ("auto", "required", "none")


# --- the conversation in no dialect ------------------------------------------------------------


def _entries(source: Conversation, lost: list[Loss]) -> list[Entry]:
    ids = _FreshIds()
    entries: list[Entry] = []
    for message in source.messages:
        kept: list[Block] = []
        for block in message.blocks:
            carried = _carry(block, ids)
            if carried is None:
                kind = type(block).__name__.lower()
                lost.append(Loss(source.path(block), f"a {kind} block"))
            else:
                kept.append(carried)
            if isinstance(block, ToolResult):
                media = [part for part in block.parts if not isinstance(part, Text)]
                lost.extend(Loss(source.path(part), "media in a tool result") for part in media)
            elif isinstance(block, Media):
                lost.append(Loss(source.path(block), f"a {block.kind}, of which a note is left"))
        results = tuple(block for block in kept if isinstance(block, ToolResult))
        others = tuple(block for block in kept if not isinstance(block, ToolResult))
        if results:
            entries.append(Entry("tool", results))
        if others:
            entries.append(Entry(message.role, others))
    return entries


def _carry(block: Block, ids: _FreshIds) -> Block | None:
    match block:
        case Text():
            return Text(text=block.text) if block.text.strip() else None
        case ToolCall():
            call_id = ids.of_call(block.id, block.name)
            return ToolCall(id=call_id, name=block.name, arguments=block.arguments)
        case ToolResult():
            call_id, name = ids.of_result(block.call_id, block.name)
            return ToolResult(call_id=call_id, name=name, text=block.text, is_error=block.is_error)
        case Media():
            return Text(text=f"[{block.kind} not carried over]")
    return None


def _merge(entries: list[Entry]) -> list[Entry]:
    """Join what one speaker said in a row, as some dialects part it into items."""
    merged: list[Entry] = []
    for entry in entries:
        if merged and merged[-1].role == entry.role and entry.role in ("assistant", "tool"):
            merged[-1] = Entry(entry.role, merged[-1].blocks + entry.blocks)
        else:
            merged.append(entry)
    return [Entry(entry.role, _texts_first(entry.role, entry.blocks)) for entry in merged]


def _texts_first(role: Role, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    # Text behind a call is refused by Anthropic (A4).
    return (
        tuple(sorted(blocks, key=lambda b: isinstance(b, ToolCall)))
        if role == "assistant"
        else blocks
    )


class _FreshIds:
    """Call ids that every dialect takes: plain letters, at most 40, unique, and never empty."""

    def __init__(self) -> None:
        self._names = UniqueNames()
        self._open: dict[str, str] = {}  # new id and name of each call that waits for a result
        # The new ids in order, by what a result may know of its call: id, name, or nothing.
        self._waiting: dict[tuple[str, str], deque[str]] = defaultdict(deque)

    def of_call(self, old: str, name: str) -> str:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", old)[:32] or f"call_{len(self._names) + 1}"
        new = self._names.take(plain)
        self._open[new] = name
        for clue in (("id", old), ("name", name), ("any", "")):
            self._waiting[clue].append(new)
        return new

    def of_result(self, old: str, name: str) -> tuple[str, str]:
        """The id and name of the call that is answered: by id, else by name, else the oldest."""
        for clue in (("id", old),) if old else (("name", name), ("any", "")):
            waiting = self._waiting[clue]
            while waiting:
                new = waiting.popleft()
                if new in self._open:
                    return new, self._open.pop(new)
        return self.of_call(old, name), name or "unknown"


def _unknown_fields(source: Conversation) -> list[Loss]:
    """The body's own fields that conversion does not know."""
    known = _KNOWN | {str(source.frame.place[0])}
    return [
        Loss(dotted((key,)), "a field of this dialect only")
        for key in source.rest
        if key not in known
    ]


_KNOWN = frozenset(
    "model max_tokens max_completion_tokens max_output_tokens temperature top_p p "
    "stop stop_sequences stream tools tool_choice system systemInstruction "
    "system_instruction instructions preamble toolConfig generationConfig "
    "generation_config inferenceConfig functions modelId".split()
)
