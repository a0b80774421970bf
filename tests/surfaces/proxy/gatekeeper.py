"""The providers' rules and error texts, which the test upstream enforces.

They are written by hand from the providers' error texts (tests/provider) and share nothing with the
package, so that its faults cannot hide here. A `Ledger` has the provider's memory between two
requests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from tests.provider import (
    chat_rules,
    claude_rules,
    cohere_rules,
    converse_rules,
    gemini_rules,
    held_tools,
    responses_rules,
    tool_changes,
)
from tests.provider.binding import Judgement, judge
from tests.provider.request import Got
from tests.provider.shared import SURROGATE, strings
from tests.provider.tokens import billed_tokens, least_tokens

__all__ = ["KEY", "Got", "Ledger", "error", "refusal", "too_long"]

KEY = "key-of-the-test"
AWS_SECRET = "secret-of-the-test"
"""The provider's copy of the signer's secret."""
_NEEDED = {
    "openai-chat": {"model", "messages"},
    "openai-responses": {"model"},
    "anthropic": {"model", "max_tokens", "messages"},
    "gemini": {"contents"},
    "converse": {"messages"},
    "cohere": {"model", "messages"},
}
_LARGEST_BODY = 32 * 2**20


@dataclass
class Ledger:
    """The provider's memory: answers of Responses, and the reasoning of each answer."""

    stored: dict[str, list[Any]] = field(default_factory=dict)
    """By the id of a response: everything up to its end."""
    reasoned: dict[str, str] = field(default_factory=dict)
    """By the id of an item: the reasoning that it was produced with."""

    def history(self, got: Got) -> list[Any] | None:
        """All that a request of Responses shows the model; None if it builds on nothing stored."""
        asked = got.value.get("input") or []
        own = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        previous = got.value.get("previous_response_id")
        if previous is None:
            return own
        return [*self.stored[previous], *own] if previous in self.stored else None

    def remember(self, got: Got, response: dict[str, Any]) -> None:
        """Write an answer of Responses down."""
        reasoning = ""
        for item in response["output"]:
            if item["type"] == "reasoning":
                reasoning = item["id"]
            elif reasoning:
                self.reasoned[item["id"]] = reasoning
        if got.value.get("store") is not False:
            history = self.history(got) or []
            self.stored[response["id"]] = [*history, *response["output"]]

    def seen(self, got: Got) -> Got:
        """Return the request that the model sees, with the stored history before it."""
        if got.dialect != "openai-responses" or "previous_response_id" not in got.value:
            return got
        return replace(got, body=json.dumps(self._whole(got)).encode())

    def bill(self, got: Got) -> int:
        """Return the tokens that the provider reports, including the stored history."""
        return billed_tokens(self._whole(got), got.dialect, got.model)

    def least(self, got: Got) -> int:
        """Return a lower bound of the prompt's tokens."""
        return least_tokens(self._whole(got), got.dialect, got.model)

    def _whole(self, got: Got) -> dict[str, Any]:
        if got.dialect != "openai-responses":
            return got.value
        return {**got.value, "input": self.history(got) or []}


def refusal(got: Got, window: int, ledger: Ledger) -> tuple[int, str] | None:
    """Why a provider would not answer this request; None if it would."""
    if got.header("authorization").startswith("AWS4-"):
        about = (got.method, got.raw_path, got.headers, got.body)
        if not converse_rules.signature_holds(AWS_SECRET, *about):
            return 403, "The request signature we calculated does not match the signature provided."
    elif not _has_key(got):
        return 401, "the key is missing or wrong"
    if leaked := [name for name in got.headers if name.lower().startswith("x-holdfast")]:
        return 400, f"headers that are none of the provider's business: {leaked}"
    if got.dialect == "anthropic" and len(got.body) > _LARGEST_BODY:
        return 413, "Request exceeds the maximum size"
    if unreadable := _unreadable(got):
        return 400, unreadable
    if violations := _violations(got, ledger):
        return 400, "; ".join(violations[:5])
    if (tokens := ledger.least(got)) > window:
        return 400, too_long(got.dialect, tokens, window)
    return None


