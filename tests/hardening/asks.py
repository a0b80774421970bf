"""Random requests over HTTP: paths, queries, headers and bodies.

Most parts of a request are valid, so that the random part reaches deeper code.
"""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote, unquote

import zstandard

from tests.hardening.shapes import KEYS, Seed, seeds, spoilt
from tests.surfaces.proxy.harness import path_of

Headers = list[tuple[bytes, bytes]]


class Asked(NamedTuple):
    """A request on the wire, without its first and last line."""

    method: str
    target: str
    """Path and query as they are written: ASCII."""
    headers: Headers
    body: bytes
    dialect: str = ""
    """Whose model is asked; empty for pages and unknown paths."""

    @property
    def path(self) -> str:
        """The path as the server reads it."""
        return unquote(self.target.partition("?")[0])

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    def header(self, name: bytes) -> bytes:
        return next((value for key, value in self.headers if key == name), b"")


_TEXTS = (
    "", "1", "0", "on", "off", "-1", "abc", "99999999999", "1e3", "٣", "\x7f", "\xff", "é", " ",
    "a" * 300, "../..", "%00", "ref:log:0000000000000000", "<script>", "a b", "x" * 201, "0" * 9,
    "\t", "a,b", "gzip", "identity", "*", "null", "[]", "::1", "localhost", "s1", "s2", "s3",
)  # fmt: skip
_NAMES = (
    "x-holdfast-session", "x-holdfast-budget", "x-holdfast-bypass", "x-holdfast-read-only",
    "x-holdfast-no-cite", "x-holdfast-token", "x-holdfast-user", "content-encoding",
    "content-type", "traceparent", "origin", "host", "accept", "accept-encoding", "upgrade",
    "connection", "cookie", "anthropic-beta", "anthropic-version", "x-goog-api-key", "x-api-key",
    "authorization", "range", "if-none-match", "expect", "te", "forwarded", "x-forwarded-for",
    "sec-fetch-site", "content-length", "transfer-encoding", "user-agent", "x-request-id",
)  # fmt: skip
_PAGES = (
    "/", "/healthz", "/stats", "/metrics", "/sessions/{}", "/sessions/{}/turns/{}",
    "/sessions/{}/turns/{}/sent/{}", "/sessions/{}/turns/{}/client/{}",
    "/sessions/{}/turns/{}/{}/{}",
    "/refs/{}", "/refs/{}/raw", "/refs/{}/{}", "/static/{}", "/static/style.css", "/login", "/{}",
    "/v1/{}", "/v1/models", "/v1/models/{}", "/v1/files/{}", "/v1beta/models/{}", "/v1/v1/messages",
    "/messages", "/chat/completions", "/v1/chat/completions/{}", "/v1alpha/{}", "//", "/./{}",
    "/v1/responses/{}", "/v1/responses/{}/cancel", "/v1/messages/batches", "/v1/embeddings",
)  # fmt: skip
_QUERIES = ("page", "before", "query", "lines", "path", "show", "alt", "key", "raw", "q", "limit")
_METHODS = ("GET", "GET", "GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW")
_VERBS = ("generateContent", "streamGenerateContent", "countTokens", "embedContent", "x", "")


def asked(chance: random.Random) -> Asked:
    """A request for an answer, a count or a page."""
    if chance.random() < 0.15:
        return _page(chance)
    seed = chance.choice(seeds())
    body = spoilt(seed, chance)
    target = _target(seed, chance)
    headers = _headers(chance)
    if chance.random() < 0.05:
        body = _packed(body, headers, chance)
    method = "POST" if chance.random() < 0.98 else chance.choice(_METHODS)
    return Asked(method, target, headers, body, seed.dialect)


def _target(seed: Seed, chance: random.Random) -> str:
    stream = chance.random() < 0.3
    target = path_of(seed.dialect, stream=stream, model=seed.model)
    draw = chance.random()
    if draw < 0.05 and seed.dialect == "anthropic":
        target = "/v1/messages/count_tokens"
    elif draw < 0.15 and seed.dialect == "gemini":
        model = quote(chance.choice(("gemini-3-pro-preview", "m", *_TEXTS)), safe="")
        target = f"/v1beta/models/{model}:{chance.choice(_VERBS)}"
    elif draw < 0.18:
        target += chance.choice(("/", "//", "?", "?x=1", "%2F", ";a", "?alt=sse", "?" + "a" * 500))
    return target


def _page(chance: random.Random) -> Asked:
    page = chance.choice(_PAGES)
    while "{}" in page:
        page = page.replace("{}", quote(chance.choice(_TEXTS), safe=chance.choice(("", "/%"))), 1)
    options = [
        f"{name}={quote(chance.choice(_TEXTS), safe=chance.choice(('', '%&=')))}"
        for name in chance.sample(_QUERIES, chance.randrange(3))
    ]
    target = f"{page}?{'&'.join(options)}" if options else page
    body = b"" if chance.random() < 0.8 else chance.randbytes(chance.randrange(200))
    return Asked(chance.choice(_METHODS), target, _headers(chance), body)


def _headers(chance: random.Random) -> Headers:
    headers = {"host": "localhost", "content-type": "application/json", **KEYS}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    if chance.random() < 0.3:
        session = (b"x-holdfast-session", b"s%d" % chance.randrange(20))
        pairs.append(session)
    while chance.random() < 0.2:
        value = chance.choice(_TEXTS).encode("latin-1", "replace").strip(b" \t")
        name = chance.choice(_NAMES).encode()
        if chance.random() < 0.5:
            pairs = [pair for pair in pairs if pair[0] != name]
        pairs.append((name, value))
    return pairs


def _packed(body: bytes, headers: Headers, chance: random.Random) -> bytes:
    """Return the compressed body; sometimes with another encoding than its header, or truncated."""
    ways: dict[bytes, Callable[[bytes], bytes]] = {
        b"gzip": lambda data: gzip.compress(data, 1),
        b"deflate": zlib.compress,
        b"zstd": lambda data: zstandard.ZstdCompressor().compress(data),
        b"gzip, gzip": lambda data: gzip.compress(gzip.compress(data, 1), 1),
        b"br": lambda data: data,
    }
    name = chance.choice(list(ways))
    headers.append((b"content-encoding", name))
    way = ways[name if chance.random() < 0.8 else chance.choice(list(ways))]
    packed = way(body)
    return packed[: chance.randrange(len(packed) + 1)] if chance.random() < 0.2 else packed
