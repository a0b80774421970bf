"""Search services as they are called, and pages that they name as sources; judged by a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Literal, get_args

import pytest
from aiohttp import web

from holdfast.compat import ContentStore
from holdfast.errors import ResearchError, SettingsError, StoreUnavailableError
from holdfast.researching import ResearchResult, SourceLimits, SourceText
from holdfast.researching.records import SearchHit
from holdfast.researching.search_providers import SNIPPET_CHARACTERS, open_search
from holdfast.settings import Settings, WebSearch
from holdfast.store.opening import open_memory
from tests.researching.made import Dying, researched_in
from tests.researching.test_fetching import LIMITS, WEB, Pages

PLAIN = SourceText("notes.md", "The dam of Gent broke after eleven days of rain.")


class Service:
    """A search service that records its requests and returns scripted answers."""

    def __init__(self, results: Any, status: int = 200) -> None:
        self.asked: list[tuple[str, str, dict[str, str], dict[str, Any]]] = []
        self.heads: list[dict[str, str]] = []
        self._results, self._status = results, status
        self._leads = {"Location": "/elsewhere"} if 300 <= status < 400 else {}

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else {}
        self.asked.append((request.method, request.path, dict(request.query), body))
        self.heads.append(dict(request.headers))
        if isinstance(self._results, bytes):
            return web.Response(body=self._results, status=self._status)
        return web.json_response(self._results, status=self._status, headers=self._leads)


def beside(service: Service, work: Callable[[str], Any]) -> Any:
    """Run work beside a service, given its address."""

    async def run() -> Any:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", service.answer)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            return await work(f"http://127.0.0.1:{runner.addresses[0][1]}")
        finally:
            await runner.cleanup()

    return asyncio.run(run())


SearchService = Literal["searxng", "tavily", "brave"]


def hits_of(service: Service, provider: SearchService, key: str = "") -> list[SearchHit]:
    async def work(url: str) -> list[SearchHit]:
        search = open_search(Settings(web_search=WebSearch(provider, url, key)))
        assert search is not None
        return await search.search("why did the dam break")

    hits: list[SearchHit] = beside(service, work)
    return hits


def test_searxng_is_asked_for_json() -> None:
    results = [{"url": "https://a.example/x", "title": "A", "content": "c" * 500}]
    service = Service({"results": results})
    [hit] = hits_of(service, "searxng")
    assert hit == SearchHit("A", "https://a.example/x", "c" * SNIPPET_CHARACTERS)
    assert hit.content_citation_id is None
    [(method, path, query, _)] = service.asked
    assert (method, path) == ("GET", "/search")
    assert query == {"q": "why did the dam break", "format": "json"}


def test_tavily_is_asked_with_its_key() -> None:
    service = Service({"results": [{"url": "https://b.example/", "title": "B", "content": "b"}]})
    [hit] = hits_of(service, "tavily", "tvly-key-of-the-test")
    assert (hit.title, hit.url) == ("B", "https://b.example/")
    [(method, path, _, body)] = service.asked
    assert (method, path) == ("POST", "/search")
    assert body["query"] == "why did the dam break"
    assert service.heads[0]["Authorization"] == "Bearer tvly-key-of-the-test"


def test_brave_is_asked_with_its_token() -> None:
    results = [{"url": "https://c.example/", "title": "C", "description": "d"}]
    service = Service({"web": {"results": results}})
    [hit] = hits_of(service, "brave", "key-of-the-test")
    assert hit == SearchHit("C", "https://c.example/", "d")
    [(method, path, query, _)] = service.asked
    assert (method, path) == ("GET", "/res/v1/web/search")
    assert query["q"] == "why did the dam break"
    assert 1 <= int(query["count"]) <= 20
    assert service.heads[0]["X-Subscription-Token"] == "key-of-the-test"


@pytest.mark.parametrize(
    ("results", "status", "why"),
    [
        ({}, 500, "answered 500"),
        (b"<html>", 200, "no answer"),
        ({"results": []}, 302, "answered 302"),
    ],
)
def test_a_service_that_fails_is_told(results: Any, status: int, why: str) -> None:
    service = Service(results, status)
    with pytest.raises(ResearchError, match=why):
        hits_of(service, "searxng")
    assert len(service.asked) == 1, "the key would go to whatever address the service names"


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {"results": {}},
        {"results": ["x", {"title": "no address"}, {"url": 3}, {"url": "http://" + "a" * 9_000}]},
        1,
    ],
)
def test_answers_that_name_no_page_are_none(answer: Any) -> None:
    assert hits_of(Service(answer), "searxng") == []


def test_a_provider_without_its_address_or_key_is_told() -> None:
    for provider in get_args(SearchService):
        with pytest.raises(SettingsError, match="lacks"):
            open_search(Settings(web_search=WebSearch(provider)))


def found_by(service: Service, **how: Any) -> ResearchResult:
    """Run a research with one given source and a web search."""

    async def work(url: str) -> ResearchResult:
        return await researched_in(
            "When did the dam of Gent break?",
            [PLAIN],
            settings=Settings(web_search=WebSearch("searxng", url)),
            limits=SourceLimits(allow_urls=True, fetch=LIMITS),
            **how,
        )

    done: ResearchResult = beside(service, work)
    return done


def test_pages_that_a_search_names_are_read_and_cited_as_such() -> None:
    async def run() -> ResearchResult:
        async with Pages(WEB).served() as public:
            results = [{"url": f"{public.url}/page"}, {"url": "http://127.0.0.1:9/private"}]
            return await asyncio.to_thread(found_by, Service({"results": results}))

    done = asyncio.run(run())
    assert [source.origin for source in done.state.sources] == ["text", "search", "search"]
    by_origin = {source.origin: source for source in done.report.sources}
    assert by_origin["search"].url.endswith("/page")
    assert any("1911" in finding.claim for finding in done.report.findings)
    assert "private" in done.report.left_out[0].note


def test_a_hit_names_the_content_of_its_page_once_it_was_fetched() -> None:
    store = open_memory()

    async def run() -> ResearchResult:
        async with Pages(WEB).served() as public:
            results = [
                {"url": f"{public.url}/page", "title": "Dams"},
                {"url": "http://127.0.0.1:9/private"},
            ]
            return await asyncio.to_thread(found_by, Service({"results": results}), store=store)

    fetched, refused = asyncio.run(run()).state.search_hits
    assert fetched.title == "Dams"
    assert refused.content_citation_id is None
    assert fetched.content_citation_id is not None
    stored = asyncio.run(ContentStore(store).get_content(fetched.content_citation_id))
    assert stored is not None
    assert stored.source_url == fetched.url
    assert "1911" in stored.full_content


def test_a_run_that_goes_on_reads_what_the_search_named_and_does_not_search_again() -> None:
    store, service = Dying.after(3), Service({"results": [{"url": "http://127.0.0.1:9/private"}]})
    with pytest.raises(StoreUnavailableError):  # after begun, planned, searched
        found_by(service, store=store)
    store.left = -1
    other = Service({"results": [{"url": "http://127.0.0.1:9/other"}]})
    done = found_by(other, store=store, resume=True)
    assert len(service.asked) == 1
    assert not other.asked
    assert [source.name for source in done.state.sources] == [
        "notes.md",
        "http://127.0.0.1:9/private",
    ]


def test_a_search_that_fails_is_a_warning_and_the_rest_goes_on() -> None:
    store = open_memory()
    done = found_by(Service(json.dumps({}).encode(), 503), store=store)
    assert done.report.findings
    assert done.report.warnings == ("searxng: the search answered 503",)
    again = found_by(Service({}), store=store, resume=True)
    assert again.report.warnings == done.report.warnings
