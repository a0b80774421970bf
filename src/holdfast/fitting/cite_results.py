"""Citation of long tool results when they arrive; the same message always gets the same citation.

The policy chooses the results: see policy.py. A citation depends only on the conversation: the
result, the call, the messages before it, and the user's last question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.cite import Citation, CitingRules, is_long
from holdfast.cite.remainder import REPEATED
from holdfast.expand.tool import NAME, OTHER_NAME, is_opener
from holdfast.fitting.context_pressure import LEAST_CACHED, ContextPressure, ToolCost
from holdfast.fitting.draft import Draft, standing_for
from holdfast.fitting.measure import Measure
from holdfast.fitting.opened import brought_back, cited_by_client, is_opened
from holdfast.fitting.options import FitOptions
from holdfast.fitting.originals import Originals
from holdfast.fitting.pointers import Above, pointed, stays, was_pointed
from holdfast.fitting.policy import SHORT, Arrival, Decision, decide, rule_for
from holdfast.fitting.reads import CiteRequest, PendingReads, PlanEntry, Steps, citations_of
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
from holdfast.wire.message import result_texts
from holdfast.wire.notes import KeyedNote
from holdfast.wire.prefix_values import PrefixNote
from holdfast.wire.strict import encode, splice, string_at
from holdfast.wire.tools import offered_tools

_LONG_ERROR = 8_000
"""Error messages are never cited; a longer one is the log of something that failed."""
_LARGE = 1_000_000
"""Bytes of a message whose texts are not held beside the bytes of its results."""

MessageCitations = tuple[tuple[Block, Citation], ...]
_CITATIONS: KeyedNote[MessageCitations] = KeyedNote(
    "citations", most=4, lasting=False, holds_text=True
)
"""By the rules and, for each result, its place, its tool's name and the question."""


class LongResult(NamedTuple):
    """A tool result that may be cited."""

    block: Block
    call: ToolCall | None
    """The call that it answers, if that is known."""
    arrival: Arrival


class PlannedResult(NamedTuple):
    """A result that is to be cited, how, and why."""

    block: Block
    content: str | memoryview
    """Its text, or the JSON string of it where it is large."""
    tool: str
    question: str
    decision: Decision
    remainder: Citation | None = None
    """The result without the lines that are above already, where that takes its place."""

    def request(self, rules: CitingRules) -> CiteRequest:
        """Return the request for its citation."""
        decision, content = self.decision, self.content
        has_rule = isinstance(content, str) and not is_long(content, rules)  # of its tool
        rules = msgspec.structs.replace(
            rules,
            threshold=0 if has_rule else rules.threshold,
            room=decision.room,
            shorten_to=decision.threshold,
        )
        return CiteRequest(content=content, question=self.question, tool=self.tool, rules=rules)


def cite_arrivals(
    draft: Draft, options: FitOptions, measure: Measure, originals: Originals, tool: ToolCost
) -> Steps[Draft]:
    """Cite the results that pay, among the messages that were not sent before.

    An opened result is never cited again. `tool` is the cost of offering expand_ref, if nothing
    was cited before.
    """
    places: Sequence[int] = range(draft.known, len(draft.now.messages))
    if options.whole:
        places = [n for n in places if not is_kept(draft.now.messages[n], options.whole)]
    policy = _ArrivalPolicy(draft, options.rules, measure, tool)
    citing = ResultCitations(draft, options.rules, originals, sent_before=draft.sent_before)
    for n in places:
        planned = _planned_arrivals(citing, policy, n)
        if planned:
            yield from citing.replace(n, planned)
    return citing.draft()


def _planned_arrivals(
    citing: ResultCitations, policy: _ArrivalPolicy, n: int
) -> list[PlannedResult]:
    """Decide about the results of a message. No text is held while the contents are read."""
    results = citing.long_results(n)
    decisions = [policy.decide(each.arrival, citing.messages, n) for each in results]
    return citing.planned(n, results, decisions)