def _unreadable(got: Got) -> str:
    try:
        value = got.value
    except ValueError:
        return "the body is not JSON"
    if missing := _NEEDED[got.dialect] - value.keys():
        return f"{', '.join(sorted(missing))}: Field required"
    if any(SURROGATE.search(text) for _, text in strings(value)):
        return "The request body is not valid JSON: no low surrogate in string"
    return ""


def _violations(got: Got, ledger: Ledger) -> list[str]:
    match got.dialect:
        case "anthropic":
            bound = thoughts(got).refusal
            betas = got.header("anthropic-beta")
            return [
                *claude_rules.violations(got.value, got.model),
                *held_tools.violations(got.value, got.model),
                *tool_changes.claude_violations(got.value, got.model, betas),
                *([bound] if bound else ()),
            ]
        case "gemini":
            return list(gemini_rules.violations(got.value, got.model))
        case "converse":
            return list(converse_rules.violations(got.value))
        case "cohere":
            return list(cohere_rules.violations(got.value))
        case "openai-chat":
            return list(chat_rules.violations(got.value, got.model))
    history = ledger.history(got)
    if history is None:
        previous = got.value["previous_response_id"]
        return [f"Previous response with id '{previous}' not found."]
    return [
        *responses_rules.violations(got.value, history, ledger.reasoned),
        *tool_changes.responses_violations(history, got.model),
    ]


def thoughts(got: Got) -> Judgement:
    """Return the provider's verdict on the thinking in a request to Claude."""
    return judge(got.value, got.model, got.header("anthropic-beta"))


def too_long(dialect: str, tokens: int, window: int) -> str:
    """The provider's own words for a request that does not fit."""
    if dialect == "anthropic":
        return f"prompt is too long: {tokens} tokens > {window} maximum"
    if dialect == "gemini":
        return (
            f"The input token count ({tokens}) exceeds the maximum number of tokens allowed "
            f"({window})."
        )
    if dialect == "converse":
        return "Input is too long for requested model."
    if dialect == "cohere":
        return f"too many tokens: size limit exceeded by {tokens - window} tokens."
    if dialect == "openai-responses":
        return (
            "Your input exceeds the context window of this model. Please adjust your input and "
            "try again."
        )
    return (
        f"This model's maximum context length is {window} tokens. However, your messages resulted "
        f"in {tokens} tokens. Please reduce the length of the messages."
    )


def error(dialect: str, status: int, message: str) -> dict[str, Any]:
    """An error as the provider writes it."""
    if dialect == "anthropic":
        names = {
            401: "authentication_error",
            413: "request_too_large",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
        kind = names.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    if dialect == "gemini":
        named = {401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}
        kind = named.get(status, "INVALID_ARGUMENT")
        return {"error": {"code": status, "message": message, "status": kind}}
    if dialect in ("converse", "cohere"):  # Bedrock names its kind in a header
        return {"message": message}
    kind = "server_error" if status >= 500 else "invalid_request_error"
    code = _openai_code(message)
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _openai_code(message: str) -> str | None:
    if "context length" in message or "context window" in message:
        return "context_length_exceeded"
    return "previous_response_not_found" if "Previous response" in message else None


def _has_key(got: Got) -> bool:
    """Whether a key is there; customers of the provider have keys that begin alike."""
    bears = got.header("authorization").startswith(f"Bearer {KEY}")
    if got.dialect == "anthropic":  # its newer clients bear the key, older ones name it
        named = got.header("x-api-key").startswith(KEY)
        return (bears or named) and bool(got.header("anthropic-version"))
    if got.dialect == "gemini":
        given = (got.header("x-goog-api-key"), got.query.get("key", ""))
        return any(key.startswith(KEY) for key in given)
    if got.path.startswith("/openai/"):  # Azure's
        return bears or got.header("api-key").startswith(KEY)
    return bears
