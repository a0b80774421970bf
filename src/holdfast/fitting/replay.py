"""Replay of earlier edits, restoration of hidden calls, and repair of invalid messages.

Clients send their whole history with each request. Earlier edits are replayed byte for byte,
hidden calls are inserted again, and messages that the provider would refuse are repaired. Each of
these is an edit.

Clients may send the same history in another shape: they move their cache marks with every request,
and write a text as a string or as a list with one part. Such a message has other bytes but is the
same message, so its edits apply. The client's own messages are sent with their new bytes;
replacements are kept, with the new marks.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

import msgspec

from holdfast.expand.tool_search import OUR_TOOLS
from holdfast.fitting.draft import (
    Draft,
    Explain,
    Origins,
    UnchangedOrigins,
    because,
    client_range,
    copied,
    joined,
    where,
)
from holdfast.fitting.options import FitOptions
from holdfast.fitting.originals import Originals
from holdfast.fitting.state import FitState
from holdfast.store.records import Edit
from holdfast.tokens.counter import message_tokens
from holdfast.trim.anchors import MARK
from holdfast.trim.provenance import REPLACEMENT, originals_of
from holdfast.wire import Conversation, Message, read, validate
from holdfast.wire.exchanges import group
from holdfast.wire.message import common_prefix, spans_of
from holdfast.wire.places import fingerprint
from holdfast.wire.repair import Action, repair_conversation
from holdfast.wire.responses import HiddenTurn, rejoin, with_marks
from holdfast.wire.rules.rule import check_at
from holdfast.wire.tools import offered_tools


def followed(state: FitState, asked: Conversation) -> FitState | None:
    """Return the state as it applies to a later request; None if its history was rewritten."""
    old, new = state.asked.messages, asked.messages
    # Reading shares the messages whose bytes are equal, and notes that it shares all of them: to
    # compare 100,000 pointers takes a millisecond.
    shared = len(old) if asked.extends is old else common_prefix(old, new)
    if shared == len(old):
        return state
    if len(new) < len(old) or asked.dialect != state.asked.dialect:
        return None
    moved: dict[int, Message] = {}
    for before, now in zip(old[shared:], new[shared : len(old)], strict=True):
        if before is not now:
            if not _says_the_same(before, now):
                return None
            moved[id(before)] = now
            MARK.carry(before, now)
    asked_before = state.asked.with_messages(new[: len(old)])
    if state.sent.messages == old:
        return msgspec.structs.replace(state, asked=asked_before, sent=asked_before)
    # The sent form of the messages before the first change stays the same.
    start = bisect_right(state.origins, shared, key=itemgetter(1))
    groups = _groups(state.sent.messages[start:])
    later = (message for group in groups for message in _on_new_bytes(group, moved))
    sent_conversation = state.sent.with_messages((*state.sent.messages[:start], *later))
    return msgspec.structs.replace(state, asked=asked_before, sent=sent_conversation)


def _says_the_same(before: Message, now: Message) -> bool:
    return before.role == now.role and fingerprint(before) == fingerprint(now)


def _groups(sent: Sequence[Message]) -> Iterator[list[Message]]:
    """Split the sent messages into groups: a message and the hidden turns inserted after it.

    An answer with several upstream calls is one message to the client: the first of its messages
    represents it, and the others nothing.
    """
    group: list[Message] = []
    for message in sent:
        replacement = REPLACEMENT.get(message)
        is_part = (
            replacement is not None
            and not replacement.originals
            and any(edit.action == "rejoin" for edit in replacement.edits)
        )
        if group and not is_part:
            yield group
            group = []
        group.append(message)
    if group:
        yield group


def _on_new_bytes(group: list[Message], moved: Mapping[int, Message]) -> list[Message]:
    """Return the sent form of a message, with the cache marks that the client sets now."""
    first = group[0]
    replacement = REPLACEMENT.get(first)
    if replacement is None:
        return [moved.get(id(first), first), *group[1:]]
    if moved.keys().isdisjoint(map(id, replacement.originals)):
        return group
    originals = tuple(moved.get(id(original), original) for original in replacement.originals)
    if replacement.fold is not None:  # a digest has no marks; the rest of an answer may follow it
        followers = [first, *with_marks(group[1:], originals[-1:])]
    else:
        followers = with_marks(
            group, [message for message in originals if message.role == first.role]
        )
    if followers[0] is first:
        followers[0] = copied(first)
    for before, now in zip(group, followers, strict=True):
        if now is not before:
            REPLACEMENT.carry(before, now)
            MARK.carry(before, now)
    REPLACEMENT.put(followers[0], msgspec.structs.replace(replacement, originals=originals))
    return followers


def take_up(
    body: object,
    options: FitOptions,
    state: FitState | None,
    hidden: Sequence[HiddenTurn],
    originals: Originals,
) -> Draft:
    """Read a request, and put the sent messages of the last one before the new messages."""
    if state is not None and state.refs and not options.opens:
        state = None  # refs are not shown without the tool that opens them
    if isinstance(body, Conversation):
        conversation = body
    else:
        conversation = read(body, options.dialect, previous=None if state is None else state.asked)
    model = options.model or conversation.model or ""
    state = None if state is None else followed(state, conversation)
    draft = _with_hidden(_replayed(conversation, state), hidden, model, options.platform)
    if is_valid(draft, model):
        return draft
    if state is not None and not validate(conversation, model=model):
        # The sent messages and the new ones are invalid together, such as a late result of a call
        # that was removed as unanswered. The client's own request is valid: start from that.
        draft = _with_hidden(_replayed(conversation, None), hidden, model, options.platform)
    return _mended(draft, model, options.platform, originals)


def _replayed(asked: Conversation, state: FitState | None) -> Draft:
    """Return the sent messages of the last request, followed by the client's new ones."""
    first_new = len(state.asked.messages) if state is not None else 0
    if state is None:
        return Draft(asked, asked, UnchangedOrigins(len(asked.messages)))
    if isinstance(state.origins, UnchangedOrigins):
        origins: Origins = UnchangedOrigins(len(asked.messages))
    else:
        later = tuple((n, n + 1) for n in range(first_new, len(asked.messages)))
        origins = joined(state.origins, later)
    sent_messages = state.sent.messages
    if (
        sent_messages is state.asked.messages or sent_messages == state.asked.messages
    ):  # nothing was ever changed
        return Draft(asked, asked, origins, len(sent_messages))
    now = asked.with_messages(sent_messages + asked.messages[first_new:], extends=sent_messages)
    return Draft(asked, now, origins, len(sent_messages))


