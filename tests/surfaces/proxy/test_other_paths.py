"""Other paths of the providers: uploads, logins and the APIs of subscriptions."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiohttp import web

from holdfast.settings import UpstreamEntry
from tests.surfaces.proxy.harness import Running, ask, running_proxy
from tests.surfaces.proxy.talking import gemini_types, genai
from tests.surfaces.proxy.test_passing import asked, headers_of, said_to
from tests.surfaces.proxy.test_uploads import FILE
from tests.surfaces.proxy.wire import Wire

PATHS = [
    ("POST", "/upload/v1beta/files", "gemini"),
    ("PUT", "/upload/v1beta/files?upload_id=a%2Fb&upload_protocol=resumable", "gemini"),
    ("GET", "/download/v1beta/files/x:download?alt=media", "gemini"),
    ("POST", "/v1internal:streamGenerateContent?alt=sse", "gemini"),
    ("GET", "/v1internal/operations/7", "gemini"),
    ("GET", "/api/oauth/profile", "anthropic"),
    ("POST", "/api/oauth/claude_cli/create_api_key", "anthropic"),
    ("POST", "/api/event_logging/batch", "anthropic"),
    ("GET", "/api/claude_code/settings", "anthropic"),
    ("POST", "/backend-api/codex/responses", "openai"),
    ("GET", "/backend-api/wham/usage", "openai"),
]


@contextmanager
def before(wire: Wire, family: str, **settings: object) -> Iterator[Running]:
    with running_proxy({"upstreams": {family: UpstreamEntry(wire.url)}, **settings}) as proxy:
        yield proxy


@pytest.mark.parametrize(("method", "target", "family"), PATHS)
def test_a_path_of_a_familys_clients_passes_byte_for_byte(
    wire: Wire, method: str, target: str, family: str
) -> None:
    body = b"\x00\xff{not json" if method != "GET" else b""
    headers = (b"Authorization: Bearer theirs", b"X-Goog-Upload-Command: start")
    wire.answer = (
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n"
        b"x-goog-upload-url: https://elsewhere.test/upload/v1beta/files?upload_id=1\r\n\r\n\x00\xff1"
    )
    with before(wire, family) as proxy:
        request = asked(method, target.encode(), body, headers)
        got = said_to(proxy.url, request)
    assert wire.got[0].split(b" ")[:2] == [method.encode(), target.encode()]
    assert wire.got[0].partition(b"\r\n\r\n")[2] == body
    assert headers_of(wire.got[0]) - {b"content-length: 0"} == headers_of(request)
    assert headers_of(got) == headers_of(wire.answer)
    assert got.partition(b"\r\n\r\n")[2] == b"\x00\xff1"


@pytest.mark.parametrize(("method", "target", "family"), PATHS)
def test_without_an_upstream_the_answer_says_what_to_configure(
    wire: Wire, method: str, target: str, family: str
) -> None:
    other = "cohere"
    with before(wire, other) as proxy:
        answered = ask(proxy.url + target, b"{}" if method != "GET" else None, method=method)
    assert answered.status == 404
    assert f"--{family}" in json.dumps(answered.json)
    assert wire.got == []


@pytest.mark.parametrize(
    ("target", "family", "host"),
    [
        ("/v1internal:generateContent", "gemini", "cloudcode-pa.googleapis.com"),
        ("/backend-api/codex/responses", "openai", "chatgpt.com"),
    ],
)
def test_an_upstream_that_has_no_such_path_is_not_asked(
    target: str, family: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("nobody may be asked")

    monkeypatch.setattr("aiohttp.ClientSession.request", refuse)
    # A key alone means the vendor's own address.
    with running_proxy({"upstreams": {family: UpstreamEntry(key="theirs")}}) as proxy:
        answered = ask(proxy.url + target, b"{}")
    assert answered.status == 404
    assert f"--{family} https://{host}" in json.dumps(answered.json)


def test_a_token_is_needed_there_as_everywhere(wire: Wire) -> None:
    with before(wire, "gemini", serve_token="ours") as proxy:
        assert ask(f"{proxy.url}/upload/v1beta/files", b"x").status == 401
        answered = ask(f"{proxy.url}/upload/v1beta/files", b"x", {"x-holdfast-token": "ours"})
    assert answered.status == 200
    assert b"ours" not in wire.got[0]


def test_a_file_goes_up_through_googles_own_client() -> None:
    chunks: list[bytes] = []
    asked_for: list[str] = []

    async def begin(request: web.Request) -> web.Response:
        asked_for.append(request.path_qs)
        assert request.headers["x-goog-upload-command"] == "start"
        url = f"http://127.0.0.1:{port}/upload/v1beta/files?upload_id=7&upload_protocol=resumable"
        return web.json_response({}, headers={"x-goog-upload-url": url})

    async def upload(request: web.Request) -> web.Response:
        if "upload_id" not in request.query:
            return await begin(request)
        chunks.append(await request.read())
        command = request.headers["x-goog-upload-command"]
        status = "final" if "finalize" in command else "active"
        file = {"file": {"name": "files/7", "uri": "x", "sizeBytes": str(len(FILE))}}
        return web.json_response(file, headers={"x-goog-upload-status": status})

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with (
            serving(upload, listener),
            running_proxy(
                {"upstreams": {"gemini": UpstreamEntry(f"http://127.0.0.1:{port}")}}
            ) as proxy,
        ):
            options = gemini_types.HttpOptions(base_url=proxy.url)
            client = genai.Client(api_key="key", http_options=options)
            try:
                how = gemini_types.UploadFileConfig(mime_type="text/plain")
                made = client.files.upload(file=io.BytesIO(FILE), config=how)
            finally:
                client.close()
    assert made.name == "files/7"
    assert b"".join(chunks) == FILE
    assert asked_for == ["/upload/v1beta/files"]


@contextmanager
def serving(handler: Any, listener: socket.socket) -> Iterator[None]:
    """Serve one handler for every path on a socket, in a separate thread."""
    loop = asyncio.new_event_loop()
    started = threading.Event()
    ended = asyncio.Event()

    async def main() -> None:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.SockSite(runner, listener).start()
        started.set()
        await ended.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    assert started.wait(20)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(20)
        loop.close()