class _ArrivalPolicy:
    """Decides about the results of one request, from the first to the last.

    How full the window is at a result depends on the citations of those before it.
    """

    def __init__(self, draft: Draft, rules: CitingRules, measure: Measure, tool: ToolCost) -> None:
        self._rules = rules
        self._pressure = ContextPressure(draft, measure, tool)
        self._above = Above(draft.known)
        self._sent_before = draft.sent_before
        self._points = rules.repeats and stays(draft.now)

    def decide(self, arrival: Arrival, messages: Sequence[Message], n: int) -> Decision:
        """Return what becomes of a result of the message at `n`."""
        rules, pressure = self._rules, self._pressure.before(messages, n)
        decision = decide(arrival, pressure, rules)
        if decision.action == "cite" and _is_asked_again(
            messages, n, arrival.text, self._sent_before
        ):
            arrival.is_again = True
            decision = decide(arrival, pressure, rules)
        if not self._points or rule_for(arrival.tool, rules) != "auto":
            return decision
        pointed_text = self._above.pointing(
            arrival, messages, n, rules, with_ref=not pressure.opening
        )
        if pointed_text is None or (
            decision.action == "whole" and was_pointed(pointed_text, messages[:n])
        ):
            return decision
        if pressure.before + pointed_text.fidelity.to_tokens < LEAST_CACHED:
            return decision  # whole, it may bring the request to where the provider caches it
        remaining = Arrival(
            pointed_text.text,
            tool=arrival.tool,
            arguments=arrival.arguments,
            kind=pointed_text.kind,
        )
        if decide(remaining, pressure, rules).action == "cite":
            return decision
        arrival.remainder = pointed_text
        return Decision("repeat", "it stands above already")


def openers(asked: Conversation) -> set[str]:
    """Return the names of the client's own tools that open refs, by their descriptions."""
    return {tool.name for tool in offered_tools(asked) if is_opener(tool)}


