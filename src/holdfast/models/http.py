"""Any provider with OpenAI's Chat Completions, at any address.

One request, one response, no redirects: the key is sent only to the address in the settings.
Responses are read up to a limit, and one that is no completion (a gateway's HTML page, half a
JSON) is a typed error.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import time
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from holdfast.budget import Usage, reported_usage
from holdfast.errors import (
    ModelAnswerError,
    ModelError,
    ModelRateLimitedError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from holdfast.models.protocol import Completion

_MOST_BYTES = 4_194_304
"""Maximum bytes of a response: the longest summaries have some 100 KB."""
_REASONING = 4_096
"""Tokens besides the answer: OpenAI's models count thinking towards the same limit."""
_AGAIN = frozenset({408, 409, 425, 500, 502, 503, 504, 520, 522, 524, 529})
"""Statuses of a fault that may pass: those of HTTP, Cloudflare's, and Anthropic's `overloaded`."""


class HttpModel:
    """A model at an address with OpenAI's API."""

    def __init__(
        self, name: str, model: str, *, url: str, key: str, window: int, timeout: float
    ) -> None:
        self.name = name
        self.window = window
        self._model = model
        self._url = _chat_url(url)
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._is_openai = (urlsplit(url).hostname or "").endswith("openai.com")
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"<HttpModel {self.name}>"

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        """Ask once; see `CompletionModel`."""
        messages = [{"role": "user", "content": prompt}]
        if system:
            messages.insert(0, {"role": "system", "content": system})
        # Its newer models refuse `max_tokens`, and other servers know nothing else.
        limit = (
            {"max_completion_tokens": max_tokens + _REASONING}
            if self._is_openai
            else {"max_tokens": max_tokens}
        )
        body = {"model": self._model, "messages": messages, **limit}
        try:
            async with asyncio.timeout(self._timeout):
                status, headers, data = await self._post(body)
        except TimeoutError:
            raise ModelTimeoutError(
                f"no answer within {self._timeout:g} seconds",
                where=self.name,
                fix="Raise summarization_timeout, or name a faster provider.",
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            # Its text may contain the address; the type is enough.
            raise ModelUnavailableError(
                f"the provider cannot be reached ({type(error).__name__})",
                where=self.name,
                fix="Check url in [upstreams.openai], and that somebody listens there.",
            ) from None
        except ValueError:
            # A header cannot hold it; its text would quote the key.
            raise ModelRefusedError(
                "the request cannot be written",
                where=self.name,
                fix="Look for the end of a line in key of [upstreams.openai].",
            ) from None
        if status != 200:
            raise _failure(status, headers, self.name)
        return _completion(data, self.name)

    async def _post(self, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        # Compression is not accepted: a few KB of a compressed response could become a GB.
        async with (
            aiohttp.ClientSession(
                auto_decompress=False, headers={"accept-encoding": "identity"}
            ) as session,
            session.post(
                self._url, json=body, headers=self._headers, allow_redirects=False
            ) as answer,
        ):
            data = bytearray()
            async for piece in answer.content.iter_chunked(65_536):
                data += piece
                if len(data) > _MOST_BYTES:
                    raise ModelAnswerError(
                        f"the answer has more than {_MOST_BYTES:,} bytes", where=self.name
                    )
            headers = {name.lower(): value for name, value in answer.headers.items()}
            return answer.status, headers, bytes(data)


def _chat_url(base: str) -> str:
    """Where completions are asked for: addresses are written with `/v1` and without."""
    base = base.rstrip("/")
    versioned = base.rpartition("/")[2].startswith("v") and base.rpartition("/")[2][1:2].isdigit()
    return f"{base}/chat/completions" if versioned else f"{base}/v1/chat/completions"


def _failure(status: int, headers: dict[str, str], name: str) -> ModelError:
    """Return the error of a status; the body may quote the prompt, so it is left out."""
    what = f"the provider answered with status {status}"
    if status == 429:
        return ModelRateLimitedError(
            what, where=name, retry_after=retry_after(headers.get("retry-after", ""))
        )
    if status in _AGAIN or status >= 500:
        return ModelUnavailableError(what, where=name)
    return ModelRefusedError(what, where=name, fix=_fix(status))


def _fix(status: int) -> str:
    if status in (401, 403):
        return "Check key in [upstreams.openai]."
    if status == 404:
        return "Check the name of the model, and the address."
    if 300 <= status < 400:
        return "The address leads elsewhere, where the key is not sent: name the final one."
    return "Ask it by hand to see what it objects to."


def retry_after(text: str) -> float | None:
    """Return the seconds of a `Retry-After`, given as a number or a date; None if it has none."""
    text = text.strip()[:40]
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _completion(data: bytes, name: str) -> Completion:
    try:
        answer = json.loads(data)
        choice = answer["choices"][0]
        message = choice["message"]
        text = message.get("content") or ""
        usage = reported_usage(answer) or Usage()
        if message.get("refusal") or choice.get("finish_reason") == "content_filter":
            raise ModelRefusedError("the model declined to answer", where=name)
        return Completion(
            text=text if isinstance(text, str) else "",
            input_tokens=usage.input or 0,
            output_tokens=usage.output or 0,
            model=str(answer.get("model") or ""),
            cut=choice.get("finish_reason") == "length",
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ModelAnswerError(
            "the answer is no completion",
            where=name,
            fix="Check that the address is one of Chat Completions.",
        ) from None
