"""Cite long tool results when they arrive; the same message gets the same citation every time.

arrival: after state, before fit. What a citation depends on is all in the conversation: the
result, the call, and the user's last question before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.cite import Citation, CitingRules, cite, is_long
from holdfast.errors import PrivacyError
from holdfast.expand.tool import DESCRIPTION, NAME, OTHER_NAME
from holdfast.fitting.state import Origins
from holdfast.store.records import Edit
from holdfast.store.refs import REF
from holdfast.trim.anchors import asks
from holdfast.trim.edits import result_texts
from holdfast.trim.standing import STAND, Stand, refs_of
from holdfast.wire import DIALECTS, Conversation, Message, Text, ToolCall
from holdfast.wire.strict import encode, splice

_LONG_ERROR = 8_000
"""Error messages are never cited; what is longer than this is a log of something that failed."""
_ARGUMENT_CHARACTERS = 200


class Arrivals(msgspec.Struct, frozen=True):
    """What became of the messages that a request added."""

    conversation: Conversation
    citations: tuple[Citation, ...]
    edits: tuple[Edit, ...]


def cite_arrivals(
    conversation: Conversation, start: int, origins: Origins, rules: CitingRules, tool: str
) -> Arrivals:
    """Cite what is long among the messages from `start` on.

    Answers of the expansion tool `tool` stay as they are: what was opened is never closed again.
    """
    messages = list(conversation.messages)
    citations: list[Citation] = []
    edits: list[Edit] = []
    for n in range(start, len(messages)):
        message = messages[n]
        if not message.results:
            continue
        made, found = _cited(messages, n, rules, tool)
        if not found:
            continue
        messages[n] = made
        citations.extend(found)
        edits.extend(_edit(citation, origins[n][0]) for citation in found)
    if not citations:
        return Arrivals(conversation, (), ())
    return Arrivals(conversation.with_messages(tuple(messages)), tuple(citations), tuple(edits))


def _cited(
    messages: Sequence[Message], index: int, rules: CitingRules, tool: str
) -> tuple[Message, tuple[Citation, ...]]:
    """A message with citations in the place of its long results."""
    message = messages[index]
    dialect = DIALECTS[message.dialect]
    calls: dict[str, ToolCall] | None = None
    span = message.raw
    found: list[Citation] = []
    for result, block, text in result_texts(message):
        if not is_long(text, rules) or (result.is_error and len(result.text) <= _LONG_ERROR):
            continue
        calls = _calls_before(messages, index) if calls is None else calls
        call = calls.get(result.call_id) or calls.get(result.name)
        caller = result.name or (call.name if call is not None else "")
        if caller == tool or REF.match(text, 1):
            continue
        question = _question(messages, index, call)
        try:
            citation = cite(text, question=question, tool=caller, rules=rules)
        except PrivacyError:
            continue  # what may not be stored is not taken out either
        if citation.ref_id:
            found.append(citation)
            span = splice(span, block.slot, encode(dialect.content(block, citation.text)))
    if not found:
        return message, ()
    made = Message(span, message.role, dialect)
    refs = tuple(citation.ref_id for citation in found)
    STAND.put(made, Stand((message,), refs=refs))
    return made, tuple(found)


def _calls_before(messages: Sequence[Message], index: int) -> dict[str, ToolCall]:
    """The calls that a message may answer, by id and by name: those of the turn before it."""
    found: dict[str, ToolCall] = {}
    for n in range(index - 1, -1, -1):
        message = messages[n]
        for call in message.calls:
            found.setdefault(call.id, call)
            found.setdefault(call.name, call)
        if message.calls and not messages[n - 1].calls:
            break  # a turn of the assistant may be several messages, one for each call
    return found


def _question(messages: Sequence[Message], index: int, call: ToolCall | None) -> str:
    """What the result is wanted for: the user's last question, and what the call asks."""
    earlier = (messages[n] for n in range(index - 1, -1, -1))
    asked = next((message for message in earlier if asks(message)), None)
    words = [] if asked is None else [b.text for b in asked.blocks if isinstance(b, Text)]
    if call is not None:
        words.extend(_scalars(call.arguments))
    return "\n".join(words)


def _scalars(arguments: Any) -> list[str]:
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            return [arguments[:_ARGUMENT_CHARACTERS]]
    values = arguments.values() if isinstance(arguments, dict) else ()
    return [v[:_ARGUMENT_CHARACTERS] for v in values if isinstance(v, str) and v]


def _edit(citation: Citation, index: int) -> Edit:
    fidelity = citation.fidelity
    shown = ", ".join(fidelity.kept[:3]) or "its outline"
    return Edit(
        action="cite",
        what="cited a tool result",
        why=f"longer than it needs to be; shown: {shown}",
        where=f"message {index}, {fidelity.total:,} {fidelity.unit}",
        from_tokens=fidelity.from_tokens,
        to_tokens=fidelity.to_tokens,
        ref_id=citation.ref_id,
        start=index,
        stop=index + 1,
    )


def expansion_tool(conversation: Conversation) -> tuple[str, bool]:
    """What the expansion tool is called in a request, and whether the client offers it already.

    A client's tool of another meaning may have its usual name.
    """
    offered = {tool.name: tool.description for tool in conversation.tools}
    for name in (NAME, OTHER_NAME):
        if name not in offered or offered[name] == DESCRIPTION:
            return name, name in offered
    return OTHER_NAME, True


def names_ref(messages: Sequence[Message]) -> bool:
    """Whether a ref stands in messages, such as one that a tool of the client's has cited."""
    if any(map(refs_of, messages)):
        return True
    spans = (bytes(message.span) for message in messages)
    return any(REF.search(s.decode("utf-8", "replace")) for s in spans if b"ref:" in s)
