"""Items and allocations for the tests, and a reader of prompts that knows none of our code."""

from __future__ import annotations

import asyncio
import random
import re
from typing import Any, NamedTuple

from hypothesis import strategies as st

from holdfast.allocate import STRATEGIES, AllocationResult, ContentItem, ContextBudgetManager
from holdfast.settings import Settings
from holdfast.summarise import Summarizer
from tests.allocate.summarisers import Honest, count_words


def words(number: int, name: str = "w") -> str:
    return " ".join(f"{name}{n}" for n in range(number))


def item(name: str, number: int, priority: float = 0.5, **more: Any) -> ContentItem:
    return ContentItem(source_id=name, content=words(number, name), priority=priority, **more)


def allocated(
    items: list[ContentItem],
    budget: int,
    strategy: str = "best_total",
    *,
    summarizer: Summarizer | None = None,
    settings: Settings | None = None,
    **more: Any,
) -> AllocationResult:
    """An allocation counted in words, which add up."""
    manager = ContextBudgetManager(
        settings or Settings(), summarizer or Honest(), count=count_words
    )
    return asyncio.run(manager.allocate_budget(items, budget, strategy, **more))


class Shown(NamedTuple):
    """A part of a prompt, as somebody reads it who has only the prompt."""

    level: str
    text: str
    ref: str


_HEADING = re.compile(
    r"\[(?P<name>[^\]:]+)(?:: (?P<level>\w+) of [\d,]+ tokens(?:, (?P<ref>\S+))?)?\]"
)


def read_prompt(text: str) -> dict[str, Shown]:
    """Return the parts of a prompt by name: a line in brackets, then the fenced text."""
    shown: dict[str, Shown] = {}
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if not lines[at] or " left out: " in lines[at]:
            at += 1
            continue
        heading = _HEADING.fullmatch(lines[at])
        assert heading is not None, lines[at]
        fence = lines[at + 1]
        assert set(fence) == {"`"}
        end = lines.index(fence, at + 2)
        body = "\n".join(lines[at + 2 : end])
        assert heading["name"] not in shown
        shown[heading["name"]] = Shown(heading["level"] or "raw", body, heading["ref"] or "")
        at = end + 1
    return shown


STRANGE = ["", "```\nfence\n````", "[s1]\n```\nx", "x" * 3_000, "\n\n\n", "é漢字🙂" * 40]
contents = st.one_of(
    st.integers(0, 400).map(words),
    st.text(max_size=80),
    st.sampled_from(
        ["", "```\nfence\n````", "[s1]\n```\nx", "x" * 3_000, "\n\n\n", "é漢字🙂" * 40]
    ),
)
"""What sources hold: prose, anything, and what would break a prompt that trusts it."""


@st.composite
def item_sets(draw: st.DrawFn, most: int = 8) -> list[ContentItem]:
    kinds = st.sampled_from(["source", "source", "finding", "context"])
    return [
        ContentItem(
            source_id=f"s{n}",
            content=draw(contents),
            token_count=draw(st.sampled_from([0, 0, 0, 1, 7, 5_000])),
            priority=draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])),
            kind=draw(kinds),
        )
        for n in range(draw(st.integers(0, most)))
    ]


def random_case(seed: int) -> dict[str, Any]:
    """The same from a seed, much quicker than hypothesis draws them."""
    chance = random.Random(seed)
    items = [
        ContentItem(
            source_id=f"s{n}",
            content=_random_content(chance),
            token_count=chance.choice([0, 0, 0, 1, 7, 5_000]),
            priority=chance.choice([0.0, 0.1, 0.5, 0.9, 1.0, chance.random()]),
            kind=chance.choice(["source", "source", "finding", "context"]),
        )
        for n in range(chance.randrange(9))
    ]
    return {
        "items": items,
        "budget": chance.choice([chance.randrange(60), chance.randrange(700), 3_000]),
        "strategy": chance.choice(sorted(STRATEGIES)),
        "seed": seed,
        "truncates": chance.random() < 0.7,
        "drops": chance.random() < 0.7,
        "least": chance.randrange(5),
    }


def _random_content(chance: random.Random) -> str:
    match chance.randrange(4):
        case 0:
            return words(chance.randrange(400))
        case 1:
            return chance.choice(STRANGE)
        case 2:
            return chance.choice(STRANGE) + words(chance.randrange(100)) + chance.choice(STRANGE)
        case _:
            return "".join(
                chance.choices("ab .,`\n[]:{}\u2028é漢🙂\r\t0…", k=chance.randrange(200))
            )
