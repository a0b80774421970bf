"""What each setting of the answers changes: in the library, and in the running proxy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.answer_cache import Answers
from holdfast.engine import Holdfast
from holdfast.errors import StoreError
from holdfast.settings import Settings
from tests.answer_cache.embedding import WordsEmbedder
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import Running, ask, path_of, running_proxy
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Upstream
from tests.wiring.wired import Observe, Wired

ASKED, LIKE = "How can I reset a router?", "What is the best way to reset a router?"
CONTEXT = "context"


def with_answers(work: Callable[[Answers], Awaitable[object]], **settings: Any) -> object:
    async def main() -> object:
        chosen = Settings(**{"store_url": "memory:"} | settings)
        async with Holdfast.open(settings=chosen) as engine:
            policy = engine.answers.policy
            return await work(Answers(engine.store, engine.scope, policy, embedder=WordsEmbedder()))

    return asyncio.run(main())


def library_keeps(enabled: bool, _: Path) -> object:
    async def work(answers: Answers) -> object:
        try:
            return await answers.put(ASKED, CONTEXT, "Hold.")
        except StoreError:
            return None

    return with_answers(work, enable_answer_cache=enabled)


def library_gives(setting: str) -> Observe:
    """Whether a like question is given the answer, with a value of a setting."""

    def observe(value: Any, _: Path) -> object:
        async def work(answers: Answers) -> object:
            await answers.put(ASKED, CONTEXT, "Hold.")
            return await answers.get(LIKE, CONTEXT) is not None

        return with_answers(work, **{"enable_semantic_cache": True} | {setting: value})

    return observe


def library_lifetime(seconds: float, _: Path) -> object:
    async def work(answers: Answers) -> object:
        await answers.put(ASKED, CONTEXT, "Hold.")
        [kept] = await answers.latest()
        return round((kept.expires_at or 0.0) - kept.created_at)

    return with_answers(work, answer_ttl_seconds=seconds)


def asked(proxy: Running, question: str, **more: Any) -> str:
    """Return the proxy's report of a request: a miss, or the tier that answered it."""
    messages = [{"role": "user", "content": question}]
    body = {"model": "gpt-4o", "temperature": 0, "messages": messages, **more}
    headers = {"authorization": f"Bearer {KEY}"}
    answer = ask(proxy.url + path_of("openai-chat"), json.dumps(body).encode(), headers)
    return answer.headers.get("x-holdfast-answer", "off")


def proxy_says(*asking: dict[str, Any], **defaults: Any) -> Callable[[str], Observe]:
    """Return the reports of two requests, with a value of a setting."""

    def of(setting: str) -> Observe:
        def observe(value: Any, _: Path) -> object:
            settings = {"answer_rules": {"*": "semantic"}} | defaults | {setting: value}
            with pytest.MonkeyPatch.context() as patch, Upstream() as upstream:
                patch.setattr("holdfast.answer_cache.cache.open_embedder", WordsEmbedder)
                upstream.always = says(text("Hold."))
                with running_proxy(settings, upstream.url) as proxy:
                    return [asked(proxy, **each) for each in asking]

        return observe

    return of


def proxy_lifetime(seconds: float, _: Path) -> object:
    settings = {"answer_rules": {"*": "exact"}, "answer_ttl_seconds": seconds}
    with Upstream() as upstream:
        upstream.always = says(text("Hold."))
        with running_proxy(settings, upstream.url) as proxy:
            asked(proxy, ASKED)
            proxy.settled()
            [kept] = proxy.do(proxy.service.engine.answers.latest())
            return round((kept.expires_at or 0.0) - kept.created_at)


_EQUAL = proxy_says({"question": ASKED}, {"question": ASKED})
_LIKE = proxy_says({"question": ASKED}, {"question": LIKE}, enable_semantic_cache=True)

LIBRARY_ANSWERS: dict[str, Wired | str] = {
    "enable_answer_cache": Wired(library_keeps, True, False),
    "enable_semantic_cache": Wired(library_gives("enable_semantic_cache"), True, False),
    "answer_rules": "about the requests of the proxy: who calls the library asks for an answer",
    "answer_ttl_seconds": Wired(library_lifetime, 60.0, 3_600.0),
}
PROXY_ANSWERS: dict[str, Wired | str] = {
    "enable_answer_cache": Wired(_EQUAL("enable_answer_cache"), True, False),
    "enable_semantic_cache": Wired(_LIKE("enable_semantic_cache"), True, False),
    "answer_rules": Wired(_EQUAL("answer_rules"), {"gpt-4*": "exact"}, {"claude-*": "exact"}),
    "answer_ttl_seconds": Wired(proxy_lifetime, 60.0, 3_600.0),
}
