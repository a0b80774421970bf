"""Sources and models for tests of research: a corpus with known places, and models that lie."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.engine import Holdfast
from holdfast.errors import StoreUnavailableError
from holdfast.models.protocol import Completion
from holdfast.researching import Options, Report, ResearchResult, SourceText, conduct
from holdfast.settings import Settings
from holdfast.store import Store
from holdfast.store.opening import open_memory
from holdfast.store.sqlite import SqliteStore

NOW = 1_760_000_000.0
CITIES = "Dresden Prag Wien Bonn Genf Lyon Turin Porto Gent Oslo Riga Brno Graz Metz Bari".split()


def texts(number: int, *, seed: int = 0, paragraphs: int = 6) -> list[SourceText]:
    """Return sources that each describe a city's bridge in different words."""
    chance = random.Random(seed)
    sources = []
    for n in range(number):
        city = f"{CITIES[n % len(CITIES)]}{n}"
        lines = [f"# The bridge of {city}", ""]
        for part in range(paragraphs):
            lines += [
                f"In part {part} the bridge of {city} was {chance.randint(10, 900)} metres long, "
                f"as surveyor {chance.choice(CITIES)} wrote. It was repaired in "
                f"{chance.randint(1700, 1990)}.",
                "",
            ]
        sources.append(SourceText(f"{city}.md", "\n".join(lines)))
    return sources


class Scripted:
    """A model that answers by a function of the prompt, and keeps the prompts."""

    def __init__(self, answer: Callable[[str], str], window: int = 16_000) -> None:
        self.name = "openai:gpt-4o"  # whose tokens are counted exactly
        self.window = window
        self.prompts: list[str] = []
        self.systems: list[str] = []
        self._answer = answer

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        self.prompts.append(prompt)
        self.systems.append(system)
        await asyncio.sleep(0)
        return Completion(self._answer(prompt)[: 8 * max_tokens])


class Dying(SqliteStore):
    """A store whose process is killed before its n-th entry of a journal."""

    left = 0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        append = self.journal.append

        async def dying(*args: Any, **options: Any) -> int:
            if self.left == 0:
                raise StoreUnavailableError("killed")
            self.left -= 1
            return await append(*args, **options)

        self.journal.append = dying  # type: ignore[method-assign]

    @classmethod
    def after(cls, entries: int) -> Dying:
        """Return a store that fails after a number of journal entries."""
        store = cls.in_memory()
        store.left = entries
        return store


def claim(source: str, quote: str, words: str = "") -> str:
    return json.dumps({"claim": words or quote, "source": source, "quote": quote})


async def researched_in(
    question: str,
    sources: Sequence[Any],
    *,
    store: Store | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> ResearchResult:
    """Return the result of a research run, in a running loop."""
    engine = Holdfast(store or open_memory())
    chosen = Options(**({"now": NOW} | options))
    return await conduct(question, sources, engine, settings or Settings(), chosen)


def researched(question: str, sources: Sequence[Any], **how: Any) -> ResearchResult:
    """Return the result of a research run."""
    return asyncio.run(researched_in(question, sources, **how))


def wrong_citations(report: Report, given: dict[str, str]) -> int:
    """Return citations that do not hold, judged by the given texts without our code."""
    wrong = 0
    names = {source.id: source.path for source in report.sources}
    for finding in report.findings:
        for quote in (*finding.supporting, *finding.contradicting):
            text = given.get(names.get(quote.source, ""), "")
            lines = text.split("\n")[quote.lines[0] - 1 : quote.lines[1]]
            in_bytes = text.encode()[quote.start : quote.stop] == quote.text.encode()
            wrong += not (in_bytes and quote.text in "\n".join(lines))
    return wrong
