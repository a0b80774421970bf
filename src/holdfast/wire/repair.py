"""Repair a body that a provider would reject, without inventing content.

It removes parts that lost their counterpart, reorders parts, and renames ids. Violations that it
cannot repair are listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from holdfast.wire.blocks import ToolCall, ToolResult
from holdfast.wire.conversation import Conversation
from holdfast.wire.json_places import Place, dotted
from holdfast.wire.message import Message
from holdfast.wire.reader import dialect_named, read, write
from holdfast.wire.rules import SURROGATES
from holdfast.wire.rules.gemini import CONTENT_KEYS, PART_KEYS, carries_data
from holdfast.wire.rules.rule import Violation, check_all
from holdfast.wire.strict import Limits, encode
from holdfast.wire.surrogates import replace_surrogates
from holdfast.wire.values import UniqueNames, take

_DEFAULT_LIMITS = Limits()
# Removing one part may orphan another. Each round repairs one violation per message, so this
# exceeds what any request needs; remaining violations are reported.
_ROUNDS = 50


class Action(msgspec.Struct, frozen=True):
    """One repair."""

    rule: str
    path: str
    """Path in the body at the time of the repair."""
    message: str


class RepairedBody(msgspec.Struct, frozen=True):
    """A repaired body with the repairs made."""

    body: bytes
    actions: tuple[Action, ...]
    left: tuple[Violation, ...]
    """Violations that cannot be repaired without inventing content."""

    def __repr__(self) -> str:
        return f"<Repaired, {len(self.actions)} actions, {len(self.left)} violations left>"


def repair(
    body: object,
    dialect: str | None = None,
    model: str | None = None,
    *,
    limits: Limits = _DEFAULT_LIMITS,
) -> RepairedBody:
    """Repair a body as far as possible; untouched messages keep their bytes."""
    body, paths = replace_surrogates(body)
    actions = [Action(SURROGATES.id, path, "replaced half a character by U+FFFD") for path in paths]
    conversation = read(body, dialect, limits=limits)
    mended_conversation, repairs, violations = repair_conversation(conversation, model)
    repaired = RepairedBody(write(mended_conversation), (*actions, *repairs), violations)
    for message in (*conversation.messages, *mended_conversation.messages):
        message.let_go()  # keep only the bytes: reference cycles would hold them too
    return repaired


class RepairedConversation(NamedTuple):
    """A repaired conversation; messages without repairs are the same objects."""

    conversation: Conversation
    actions: tuple[Action, ...]
    left: tuple[Violation, ...]
    """Violations that cannot be repaired without inventing content."""


def repair_conversation(
    conversation: Conversation, model: str | None = None
) -> RepairedConversation:
    """Repair a parsed conversation as far as possible."""
    conversation, actions = _rename_repeated_calls(conversation)
    for _ in range(_ROUNDS):
        violations = list(check_all(list(conversation.seen()), conversation.context(model)))
        conversation, done = _repair_round(conversation, violations)
        actions.extend(done)
        if not done:
            break
    return RepairedConversation(conversation, tuple(actions), tuple(violations))


# --- one round ---------------------------------------------------------------------------------

RepairMessage = Callable[[Any, Place], str]
"""Repairs a message in place at a place inside it; returns what was done, or '' if nothing."""


def _repair_round(
    conversation: Conversation, violations: list[Violation]
) -> tuple[Conversation, list[Action]]:
    """Repair every message once, for the first rule that it breaks."""
    faults: dict[int, tuple[str, set[Place]]] = {}
    list_place = conversation.frame.place
    for violation in violations:
        place = _steps(violation.path)
        inside = place[: len(list_place)] == list_place and len(place) > len(list_place)
        if inside and violation.rule in _REPAIRS:
            rule, places = faults.setdefault(int(place[len(list_place)]), (violation.rule, set()))
            if rule == violation.rule:
                places.add(place[len(list_place) + 1 :])

    messages = list(conversation.messages)
    actions = []
    for index in sorted(faults, reverse=True):
        rule, places = faults[index]
        value = messages[index].value
        done = []
        # From the end, so that removals do not move the places that remain.
        for place in sorted(places, key=_depth_first, reverse=True):
            message = _REPAIRS[rule](value, place)
            if message:
                done.append(Action(rule, dotted((*list_place, index, *place)), message))
        if not done:
            continue
        actions.extend(done)
        if _is_empty(value):
            del messages[index]
        else:
            dialect = dialect_named(conversation.dialect)
            messages[index] = Message(encode(value), messages[index].role, dialect)
    if not actions:
        return conversation, []
    actions.reverse()
    return conversation.with_messages(tuple(messages)), actions


def _depth_first(place: Place) -> list[tuple[int, int, str]]:
    return [(0, step, "") if isinstance(step, int) else (1, 0, step) for step in place]


_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\[(\d+)\]")


def _steps(path: str) -> Place:
    return tuple(m[1] if m[1] is not None else int(m[2]) for m in _STEP.finditer(path))


def _is_empty(value: Any) -> bool:
    """Return whether a message has no content worth sending."""
    if value == {}:
        return True
    parts = value.get("content", value.get("parts"))
    if value.get("tool_calls") or value.get("function_call") or ("type" in value and parts is None):
        return False
    if isinstance(parts, list):
        thoughts = ("thinking", "redacted_thinking")
        return all(
            isinstance(p, dict) and (p.get("type") in thoughts or p.get("thought")) for p in parts
        )
    return parts is None or (parts == "" and value.get("role") != "tool")


# --- repairs by rule ---------------------------------------------------------------------------


def _remove_part(what: str) -> RepairMessage:
    """Return a repair that removes the part at the place, or the message if the place is empty."""

    def repair_conversation(value: Any, place: Place) -> str:
        if not place:
            value.clear()
            return f"took out {what}"
        holder: Any = _at(value, place[:-1])
        if isinstance(holder, list):
            holder.pop(int(place[-1]))
            if place[:-1] == ("tool_calls",) and not holder:
                del value["tool_calls"]
        elif place == ("content",):  # text that is the complete message
            value.clear()
        else:
            return ""
        return f"took out {what}"

    return repair_conversation


def _remove_call(value: Any, place: Place) -> str:
    if place == ("function_call",):
        del value["function_call"]
        return "took out a call that nothing answers"
    return _remove_part("a call that nothing answers")(value, place)


def _results_first(value: Any, _: Place) -> str:
    value["content"].sort(key=lambda part: take(part, "type") != "tool_result")
    return "moved the tool results to the front"


def _calls_last(value: Any, _: Place) -> str:
    value["content"].sort(key=lambda part: take(part, "type") == "tool_use")
    return "moved the text before the tool calls"


def _repeated_result(value: Any, place: Place) -> str:
    part = _at(value, place)
    if part.get("type") != "tool_result":
        return ""
    return _remove_part("a second result of one call")(value, place)


def _strip_ending(value: Any, place: Place) -> str:
    if not place:
        value.clear()
        return "took out the assistant's unfinished last message"
    holder = _at(value, place[:-1])
    if isinstance(holder[place[-1]], str):
        holder[place[-1]] = holder[place[-1]].rstrip()
    else:
        holder[place[-1]]["text"] = holder[place[-1]]["text"].rstrip()
    return "cut white space off the end"


def _unmark(value: Any, place: Place) -> str:
    part = _at(value, place)
    return "took off a cache mark" if part.pop("cache_control", None) else ""


def _null_to_empty(value: Any, _: Place) -> str:
    value["content"] = ""
    return "made null content an empty string"


def _drop_empty_calls(value: Any, _: Place) -> str:
    if value.get("tool_calls") != []:
        return ""
    del value["tool_calls"]
    return "took out an empty list of calls"


def _drop_responses(value: Any, _: Place) -> str:
    parts = value["parts"]
    other_parts = [p for p in parts if not ("functionResponse" in p or "function_response" in p)]
    if len(other_parts) == len(parts):
        return ""
    value["parts"] = other_parts
    return "took out function responses that do not match the calls"


def _without_strangers(value: Any, place: Place) -> str:
    part = _at(value, place)
    if part == [] or (place == ("parts",) and not carries_data(part)):
        value.clear()
        return "took out a content without parts"
    if place and not carries_data(part):
        return _remove_part("a part without data")(value, place)
    for key in part.keys() - (PART_KEYS if place else CONTENT_KEYS):
        del part[key]
    return "took out fields that the API does not know"


def _at(value: Any, place: Place) -> Any:
    for step in place:
        value = value[step]
    return value


_REPAIRS: dict[str, RepairMessage] = {
    "A1": _remove_call,
    "A2": _remove_part("a result whose call is gone"),
    "A3": _results_first,
    "A4": _calls_last,
    "A5": _repeated_result,
    "A7": _remove_part("empty text"),
    "A10": _strip_ending,
    "A12": _remove_part("thinking that has lost its signature"),
    "A13": _remove_part("a server tool's result whose use is gone"),
    "A14": _unmark,
    "B1": _remove_call,
    "B2": _remove_part("a result whose call is gone"),
    "B3": _remove_part("an answer whose question is gone"),
    "B4": _remove_part("empty text"),
    "C1": _remove_call,
    "C2": _remove_part("a result whose call is gone"),
    "C3": _null_to_empty,
    "C4": _drop_empty_calls,
    "R1": _remove_part("a call or output that has lost its other half"),
    "R2": _remove_part("reasoning that has lost the item behind it"),
    "R3": _remove_part("an item that refers to what was not stored"),
    "G1": _remove_part("a function response in the model's turn"),
    "G2": _remove_part("a function call without a turn before it"),
    "G3": _drop_responses,
    "G4": _without_strangers,
    "G6": _remove_part("the model's unfinished last turn"),
}


# --- ids ---------------------------------------------------------------------------------------


def _rename_repeated_calls(conversation: Conversation) -> tuple[Conversation, list[Action]]:
    """Rename calls whose id an earlier call has, together with their results."""
    if conversation.dialect not in ("anthropic", "converse"):
        return conversation, []  # the other dialects pair by position within the exchange
    names = UniqueNames()
    pending: dict[str, list[str]] = {}  # new names of the calls of the exchange, by old id
    messages = list(conversation.messages)
    actions = []
    for index, message in enumerate(conversation.messages):
        value: Any = None
        if message.calls:
            pending = {}
        for block in message.blocks:
            if isinstance(block, ToolCall):
                old, new = block.id, names.take(block.id)
                pending.setdefault(old, []).append(new)
                what = "gave a call an id of its own"
            elif isinstance(block, ToolResult):
                old = block.call_id
                new_ids = pending.get(old)
                new = new_ids.pop(0) if new_ids else old
                what = "gave its result the same id"
            else:
                continue
            if new != old:
                value = message.value if value is None else value
                _set_id(_at(value, block.place), new)
                actions.append(Action("A5", conversation.path(block), what))
        if value is not None:
            messages[index] = Message(
                encode(value), message.role, dialect_named(conversation.dialect)
            )
    return (conversation.with_messages(tuple(messages)) if actions else conversation), actions


def _set_id(part: Any, new: str) -> None:
    inner = part.get("toolUse") or part.get("toolResult") or part
    for key in ("id", "tool_use_id", "toolUseId"):
        if key in inner:
            inner[key] = new
