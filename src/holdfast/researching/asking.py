"""A model asked within a budget: every call counted, its failures told, its answers taken apart.

asking: after prompts. Room for the synthesis is set aside first: an analysis may spend only what is
left, so that a report always comes out. An answer is text of a stranger's; it is read line by line,
and what is not of the form that was asked for is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from holdfast.errors import ModelError
from holdfast.models.protocol import CompletionModel
from holdfast.researching.composing import Count
from holdfast.researching.prompts import SYSTEM
from holdfast.researching.records import Usage

_MOST_LINES = 200
_MOST_CLAIM = 600
_MARKERS = re.compile(r"\[((?:F\d{1,6})(?:,\s?F\d{1,6}){0,50})\]")
_BULLET = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)])\s+")
_NONE = "nothing"


class SpentError(ModelError):
    """The budget of the run is used up."""


class Claimed(NamedTuple):
    """What a model says that a source says."""

    claim: str
    source: str
    quote: str


class Asker:
    """A model, and what it may still cost."""

    def __init__(
        self, model: CompletionModel, count: Count, budget: int | None, spent: Usage
    ) -> None:
        self.model = model
        self.count = count
        self._budget = budget
        self._spent = spent.tokens
        self._reserved = min(model.window, budget // 3) if budget else 0
        self.answer_tokens = max(64, min(2_000, model.window // 8))
        """Room for an answer, in every phase."""

    @property
    def context(self) -> int:
        """What a prompt may have."""
        return max(self.model.window - self.answer_tokens, 0)

    async def ask(self, prompt: str, *, last: bool = False) -> tuple[str, Usage]:
        """Ask once; `last` may use what was set aside for it.

        Raises:
            ModelError: there was no usable answer, or no budget.
        """
        size = self.count(SYSTEM) + self.count(prompt) + self.answer_tokens
        kept_back = 0 if last else self._reserved
        if self._budget is not None and self._spent + size > self._budget - kept_back:
            raise SpentError("the budget is used up", where=self.model.name)
        self._spent += size  # before the answer, so that calls at once cannot overdraw it
        completion = await self.model.complete(prompt, system=SYSTEM, max_tokens=self.answer_tokens)
        usage = Usage(
            calls=1,
            input_tokens=completion.input_tokens or size - self.answer_tokens,
            output_tokens=completion.output_tokens or self.count(completion.text),
        )
        self._spent += usage.tokens - size
        return completion.text, usage


def claims_in(answer: str) -> list[Claimed]:
    """The claims of an answer, each of the form that was asked for."""
    return [
        Claimed(_plain(claim), source.strip().strip("[]"), quote)
        for value in _objects(answer)
        if isinstance(claim := value.get("claim"), str)
        and isinstance(source := value.get("source"), str)
        and isinstance(quote := value.get("quote"), str)
        and quote.strip()
        and 0 < len(claim.strip()) <= _MOST_CLAIM
    ]


def actions_in(answer: str) -> list[dict[str, Any]]:
    """The actions that an answer asks for, with their parameters."""
    return [value for value in _objects(answer) if isinstance(value.get("action"), str)]


def questions_in(answer: str, most: int) -> tuple[str, ...]:
    """The questions of an answer, one per line; none if it says that nothing is missing."""
    lines = (_plain(_BULLET.sub("", line)) for line in answer.splitlines()[:_MOST_LINES])
    questions = [line for line in lines if 8 <= len(line) <= 300 and "{" not in line]
    if any(line.lower().startswith(_NONE) for line in answer.split("\n")):
        return ()
    return tuple(dict.fromkeys(questions))[:most]


def markers_in(sentence: str) -> tuple[str, tuple[str, ...]]:
    """A sentence without its markers, and the findings that they name."""
    names = [name.strip() for each in _MARKERS.findall(sentence) for name in each.split(",")]
    return _plain(_MARKERS.sub("", sentence)).replace(" .", "."), tuple(dict.fromkeys(names))


def _plain(text: str) -> str:
    return " ".join(text.split())


def _objects(answer: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that stand alone in lines, a comma or a bullet beside them."""
    for line in answer.splitlines()[:_MOST_LINES]:
        begin, end = line.find("{"), line.rfind("}")
        if 0 <= begin < end:
            try:
                value = msgspec.json.decode(line[begin : end + 1])
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value
