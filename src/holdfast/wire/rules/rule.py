"""Define rules, and run them over a body or over the part that an edit touched.

A rule has a scope: one message, a seam (two neighbours, of which one is missing at each end), the
ends of the conversation, or the complete body. An edit runs only the rules of the messages and
seams it touched, and of the ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from holdfast.wire.blocks import Block, Role, ToolCall, ToolResult
from holdfast.wire.json_places import Place, dotted

Finding = tuple[Place, str]
"""Place and description of a violation."""


class Violation(msgspec.Struct, frozen=True):
    """A rule that a body breaks."""

    rule: str
    """Id of the rule, a key of RULES."""
    path: str
    """JSONPath into the body."""
    message: str
    """Description of the problem, without content."""


class CheckedMessage:
    """A message as rules read it."""

    __slots__ = ("blocks", "calls", "place", "results", "role", "value")

    def __init__(self, place: Place, role: Role, value: Any, blocks: tuple[Block, ...]) -> None:
        self.place = place
        self.role = role
        self.value = value
        self.blocks = blocks
        self.calls: list[ToolCall] = []
        self.results: list[ToolResult] = []
        for block in blocks:
            if isinstance(block, ToolCall):
                self.calls.append(block)
            elif isinstance(block, ToolResult):
                self.results.append(block)


class Context(msgspec.Struct, frozen=True):
    """The parts of a request besides the messages that rules read."""

    dialect: str
    model: str
    """Model id; empty if unknown."""
    body: Any
    """The body as a JSON value, with an empty message list."""
    list_place: Place
    size: int = 0
    """Size of the body in bytes; 0 if unknown."""


class Rule(msgspec.Struct, frozen=True):
    """A requirement of a provider. Its methods register the checks for it."""

    id: str
    dialect: str
    """Dialect to which it applies; empty for all."""
    text: str
    """The rule in one sentence."""
    source: str
    """Source of the rule: vendor documentation or a public issue."""

    def message(self, check: Check) -> Check:
        """Register a check of one message: `check(message, context)`."""
        return self._attach("message", check)

    def seam(self, check: Check) -> Check:
        """Register a check of two neighbours: `check(before, after, context)`."""
        return self._attach("seam", check)

    def ends(self, check: Check) -> Check:
        """Register a check of the first or last messages: `check(messages, context)`."""
        return self._attach("ends", check)

    def body(self, check: Check) -> Check:
        """Register a check of the complete body: `check(messages, context)`."""
        return self._attach("body", check)

    def _attach(self, scope: Scope, check: Check) -> Check:
        _checks.setdefault((self.dialect, scope), []).append((self.id, check))
        return check


Scope = Literal["message", "seam", "ends", "body"]
Check = Callable[..., Iterable[Finding]]

RULES: dict[str, Rule] = {}
"""All rules by id."""

_checks: dict[tuple[str, Scope], list[tuple[str, Check]]] = {}


def rule(rule_id: str, dialect: str, text: str, *, source: str) -> Rule:
    """Register a rule."""
    new_rule = RULES[rule_id] = Rule(rule_id, dialect, text, source)
    return new_rule


def check_all(messages: Sequence[CheckedMessage], context: Context) -> Iterator[Violation]:
    """Run every rule of the dialect."""
    yield from check_at(
        messages, context, touched=range(len(messages)), seams=range(len(messages) + 1)
    )
    for rule_id, check in _checks.get((context.dialect, "body"), ()):
        for place, message in check(messages, context):
            yield Violation(rule_id, dotted(place), message)


def check_at(
    messages: Sequence[CheckedMessage],
    context: Context,
    *,
    touched: Collection[int],
    seams: Collection[int],
) -> Iterator[Violation]:
    """Run the rules that an edit of these messages and seams can break.

    Seam n is before message n; the last one is after the last message.
    """
    local = _checks.get((context.dialect, "message"), ())
    for n in touched:
        checked = messages[n]
        for rule_id, check in local:
            for place, message in check(checked, context):
                yield Violation(rule_id, dotted(place), message)
    between = _checks.get((context.dialect, "seam"), ())
    for n in seams if between else ():
        before = messages[n - 1] if n > 0 else None
        after = messages[n] if n < len(messages) else None
        for rule_id, check in between:
            for place, message in check(before, after, context):
                yield Violation(rule_id, dotted(place), message)
    for rule_id, check in _checks.get((context.dialect, "ends"), ()):
        for place, message in check(messages, context):
            yield Violation(rule_id, dotted(place), message)
