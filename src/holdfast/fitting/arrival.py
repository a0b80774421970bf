"""Cite long tool results when they arrive; the same message gets the same citation every time.

arrival: after leaving, before fit. What a citation depends on is all in the conversation: the
result, the call, and the user's last question before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from holdfast.cite import Citation, CitingRules, cite, is_long
from holdfast.errors import PrivacyError
from holdfast.expand.tool import DESCRIPTION, NAME, OTHER_NAME
from holdfast.fitting.draft import Draft, standing_for
from holdfast.fitting.leaving import Leaving
from holdfast.store.records import Edit
from holdfast.store.refs import REF
from holdfast.trim.anchors import asks
from holdfast.trim.standing import refs_of
from holdfast.wire import DIALECTS, Block, Conversation, Message, Text, ToolCall
from holdfast.wire.message import result_texts
from holdfast.wire.notes import KeyedNote
from holdfast.wire.strict import encode, splice

_LONG_ERROR = 8_000
"""Error messages are never cited; what is longer than this is a log of something that failed."""
_ARGUMENT_CHARACTERS = 200

Cited = tuple[tuple[Block, Citation], ...]
_CITATIONS: KeyedNote[Cited] = KeyedNote("citations", most=4)
"""By the rules, the tool's name and what the result is wanted for: a citation depends on all."""


class _Wanted(NamedTuple):
    """What a long result is cited by."""

    block: Block
    text: str
    tool: str
    question: str


def cite_arrivals(draft: Draft, rules: CitingRules, leaving: Leaving) -> Draft:
    """Cite what is long among the messages that did not go out before.

    Answers of the tool that opens refs stay as they are: what was opened is never closed again.
    """
    messages = list(draft.now.messages)
    edits: list[Edit] = []
    for n in range(draft.known, len(messages)):
        citations = _citations(messages, n, rules) if messages[n].results else ()
        if not citations:
            continue
        why = tuple(_edit(citation, draft.origins[n][0]) for _, citation in citations)
        messages[n] = _with_citations(messages[n], citations, why)
        edits.extend(why)
        for _, citation in citations:
            if citation.content is not None:
                leaving.cited(citation.content)
    return draft.with_messages(tuple(messages), *edits) if edits else draft


def _citations(messages: Sequence[Message], n: int, rules: CitingRules) -> Cited:
    wanted = _long_results(messages, n, rules)
    if not wanted:
        return ()
    key = (rules, tuple((result.tool, result.question) for result in wanted))
    citations = _CITATIONS.get(messages[n], key)
    if citations is None:
        pairs = ((result.block, _citation(result, rules)) for result in wanted)
        citations = tuple((b, citation) for b, citation in pairs if citation and citation.ref_id)
        _CITATIONS.put(messages[n], key, citations)
    return citations


def _long_results(messages: Sequence[Message], n: int, rules: CitingRules) -> list[_Wanted]:
    calls: dict[str, ToolCall] | None = None
    wanted = []
    for result, block, text in result_texts(messages[n]):
        if not is_long(text, rules) or (result.is_error and len(result.text) <= _LONG_ERROR):
            continue
        calls = _calls_before(messages, n) if calls is None else calls
        call = calls.get(result.call_id) or calls.get(result.name)
        caller = result.name or (call.name if call is not None else "")
        if caller != rules.opener and not REF.match(text, 1):
            wanted.append(_Wanted(block, text, caller, _question(messages, n, call)))
    return wanted


def _citation(result: _Wanted, rules: CitingRules) -> Citation | None:
    try:
        return cite(result.text, question=result.question, tool=result.tool, rules=rules)
    except PrivacyError:
        return None  # what may not be stored is not taken out either


def _with_citations(message: Message, citations: Cited, edits: tuple[Edit, ...]) -> Message:
    """A message with citations in the place of its long results."""
    dialect = DIALECTS[message.dialect]
    span = message.raw
    for block, citation in citations:
        span = splice(span, block.slot, encode(dialect.content(block, citation.text)))
    refs = tuple(citation.ref_id for _, citation in citations)
    return standing_for(Message(span, message.role, dialect), (message,), edits, refs)


def _calls_before(messages: Sequence[Message], index: int) -> dict[str, ToolCall]:
    """The calls that a message may answer, by id and by name: those of the turn before it."""
    calls: dict[str, ToolCall] = {}
    for n in range(index - 1, -1, -1):
        message = messages[n]
        for call in message.calls:
            for name in filter(None, (call.id, call.name)):  # Gemini's calls may have no ids
                calls.setdefault(name, call)
        if message.calls and not messages[n - 1].calls:
            break  # a turn of the assistant may be several messages, one for each call
    return calls


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
