"""Pages of a real server: which are read, which are refused; nothing private is requested.

The servers listen on two addresses of this machine. The allowed one represents the web.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from holdfast.errors import ResearchError
from holdfast.researching import SourceLimits
from holdfast.researching.web_pages import FetchedPage, FetchLimits, fetch
from tests.researching.made import researched_in

WEB, PRIVATE = "127.0.0.2", "127.0.0.1"
LIMITS = FetchLimits(bytes=10_000, redirects=3, allowed=frozenset({WEB}))
PAGE = "<html><head><title>Dams</title></head><body><p>The dam broke in 1911.</p></body></html>"


class Pages:
    """A server that records its requests."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.asked: list[str] = []
        self._over = asyncio.Event()
        self.elsewhere = ""
        """Where `/away` leads."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        match request.path.strip("/").split("/"):
            case ["page"]:
                return web.Response(text=PAGE, content_type="text/html")
            case ["hop", number]:
                to = f"/hop/{int(number) - 1}" if int(number) else "/page"
                raise web.HTTPFound(to)
            case ["away"]:
                raise web.HTTPFound(self.elsewhere)
            case ["endless"]:
                return await self._endless(request)
            case ["bomb"]:
                packed = gzip.compress(bytes(3_000_000))
                return web.Response(body=packed, headers={"Content-Encoding": "gzip"})
            case ["never"]:
                await self._over.wait()
        raise web.HTTPNotFound

    async def _endless(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while not self._over.is_set():
            await response.write(b"x" * 4_096)
        return response

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Pages]:
        app = web.Application()
        app.router.add_get("/{tail:.*}", self.answer)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, self.address, 0)
        await site.start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            self._over.set()
            await runner.cleanup()


def with_pages(work: Callable[[Pages, Pages], Awaitable[Any]]) -> Any:
    """Run work beside a server of the web and a private one."""

    async def run() -> Any:
        async with Pages(WEB).served() as public, Pages(PRIVATE).served() as private:
            return await work(public, private)

    return asyncio.run(run())


def refusal(path: str, limits: FetchLimits = LIMITS) -> str:
    """Why a page of the web is not read."""

    async def work(public: Pages, _: Pages) -> str:
        with pytest.raises(ResearchError) as caught:
            await fetch(public.url + path, limits)
        return caught.value.what

    what: str = with_pages(work)
    return what


def test_redirects_are_followed_and_the_last_address_is_told() -> None:
    async def work(public: Pages, _: Pages) -> tuple[FetchedPage, str]:
        return await fetch(f"{public.url}/hop/2", LIMITS), public.url

    page, url = with_pages(work)
    assert page.data == PAGE.encode()
    assert page.url == f"{url}/page"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/hop/9", "redirects more than 3 times"),
        ("/endless", "more than 10,000 bytes"),
        ("/bomb", "more than 10,000 bytes"),
        ("/nothing", "answered 404"),
    ],
)
def test_what_exceeds_a_limit_is_refused(path: str, why: str) -> None:
    assert why in refusal(path)


def test_a_page_that_never_comes_is_given_up() -> None:
    assert "took longer than 0.1 seconds" in refusal("/never", LIMITS._replace(seconds=0.1))


def test_a_redirect_to_a_private_address_is_never_asked() -> None:
    async def work(public: Pages, private: Pages) -> list[str]:
        public.elsewhere = f"{private.url}/page"
        with pytest.raises(ResearchError, match="private"):
            await fetch(f"{public.url}/away", LIMITS)
        with pytest.raises(ResearchError, match="private"):
            await fetch(f"{private.url}/page", LIMITS)
        return private.asked

    assert with_pages(work) == []


def test_a_name_that_turns_private_between_two_looks_leads_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: the connection uses the checked address, not a second one."""
    addresses = [[WEB], [PRIVATE], [WEB, PRIVATE]]
    looked_up: list[str] = []
    real = socket.getaddrinfo

    def rebinding(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host != "rebind.example":
            return real(host, port, *args, **options)
        looked_up.append(host)
        infos = addresses[len(looked_up) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in infos]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)

    async def work(public: Pages, private: Pages) -> list[str]:
        page = await fetch(f"http://rebind.example:{public.port}/page", LIMITS)
        assert page.data == PAGE.encode()
        assert looked_up == ["rebind.example"]
        for _ in range(2):  # it is private now; then one of its two addresses is
            with pytest.raises(ResearchError, match="private"):
                await fetch(f"http://rebind.example:{private.port}/page", LIMITS)
        return private.asked

    assert with_pages(work) == []


def test_a_page_is_cited_with_its_address_and_what_is_private_has_a_line() -> None:
    async def work(public: Pages, private: Pages) -> None:
        limits = SourceLimits(allow_urls=True, fetch=LIMITS)
        given = [f"{public.url}/page", f"{private.url}/page", f"{public.url}/nothing"]
        done = await researched_in("When did the dam break?", given, limits=limits)
        [source] = done.report.sources
        assert (source.url, source.origin, source.title) == (given[0], "url", "Dams")
        assert "1911" in done.report.findings[0].claim
        notes = {each.name: each.note for each in done.report.left_out}
        assert "private" in notes[given[1]]
        assert "404" in notes[given[2]]
        assert private.asked == []

    with_pages(work)
