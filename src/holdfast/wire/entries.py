"""Convert messages to dialect-independent entries, and list what is lost."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from typing import Any

import msgspec

from holdfast.wire.blocks import Block, Media, Role, Text, ToolCall, ToolResult
from holdfast.wire.conversation import Conversation
from holdfast.wire.dialect import Entry, Loss
from holdfast.wire.media import CarriedMedia, read_media, write_media
from holdfast.wire.values import UniqueNames, join_text, take


def custom_tools(conversation: Conversation) -> frozenset[str]:
    """Return the names of tools with free-form input, which only OpenAI's dialects have."""
    if not conversation.dialect.startswith("openai-"):
        return frozenset()
    offered = conversation.rest.get("tools")
    return frozenset(
        take(tool, "custom", "name") or take(tool, "name")
        for tool in (offered if isinstance(offered, list) else ())
        if take(tool, "type") == "custom"
    )


def entries_of(source: Conversation, to: str, lost: list[Loss]) -> list[Entry]:
    """Return the messages of a request as entries."""
    carrier = _Carrier(source, to, lost)
    entries: list[Entry] = []
    for message in source.messages:
        carried_blocks: list[Block] = []
        for block in message.blocks:
            carried = carrier.carry(block)
            if carried is None:
                kind = type(block).__name__.lower()
                lost.append(Loss(source.path(block), f"a {kind} block"))
            else:
                carried_blocks.append(carried)
        results = tuple(block for block in carried_blocks if isinstance(block, ToolResult))
        other_blocks = tuple(block for block in carried_blocks if not isinstance(block, ToolResult))
        if results:
            entries.append(Entry("tool", results))
        if other_blocks:
            entries.append(Entry(message.role, other_blocks))
    return entries


RESULTS_HOLD_MEDIA = ("anthropic", "openai-responses")
"""Dialects whose tool results may contain media. Elsewhere media follow as user content."""
_MARKS_ERRORS = ("anthropic", "converse", "gemini")


class _Carrier:
    """Converts blocks to dialect-independent ones and records losses."""

    def __init__(self, source: Conversation, to: str, lost: list[Loss]) -> None:
        self._source = source
        self._to = to
        self._lost = lost
        self._ids = _FreshIds()
        self._custom = custom_tools(source)

    def carry(self, block: Block) -> Block | None:
        match block:
            case Text():
                return Text(text=block.text) if block.text.strip() else None
            case ToolCall():
                call_id = self._ids.of_call(block.id, block.name)
                arguments = block.arguments
                if block.name in self._custom:
                    arguments = {"input": arguments if isinstance(arguments, str) else ""}
                return ToolCall(id=call_id, name=block.name, arguments=arguments)
            case ToolResult():
                return self._result(block)
            case Media():
                return self._medium(block)
        return None

    def _result(self, block: ToolResult) -> ToolResult:
        call_id, name = self._ids.of_result(block.call_id, block.name)
        parts: tuple[Block, ...] = ()
        if any(isinstance(part, Media) for part in block.parts):
            parts = tuple(new for part in block.parts if (new := self.carry(part)) is not None)
        for part in block.parts:
            if not isinstance(part, (Text, Media)):
                self._lose(part, "a part of a tool result")
        if block.is_error and self._to not in _MARKS_ERRORS:
            self._lose(block, "the mark that a tool result is an error")
        text = block.text
        return ToolResult(
            call_id=call_id, name=name, text=text, is_error=block.is_error, parts=parts
        )

    def _medium(self, block: Media) -> Block:
        part = _value_at(block)
        carried = read_media(part, block, self._source.dialect)
        if carried is not None and write_media(carried, self._to) is not None:
            return carried
        article = "an" if block.kind in ("image", "audio") else "a"
        self._lose(block, f"{article} {block.kind}, of which a note is left")
        return Text(text=f"[{block.kind} not carried over]")

    def _lose(self, block: Block, what: str) -> None:
        self._lost.append(Loss(self._source.path(block), what))


def _value_at(block: Block) -> Any:
    value = block.owner.parsed if block.owner is not None else None
    for step in block.place:
        value = value[step] if value is not None else None
    return value


def media_after_results(entries: list[Entry]) -> list[Entry]:
    """Move the media of tool results into a user entry after them; the results stay together."""
    moved: list[Entry] = []
    for entry in entries:
        media: list[Block] = []
        results: list[Block] = []
        for block in entry.blocks:
            if isinstance(block, ToolResult) and block.parts:
                result_media = [part for part in block.parts if isinstance(part, CarriedMedia)]
                if result_media:
                    media.append(Text(text=f"[from the result of call {block.call_id}]"))
                    media.extend(result_media)
                text = join_text(block.parts)
                results.append(msgspec.structs.replace(block, text=text, parts=()))
            else:
                results.append(block)
        moved.append(Entry(entry.role, tuple(results)))
        if media:
            moved.append(Entry("user", tuple(media)))
    return moved


def merge_entries(entries: list[Entry]) -> list[Entry]:
    """Merge consecutive entries of one speaker, which some dialects split into items."""
    joined: list[Entry] = []
    for entry in entries:
        if joined and joined[-1].role == entry.role and entry.role in ("assistant", "tool"):
            joined[-1] = Entry(entry.role, joined[-1].blocks + entry.blocks)
        else:
            joined.append(entry)
    return [Entry(entry.role, _texts_first(entry.role, entry.blocks)) for entry in joined]


def _texts_first(role: Role, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    # Anthropic rejects text after a call.
    return (
        tuple(sorted(blocks, key=lambda b: isinstance(b, ToolCall)))
        if role == "assistant"
        else blocks
    )


class _FreshIds:
    """Generates call ids for every dialect: plain, at most 40 characters, unique, not empty."""

    def __init__(self) -> None:
        self._names = UniqueNames()
        self._open: dict[str, str] = {}  # new id and name of each call without a result
        # The new ids in order, by the id, the name, or nothing that a result may state.
        self._waiting: dict[tuple[str, str], deque[str]] = defaultdict(deque)

    def of_call(self, old: str, name: str) -> str:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", old)[:32] or f"call_{len(self._names) + 1}"
        new = self._names.take(plain)
        self._open[new] = name
        for clue in (("id", old), ("name", name), ("any", "")):
            self._waiting[clue].append(new)
        return new

    def of_result(self, old: str, name: str) -> tuple[str, str]:
        """Return id and name of the answered call: by id, else by name, else the oldest."""
        for clue in (("id", old),) if old else (("name", name), ("any", "")):
            waiting = self._waiting[clue]
            while waiting:
                new = waiting.popleft()
                if new in self._open:
                    return new, self._open.pop(new)
        return self.of_call(old, name), name or "unknown"
