"""Calls to a model within a budget, and parsers of its answers.

Tokens for the synthesis are reserved, so that there is always a report. Answers are untrusted: they
are parsed line by line, and lines of another form are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from holdfast.errors import ModelError
from holdfast.models.protocol import CompletionModel
from holdfast.researching.prompts import SYSTEM
from holdfast.researching.records import ModelUsage
from holdfast.researching.report_budget import Count

_MOST_LINES = 200
_MOST_CLAIM = 600
_MARKERS = re.compile(r"\[((?:F\d{1,6})(?:,\s?F\d{1,6}){0,50})\]")
_BULLET = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)])\s+")
_NONE = "nothing"


class BudgetSpentError(ModelError):
    """The budget of the run is used up."""


class ModelClaim(NamedTuple):
    """A claim that a model makes about a source."""

    claim: str
    source: str
    quote: str


class BudgetedModel:
    """A model with the budget that remains for it."""

    def __init__(
        self, model: CompletionModel, count: Count, budget: int | None, spent: ModelUsage
    ) -> None:
        self.model = model
        self.count = count
        self._budget = budget
        self._spent = spent.tokens
        self._reserved = min(model.window, budget // 3) if budget else 0
        self.answer_tokens = max(64, min(2_000, model.window // 8))
        """Maximum tokens of an answer, in every phase."""

    @property
    def context(self) -> int:
        """Return the maximum tokens of a prompt."""
        return max(self.model.window - self.answer_tokens, 0)

    async def ask(self, prompt: str, *, last: bool = False) -> tuple[str, ModelUsage]:
        """Call the model once; the last call may use the reserve.

        Raises:
            ModelError: if there is no usable answer or no budget.
        """
        size = self.count(SYSTEM) + self.count(prompt) + self.answer_tokens
        reserved = 0 if last else self._reserved
        if self._budget is not None and self._spent + size > self._budget - reserved:
            raise BudgetSpentError("the budget is used up", where=self.model.name)
        # before the answer, so that concurrent calls cannot overdraw the budget
        self._spent += size
        completion = await self.model.complete(prompt, system=SYSTEM, max_tokens=self.answer_tokens)
        usage = ModelUsage(
            calls=1,
            input_tokens=completion.input_tokens or size - self.answer_tokens,
            output_tokens=completion.output_tokens or self.count(completion.text),
        )
        self._spent += usage.tokens - size
        return completion.text, usage


def parse_claims(answer: str) -> list[ModelClaim]:
    """Return the claims of an answer that have the required form."""
    return [
        ModelClaim(_plain(claim), source.strip().strip("[]"), quote)
        for value in _objects(answer)
        if isinstance(claim := value.get("claim"), str)
        and isinstance(source := value.get("source"), str)
        and isinstance(quote := value.get("quote"), str)
        and quote.strip()
        and 0 < len(claim.strip()) <= _MOST_CLAIM
    ]


def parse_actions(answer: str) -> list[dict[str, Any]]:
    """Return the actions that an answer requests, with their parameters."""
    return [value for value in _objects(answer) if isinstance(value.get("action"), str)]


def parse_questions(answer: str, most: int) -> tuple[str, ...]:
    """Return an answer's questions, one per line; none if it reports nothing missing."""
    lines = (_plain(_BULLET.sub("", line)) for line in answer.splitlines()[:_MOST_LINES])
    questions = [line for line in lines if 8 <= len(line) <= 300 and "{" not in line]
    if any(line.lower().startswith(_NONE) for line in answer.split("\n")):
        return ()
    return tuple(dict.fromkeys(questions))[:most]


def split_markers(sentence: str) -> tuple[str, tuple[str, ...]]:
    """Return a sentence without its markers, and the finding ids in them."""
    names = [name.strip() for each in _MARKERS.findall(sentence) for name in each.split(",")]
    return _plain(_MARKERS.sub("", sentence)).replace(" .", "."), tuple(dict.fromkeys(names))


def _plain(text: str) -> str:
    return " ".join(text.split())


def _objects(answer: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in lines of their own, optionally after a bullet or before a comma."""
    for line in answer.splitlines()[:_MOST_LINES]:
        begin, end = line.find("{"), line.rfind("}")
        if 0 <= begin < end:
            try:
                value = msgspec.json.decode(line[begin : end + 1])
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value
