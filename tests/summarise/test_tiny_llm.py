"""A real language model that summarises: far beyond its window it ends, fits, and cannot lie.

tests/support/tiny_llm.py names the model.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import re
from collections.abc import Iterator

import pytest

from holdfast.models.digest import count
from holdfast.models.opening import open_model
from holdfast.models.protocol import Completion, CompletionModel
from holdfast.settings import ModelLimits, Settings, UpstreamEntry
from holdfast.summarise import ContentSummarizer, SummarizationLevel
from tests.support.tiny_llm import served

told = logging.getLogger(__name__)

WINDOW = 2_048
COUNTED = 1_700
"""The same window as we count: its vocabulary is smaller, and has more tokens for numbers."""
KILOBYTES = int(os.environ.get("TINY_KILOBYTES", "200"))


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """The address of the model's own server."""
    yield from served(WINDOW)


def chronicle(size: int) -> str:
    chance = random.Random(3)
    towns = "Alma Bodo Cork Dover Elba Faro Genoa Hull Ibiza Jaffa".split()
    days: list[str] = []
    while sum(len(day) for day in days) < size:
        town, number = chance.choice(towns), chance.randrange(100, 9_000)
        days.append(
            f"On day {len(days) + 1} the harbour of {town} counted {number} barrels of oil. "
            f"Its master paid {chance.randrange(10, 90)} crowns to the crew, who had worked since "
            "the morning. A storm was seen in the west, and two boats did not return.\n\n"
        )
    return "".join(days)[:size]


class Recorded:
    """A model, and all its answers, including rejected ones."""

    def __init__(self, model: CompletionModel) -> None:
        self.name, self.window = model.name, model.window
        self.answers: list[str] = []
        self._model = model

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        completion = await self._model.complete(prompt, system=system, max_tokens=max_tokens)
        self.answers.append(completion.text)
        return completion


def numbers_in(text: str) -> set[str]:
    """The numbers of a text, but for those of a list's points."""
    plain = re.sub(r"(?m)^\s*\d{1,3}[.)]\s", "", text).replace(",", "")
    return set(re.findall(r"\d+", plain))


@pytest.mark.campaign
def test_a_text_far_beyond_the_window_is_summarised_and_no_invented_number_stays(
    model: str,
) -> None:
    content = chronicle(KILOBYTES * 1_000)
    budget = count(content) // 10
    settings = Settings(
        upstreams={"openai": UpstreamEntry(model)},
        summarization_provider="openai:smollm2",
        model_context_overrides={"openai:smollm2": ModelLimits(context_window=COUNTED)},
        summarization_timeout=600.0,
        summarization_retry_delay=0.0,
        # A third attempt takes seven seconds, and is no better than the two before it.
        summarization_max_retries=1,
        parallel_calls=1,
        forbid_model_calls=True,
    )
    speaking = Recorded(open_model("openai:smollm2", settings))
    summarizer = ContentSummarizer(settings, [speaking])
    result = asyncio.run(
        summarizer.summarize(content, SummarizationLevel.HEADLINE, "", target_budget=budget)
    )
    numbers = numbers_in(content)
    invented = [numbers_in(answer) - numbers for answer in speaking.answers]
    told.warning(
        "%s; pieces %d, answers %d, of which %d invent %d numbers; warnings %s",
        result,
        summarizer.cache_misses,
        len(speaking.answers),
        sum(map(bool, invented)),
        sum(map(len, invented)),
        result.warnings,
    )
    assert result.tokens_to == count(result.text) <= budget
    assert numbers_in(result.text) <= numbers
    for place in result.places:
        assert place.where.startswith("lines ")
