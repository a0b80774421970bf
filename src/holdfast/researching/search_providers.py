"""Web search: the pages for a question, from the provider that the settings name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import aiohttp
import msgspec

from holdfast.errors import ResearchError, SettingsError
from holdfast.researching.records import SearchHit
from holdfast.settings import Settings

SNIPPET_CHARACTERS = 200
_MOST_HITS = 8
_MOST_URL = 2_000
_MOST_TITLE = 200
_MOST_BYTES = 2_000_000
_SECONDS = 15.0


class SearchProvider(Protocol):
    """A web search service."""

    name: str

    async def search(self, query: str) -> list[SearchHit]:
        """Return the best pages for a query.

        Raises:
            ResearchError: if the service does not answer.
        """


class _HttpSearch(ABC):
    """Common code of the services: one request whose response has a list of results."""

    name: str

    async def search(self, query: str) -> list[SearchHit]:
        """Return the best pages for a query; see `SearchProvider`."""
        method, url, arguments = self._request(query)
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.request(method, url, allow_redirects=False, **arguments) as response,
            ):
                if response.status != 200:
                    raise ResearchError(f"the search answered {response.status}", where=self.name)
                data = await response.content.read(_MOST_BYTES)
                answer = msgspec.json.decode(data)
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as error:
            failure = f"the search gave no answer: {type(error).__name__}"
            raise ResearchError(failure, where=self.name) from None
        return _hits(self._results(answer))

    @abstractmethod
    def _request(self, query: str) -> tuple[str, str, dict[str, Any]]:
        """Return method, URL and arguments of the request."""

    def _results(self, answer: Any) -> Any:
        return answer.get("results") if isinstance(answer, dict) else None


class SearXng(_HttpSearch):
    """A self-hosted SearXNG with its JSON format enabled."""

    name = "searxng"

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def _request(self, query: str) -> tuple[str, str, dict[str, Any]]:
        return "GET", f"{self._url}/search", {"params": {"q": query, "format": "json"}}


class Tavily(_HttpSearch):
    """Tavily's web search."""

    name = "tavily"

    def __init__(self, key: str, url: str = "https://api.tavily.com") -> None:
        self._key, self._url = key, url.rstrip("/")

    def _request(self, query: str) -> tuple[str, str, dict[str, Any]]:
        head = {"Authorization": f"Bearer {self._key}"}
        body = {"query": query, "max_results": _MOST_HITS}
        return "POST", f"{self._url}/search", {"headers": head, "json": body}


class Brave(_HttpSearch):
    """Brave's web search."""

    name = "brave"

    def __init__(self, key: str, url: str = "https://api.search.brave.com") -> None:
        self._key, self._url = key, url.rstrip("/")

    def _request(self, query: str) -> tuple[str, str, dict[str, Any]]:
        head = {"X-Subscription-Token": self._key}
        path = f"{self._url}/res/v1/web/search"
        return "GET", path, {"headers": head, "params": {"q": query[:400], "count": _MOST_HITS}}

    def _results(self, answer: Any) -> Any:
        return super()._results(answer.get("web")) if isinstance(answer, dict) else None


def open_search(settings: Settings) -> SearchProvider | None:
    """Return the provider that the settings name; None if they name none."""
    search = settings.web_search
    address, key = search.url, search.key
    match search.provider:
        case "searxng" if address:
            return SearXng(address)
        case "tavily" if key:
            return Tavily(key, address) if address else Tavily(key)
        case "brave" if key:
            return Brave(key, address) if address else Brave(key)
        case "none":
            return None
    raise SettingsError(
        "the search provider lacks its address or its key",
        where="web_search",
        fix="Set its url for searxng, its key for tavily and brave.",
    )


def _hits(results: Any) -> list[SearchHit]:
    """Return the results that have a URL."""
    hits = []
    for result in results if isinstance(results, list) else ():
        url = result.get("url") if isinstance(result, dict) else None
        # hits are written to the journal, so none may be large
        if isinstance(url, str) and len(url) <= _MOST_URL:
            title = str(result.get("title") or "")
            text = str(result.get("content") or result.get("description") or "")
            hits.append(SearchHit(title[:_MOST_TITLE], url, text[:SNIPPET_CHARACTERS]))
    return hits[:_MOST_HITS]