class ResultCitations:
    """Puts citations in the place of results, message by message."""

    def __init__(
        self,
        draft: Draft,
        rules: CitingRules,
        originals: Originals,
        *,
        least_saved: int = 0,
        sent_before: Conversation | None = None,
    ) -> None:
        self.messages = list(draft.now.messages)
        """All messages, with the citations that are made so far."""
        self._draft = draft
        self._rules = rules
        self._originals = originals
        self._least_saved = least_saved
        """Tokens; a citation that saves less is not used."""
        self._sent_before = sent_before
        """The messages that were sent before, which are not cited now."""
        self._openers = openers(draft.asked)
        self._edits: list[Edit] = []
        self._decisions: list[PlanEntry] = []

    def draft(self) -> Draft:
        """Return the request with the citations."""
        draft = self._draft
        if self._edits:
            draft = draft.with_messages(tuple(self.messages), *self._edits)
        return draft.with_decisions(self._decisions)

    def long_results(self, n: int) -> list[LongResult]:
        """Return the results of a message that are long enough to be cited.

        A result that points above is taken as the client sent it: its own original is cited, if
        that is no longer than the pointers are.
        """
        message = pointed(self.messages[n])
        if not message.results:
            return []
        calls: list[ToolCall] | None = None
        results = []
        for result, block, text in result_texts(message):
            if not (self._rules.tools or is_long(text, self._rules)):
                continue  # most results are short, and cost no more than this
            if result.is_error and len(result.text) <= _LONG_ERROR:
                continue
            calls = calls_before(self.messages, n) if calls is None else calls
            call = call_of(result, message, calls)
            tool = result.name or (call.name if call is not None else "")
            arguments = None if call is None else call.arguments
            results.append(LongResult(block, call, Arrival(text, tool=tool, arguments=arguments)))
        return results

    def replace(self, n: int, planned: Sequence[PlannedResult]) -> Steps[None]:
        """Put citations in the place of the results of a message that are planned to be cited."""
        original, message = self.messages[n], pointed(self.messages[n])
        index = self._draft.origins[n][0]
        citations = yield from self._citations(message, index, planned)
        if not citations:
            return
        reasons = {each.block.slot: each.decision.reason for each in planned}
        edits = tuple(_edit(citation, reasons[b.slot], index) for b, citation in citations)
        cited = _with_citations(message, citations, edits)
        if message is not original and cited.size >= original.size:
            return
        self.messages[n] = cited
        self._edits.extend(edits)
        for _, citation in citations:
            if citation.content is not None:
                self._originals.cited(citation.content)

    def planned(
        self, n: int, results: Sequence[LongResult], decisions: Sequence[Decision]
    ) -> list[PlannedResult]:
        """Return the results to cite, and note the others."""
        message = pointed(self.messages[n])
        planned = []
        before = self.messages
        for (block, call, arrival), decision in zip(results, decisions, strict=True):
            text = arrival.text
            if decision.action == "whole":
                if decision is not SHORT:
                    self._decisions.append(_entry(arrival, decision, self._draft.origins[n][0]))
            elif not (
                brought_back(message, text)
                or is_opened(before, n, text, call, self._rules, self._openers)
                or cited_by_client(text, self._rules)
            ):
                question = _question(self._last_question(n), call)
                planned.append(
                    PlannedResult(block, text, arrival.tool, question, decision, arrival.remainder)
                )
        if any(each.remainder is None for each in planned):
            # A pointer without a ref is removed before a fold, which takes a separate message.
            planned = [p for p in planned if p.remainder is None or _shows_ref(p.remainder)]
        if planned and message.size > _LARGE:
            _let_texts_go(message, planned)
        return planned

    def _citations(
        self, message: Message, index: int, planned: Sequence[PlannedResult]
    ) -> Steps[MessageCitations]:
        """Return the citations for results, as far as they save enough."""
        if not planned:
            return ()
        key = (
            self._rules,
            tuple(
                (p.block.slot, p.tool, p.question, p.decision, p.remainder and p.remainder.text)
                for p in planned
            ),
        )
        citations = _CITATIONS.get(message, key)
        if citations is None:
            made = yield from self._made(planned, index)
            pairs = zip((hollow(p.block) for p in planned), made, strict=True)
            citations = tuple((b, citation) for b, citation in pairs if citation is not None)
            if citations:
                message.let_texts_go()  # its originals are in the citations, once and not twice
            _CITATIONS.put(message, key, citations)
        return tuple(
            (block, citation)
            for block, citation in citations
            if citation.fidelity.from_tokens - citation.fidelity.to_tokens >= self._least_saved
        )

    def _made(self, planned: Sequence[PlannedResult], index: int) -> Steps[list[Citation | None]]:
        """Return a citation for each result; None for one that stays as it is."""
        requests = [p.request(self._rules) if p.remainder is None else None for p in planned]
        reads = tuple(request for request in requests if request is not None)
        citations: list[Citation | None] = []
        if reads:
            edits = (*self._draft.edits, *self._edits)
            entries = (_planned_entry(*pair, index) for pair in zip(planned, requests, strict=True))
            decisions = (*self._draft.decisions, *self._decisions, *entries)
            citations = yield from citations_of(PendingReads(reads, edits, decisions))
        answers = iter(citations)
        all_made = [p.remainder or next(answers) for p in planned]
        return [
            citation if citation is not None and citation.ref_id else None for citation in all_made
        ]

    def _last_question(self, n: int) -> Message | None:
        """Return the last question of the user's before a message; often the first of hundreds."""
        before = self._sent_before
        if before is None:
            return _asking(None, self.messages[:n])
        return _asking(_QUESTION.over(before), self.messages[len(before.messages) : n])


def _entry(arrival: Arrival, decision: Decision, index: int) -> PlanEntry:
    tokens = arrival.known_tokens
    return PlanEntry(
        decision.action,
        f"result of {arrival.tool or 'a tool'}",
        decision.reason,
        f"message {index}",
        tokens,
        tokens,
    )


