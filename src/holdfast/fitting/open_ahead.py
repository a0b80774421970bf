"""Opening of the hidden passage that a new user message asks for, before the model has to call.

The passage is appended to the message, quoted with its ref: new content at the end, so the cached
prefix stays valid and no extra call is needed. It is an edit like any other, so later requests
replay it byte for byte. Only contents of this conversation are searched, as the client sends them
again with each request; the store is not read. docs/discussions/opening-ahead.md has the
measurements of the constants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from holdfast.document.pasted import LONGEST_QUESTION, question_in
from holdfast.expand.content_match import ContentMatch, MatchRules, has_own_words, term_worths
from holdfast.faults import logged_faults
from holdfast.fitting.draft import Draft, standing_for
from holdfast.fitting.fold_history import FoldResult
from holdfast.fitting.measure import Measure
from holdfast.fitting.options import FitOptions
from holdfast.fitting.reads import MatchRequest, PendingReads, Steps, matches_of
from holdfast.fitting.state import FitState
from holdfast.search.passages import hits_by_text
from holdfast.search.query import Term, terms
from holdfast.search.words import fold
from holdfast.store.records import Edit
from holdfast.store.refs import canonical, digest, parse
from holdfast.trim.anchors import MARK, asks
from holdfast.trim.provenance import REPLACEMENT, edits_of, own_of, refs_of
from holdfast.wire import DIALECTS, Conversation, Message, Text
from holdfast.wire.message import result_texts
from holdfast.wire.prefix_values import PrefixNote
from holdfast.wire.strict import encode, splice

MOST_TOKENS = 300
"""Tokens of an opened passage, with its frame."""
LEAST_SHARE = 0.6
"""Share of the question's worth that the passage must hold."""
LEAST_LEAD = 0.2
"""By how much that share must exceed the share of any line that the model sees already."""
LEAST_MARGIN = 0.1
"""By how much it must exceed that of the next content: an ambiguous question opens nothing."""
LEAST_WORTH = 8.0
"""Weight of the terms in the passage; two words that occur in every tenth passage have about 5."""
_LEAST_UNIQUE = 2.5
"""The same in a short content: the weight of terms that occur in one passage only."""
_LEAST_TERMS = 2
_MOST_QUESTION = 1_000
"""Characters. A longer message is a task, or holds a document."""
_MOST_CONTENTS = 32
"""Hidden contents that are looked at, the newest first."""
_MOST_BYTES = 800_000
"""Bytes of them; with the limits below, the cost does not grow with the conversation."""
_MOST_MATCHED = 3
"""Contents whose passages are ranked: those with the most terms of the question."""
_LEAST_HELD = 0.4
"""Share of the terms' weights that such a content holds anywhere."""
_LEAST_CONTENT = 400
"""Bytes of a result that is worth searching."""
_MOST_VISIBLE_BYTES = 200_000
_MOST_VISIBLE_MESSAGES = 200
"""The end of the conversation, which is searched for an answer that the model sees already."""
_PATH_SIGNS = str.maketrans(dict.fromkeys(".[]/$'\"", " "))
_NOTE = "from the stored content, for the message above"


class HiddenMessage(NamedTuple):
    """A message of the client whose results the model does not see."""

    message: Message
    refs: tuple[str, ...]
    """Refs of its contents, where each is known by its own."""
    fold_ref: str
    """The ref of the messages folded with it; empty if it was only cited."""
    shown_by: Message
    """The message that was sent instead."""


class PassageCandidate(NamedTuple):
    """A hidden content and its relevance to the question."""

    ref_id: str
    match: ContentMatch
    shown_by: Message


def open_ahead(folded: FoldResult, options: FitOptions, measure: Measure) -> Steps[FoldResult]:
    """Append the passage that the last message asks for; return the same if none clearly does.

    What does not fit beside everything else is left out. An internal error opens nothing.
    """
    draft = folded.draft
    if not (options.opens and options.opens_ahead) or folded.must_end:
        return folded
    if len(draft.now.messages) <= draft.known or not _may_ask(draft.now.messages[-1]):
        return folded
    with logged_faults("holdfast.fitting").caught("open"):
        opened = yield from _opened(draft, options, measure)
        if opened is not None:
            counted = measure.count(opened.now)
            if measure.fits(counted):
                return folded._replace(draft=opened, counted=counted)
    return folded


def search_bytes(body: object, state: FitState | None, options: FitOptions) -> int:
    """Return how many bytes `open_ahead` may read for a request, to keep them off the event loop.

    A last message too long for a question is enough work to go there anyway.
    """
    if not (options.opens_ahead and state is not None and state.refs):
        return 0
    if not isinstance(body, Conversation) or not body.messages:
        return 0
    last = body.messages[-1]
    return _MOST_BYTES if last.size <= 4 * _MOST_QUESTION and _may_ask(last) else 0


