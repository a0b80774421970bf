"""Cite long tool results when they arrive; the same message gets the same citation every time.

What is cited is the policy's to say: see policy.py. What a citation depends on is all in the
conversation: the result, the call, what stands before it, and the user's last question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import msgspec

from holdfast.cite import Citation, CitingRules, is_long
from holdfast.cite.remainder import REPEATED
from holdfast.errors import PrivacyError
from holdfast.expand.tool import NAME, OTHER_NAME, is_opener
from holdfast.fitting.context_pressure import LEAST_CACHED, ContextPressure, ToolCost
from holdfast.fitting.draft import Draft, standing_for
from holdfast.fitting.measure import Measure
from holdfast.fitting.opened import brought_back, cited_by_client, is_opened
from holdfast.fitting.options import FitOptions
from holdfast.fitting.originals import Originals
from holdfast.fitting.pointers import Above, pointed, stays, was_pointed
from holdfast.fitting.policy import Arrival, Decision, decide, rule_for
from holdfast.fitting.restore import is_kept
from holdfast.fitting.state import BY_ENDS
from holdfast.fitting.uses import call_of, calls_before, scalars
from holdfast.store.records import Edit
from holdfast.store.refs import DIGITS, canonical_parts, parse
from holdfast.trim.anchors import asks
from holdfast.trim.long_texts import question_of
from holdfast.trim.provenance import refs_of
from holdfast.wire import DIALECTS, Block, Conversation, Message, ToolCall
from holdfast.wire.blocks import hollow
from holdfast.wire.long_strings import utf8
from holdfast.wire.message import result_texts
from holdfast.wire.notes import KeyedNote
from holdfast.wire.running import RunningNote
from holdfast.wire.strict import encode, splice, string_at
from holdfast.wire.tools import offered_tools

_LONG_ERROR = 8_000
"""Error messages are never cited; what is longer than this is a log of something that failed."""
_LARGE = 1_000_000
"""Bytes of a message whose texts are not held beside the bytes of its results."""

Citer = Callable[..., Citation]
Cited = tuple[tuple[Block, Citation], ...]
_CITATIONS: KeyedNote[Cited] = KeyedNote("citations", most=4, lasting=False, holds_text=True)
"""By the rules, and for each result its place, its tool's name and what it is wanted for."""


class _Wanted(NamedTuple):
    """A result that is to be cited, what it is cited by, and why."""

    block: Block
    content: str | memoryview
    """What it says, or the JSON string of that where it is large."""
    tool: str
    question: str
    decision: Decision
    remainder: Citation | None = None
    """What stands in its place, where that is all but what stands above."""


Decide = Callable[[Arrival, Sequence[Message], int], Decision]
"""(a result, the messages, its place) → whether it stays whole."""


class Citing(NamedTuple):
    """How results are cited in a request."""

    rules: CitingRules
    citer: Citer
    openers: Collection[str]
    """The client's own tools that open refs."""
    decide: Decide
    least_saved: int = 0
    """Tokens; what would save less stays whole."""
    sent_before: Conversation | None = None
    """The messages before all that may be cited, where they went out before."""


class CitedMessage(NamedTuple):
    """A message with citations in the place of results."""

    message: Message
    edits: tuple[Edit, ...]
    citations: tuple[Citation, ...]


def cite_arrivals(
    draft: Draft, options: FitOptions, measure: Measure, originals: Originals, tool: ToolCost
) -> Draft:
    """Cite what it pays to cite among the messages that did not go out before.

    What was opened is never closed again. `tool` says what it takes to offer the tool that opens
    refs, where nothing was cited before.
    """
    rules = options.rules
    pressing, above = ContextPressure(draft, measure, tool), Above(draft.known)
    sent_before = draft.sent_before
    points = rules.repeats and stays(draft.now)

    def weighed(arrival: Arrival, messages: Sequence[Message], n: int) -> Decision:
        pressure = pressing.before(messages, n)
        decision = decide(arrival, pressure, rules)
        if decision.action == "cite" and _is_asked_again(messages, n, arrival.text, sent_before):
            arrival.is_again = True
            decision = decide(arrival, pressure, rules)
        if not points or rule_for(arrival.tool, rules) != "auto":
            return decision
        rest = above.pointing(arrival, messages, n, rules, with_ref=not pressure.opening)
        if rest is None or (decision.action == "whole" and was_pointed(rest, messages[:n])):
            return decision
        if pressure.before + rest.fidelity.to_tokens < LEAST_CACHED:
            return decision  # whole, it may bring the request to where the provider caches it
        remaining = Arrival(
            rest.text, tool=arrival.tool, arguments=arrival.arguments, kind=rest.kind
        )
        if decide(remaining, pressure, rules).action == "cite":
            return decision
        arrival.remainder = rest
        return Decision("repeat", "it stands above already")

    places: Sequence[int] = range(draft.known, len(draft.now.messages))
    if options.whole:
        places = [n for n in places if not is_kept(draft.now.messages[n], options.whole)]
    citing = Citing(rules, options.citer, openers(draft.asked), weighed, sent_before=sent_before)
    return cite_at(places, draft, citing, originals)


