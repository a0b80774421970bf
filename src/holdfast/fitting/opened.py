"""Whether a result is our own: neither a citation nor an opened page is cited again.

The edits of this conversation decide, not the look of a result or the name of its call: a page of
207 KB that began like a citation was once sent whole.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.cite import BRIEF, CitingRules, count
from holdfast.errors import ExpandError
from holdfast.expand.calls import parse_call
from holdfast.expand.options import MOST_TOKENS
from holdfast.quoting import STORED
from holdfast.store.refs import REF
from holdfast.trim.provenance import edits_of, originals_of, refs_of
from holdfast.wire import Message, ToolCall
from holdfast.wire.message import result_texts


def brought_back(message: Message, text: str) -> bool:
    """Whether a result is one that the client never saw: it answers a call that was hidden."""
    if not any(edit.action == "rejoin" for edit in edits_of(message)):
        return False
    # The same message may hold the client's results and ours.
    own = (theirs for original in originals_of(message) for theirs in result_texts(original))
    return all(text != words for _, _, words in own)


def is_opened(
    messages: Sequence[Message],
    n: int,
    text: str,
    call: ToolCall | None,
    rules: CitingRules,
    openers: Collection[str],
) -> bool:
    """Whether the client has opened a ref itself, as agents do that have no proxy.

    Its tool is ours by its words; or we offer the tool, and the ref was shown before. A page has an
    end in both cases.
    """
    if call is None or not (call.name in openers or call.name == rules.opener):
        return False
    is_ref_call = call.name in openers or _asks_for(call) in _refs_before(messages, n, rules)
    return is_ref_call and count(text) <= MOST_TOKENS


def _asks_for(call: ToolCall) -> str:
    """The ref that a call asks for; empty if it names none."""
    try:
        return parse_call(call.arguments)[0]
    except ExpandError:
        return ""


def _refs_before(messages: Sequence[Message], n: int, rules: CitingRules) -> set[str]:
    """Return the refs shown before a place of the conversation, which can be opened there."""
    visible_refs = {ref for message in messages[:n] for ref in refs_of(message)}
    for message in messages[:n]:
        texts = (cited_by_client(text, rules) for _, _, text in result_texts(message))
        visible_refs.update(filter(None, texts))
    return visible_refs


def cited_by_client(text: str, rules: CitingRules) -> str:
    """Return the ref of a citation that a client's tool made with `cite`; empty if it is none.

    An imitation cannot be distinguished, but gains nothing: it must be as short as a citation, and
    such a short text is never cited.
    """
    # Citations of earlier versions began with the ref itself.
    ref = REF.match(text, len(STORED) if text.startswith(STORED) else 1)
    return ref[0] if ref and count(text) <= min(BRIEF, rules.most_tokens) else ""