def without_openings(draft: Draft) -> Draft:
    """Return the request without the passages opened so far: of all content, they go first."""
    messages = tuple(map(_closed, draft.now.messages))
    if all(now is before for now, before in zip(messages, draft.now.messages, strict=True)):
        return draft
    return draft.with_messages(messages)


def _closed(message: Message) -> Message:
    replacement = REPLACEMENT.get(message)
    if replacement is None or {edit.action for edit in replacement.edits} != {"open"}:
        return message
    return own_of(message)


def _may_ask(message: Message) -> bool:
    return asks(message) and not message.results


def _opened(draft: Draft, options: FitOptions, measure: Measure) -> Steps[Draft | None]:
    last = draft.now.messages[-1]
    texts = [block for block in last.blocks if isinstance(block, Text) and block.slot]
    own = [block.text for block in own_of(last).blocks if isinstance(block, Text)]
    # Clients put reminders before the user's words, which are in the last text.
    question = question_in(own[-1]).strip() if own else ""
    if not texts or not 0 < len(question) <= _MOST_QUESTION:
        return None
    question_terms = terms(question)
    reads = list(_match_requests(_HIDDEN.over(draft.now), question, question_terms, options))
    if not reads:
        return None
    requests = tuple(request for request, _ in reads)
    matches = yield from matches_of(PendingReads(requests, draft.edits, draft.decisions))
    candidates = [
        PassageCandidate(request.ref_id, match, shown_by)
        for (request, shown_by), match in zip(reads, matches, strict=True)
        if match is not None
    ]
    best = _best_candidate(draft.now, question_terms, candidates)
    if best is None:
        return None
    dialect = DIALECTS[last.dialect]
    block = texts[-1]
    longer = dialect.content(block, f"{block.text}\n\n{best.match.quotation}")
    message = Message(splice(last.span, block.slot, encode(longer)), last.role, dialect)
    MARK.carry(last, message)
    start, stop = draft.origins[-1]
    edit = Edit(
        action="open",
        what="opened a passage of a hidden content",
        why="the message asks for it, and nothing that the model sees answers it",
        where=f"message {stop - 1}",
        from_tokens=round(measure.tokens(draft.now, (last,))),
        to_tokens=round(measure.tokens(draft.now, (message,))),
        ref_id=best.ref_id,
        start=start,
        stop=stop,
    )
    standing_for(message, (last,), (edit,), (best.ref_id,))
    return draft.with_messages((*draft.now.messages[:-1], message), edit)


# --- which content ------------------------------------------------------------------------------


def _best_candidate(
    now: Conversation, wanted: Sequence[Term], candidates: Sequence[PassageCandidate]
) -> PassageCandidate | None:
    if not candidates:
        return None
    passages = sum(each.match.passages for each in candidates)
    columns = zip(*(each.match.holders for each in candidates), strict=True)
    worths = term_worths(wanted, list(map(sum, columns)), passages)
    total = sum(worths)
    scored = sorted(
        ((_best_passage(each.match, worths), each) for each in candidates),
        key=lambda pair: pair[0],
        reverse=True,
    )
    (worth, number), best = scored[0]
    least = min(LEAST_WORTH, _LEAST_UNIQUE * math.log(1 + passages / 1.5))
    runner_up = scored[1][0][0] if len(scored) > 1 else 0.0
    if (
        worth < max(least, LEAST_SHARE * total)
        or worth - runner_up < LEAST_MARGIN * total
        or not best.match.quotation
    ):
        return None
    if number < _LEAST_TERMS and not best.match.names_field:
        return None
    lines = list(_visible_lines(now.messages[:-1], best.shown_by))
    if not best.match.names_field:
        # A small model does not find a field that the question names in an earlier citation, but
        # finds it after the question; one field is short.
        lines += _lines_of(best.shown_by)
    visible = max(_line_worths(wanted, lines, worths), default=0.0)
    return best if worth - visible >= LEAST_LEAD * total else None


def _best_passage(match: ContentMatch, worths: Sequence[float]) -> tuple[float, int]:
    """Return the worth of the best passage, and how many terms it holds."""
    return max(
        ((sum(worths[n] for n in matched), len(matched)) for matched in match.best),
        default=(0.0, 0),
    )


