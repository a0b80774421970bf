"""What each setting of summaries changes in the library, as a provider at its network sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from holdfast.errors import HoldfastError
from holdfast.models.opening import open_model
from holdfast.settings import Settings, UpstreamEntry
from holdfast.summarise import ContentSummarizer, MemorySummaryCache, SummarizationLevel
from tests.summarise.provider import (
    Answer,
    Asked,
    Provider,
    completion,
    first_words,
    running,
    says,
    status,
)
from tests.wiring.wired import PROSE, Wired

_T = TypeVar("_T")
HEADLINE = SummarizationLevel.HEADLINE
CHAPTER = PROSE[:4_000]
GOOD = CHAPTER.split("\n")[0]
BY_OURS = "extractive"


def with_provider(work: Callable[[Provider], Awaitable[_T]], *script: Answer) -> _T:
    async def main() -> _T:
        async with running(*script) as provider:
            return await work(provider)

    return asyncio.run(main())


def by_whom(setting: str, *script: Answer, **more: Any) -> Callable[[Any, Path], object]:
    """Return the author of the summary, with a value of a setting."""

    def observe(value: Any, _: Path) -> object:
        async def work(provider: Provider) -> str:
            summarizer = ContentSummarizer(provider.settings(**more | {setting: value}))
            return (await summarizer.summarize(CHAPTER, HEADLINE)).provider

        return with_provider(work, *script)

    return observe


async def slowly(_: Asked) -> web.Response:
    await asyncio.sleep(0.4)
    return completion(GOOD)


def only_second(asked: Asked) -> web.Response:
    return completion(GOOD if asked.body["model"] == "second" else "")


def waits(delay: float, _: Path) -> object:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def work(provider: Provider) -> None:
        settings = provider.settings(summarization_retry_delay=delay)
        await ContentSummarizer(settings, sleep=sleep).summarize(CHAPTER, HEADLINE)

    with_provider(work, status(503), says(GOOD))
    return slept


def asked_again(setting: str) -> Callable[[Any, Path], object]:
    """How often a provider is asked for the same an hour later, after the settings of before."""

    def observe(value: Any, _: Path) -> object:
        now = [0.0]
        cache = MemorySummaryCache(clock=lambda: now[0])

        async def work(provider: Provider) -> int:
            changed = {"summarization_cache_ttl_hours": 24.0} | {setting: value}
            before = {key: changed[key] for key in changed if key != "summarization_prompt_version"}
            for settings in (before, changed):
                summarizer = ContentSummarizer(provider.settings(**settings), cache=cache)
                await summarizer.summarize(CHAPTER, HEADLINE)
                now[0] += 3600
            return len(provider.asked)

        return with_provider(work, says(GOOD))

    return observe


def cuts(allowed: bool, _: Path) -> object:
    summarizer = ContentSummarizer(Settings(summarization_truncate_fallback=allowed))
    try:
        return summarizer.extract(CHAPTER, HEADLINE, budget=3).truncated
    except HoldfastError as error:
        return error.what


def quotes_in_the_end(allowed: bool, _: Path) -> object:
    summarizer = ContentSummarizer(Settings(summarization_extractive=allowed))
    try:
        return asyncio.run(summarizer.summarize(CHAPTER, HEADLINE)).provider
    except HoldfastError as error:
        return error.what


def asked_at_once(most: int, _: Path) -> object:
    async def in_a_while(asked: Asked) -> web.StreamResponse:
        await asyncio.sleep(0.05)
        answer = first_words(0.05)(asked)
        assert isinstance(answer, web.Response)
        return answer

    async def work(provider: Provider) -> int:
        window = {"openai:small": {"context_window": 1_800}}
        settings = provider.settings(parallel_calls=most, model_context_overrides=window)
        await ContentSummarizer(settings).summarize(PROSE, HEADLINE)
        return provider.most_at_once

    return with_provider(work, in_a_while)


def opened_as(provider_id: str, setting: str) -> Callable[[Any, Path], object]:
    def observe(value: Any, _: Path) -> object:
        try:
            return type(open_model(provider_id, Settings(**{setting: value}))).__name__
        except HoldfastError as error:
            return error.what

    return observe


SUMMARIES: dict[str, Wired | str] = {
    "summarization_provider": Wired(
        by_whom("summarization_provider", says(GOOD)), "", "openai:small"
    ),
    "summarization_providers": Wired(
        by_whom("summarization_providers", only_second, summarization_max_retries=0),
        [],
        ["openai:second"],
    ),
    "summarization_timeout": Wired(
        by_whom("summarization_timeout", slowly, summarization_max_retries=0), 0.1, 20.0
    ),
    "summarization_max_retries": Wired(
        by_whom("summarization_max_retries", status(503), says(GOOD)), 0, 1
    ),
    "summarization_retry_delay": Wired(waits, 1.0, 5.0),
    "summarization_cache_enabled": Wired(asked_again("summarization_cache_enabled"), True, False),
    "summarization_cache_ttl_hours": Wired(asked_again("summarization_cache_ttl_hours"), 0.5, 2.0),
    "summarization_prompt_version": Wired(asked_again("summarization_prompt_version"), "v1", "v2"),
    "summarization_truncate_fallback": Wired(cuts, True, False),
    "summarization_extractive": Wired(quotes_in_the_end, True, False),
    "parallel_calls": Wired(asked_at_once, 1, 3),
    "summarization_commands": Wired(
        opened_as("[cli]mine:x", "summarization_commands"), {}, {"mine": ["mine"]}
    ),
    "forbid_model_calls": Wired(opened_as("[cli]claude:haiku", "forbid_model_calls"), False, True),
    "upstreams": Wired(
        opened_as("openai:x", "upstreams"), {}, {"openai": UpstreamEntry("http://localhost:11434")}
    ),
}
