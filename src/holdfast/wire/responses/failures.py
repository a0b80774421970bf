"""Write errors in the client's dialect, as a response body or inside a stream.

The formats are those that the providers' own clients raise as errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.wire.responses.shared import load
from holdfast.wire.responses.sse import write_event
from holdfast.wire.strict import encode

# Each provider's error types by HTTP status.
_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_OPENAI = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
}
_GEMINI = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_BEDROCK = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    413: "ValidationException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
    504: "ModelTimeoutException",
}


# Each provider's error text for a request that is too long, with numbers and without. Frameworks
# recognise it by these exact words (langchain-anthropic, langchain-openai, litellm, Claude Code).
_OVERFLOWS = {
    "anthropic": (
        "prompt is too long: {needed} tokens > {limit} maximum.",
        "prompt is too long: more tokens than the maximum.",
    ),
    "gemini": (
        "The input token count ({needed}) exceeds the maximum number of tokens allowed ({limit}).",
        "The input token count exceeds the maximum number of tokens allowed.",
    ),
    "converse": (
        "Input is too long for requested model: {needed} tokens > {limit} maximum.",
        "Input is too long for requested model.",
    ),
    "cohere": (
        "too many tokens: total number of tokens in the prompt cannot exceed {limit} - "
        "received {needed}.",
        "too many tokens: more than the prompt may have.",
    ),
    "openai": (
        "This model's maximum context length is {limit} tokens. However, your messages resulted "
        "in {needed} tokens.",
        "This model's maximum context length is less than your messages resulted in.",
    ),
}
OVERFLOW = "context_length_exceeded"
"""Type of that error."""


def overflow_message(dialect: str, needed: int | None, limit: int | None) -> str:
    """Return the provider's own text for a request that is too long."""
    numbered, bare = _OVERFLOWS.get(dialect, _OVERFLOWS["openai"])
    if needed is None or limit is None:
        return bare
    # A count may exceed the limit by its upper bound alone; "900 tokens > 1000 maximum" would be
    # absurd.
    return numbered.format(needed=max(needed, limit + 1), limit=limit)


_MOST_ERROR_BYTES = 65_536
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", re.ASCII)
"""A provider's error type. Its message may quote the request and is never read."""


def error_kind(body: bytes, headers: Mapping[str, str]) -> str:
    """Return the provider's error type, such as `authentication_error`; empty if there is none."""
    for name, value in headers.items():
        if name.lower() == "x-amzn-errortype":
            return _kind(value.partition(":")[0])
    return kind_of_error(load(body)) if len(body) <= _MOST_ERROR_BYTES else ""


def kind_of_error(value: Any) -> str:
    """Return the error type in a parsed body or event; empty if there is none."""
    if isinstance(value, list):  # Gemini streams arrays
        value = value[0] if value else None
    if not isinstance(value, dict):
        return ""
    error = value.get("error")
    if not isinstance(error, dict):
        return _kind(value.get("__type"))  # Bedrock
    # OpenAI's code is more specific than its type: `insufficient_quota`, `model_not_found`.
    # Gemini's code is the HTTP status.
    kinds = (_kind(error.get(name)) for name in ("code", "status", "type"))
    return next(filter(None, kinds), "")


def _kind(value: object) -> str:
    return value if isinstance(value, str) and _KIND.fullmatch(value) else ""


def error_body(dialect: str, status: int, message: str, kind: str = "") -> bytes:
    """Return the body of an error response.

    `kind` is our machine-readable type, such as `context_length_exceeded`; in dialects with a fixed
    list, the type for the status is added.
    """
    return encode(_error(dialect, status, message, kind))


def error_event(dialect: str, status: int, message: str, kind: str = "") -> bytes:
    """Return an error event for a stream that has started."""
    value = _error(dialect, status, message, kind)
    if dialect == "anthropic":
        return write_event(encode(value), b"error")
    # OpenAI's clients raise events with `error`; clients that read only events expect `type:
    # error`.
    if dialect == "openai-responses":
        flat = {"type": "error", "code": value["error"]["code"], "message": message, "param": None}
        return write_event(encode({**flat, **value}), b"error")
    return write_event(encode(value))


def _error(dialect: str, status: int, message: str, kind: str) -> dict[str, Any]:
    if dialect == "anthropic":
        error_type = _ANTHROPIC.get(
            status, "invalid_request_error" if status < 500 else "api_error"
        )
        return {"type": "error", "error": {"type": error_type, "message": message}}
    if dialect == "gemini":
        error_type = _GEMINI.get(status, "FAILED_PRECONDITION" if status < 500 else "INTERNAL")
        return {"error": {"code": status, "message": message, "status": error_type}}
    if dialect == "converse":  # AWS clients read the type from a header, or from here
        fallback = "ValidationException" if status < 500 else "InternalServerException"
        return {"__type": _BEDROCK.get(status, fallback), "message": message}
    if dialect == "cohere":
        return {"message": message}
    error_type = _OPENAI.get(status, "invalid_request_error" if status < 500 else "server_error")
    error = {"message": message, "type": error_type, "param": None, "code": kind or None}
    return {"error": error}
