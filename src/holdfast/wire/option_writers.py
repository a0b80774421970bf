"""Write answer options in another dialect, as far as the answering model accepts them.

The model decides what may be requested: one without thinking rejects a request for it. A changed or
dropped option is recorded as a loss with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from holdfast.wire.answer_options import (
    CHAT_ONLY,
    GEMINI_NAMES,
    OPENAI_BOTH,
    AnswerOptions,
    present,
)
from holdfast.wire.dialect import Loss
from holdfast.wire.values import take

# --- capabilities of models ---------------------------------------------------------------------

# Options that a model might reject are not sent to models unknown to these patterns.
_OPENAI_THINKS = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9]|gpt-oss|codex)")
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,3})(?:[-.](\d{1,2}))?(?!\d)")
_GEMINI = re.compile(r"gemini-(\d{1,3})(?:\.(\d{1,3}))?")

_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768}
_LEAST_BUDGET = 1024


def _version(pattern: re.Pattern[str], model: str) -> tuple[int, int]:
    match = pattern.search(model)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)


def _effort(wishes: AnswerOptions) -> str | None:
    """Return the thinking effort as a word."""
    if wishes.effort or wishes.budget is None:
        return wishes.effort
    return next((word for word in ("low", "medium") if wishes.budget <= _BUDGETS[word]), "high")


def _budget(wishes: AnswerOptions) -> int | None:
    """Return the thinking effort as a token budget."""
    if wishes.budget is not None or wishes.effort is None:
        return wishes.budget
    return _BUDGETS.get(wishes.effort, _BUDGETS["xhigh"] if wishes.effort == "max" else None)


# --- writing -----------------------------------------------------------------------------------


class Recipient(msgspec.Struct, frozen=True):
    """The answering model with the request under construction."""

    model: str
    """Name of the model; empty if unknown."""
    body: dict[str, Any]
    ends_with_results: bool
    """Whether the turn continues: results follow the assistant's last message."""
    lost: list[Loss]

    def lose(self, path: str, why: str) -> None:
        """Record an option that is dropped or changed."""
        self.lost.append(Loss(path, why))


def write_answer_options(wishes: AnswerOptions, dialect: str, recipient: Recipient) -> None:
    """Write answer options into a request of another dialect."""
    writer = _WRITERS.get(dialect)
    if writer is None:
        if wishes != AnswerOptions():
            recipient.lose("$", "wishes for the answer's form, for thinking or for its sampling")
        return
    writer(wishes, recipient)


def _lose_rest(wishes: AnswerOptions, taken: Iterable[str], recipient: Recipient) -> None:
    for name in wishes.plain.keys() - set(taken):
        recipient.lose(f"$.{name}", "the new dialect has no such parameter")


def _form(wishes: AnswerOptions) -> dict[str, Any] | None:
    """Return OpenAI's answer format as a flat object."""
    if wishes.schema is None:
        return {"type": "json_object"} if wishes.json else None
    form = {"type": "json_schema", "name": wishes.schema_name or "answer", "schema": wishes.schema}
    return form if wishes.strict is None else {**form, "strict": wishes.strict}


def _openai_effort(wishes: AnswerOptions, recipient: Recipient) -> str | None:
    effort = _effort(wishes)
    if effort is None:
        return None
    if recipient.model and not _OPENAI_THINKS.search(recipient.model):
        recipient.lose("$.thinking", "thinking, which this model is not known for")
        return None
    if wishes.budget is not None:
        recipient.lose("$.thinking", f"a budget of thinking, asked for as the effort {effort}")
    return "high" if effort == "max" else effort


# These models reject sampling parameters.
_SAMPLES_ITSELF = re.compile(r"(?:^|/)(?:o\d|gpt-5(?!-chat))")


def _sample_as_openai(recipient: Recipient) -> None:
    if _SAMPLES_ITSELF.search(recipient.model):
        for name in ("temperature", "top_p", "stop"):
            if recipient.body.pop(name, None) is not None:
                recipient.lose(f"$.{name}", "sampling, which this model does not take")


def _to_chat(wishes: AnswerOptions, recipient: Recipient) -> None:
    body = recipient.body
    _sample_as_openai(recipient)
    if form := _form(wishes):
        kind = form.pop("type")
        body["response_format"] = {"type": kind, kind: form} if form else {"type": kind}
    if effort := _openai_effort(wishes, recipient):
        body["reasoning_effort"] = effort
    if wishes.parallel is not None and "tools" in body:
        body["parallel_tool_calls"] = wishes.parallel
    names = (*CHAT_ONLY, *OPENAI_BOTH, "verbosity")
    body.update(present(wishes.plain, names))
    _lose_rest(wishes, names, recipient)


def _to_responses(wishes: AnswerOptions, recipient: Recipient) -> None:
    body = recipient.body
    _sample_as_openai(recipient)
    text: dict[str, Any] = {}
    if form := _form(wishes):
        text["format"] = form
    if "verbosity" in wishes.plain:
        text["verbosity"] = wishes.plain["verbosity"]
    if text:
        body["text"] = text
    if effort := _openai_effort(wishes, recipient):
        body["reasoning"] = {"effort": effort}
        if wishes.thoughts:  # only verified organisations may request a summary: others get 400
            recipient.lose("$.reasoning.summary", "to read the thinking, which not all may ask for")
    if wishes.parallel is not None and "tools" in body:
        body["parallel_tool_calls"] = wishes.parallel
    body.update(present(wishes.plain, OPENAI_BOTH))
    _lose_rest(wishes, (*OPENAI_BOTH, "verbosity"), recipient)


