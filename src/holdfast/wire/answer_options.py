"""Read the answer options of a request: format, thinking, parallel calls and sampling.

Each dialect has its own fields, which are converted to one form; `granting` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from holdfast.wire.values import first, inner, take


class AnswerOptions(msgspec.Struct, kw_only=True):
    """Answer options in dialect-independent form; None means not requested."""

    json: bool = False
    """Whether the answer must be JSON."""
    schema: dict[str, Any] | None = None
    schema_name: str = ""
    strict: bool | None = None
    effort: str | None = None
    """Thinking effort: minimal, low, medium, high, xhigh or max."""
    budget: int | None = None
    """Maximum thinking tokens."""
    thoughts: bool = False
    """Whether the client wants to receive the thinking."""
    parallel: bool | None = None
    """Whether several tools may be called at once."""
    plain: dict[str, Any] = {}
    """Further parameters that several dialects share, under OpenAI's names."""


# Parameters of more than one dialect, by OpenAI's names.
GEMINI_NAMES: dict[str, str] = {
    "seed": "seed",
    "top_k": "topK",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
}
OPENAI_BOTH = (
    "user metadata store service_tier prompt_cache_key prompt_cache_retention safety_identifier"
).split()
CHAT_ONLY = ("seed", "frequency_penalty", "presence_penalty")

FIELDS: dict[str, frozenset[str]] = {
    "openai-chat": frozenset(
        (
            *"response_format reasoning_effort parallel_tool_calls verbosity".split(),
            "stream_options",
            *CHAT_ONLY,
            *OPENAI_BOTH,
        )
    ),
    "openai-responses": frozenset(("text", "reasoning", "parallel_tool_calls", *OPENAI_BOTH)),
    "anthropic": frozenset(("thinking", "output_config", "output_format", "top_k", "metadata")),
    "gemini": frozenset(),
}
"""Body fields that this module reads or reports as lost."""


def present(body: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields with the given names that exist and are not null."""
    return {name: body[name] for name in names if body.get(name) is not None}


# --- reading -----------------------------------------------------------------------------------


def read_answer_options(body: Any, dialect: str) -> AnswerOptions:
    """Return the answer options of a request; `body` is `Conversation.rest`."""
    reader = _READERS.get(dialect)
    return reader(body) if reader else AnswerOptions()


def _formed(wishes: AnswerOptions, form: dict[str, Any]) -> None:
    """Read OpenAI's or Anthropic's answer format, in which the schema is beside the type."""
    wishes.json = form.get("type") in ("json_schema", "json_object")
    if form.get("type") == "json_schema":
        wishes.schema = inner(form, "schema")
        wishes.schema_name = take(form, "name")
        wishes.strict = form.get("strict") if isinstance(form.get("strict"), bool) else None


def _from_chat(body: Any) -> AnswerOptions:
    wishes = AnswerOptions(plain=present(body, (*CHAT_ONLY, *OPENAI_BOTH)))
    form = inner(body, "response_format")
    _formed(wishes, {**inner(form, "json_schema"), "type": form.get("type")})
    wishes.effort = take(body, "reasoning_effort") or None
    if isinstance(body.get("parallel_tool_calls"), bool):
        wishes.parallel = body["parallel_tool_calls"]
    if take(body, "verbosity"):
        wishes.plain["verbosity"] = body["verbosity"]
    return wishes


def _from_responses(body: Any) -> AnswerOptions:
    wishes = AnswerOptions(plain=present(body, OPENAI_BOTH))
    _formed(wishes, inner(body, "text", "format"))
    wishes.effort = take(body, "reasoning", "effort") or None
    wishes.thoughts = bool(take(body, "reasoning", "summary"))
    if isinstance(body.get("parallel_tool_calls"), bool):
        wishes.parallel = body["parallel_tool_calls"]
    if take(body, "text", "verbosity"):
        wishes.plain["verbosity"] = take(body, "text", "verbosity")
    return wishes


def _from_anthropic(body: Any) -> AnswerOptions:
    wishes = AnswerOptions(plain=present(body, ("top_k",)))
    _formed(wishes, inner(body, "output_config", "format") or inner(body, "output_format"))
    thinking = inner(body, "thinking")
    if thinking.get("type") in ("enabled", "adaptive"):
        wishes.thoughts = True
        budget = thinking.get("budget_tokens")
        wishes.budget = budget if isinstance(budget, int) else None
        wishes.effort = take(body, "output_config", "effort") or None
        if wishes.budget is None and wishes.effort is None:
            wishes.effort = "medium"
    if inner(body, "tool_choice").get("disable_parallel_tool_use") is True:
        wishes.parallel = False
    if user := take(body, "metadata", "user_id"):
        wishes.plain["user"] = user
    return wishes


def _from_gemini(body: Any) -> AnswerOptions:
    request = inner(body, "generateContentRequest") or body
    config = first(request, "generationConfig", "generation_config")
    config = config if isinstance(config, dict) else {}
    names = {common: native for common, native in GEMINI_NAMES.items() if native in config}
    wishes = AnswerOptions(plain={common: config[native] for common, native in names.items()})
    wishes.json = config.get("responseMimeType") == "application/json"
    schema = first(config, "responseJsonSchema", "responseSchema")
    if isinstance(schema, dict):
        wishes.schema = json_schema(schema)
    thinking = inner(config, "thinkingConfig")
    budget = thinking.get("thinkingBudget")
    wishes.budget = budget if isinstance(budget, int) and budget > 0 else None
    wishes.effort = take(thinking, "thinkingLevel").lower() or None
    wishes.thoughts = thinking.get("includeThoughts") is True
    return wishes


_TYPES = frozenset(("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"))


_DEEPEST = 64  # no provider accepts deeper nesting, and the stack must not overflow


def json_schema(schema: Any, depth: int = 0) -> Any:
    """Convert Gemini's schema, with types in capitals and a null flag, to JSON Schema."""
    if isinstance(schema, list) and depth < _DEEPEST:
        return [json_schema(item, depth + 1) for item in schema]
    if not isinstance(schema, dict) or depth >= _DEEPEST:
        return schema
    plain = {
        key: json_schema(value, depth + 1)
        for key, value in schema.items()
        if key != "nullable" or not isinstance(value, bool)  # a property may have this name
    }
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        plain["type"] = kind.lower()
    if schema.get("nullable") is True and isinstance(plain.get("type"), str):
        plain["type"] = [plain["type"], "null"]
    return plain


GEMINI_CONFIG = frozenset(
    (
        *GEMINI_NAMES.values(),
        *"maxOutputTokens temperature topP stopSequences".split(),
        *"responseMimeType responseSchema responseJsonSchema thinkingConfig".split(),
    )
)
"""Fields of `generationConfig` that are read, here or with the common parameters."""


_READERS: dict[str, Callable[[Any], AnswerOptions]] = {
    "openai-chat": _from_chat,
    "openai-responses": _from_responses,
    "anthropic": _from_anthropic,
    "gemini": _from_gemini,
}
