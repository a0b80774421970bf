"""Pointers, which replace lines of a result that an earlier result has.

Nothing is hidden: the lines are in an earlier result in the same request, verbatim and
consecutive. Pointers depend only on the messages before the result, so that the same conversation
gets the same ones; they are replayed later. If the earlier result is cited or folded later, the
pointer is unchanged: it opens its own original.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from itertools import accumulate

from holdfast.cite import Citation, CitingRules
from holdfast.cite.remainder import RepeatedStretch, remainder
from holdfast.condense.spans import counted
from holdfast.errors import PrivacyError
from holdfast.fitting.draft import Draft
from holdfast.fitting.policy import Arrival
from holdfast.fitting.repeats import (
    LONGEST,
    Hashes,
    Places,
    Source,
    hashes,
    line_end,
    numbers,
    repeats,
    telling,
)
from holdfast.fitting.uses import call_of, calls_before, scalars
from holdfast.trim.provenance import REPLACEMENT, edits_of, own_of, refs_of
from holdfast.wire import Conversation, Message, ToolCall, ToolResult
from holdfast.wire.message import result_texts
from holdfast.wire.notes import SingleNote

LEAST_SAVED = 150
"""Tokens: a reader has to search for the replaced lines, which must pay. Over all recordings 60
would save 0.001 more of the cost, with a third more pointers."""
_MOST_MESSAGES = 2_000
"""Messages before a result that are searched: earlier ones are far away for a reader too."""
_LARGE = 4 * LONGEST
"""Bytes of a message that is not read again for the lines in it."""
_CLEARING = (b'"clear_tool_uses', b'"compact')
"""How a request asks for that: Anthropic's context editing and compaction, OpenAI's compaction. A
tool of such a name is taken for it, which costs no more than a pointer."""
_PLACE_CHARACTERS = 60
"""Characters of an argument, which distinguish calls."""


def stays(request: Conversation) -> bool:
    """Return whether sent messages stay visible: a provider may be asked to clear results."""
    return not any(words in request.frame.hollow for words in _CLEARING)


class Above:
    """The lines before each place of a request, collected from message to message.

    Lines of new messages are collected once, because a new conversation may bring hundreds of
    results; messages that were sent before are searched for the few wanted lines, which is faster
    than collecting theirs with every request.
    """

    def __init__(self, known: int) -> None:
        self._known = known
        self._read = known
        self._new: dict[int, Source] = {}
        self._calls: dict[int, list[ToolCall]] = {}
        """The calls that a message may answer, by its place."""
        self._words: dict[int, list[str]] = {}
        """The results of a message in words, by its place."""

    def pointing(
        self,
        arrival: Arrival,
        messages: Sequence[Message],
        n: int,
        rules: CitingRules,
        *,
        with_ref: bool = True,
    ) -> Citation | None:
        """Return a result without the lines of earlier results; None if that saves too little.

        Places are asked for from first to last. Without `with_ref` the result shows no ref: the
        request has no tool that could open it.
        """
        if len(arrival.text) > LONGEST:
            return None
        end = line_end(arrival.text)
        lines = arrival.text.split(end)
        own = numbers(lines, end)
        places = self._places(telling(lines, own), messages, n)

        def hashes_of(source: Source) -> Hashes:
            return _hashes(messages[source[0]])[source[1]]

        runs = repeats(lines, own, places, hashes_of) if places else []
        if not runs:
            return None
        starts = [0, *accumulate(len(line) + len(end) for line in lines)]
        named = self._named({run.source for run in runs}, messages, n)
        above = [
            RepeatedStretch(
                starts[run.start], min(starts[run.stop], len(arrival.text)), named[run.source]
            )
            for run in runs
            if _stands(lines[run.start : run.stop], messages, run.source, run.at)
        ]
        try:
            citation = remainder(
                arrival.text, above, tool=arrival.tool, rules=rules, with_ref=with_ref
            )
        except PrivacyError:
            return None  # content that may not be stored is not removed either
        saved = citation.fidelity.from_tokens - citation.fidelity.to_tokens
        return citation if saved >= LEAST_SAVED else None

    def _places(self, wanted: set[int], messages: Sequence[Message], n: int) -> Places:
        """Return the places of lines in earlier results."""
        for place in range(self._read, n):
            for number, of_result in enumerate(_hashes(messages[place])):
                self._new.update(dict.fromkeys(of_result, (place, number)))
        self._read = n
        first = max(0, n - _MOST_MESSAGES)
        places = {h: self._new[h] for h in self._new.keys() & wanted if self._new[h][0] >= first}
        wanted -= places.keys()
        for place in range(self._known - 1, first - 1, -1):
            of_results = _hashes(messages[place])
            for number in range(len(of_results) - 1, -1, -1):
                if not wanted.isdisjoint(of_results[number]):
                    hits = wanted.intersection(of_results[number])
                    places.update(dict.fromkeys(hits, (place, number)))
                    wanted -= hits
        return places

    def _named(
        self, sources: Set[Source], messages: Sequence[Message], n: int
    ) -> dict[Source, str]:
        """Return an unambiguous name for each of these results.

        For a file that was read before and after an edit, a reader with only its name would use
        the last reading, which would be wrong once the edit is undone.
        """
        named: dict[Source, str] = {}
        since: Counter[str] = Counter()
        for place in range(n - 1, min(sources)[0] - 1, -1):
            results = [result for result, _, _ in result_texts(messages[place])]
            words = self._words_at(messages, place, results)
            for number in range(len(results) - 1, -1, -1):
                label = words[number]
                if (place, number) in sources:
                    times = counted(since[label], "time")
                    named[place, number] = (
                        f"{label}, {times} before the last" if since[label] else label
                    )
                if (
                    not number or results[number - 1] is not results[number]
                ):  # texts around an image
                    since[label] += 1
        return named

    def _words_at(
        self, messages: Sequence[Message], place: int, results: Sequence[ToolResult]
    ) -> list[str]:
        """Return the results of a message in words.

        They are kept: of 1,000 results of one turn each points to another, and to look up the calls
        of all for each of them took 70 seconds.
        """
        words = self._words.get(place)
        if words is None:
            calls = self._calls_before(messages, place) if results else []
            words = [_words(call_of(each, messages[place], calls), each) for each in results]
            self._words[place] = words
        return words

    def _calls_before(self, messages: Sequence[Message], place: int) -> list[ToolCall]:
        """Return the calls that a message may answer: results in a row answer the same turn."""
        calls = self._calls.get(place)
        if calls is None:
            is_first = not place or bool(messages[place - 1].calls)
            calls = None if is_first else self._calls.get(place - 1)
            self._calls[place] = calls = calls_before(messages, place) if calls is None else calls
        return calls


def was_pointed(citation: Citation, messages: Sequence[Message]) -> bool:
    """Return whether a pointer replaced this content before: then the model wants to see it now."""
    return any(
        edit.action == "repeat" and edit.ref_id == citation.ref_id
        for message in messages[-_MOST_MESSAGES:]
        for edit in edits_of(message)
    )


def pointed(message: Message) -> Message:
    """Return the client's form of a message whose results point above; any other message itself."""
    replacement = REPLACEMENT.get(message)
    if replacement is None or {edit.action for edit in replacement.edits} != {"repeat"}:
        return message
    return own_of(message)


