"""Cite the older results of a request together, before history is folded: one step, one new prefix.

batch: after arrival, before folding. Results that stayed whole when they came are the largest part
of a full window, and a citation keeps more of them than a digest. One after the other they would
break the vendor's cache again and again (clearing results little by little costs 1.01 to 1.10 of
leaving them, recorded agents); so they wait, and go at once. What the model works on stays: the
last exchanges, and what was read of files that it has edited in them. Which results go depends on
the conversation alone, not on the limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.cite import is_long
from holdfast.fitting.arrival import Citing, cite_at, openers
from holdfast.fitting.calls import scalars
from holdfast.fitting.draft import Draft
from holdfast.fitting.leaving import Leaving
from holdfast.fitting.options import FitOptions
from holdfast.fitting.policy import Arrival, Decision, rule_for
from holdfast.fitting.uses import use_of
from holdfast.trim.anchors import AnchorPreservationManager
from holdfast.trim.standing import own_of
from holdfast.wire import Conversation, Message
from holdfast.wire.message import result_texts

RECENT = 8
"""Exchanges at the end whose results stay: what an agent is at work with. A choice, not learnt."""
LEAST_SAVED = 100
"""Tokens that a citation must save. An early result that hardly gives anything would move the
place where the prefix breaks to the front of the request."""

_WHOLE = Decision("whole")
_GIVES_WAY = Decision("cite", "older than the last exchanges, and the window is nearly full")
_FILE = re.compile(r"[\w.-]{1,100}\.\w{1,10}\b")


def cite_older(draft: Draft, options: FitOptions, leaving: Leaving) -> Draft:
    """The request with citations in the place of its older results; the same if none may go."""
    rules = options.rules
    edited = _edited_files(draft.now)

    def gives_way(arrival: Arrival, messages: Sequence[Message], n: int) -> Decision:
        if rule_for(arrival.tool, rules) == "never" or not is_long(arrival.text, rules):
            return _WHOLE
        if not edited.isdisjoint(_files(arrival.arguments)):
            return _WHOLE
        return _GIVES_WAY if _is_own(arrival.text, messages[n]) else _WHOLE

    citing = Citing(rules, options.citer, openers(draft.asked), gives_way, LEAST_SAVED)
    return cite_at(_older(draft.now, options), draft, citing, leaving)


def _is_own(text: str, message: Message) -> bool:
    """Whether a result is as the client sent it: what was shortened gave way before."""
    own = own_of(message)
    if own is message:
        return True
    is_own = any(text == words for _, _, words in result_texts(own))
    own.let_texts_go()  # it was cited: nobody looks at it again
    return is_own


def _older(now: Conversation, options: FitOptions) -> list[int]:
    """The messages before the last exchanges that nobody wants to be kept."""
    recent = now.exchanges[-RECENT:]
    stop = recent[0].start if recent else 0
    anchors = AnchorPreservationManager(options.anchors).identify(now.messages)
    anchored = {anchor.index for anchor in anchors}
    return [n for n in range(stop) if n not in anchored]


def _edited_files(now: Conversation) -> set[str]:
    """The names of files that were edited in the last exchanges."""
    calls = (call for e in now.exchanges[-RECENT:] for m in e.messages for call in m.calls)
    edits = (call for call in calls if use_of(call.name, call.arguments) == "edit")
    return {name for call in edits for name in _files(call.arguments)}


def _files(arguments: object) -> Iterator[str]:
    """The names of files in a call's arguments, without their folders: one may say more of them."""
    for words in scalars(arguments):
        yield from _FILE.findall(words)