def _match_requests(
    hidden: Sequence[HiddenMessage], question: str, wanted: Sequence[Term], options: FitOptions
) -> Iterator[tuple[MatchRequest, Message]]:
    """Yield requests for the contents that hold most of the question, and what shows them."""
    candidates: list[tuple[float, int, HiddenMessage, str]] = []
    remaining = _MOST_BYTES
    for each in reversed(hidden):
        if each.message.size > remaining:
            continue
        remaining -= each.message.size
        for _, _, text in result_texts(each.message):
            if len(text) >= _LEAST_CONTENT:
                share = _held_share(text, wanted)
                if share >= _LEAST_HELD:
                    candidates.append((share, -len(candidates), each, text))
        each.message.let_texts_go()  # nobody else looks at a cited message
    rules = MatchRules(note=_NOTE, max_tokens=MOST_TOKENS, privacy=options.rules.privacy)
    candidates.sort(key=lambda entry: entry[:2], reverse=True)
    for _, _, each, text in candidates[:_MOST_MATCHED]:
        data = canonical(text)
        ref = _ref_of(data, each)
        if not ref:
            continue
        kind = "" if ref == each.fold_ref else _kind_of(ref)
        request = MatchRequest(ref_id=ref, data=data, kind=kind, question=question, rules=rules)
        yield request, each.shown_by


def _held_share(text: str, wanted: Sequence[Term]) -> float:
    """Return the share of the terms' weights that occur anywhere in a text."""
    low = fold(text)
    weight = sum(term.weight for term in wanted if _stands_in(low, term))
    absent = sum(term.weight for term in wanted if not _stands_in(low, term))
    return weight / max(1e-9, weight + absent)


def _stands_in(low: str, term: Term) -> bool:
    """Return whether a text may hold a term: JSON has the names of a path in several places."""
    if term.form in low or not has_own_words(term):
        return term.form in low
    return all(name in low for name in term.form.translate(_PATH_SIGNS).split())


def _ref_of(data: bytes, hidden: HiddenMessage) -> str:
    """Return the ref under which a content is stored; empty if it has none."""
    sha256 = digest(data)
    for ref in hidden.refs:
        parsed = parse(ref)
        if parsed is not None and sha256.startswith(parsed.digits):
            return ref
    return hidden.fold_ref


def _kind_of(ref: str) -> str:
    parsed = parse(ref)
    return parsed.kind if parsed is not None else ""


def _with_hidden(
    hidden: tuple[HiddenMessage, ...], messages: Sequence[Message]
) -> tuple[HiddenMessage, ...]:
    more = [each for message in messages for each in _hidden_by(message)]
    return (*hidden, *more)[-_MOST_CONTENTS:] if more else hidden


def _hidden_by(message: Message) -> Iterator[HiddenMessage]:
    """Yield the client's messages that a sent message hides, as far as they hold results."""
    replacement = REPLACEMENT.get(message)
    if replacement is None:
        return
    if replacement.fold is not None:
        for original in replacement.originals[-_MOST_CONTENTS:]:
            if original.size >= _LEAST_CONTENT and original.results:
                original.let_texts_go()
                yield HiddenMessage(
                    original, replacement.fold.refs, replacement.fold.ref_id, message
                )
    elif any(edit.action == "cite" for edit in edits_of(message)):
        yield HiddenMessage(own_of(message), refs_of(message), "", message)


_HIDDEN: PrefixNote[tuple[HiddenMessage, ...]] = PrefixNote("hidden contents", (), _with_hidden)
"""The last hidden messages of a conversation, kept from request to request."""


# --- what the model sees already -----------------------------------------------------------------


def _visible_lines(messages: Sequence[Message], shown_by: Message) -> Iterator[str]:
    """Yield lines that the model sees in the last messages, but for the citation of the content.

    Short messages of the user are questions: their words answer nothing.
    """
    recent = messages[-_MOST_VISIBLE_MESSAGES:]
    remaining = _MOST_VISIBLE_BYTES
    for message in reversed(recent):
        remaining -= message.size
        if remaining < 0:
            return
        if message is not shown_by:
            yield from _lines_of(message)


def _lines_of(message: Message) -> Iterator[str]:
    for _, _, text in result_texts(message):
        yield from text.splitlines()
    for block in message.blocks:
        is_question = message.role == "user" and isinstance(block, Text)
        if isinstance(block, Text) and not (is_question and len(block.text) <= LONGEST_QUESTION):
            yield from block.text.splitlines()


def _line_worths(
    wanted: Sequence[Term], lines: Sequence[str], worths: Sequence[float]
) -> Iterator[float]:
    sums: dict[int, float] = {}
    for hits, worth in zip(hits_by_text(wanted, lines), worths, strict=True):
        for line in hits:
            sums[line] = sums.get(line, 0.0) + worth
    yield from sums.values()
