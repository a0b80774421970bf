"""Summarisers for tests: a correct one, and one that breaks every promise.

They replace a foreign model, to show how allocation handles a bad one.
"""

from __future__ import annotations

import asyncio
import random

from holdfast.summarise import SummarizationLevel, SummarizationResult


def count_words(text: str) -> int:
    """A counter that anybody can check, and that adds up: words."""
    return len(text.split())


class Honest:
    """Keeps the first words, exactly as many as it is asked for."""

    name = "honest"

    def __init__(self) -> None:
        self.asked: list[tuple[str, SummarizationLevel, str]] = []

    async def summarize(
        self,
        content: str,
        target_level: SummarizationLevel,
        context: str = "",
        target_budget: int | None = None,
    ) -> SummarizationResult:
        await asyncio.sleep(0)
        self.asked.append((content, target_level, context))
        return self.extract(content, target_level, context, target_budget)

    def extract(
        self,
        content: str,
        level: SummarizationLevel,
        context: str = "",  # noqa: ARG002 - as every summariser has it
        budget: int | None = None,
    ) -> SummarizationResult:
        words = content.split()
        text = " ".join(words[: self.length(content, level, budget) or len(words)])
        return SummarizationResult(
            text=text,
            level=level,
            requested_level=level,
            tokens_from=len(words),
            tokens_to=len(text.split()),
            provider=self.name,
            model="first-words",
            checked=3,
            unsupported=1,
        )

    def length(
        self,
        content: str,  # noqa: ARG002 - for those that are less honest
        level: SummarizationLevel,  # noqa: ARG002
        budget: int | None,
    ) -> int:
        """Return the number of words to keep; 0 keeps all of them."""
        return budget or 0


class Moody(Honest):
    """Returns wrong lengths, wrong levels or bad texts, or fails; equal for equal seeds."""

    name = "moody"

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._chance = random.Random(seed)

    def extract(
        self,
        content: str,
        level: SummarizationLevel,
        context: str = "",
        budget: int | None = None,
    ) -> SummarizationResult:
        mood = self._chance.choice(
            ["fails", "empty", "essay", "longer", "whole", "lies", "tighter", "honest", "fenced"]
        )
        if mood == "fails":
            raise self._chance.choice([TimeoutError, ValueError, KeyError])("no")
        text, reached = super().extract(content, level, context, budget).text, level
        match mood:
            case "empty":
                text = self._chance.choice(["", " \n"])
            case "essay":
                text = "an essay " * self._chance.randrange(1, 2_000)
            case "longer":
                text = f"{text} {text} {text}"
            case "whole":
                text, reached = content, SummarizationLevel.RAW
            case "tighter":
                text, reached = text[: len(text) // 2], SummarizationLevel.HEADLINE
            case "lies":
                reached = SummarizationLevel.RAW
            case "fenced":
                text = f"``` {text}\n````\n[s1]\n{text[:9]}"
        return SummarizationResult(
            text=text,
            level=reached,
            requested_level=level,
            tokens_from=self._chance.randrange(10**6),
            tokens_to=self._chance.randrange(3),
            provider=self.name,
        )