def openers(asked: Conversation) -> set[str]:
    """The client's own tools that open refs: they are ours by their words."""
    return {tool.name for tool in offered_tools(asked) if is_opener(tool)}


def cite_at(places: Sequence[int], draft: Draft, citing: Citing, originals: Originals) -> Draft:
    """Cite the results of messages at some places, as far as they may not stay whole."""
    messages = list(draft.now.messages)
    edits: list[Edit] = []
    for n in places:
        shown = messages[n]
        # What was pointed to may give way beside it: then its own original is cited as well, if
        # that is no longer than the pointers are.
        messages[n] = pointed(shown)
        cited = cited_message(messages, n, draft.origins[n][0], citing)
        if cited is None or (messages[n] is not shown and cited.message.size >= shown.size):
            messages[n] = shown
            continue
        messages[n] = cited.message
        edits.extend(cited.edits)
        for citation in cited.citations:
            if citation.content is not None:
                originals.cited(citation.content)
    return draft.with_messages(tuple(messages), *edits) if edits else draft


def cited_message(
    messages: Sequence[Message], n: int, index: int, citing: Citing
) -> CitedMessage | None:
    """A message with citations; None if all its results stay. `index` is its place to clients."""
    if not messages[n].results:
        return None
    wanted = _to_be_cited(messages, n, citing)
    if wanted and messages[n].size > _LARGE:
        _let_texts_go(messages[n], wanted)
    citations = _citations(messages[n], wanted, citing)
    if not citations:
        return None
    reasons = {result.block.slot: result.decision.reason for result in wanted}
    edits = tuple(_edit(citation, reasons[b.slot], index) for b, citation in citations)
    cited = tuple(citation for _, citation in citations)
    return CitedMessage(_with_citations(messages[n], citations, edits), edits, cited)


def _let_texts_go(message: Message, wanted: list[_Wanted]) -> None:
    """Have large results as they are written: each is bytes of its own once it is cited.

    As a text beside these bytes and the body, one of 20 MB is in memory three times; six times if
    there is an emoji in it.
    """
    for n, result in enumerate(wanted):
        written = string_at(msgspec.Raw(message.span), result.block.slot)
        if written is not None:
            wanted[n] = result._replace(block=hollow(result.block), content=written)
    message.let_texts_go()


def _citations(message: Message, wanted: Sequence[_Wanted], citing: Citing) -> Cited:
    if not wanted:
        return ()
    rules, citer = citing.rules, citing.citer
    key = (
        rules,
        tuple(
            (r.block.slot, r.tool, r.question, r.decision, r.remainder and r.remainder.text)
            for r in wanted
        ),
    )
    citations = _CITATIONS.get(message, key)
    if citations is None:
        pairs = ((hollow(result.block), _citation(result, rules, citer)) for result in wanted)
        citations = tuple((b, citation) for b, citation in pairs if citation and citation.ref_id)
        if citations:
            message.let_texts_go()  # its originals are in the citations, once and not twice
        _CITATIONS.put(message, key, citations)
    return tuple(
        (block, citation)
        for block, citation in citations
        if citation.fidelity.from_tokens - citation.fidelity.to_tokens >= citing.least_saved
    )


def _to_be_cited(messages: Sequence[Message], n: int, citing: Citing) -> list[_Wanted]:
    rules = citing.rules
    calls: list[ToolCall] | None = None
    wanted = []
    for result, block, text in result_texts(messages[n]):
        if not (rules.tools or is_long(text, rules)):
            continue  # most results are short, and cost no more than this
        if result.is_error and len(result.text) <= _LONG_ERROR:
            continue
        calls = calls_before(messages, n) if calls is None else calls
        call = call_of(result, messages[n], calls)
        caller = result.name or (call.name if call is not None else "")
        arrival = Arrival(text, tool=caller, arguments=None if call is None else call.arguments)
        decision = citing.decide(arrival, messages, n)
        if decision.action != "whole" and not (
            brought_back(messages[n], text)
            or is_opened(messages, n, text, call, rules, citing.openers)
            or cited_by_client(text, rules)
        ):
            question = _question(_last_question(messages, n, citing), call)
            wanted.append(_Wanted(block, text, caller, question, decision, arrival.remainder))
    if any(result.remainder is None for result in wanted):
        # A pointer without a ref is put back before a fold, which takes a message of its own.
        wanted = [r for r in wanted if r.remainder is None or _shows_ref(r.remainder)]
    return wanted


