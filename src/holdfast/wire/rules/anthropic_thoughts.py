"""Anthropic's rules on thinking."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.wire.anthropic import NAME as ANTHROPIC
from holdfast.wire.blocks import Thinking, ToolResult
from holdfast.wire.json_places import Place
from holdfast.wire.rules.common import at
from holdfast.wire.rules.rule import CheckedMessage, Context, Finding, rule

A11 = rule(
    "A11",
    ANTHROPIC,
    "With thinking enabled, the assistant turn whose tool results come last starts with its "
    "thinking; adaptive thinking leaves that to the model.",
    source="opencode#3077; recorded adaptive requests whose last tool turn starts with text",
)


@A11.ends
def open_turn_keeps_its_thinking(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    thinking = context.body.get("thinking")
    if not (isinstance(thinking, dict) and thinking.get("type") == "enabled" and messages):
        return
    if not any(isinstance(block, ToolResult) for block in messages[-1].blocks):
        return
    for n in range(len(messages) - 1, -1, -1):
        message = messages[n]
        if message.role == "assistant" and (n == 0 or messages[n - 1].role != "assistant"):
            if not (message.blocks and isinstance(message.blocks[0], Thinking)):
                yield message.place, "thinking is on, but this turn does not start with thinking"
            return


A12 = rule(
    "A12",
    ANTHROPIC,
    "Thinking blocks of the latest assistant message are sent back as they came, and signed.",
    source="claude-code#63203",
)


@A12.ends
def latest_thinking_is_signed(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    for n in range(len(messages) - 1, -1, -1):
        message = messages[n]
        if message.role != "assistant":
            continue
        for block in message.blocks:
            if isinstance(block, Thinking):
                part = message.value["content"][block.place[-1]]
                proof = part.get("signature" if part["type"] == "thinking" else "data")
                if not (isinstance(proof, str) and proof):
                    yield at(message, block), "the thinking block has lost its signature"
        return


A15 = rule(
    "A15",
    ANTHROPIC,
    "budget_tokens is at least 1024 and, without tools, below max_tokens; no tool is forced "
    "while thinking is on.",
    source="docs.anthropic.com, extended thinking",
)


@A15.body
def thinking_budget_is_legal(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    body = context.body
    thinking = body.get("thinking")
    if not (isinstance(thinking, dict) and thinking.get("type") == "enabled"):
        return
    budget, most = thinking.get("budget_tokens"), body.get("max_tokens")
    place: Place = ("thinking", "budget_tokens")
    if not isinstance(budget, int) or budget < 1024:
        yield place, "budget_tokens must be at least 1024"
    # Interleaved thinking lifts this limit; a header enables it and it needs tools.
    elif isinstance(most, int) and budget >= most and not body.get("tools"):
        yield place, "budget_tokens must be below max_tokens"
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        yield ("tool_choice",), "a tool cannot be forced while thinking is on"


# Models whose thinking is bound to everything before it, collected on 2026-11-16. Other ids are
# assumed unbound.
_PRESERVING = re.compile(
    r"claude-(?:fable-5[-.][12]|mythos-5[-.][12]|(?:opus|sonnet|haiku)-5[-.]5)(?!\d)"
)


def has_preserved_thinking(model: str) -> bool:
    """Return whether a model's thinking is bound to the exact request content before it."""
    return _PRESERVING.search(model) is not None


def drops_what_is_bound(thinking: dict[str, Any]) -> bool:
    """Return whether a request lets the provider drop thinking bound to another conversation."""
    binding = thinking.get("block_binding")
    behavior = binding.get("prefix_mismatch_behavior") if isinstance(binding, dict) else None
    return behavior == "drop_block"


A17 = rule(
    "A17",
    ANTHROPIC,
    "On models with preserved thinking (Fable and Mythos 5.1 and 5.2, Opus, Sonnet and Haiku 5.5) "
    "thinking is removed from the front of the history, never from the middle. Its signature "
    "covers all that stands before it, which only the provider can verify.",
    source="platform.claude.com, preserved thinking; CLIProxyAPI#5422; anthropic-sdk-python#1598",
)


@A17.body
def thinking_is_not_missing_in_the_middle(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    thinking = context.body.get("thinking")
    # Adaptive thinking may omit thinking in a turn; with thinking enabled, every turn has some.
    if not (isinstance(thinking, dict) and thinking.get("type") == "enabled"):
        return
    if not has_preserved_thinking(context.model) or drops_what_is_bound(thinking):
        return
    thought = False
    bare: list[CheckedMessage] = []
    """First messages of turns without thinking since a turn with thinking."""
    for turn in _answers(messages):
        if any(isinstance(block, Thinking) for message in turn for block in message.blocks):
            yield from ((message.place, "this turn has lost its thinking") for message in bare)
            thought, bare = True, []
        elif thought and turn:
            bare.append(turn[0])


def _answers(messages: Sequence[CheckedMessage]) -> list[list[CheckedMessage]]:
    """Return the assistant's messages between questions, including its calls."""
    turns: list[list[CheckedMessage]] = [[]]
    for message in messages:
        if message.role == "assistant":
            turns[-1].append(message)
        elif message.role == "user" and not message.results:
            turns.append([])
    return turns