def without_unnamed(draft: Draft) -> Draft:
    """Restore the results whose pointers show no ref, before an earlier result is folded.

    Such a pointer is only useful while its lines are visible. A fold rewrites the messages after
    it anyway, so this invalidates no more of the provider's cache.
    """
    messages = tuple(map(_named_or_own, draft.now.messages))
    if all(now is before for now, before in zip(messages, draft.now.messages, strict=True)):
        return draft
    return draft.with_messages(messages)


def _named_or_own(message: Message) -> Message:
    return message if refs_of(message) else pointed(message)


def _hashes(message: Message) -> tuple[Hashes, ...]:
    of_results = _HASHES.get(message)
    if of_results is None:
        texts = () if message.size > _LARGE else result_texts(message)
        of_results = _HASHES.put(message, tuple(hashes(text) for _, _, text in texts))
    return of_results


_HASHES: SingleNote[tuple[Hashes, ...]] = SingleNote("hashes of lines")


def _stands(lines: Sequence[str], messages: Sequence[Message], source: Source, at: int) -> bool:
    """Return whether the lines are really there, and not others with the same hashes."""
    text = [text for _, _, text in result_texts(messages[source[0]])][source[1]]
    return text.split(line_end(text))[at : at + len(lines)] == lines


def _words(call: ToolCall | None, result: ToolResult) -> str:
    """Return a result in words: its tool and the longest argument."""
    tool = result.name or (call.name if call is not None else "") or "a tool"
    arguments = scalars(call.arguments) if call is not None else []
    argument = " ".join(max(arguments, key=len, default="").split())
    if not argument:
        return tool
    return (
        f"{tool}: {argument[:_PLACE_CHARACTERS]}{'…' if len(argument) > _PLACE_CHARACTERS else ''}"
    )