def _planned_entry(planned: PlannedResult, request: CiteRequest | None, index: int) -> PlanEntry:
    """Return the entry for a result whose citation may not be made yet."""
    decision, remainder = planned.decision, planned.remainder
    to_tokens = None if remainder is None else remainder.fidelity.to_tokens
    return PlanEntry(
        decision.action,
        f"result of {planned.tool or 'a tool'}",
        decision.reason,
        f"message {index}",
        len(planned.content) // 4,
        to_tokens if request is None else request.most_tokens,
    )


def _let_texts_go(message: Message, planned: list[PlannedResult]) -> None:
    """Hold large results as the bytes they are written in: each is stored once it is cited.

    As a text beside these bytes and the body, one of 20 MB is in memory three times; six times if
    there is an emoji in it.
    """
    for n, result in enumerate(planned):
        written = string_at(msgspec.Raw(message.span), result.block.slot)
        if written is not None:
            planned[n] = result._replace(block=hollow(result.block), content=written)
    message.let_texts_go()


def _shows_ref(citation: Citation) -> bool:
    return citation.ref_id in citation.text


def _is_asked_again(
    messages: Sequence[Message], n: int, text: str, sent_before: Conversation
) -> bool:
    """Return whether a content was cited before, and is whole nowhere in the request."""
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


_DIGITS_SHOWN: PrefixNote[frozenset[str]] = PrefixNote("digits", frozenset(), _with_digits)
"""The first digits of all refs that messages show."""


def _with_citations(
    message: Message, citations: MessageCitations, edits: tuple[Edit, ...]
) -> Message:
    """Return a message with citations in the place of its long results."""
    dialect = DIALECTS[message.dialect]
    span: bytes | msgspec.Raw = message.span
    for block, citation in citations:
        span = splice(span, block.slot, encode(dialect.content(block, citation.text)))
    refs = tuple(citation.ref_id for _, citation in citations if _shows_ref(citation))
    return standing_for(Message(span, message.role, dialect), (message,), edits, refs)


def _asking(earlier: Message | None, messages: Sequence[Message]) -> Message | None:
    return next((message for message in reversed(messages) if asks(message)), earlier)


_QUESTION: PrefixNote[Message | None] = PrefixNote("last question", None, _asking)


def _question(question: Message | None, call: ToolCall | None) -> str:
    """Return the question for a result: the user's last one, and the call's arguments."""
    words = [] if question is None else [question_of(question)]
    if call is not None:
        words.extend(scalars(call.arguments))
    return "\n".join(words)


_WHAT = {
    "shortened": "shortened a tool result",
    REPEATED: "left out of a tool result what stands above",
}


def _edit(citation: Citation, reason: str, index: int) -> Edit:
    fidelity = citation.fidelity
    kept_parts = ", ".join(fidelity.kept[:3]) or "its outline"
    why = f"reading it all {fidelity.reason}" if fidelity.reason else reason
    return Edit(
        action="repeat" if fidelity.level == REPEATED else "cite",
        what=BY_ENDS if fidelity.reason else _WHAT.get(fidelity.level, "cited a tool result"),
        why=f"{why}; shown: {kept_parts}",
        where=f"message {index}, {fidelity.total:,} {fidelity.unit}",
        from_tokens=fidelity.from_tokens,
        to_tokens=fidelity.to_tokens,
        ref_id=citation.ref_id,
        start=index,
        stop=index + 1,
    )


def expansion_tool(conversation: Conversation) -> tuple[str, bool]:
    """Return the name of the expansion tool in a request, and whether the client offers it.

    A client's tool of another meaning may have its usual name.
    """
    offered = {tool.name: tool for tool in offered_tools(conversation)}
    for name in (NAME, OTHER_NAME):
        if name not in offered or is_opener(offered[name]):
            return name, name in offered
    return OTHER_NAME, True
