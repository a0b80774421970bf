"""The dialect and the operation of each path, and errors for wrong paths and methods.

Paths that are not listed here are forwarded unchanged.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.upstream.network import UpstreamError
from holdfast.upstream.upstreams import OFFICIAL, OWNERS, Family


class Route(NamedTuple):
    """A place where the proxy does more than pass on."""

    family: Family
    dialect: str
    counts: bool = False
    """The client asks only how many tokens the request has."""
    model: str = ""
    """The model, where the path names it."""
    streams: bool = False
    """The path asks for a stream; elsewhere the body does."""


_ROUTES = {
    "/v1/chat/completions": Route("openai", "openai-chat"),
    "/v1/responses": Route("openai", "openai-responses"),
    "/v1/messages": Route("anthropic", "anthropic"),
    "/v1/messages/count_tokens": Route("anthropic", "anthropic", counts=True),
    "/v2/chat": Route("cohere", "cohere"),
}
_GEMINI = re.compile(
    r"/v1(?:beta|alpha)?/(?:models|tunedModels)/([^/:]+):"
    r"(generateContent|streamGenerateContent|countTokens)"
)
# The path is decoded here: a model's ARN contains colons and slashes.
_CONVERSE = re.compile(r"/model/(.+)/(converse|converse-stream)")
_DEPLOYMENT = re.compile(r"/openai/deployments/[^/]+/(chat/completions|responses)")
_PREFIXES = ("/openai/v1/", "/api/v1/")


class _Beside(NamedTuple):
    """Paths that a family's clients ask for beside its public API; they pass through."""

    prefix: str
    family: Family
    address: str = ""
    """The only address that answers them, where that is not the family's public API."""


_BESIDE = (
    _Beside("/upload/v1", "gemini"),  # files, in one request or resumable
    _Beside("/download/v1", "gemini"),
    _Beside("/v1internal", "gemini", "https://cloudcode-pa.googleapis.com"),  # Google login
    _Beside("/api/oauth/", "anthropic"),  # Claude Code's login, profile and usage
    _Beside("/api/claude_", "anthropic"),
    _Beside("/api/event_logging/", "anthropic"),
    _Beside("/api/hello", "anthropic"),
    _Beside("/backend-api/", "openai", "https://chatgpt.com"),  # Codex with a ChatGPT login
)
PREFIXES = (
    "/v1/", "/v1beta/", "/v1alpha/", "/openai/", "/api/v1/", "/model/", "/v2/",
    *(beside.prefix for beside in _BESIDE),
)  # fmt: skip
"""How the providers' paths begin."""


_SLASHES = re.compile(r"/{2,}")


def normal_path(path: str) -> str:
    """Return a path with single slashes and none at its end: many servers take them for one."""
    return _SLASHES.sub("/", path).rstrip("/") or "/"


def route(method: str, path: str) -> Route | None:
    """The route of a request; None if it passes through."""
    if method != "POST":
        return None
    if "//" in path or path[-1:] == "/":
        path = normal_path(path)
    if match := _GEMINI.fullmatch(path):
        model, verb = match.groups()
        return Route(
            "gemini",
            "gemini",
            counts=verb == "countTokens",
            model=model,
            streams=verb == "streamGenerateContent",
        )
    if match := _CONVERSE.fullmatch(path):
        return Route("bedrock", "converse", model=match[1], streams=match[2] != "converse")
    return _ROUTES.get(_plain(path))


def _plain(path: str) -> str:
    """Return the path in OpenAI's form: Azure and OpenRouter add a prefix."""
    if match := _DEPLOYMENT.fullmatch(path):
        return f"/v1/{match[1]}"
    return path[path.index("/v1/") :] if path.startswith(_PREFIXES) else path


def meant(path: str) -> str:
    """The path that a client with a wrong base URL wanted; empty if none is known."""
    path = path.rstrip("/")
    corrected = path.removeprefix("/v1") if path.startswith("/v1/v1/") else f"/v1{path}"
    return corrected if corrected in _ROUTES and path not in _ROUTES else ""


class NoUpstreamError(UpstreamError):
    """No upstream is set that could answer the request."""


class WrongPathError(UpstreamError):
    """The path is none of a provider's, because the client's base URL is wrong."""


class WrongMethodError(UpstreamError):
    """The path takes POST requests only; the client sent another method."""


EXAMPLES = {
    "openai-chat": '{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}',
    "openai-responses": '{"model": "gpt-4o", "input": "Hello"}',
    "anthropic": '{"model": "claude-sonnet-4-5", "max_tokens": 1000, '
    '"messages": [{"role": "user", "content": "Hello"}]}',
    "gemini": '{"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}',
    "converse": '{"messages": [{"role": "user", "content": [{"text": "Hello"}]}]}',
    "cohere": '{"model": "command-a-03-2025", "messages": [{"role": "user", "content": "Hello"}]}',
}
"""By dialect, the smallest request body."""
_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,100}")


def unanswered(method: str, path: str, family: Family | None, host: str) -> UpstreamError:
    """Return the error for a request that neither an upstream nor the offline model answers."""
    where = path[:100]
    if method != "POST" and (post_route := route("POST", path)) is not None:
        address = f"http://{host if _HOST.fullmatch(host) else 'HOST'}{where}"
        body = EXAMPLES[post_route.dialect]
        return WrongMethodError(
            f"this path takes POST requests, and {method[:20]} was sent",
            status=405,
            where=where,
            fix=f"Send a JSON body: curl {address} -H 'content-type: application/json' -d '{body}'",
        )
    if family is None:
        what, fix = "this path is none of a provider's API", "Check the client's base URL."
        return WrongPathError(what, status=404, where=where, fix=fix)
    return NoUpstreamError(
        f"no upstream is set for {OWNERS[family]} requests",
        status=404,
        where=where,
        fix=f"Start the proxy with --{family} {only_address(path) or OFFICIAL[family]} (or the "
        f"setting {family}_upstream).",
    )


BARE = tuple(path.removeprefix("/v1") for path in _ROUTES if path.startswith("/v1/"))
"""Paths of clients whose base URL lacks `/v1`; the response names the missing part."""


def only_address(path: str) -> str:
    """Return the one address that answers a path; empty if the family's public API does."""
    return next((beside.address for beside in _BESIDE if path.startswith(beside.prefix)), "")


def family_of(path: str, header_names: frozenset[str]) -> Family | None:
    """Whose API a path belongs to; None if it is nobody's."""
    for beside in _BESIDE:
        if path.startswith(beside.prefix):
            return beside.family
    if path.startswith(("/v1beta/", "/v1alpha/")) or _GEMINI.fullmatch(path):
        return "gemini"
    if path.startswith((*_PREFIXES, "/openai/")):
        return "openai"
    if path.startswith("/model/"):
        return "bedrock"
    if path.startswith("/v2/"):
        return "cohere"
    if not path.startswith("/v1/"):
        return None
    if path.startswith("/v1/messages") or "anthropic-version" in header_names:
        return "anthropic"
    return "gemini" if "x-goog-api-key" in header_names else "openai"