# --- hidden calls --------------------------------------------------------------------------------


def _with_hidden(draft: Draft, hidden: Sequence[HiddenTurn], model: str, platform: str) -> Draft:
    """Insert the calls that the proxy answered itself among the new messages."""
    hidden = [answer for answer in hidden if answer.dialect in ("", draft.now.dialect)]
    if not hidden:
        return draft
    own = {tool.name for tool in offered_tools(draft.asked)}
    before, new = draft.now.messages[: draft.known], draft.now.messages[draft.known :]
    added = draft.now.with_messages(new)
    earlier = draft.asked.messages[: len(draft.asked.messages) - len(new)]
    restored = rejoin(added, hidden, lambda name: name in OUR_TOOLS and name not in own, earlier)
    if restored is added:
        return draft
    draft = draft.with_frame(restored, _CHAINED)

    explain = because(
        "rejoin",
        "brought back calls that the client never saw",
        "the model is shown its own turn, and what it opened",
        lambda messages: message_tokens(draft.now, messages, model, platform),
    )
    return draft.changed(draft.now.with_messages(before + restored.messages), explain)


_CHAINED = Edit(
    action="rejoin",
    what="went on from the last answer",
    why="the client knows the first of several answers by its id",
    where="$.previous_response_id",
)


# --- repairs -------------------------------------------------------------------------------------


def is_valid(draft: Draft, model: str) -> bool:
    """Return whether a request obeys the rules; after a sent prefix only new messages are read."""
    now, first_new = draft.now, draft.known
    if not first_new:
        return not validate(now, model=model)
    if not all(exchange.complete for exchange in group(now.messages[first_new:])):
        return False
    end = len(now.messages)
    touched, seams = range(first_new, end), range(first_new, end + 1)
    violations = check_at(now.seen(), now.context(model), touched=touched, seams=seams)
    return next(violations, None) is None


def _mended(draft: Draft, model: str, platform: str, originals: Originals) -> Draft:
    """Repair the request as far as possible; the provider reports the rest."""
    mended = repair_conversation(draft.now, model)
    if not mended.actions or not mended.conversation.messages:
        return draft  # nothing is left of the request: the provider's error is the best answer
    if originals.would_lose(draft.now.messages, mended.conversation.messages):
        return draft  # nothing would bring it back
    return draft.changed(mended.conversation, _mending(draft, mended.actions, originals, platform))


def _mending(
    draft: Draft, actions: Sequence[Action], originals: Originals, platform: str
) -> Explain:
    model = draft.asked.model or ""

    def explain(
        old: Sequence[Message], now: Sequence[Message], start: int, stop: int
    ) -> tuple[Edit, ...]:
        replaced = [original for message in old for original in originals_of(message)]
        original_bytes = b"[" + b",".join(spans_of(replaced)) + b"]"
        before = message_tokens(draft.now, tuple(old), model, platform)
        after = message_tokens(draft.now, tuple(now), model, platform)
        why, rules = _reasons(actions, draft, start, stop)
        return (
            Edit(
                action="repair",
                what=why,
                why=f"the provider would refuse it: {rules}",
                where=where(start, stop),
                from_tokens=round(before),
                to_tokens=round(after),
                ref_id=originals.keep("message", original_bytes, before),
                start=start,
                stop=stop,
            ),
        )

    return explain


_NUMBER = re.compile(r"\[(\d+)\]")


def _reasons(actions: Sequence[Action], draft: Draft, start: int, stop: int) -> tuple[str, str]:
    """Return the repairs of some of the client's messages, and their rules.

    Paths name places at the time of the repair; if earlier messages were removed, places have
    moved, so all repairs are returned if none matches.
    """
    local_actions = []
    for action in actions:
        index = _NUMBER.search(action.path)
        place = int(index[1]) if index else 0
        if place < len(draft.origins):
            at, _ = client_range(draft.origins, range(place, place + 1))
            if start <= at < stop:
                local_actions.append(action)
    relevant = local_actions or list(actions)
    what = dict.fromkeys(action.message for action in relevant)
    rules = dict.fromkeys(f"rule {action.rule}" for action in relevant)
    return "; ".join(what), ", ".join(rules)
