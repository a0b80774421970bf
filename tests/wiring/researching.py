"""The effects of the settings of research."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.engine import Holdfast
from holdfast.models.protocol import Completion
from holdfast.researching import Options, SourceText, conduct
from holdfast.researching.search_providers import open_search
from holdfast.settings import Settings, WebSearch
from holdfast.store.opening import open_memory
from tests.surfaces.harness import run_process
from tests.wiring.wired import Wired


def url_is_tried(allowed: bool, folder: Path) -> object:
    done = run_process(
        "research", "What is there?", "http://127.0.0.1:9/page", "--store", "memory:",
        folder=folder, HOLDFAST_ALLOW_URLS=str(allowed).lower(),
    )  # fmt: skip
    return b"--allow-urls" in done.stdout


def provider(fields: dict[str, Any], _: Path) -> object:
    return type(open_search(Settings(web_search=WebSearch(**fields)))).__name__


class _Slow:
    """A model that notes how many ask it at once.

    The plan is asked for alone; from then on an answer waits until as many ask as may.
    """

    name = "openai:gpt-4o"
    window = 8_000

    def __init__(self, wanted: int) -> None:
        self.calls = self.asked = self.most = 0
        self._wanted = wanted
        self._all = asyncio.Event()

    async def complete(self, *_: object, **__: object) -> Completion:
        self.calls += 1
        self.asked += 1
        self.most = max(self.most, self.asked)
        if self.asked >= self._wanted:
            self._all.set()
        if self.calls > 1:
            with suppress(TimeoutError):  # only where the setting is not obeyed
                await asyncio.wait_for(self._all.wait(), timeout=20)
        self.asked -= 1
        return Completion("When did it fail?\nWhy did the deploy fail?\nWho rolled it back?")


def asked_at_once(most: int, _: Path) -> object:
    settings = Settings(parallel_calls=most)

    async def work() -> int:
        model = _Slow(most)
        engine = Holdfast(open_memory())
        sources = [SourceText("a", "The deploy failed on 14 June. Ann rolled it back.")]
        await conduct("Why?", sources, engine, settings, Options(model=model))
        return model.most

    return asyncio.run(work())


LIBRARY_RESEARCH = {
    "allow_urls": Wired(url_is_tried, True, False),
    "web_search": Wired(
        provider, {"provider": "tavily", "key": "k"}, {"provider": "brave", "key": "k"}
    ),
    "parallel_calls": Wired(asked_at_once, 1, 3),
}
RESEARCH = "the proxy does no research"
PROXY_RESEARCH = dict.fromkeys(LIBRARY_RESEARCH, RESEARCH)