def _shows_ref(citation: Citation) -> bool:
    return citation.ref_id in citation.text


def _is_asked_again(
    messages: Sequence[Message], n: int, text: str, sent_before: Conversation
) -> bool:
    """Whether a content was cited before, and is not to be seen whole anywhere."""
    start = len(sent_before.messages)
    digits_shown = _with_digits(_DIGITS_SHOWN.over(sent_before), messages[start:n])
    if not digits_shown:
        return False
    summed = hashlib.sha256()
    for part in canonical_parts(text):
        summed.update(part)
    if summed.hexdigest()[:DIGITS] not in digits_shown:
        return False
    holders = (m for m in messages[:n] if m.results and m.size > len(text))
    return all(text != words for holder in holders for _, _, words in result_texts(holder))


def _with_digits(digits: frozenset[str], messages: Sequence[Message]) -> frozenset[str]:
    refs = (parse(ref) for message in messages for ref in refs_of(message))
    more = {ref.digits[:DIGITS] for ref in refs if ref is not None}
    return digits | more if more else digits


_DIGITS_SHOWN: RunningNote[frozenset[str]] = RunningNote("digits", frozenset(), _with_digits)
"""The first digits of all refs that messages show."""


def _citation(result: _Wanted, rules: CitingRules, citer: Citer) -> Citation | None:
    if result.remainder is not None:
        return result.remainder
    decision, content = result.decision, result.content
    has_rule = isinstance(content, str) and not is_long(content, rules)  # of its tool
    rules = msgspec.structs.replace(
        rules,
        threshold=0 if has_rule else rules.threshold,
        room=decision.room,
        shorten_to=decision.threshold,
    )
    try:
        text = content if isinstance(content, str) else utf8(content)
        return citer(text, question=result.question, tool=result.tool, rules=rules)
    except PrivacyError:
        return None  # what may not be stored is not taken out either


def _with_citations(message: Message, citations: Cited, edits: tuple[Edit, ...]) -> Message:
    """A message with citations in the place of its long results."""
    dialect = DIALECTS[message.dialect]
    span: bytes | msgspec.Raw = message.span
    for block, citation in citations:
        span = splice(span, block.slot, encode(dialect.content(block, citation.text)))
    refs = tuple(citation.ref_id for _, citation in citations if _shows_ref(citation))
    return standing_for(Message(span, message.role, dialect), (message,), edits, refs)


def _last_question(messages: Sequence[Message], index: int, citing: Citing) -> Message | None:
    """The message before a place in which the user asked last: often the first of hundreds."""
    before = citing.sent_before
    if before is None:
        return _asking(None, messages[:index])
    return _asking(_QUESTION.over(before), messages[len(before.messages) : index])


def _asking(earlier: Message | None, messages: Sequence[Message]) -> Message | None:
    return next((message for message in reversed(messages) if asks(message)), earlier)


_QUESTION: RunningNote[Message | None] = RunningNote("last question", None, _asking)


def _question(asked: Message | None, call: ToolCall | None) -> str:
    """What the result is wanted for: the user's last question, and what the call asks."""
    words = [] if asked is None else [question_of(asked)]
    if call is not None:
        words.extend(scalars(call.arguments))
    return "\n".join(words)


_WHAT = {
    "shortened": "shortened a tool result",
    REPEATED: "left out of a tool result what stands above",
}


def _edit(citation: Citation, reason: str, index: int) -> Edit:
    fidelity = citation.fidelity
    shown = ", ".join(fidelity.kept[:3]) or "its outline"
    why = f"reading it all {fidelity.reason}" if fidelity.reason else reason
    return Edit(
        action="repeat" if fidelity.level == REPEATED else "cite",
        what=BY_ENDS if fidelity.reason else _WHAT.get(fidelity.level, "cited a tool result"),
        why=f"{why}; shown: {shown}",
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
    offered = {tool.name: tool for tool in offered_tools(conversation)}
    for name in (NAME, OTHER_NAME):
        if name not in offered or is_opener(offered[name]):
            return name, name in offered
    return OTHER_NAME, True
