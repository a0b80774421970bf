"""Pair each tool result that goes out with the text that the client sent for it.

result_originals: after standing, before edits. A message may hold other results than the client's
own version of it: answers to calls that the client never saw were brought back into it, or the
repair took a result without a call out. Gemini's results also come back in another order and under
other ids. A wrong pair would cut another result into the place of this one.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.store.refs import DIGITS, REF, canonical, digest
from holdfast.trim.standing import edits_of, own_of
from holdfast.wire import Block, Message, ToolResult
from holdfast.wire.message import result_texts

_Texts = Sequence[tuple[ToolResult, Block, str]]


class ResultText(NamedTuple):
    """A text of a tool result as it goes out, and the original that it shows."""

    result: ToolResult
    block: Block
    """Where a replacement of the text goes."""
    text: str
    whole: str
    """The client's text; the same text if the result is not the client's own."""


def results_with_originals(message: Message) -> list[ResultText]:
    """Return the texts of a message's results, each with its original."""
    shown = list(result_texts(message))
    original = own_of(message)
    if original is message:
        return [ResultText(result, block, text, text) for result, block, text in shown]
    theirs = list(result_texts(original))
    if _ids(shown) == _ids(theirs) and not _is_rejoined(message):
        wholes = [text for _, _, text in theirs]
    else:
        wholes = _paired(shown, theirs)
    return [
        ResultText(result, block, text, whole)
        for (result, block, text), whole in zip(shown, wholes, strict=True)
    ]


def _is_rejoined(message: Message) -> bool:
    """Return whether the order of the results may not be the client's."""
    return any(edit.action == "rejoin" for edit in edits_of(message))


def _ids(texts: _Texts) -> list[str]:
    return [result.call_id for result, _, _ in texts]


def _paired(shown: _Texts, theirs: _Texts) -> list[str]:
    """Return the original of each text: by the call that it answers, else by what it shows."""
    by_id: defaultdict[str, deque[str]] = defaultdict(deque)
    for result, _, text in theirs:
        by_id[result.call_id].append(text)
    numbers = Counter(_ids(shown))
    sure = {name for name in by_id if name and numbers[name] == len(by_id[name])}
    by_content = _ByContent([text for name in by_id if name not in sure for text in by_id[name]])
    return [
        by_id[result.call_id].popleft() if result.call_id in sure else by_content.original(text)
        for result, _, text in shown
    ]


class _ByContent:
    """Finds the text that a result shows, whole or behind a ref."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = frozenset(texts)
        self._by_digits: dict[str, tuple[str, str]] | None = None

    def original(self, shown: str) -> str:
        """Return the text that is shown; what shows none of them is its own original."""
        if not self._texts or shown in self._texts:
            return shown
        if self._by_digits is None:
            digests = ((digest(canonical(text)), text) for text in self._texts)
            self._by_digits = {sha256[:DIGITS]: (sha256, text) for sha256, text in digests}
        for ref in REF.finditer(shown):
            sha256, text = self._by_digits.get(ref[2][:DIGITS], ("", ""))
            if sha256.startswith(ref[2]):
                return text
        return shown