def _to_anthropic(wishes: AnswerOptions, recipient: Recipient) -> None:
    body = recipient.body
    version = _version(_CLAUDE, recipient.model) if recipient.model else (99, 0)
    if wishes.schema is not None and version >= (4, 5):
        body["output_config"] = {"format": {"type": "json_schema", "schema": wishes.schema}}
    elif wishes.json:
        recipient.lose(
            "$.response_format", "the wish for JSON: it takes a schema and a newer Claude"
        )
    _think_as_claude(wishes, recipient, version)
    _sample_as_claude(body, recipient, version)
    if wishes.parallel is False and "tools" in body:
        choice = body.get("tool_choice") or {"type": "auto"}
        if choice["type"] != "none":
            body["tool_choice"] = {**choice, "disable_parallel_tool_use": True}
    if "user" in wishes.plain:
        body["metadata"] = {"user_id": wishes.plain["user"]}
    body.update(present(wishes.plain, ("top_k",)))
    _lose_rest(wishes, ("top_k", "user"), recipient)


def _sample_as_claude(body: dict[str, Any], recipient: Recipient, version: tuple[int, int]) -> None:
    warmth = body.get("temperature")
    if isinstance(warmth, (int, float)) and warmth > 1:
        body["temperature"] = 1
        recipient.lose("$.temperature", "a temperature above 1, the most that Claude takes")
    if "temperature" in body and "top_p" in body and version >= (4, 1):
        del body["top_p"]
        recipient.lose("$.top_p", "top_p beside a temperature: newer Claudes take one of them")


def _think_as_claude(wishes: AnswerOptions, recipient: Recipient, version: tuple[int, int]) -> None:
    budget = _budget(wishes)
    if budget is None:
        return
    body = recipient.body
    half = _half(body.get("max_tokens"))
    reason = ""
    if version < (3, 7):
        reason = "thinking, which this model is not known for"
    elif recipient.ends_with_results and version < (4, 6):
        # A continued turn must begin with thinking that Claude signed, or the API rejects it
        # (opencode#3077).
        reason = "thinking in a turn that another model began"
    elif take(body, "tool_choice", "type") in ("any", "tool"):
        # the API rejects thinking with a forced tool choice
        reason = "thinking beside a tool that must be called"
    elif version < (4, 6) and half < _LEAST_BUDGET:
        reason = "thinking in an answer this short"
    if reason:
        recipient.lose("$.thinking", reason)
        return
    if version >= (4, 6):
        body["thinking"] = {"type": "adaptive"}
        effort = _effort(wishes)
        level = effort if effort in ("low", "medium", "high", "xhigh", "max") else "low"
        body["output_config"] = {**body.get("output_config", {}), "effort": level}
    else:
        tokens = min(max(budget, _LEAST_BUDGET), half)
        body["thinking"] = {"type": "enabled", "budget_tokens": tokens}
    # Claude rejects sampling parameters with thinking
    for name in ("temperature", "top_p", "top_k"):
        if body.pop(name, None) is not None or wishes.plain.pop(name, None) is not None:
            recipient.lose(f"$.{name}", "sampling beside thinking, which Claude does not take")


def _half(limit: Any) -> int:
    """Return half of the answer's tokens; the other half is for its text."""
    return limit // 2 if isinstance(limit, int) else 0


def _to_gemini(wishes: AnswerOptions, recipient: Recipient) -> None:
    config = recipient.body.get("generationConfig", {})
    if wishes.json or wishes.schema is not None:
        config["responseMimeType"] = "application/json"
    if wishes.schema is not None:
        config["responseJsonSchema"] = wishes.schema
    thinking: dict[str, Any] = {}
    version = _version(_GEMINI, recipient.model) if recipient.model else (2, 5)
    effort, budget = _effort(wishes), _budget(wishes)
    effort = None if effort == "none" else effort
    if effort and version >= (3, 0):
        thinking["thinkingLevel"] = "low" if effort in ("minimal", "low") else "high"
    elif budget and version >= (2, 5):
        thinking["thinkingBudget"] = min(budget, 24_576)  # the maximum that all 2.5 models accept
    elif effort:
        recipient.lose("$.thinking", "thinking, which this model is not known for")
    if wishes.thoughts and version >= (2, 5):
        thinking["includeThoughts"] = True
    if thinking:
        config["thinkingConfig"] = thinking
    for common, native in GEMINI_NAMES.items():
        if common in wishes.plain:
            config[native] = wishes.plain[common]
    if config:
        recipient.body["generationConfig"] = config
    if wishes.parallel is False:
        recipient.lose("$.parallel_tool_calls", "one call at a time")
    _lose_rest(wishes, GEMINI_NAMES, recipient)


_WRITERS: dict[str, Callable[[AnswerOptions, Recipient], None]] = {
    "openai-chat": _to_chat,
    "openai-responses": _to_responses,
    "anthropic": _to_anthropic,
    "gemini": _to_gemini,
}
