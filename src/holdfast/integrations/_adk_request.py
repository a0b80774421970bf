"""Convert Google ADK requests to Gemini requests and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import eq
from typing import TYPE_CHECKING, Any

from google.genai import types

from holdfast.integrations._thread import Memo, snapshot
from holdfast.wire.strict import encode

if TYPE_CHECKING:
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse


class ContentForm:
    """Writes and reads Gemini contents."""

    dialect = "gemini"

    def write(self, message: types.Content) -> Sequence[Mapping[str, Any]]:
        """Return a content as JSON."""
        return [_json(message)]

    def read(self, parts: Sequence[tuple[Any, types.Content | None]]) -> Sequence[types.Content]:
        """Return edited contents and digests as ADK's objects."""
        return [types.Content.model_validate_json(encode(value)) for value, _ in parts]


def _note(content: types.Content) -> object:
    return content.role, [snapshot(vars(part)) for part in content.parts or ()]


def _is_unchanged(note: Any, content: types.Content) -> bool:
    role, parts = note
    own = content.parts or ()
    if content.role != role or len(own) != len(parts):
        return False
    if len(own) == 1:  # nearly always, and a thousand times per call
        return bool(vars(own[0]) == parts[0])
    return all(map(eq, map(vars, own), parts))


BY_PARTS: Memo[types.Content] = Memo(_note, _is_unchanged)
"""Identifies a content by its parts, because ADK copies contents and parts for each request. The
copies share their texts, so that a comparison compares no characters."""


def _json(value: types.Content | types.Tool | types.GenerateContentResponseUsageMetadata) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def around_of(request: LlmRequest) -> dict[str, Any]:
    config = request.config
    around: dict[str, Any] = {"model": request.model or ""}
    if config.system_instruction:
        text = str(config.system_instruction)
        around["systemInstruction"] = {"parts": [{"text": text}]}
    tools = [tool for tool in config.tools or () if isinstance(tool, types.Tool)]
    if tools:
        around["tools"] = [_json(tool) for tool in tools]
    return around


def withhold(request: LlmRequest, names: frozenset[str]) -> None:
    """Offer only the functions with these names, because nothing else could make room."""
    remaining: list[Any] = []
    for tool in request.config.tools or ():
        if not isinstance(tool, types.Tool) or not tool.function_declarations:
            remaining.append(tool)
            continue
        offered = [each for each in tool.function_declarations if each.name in names]
        reduced = tool.model_copy(update={"function_declarations": offered or None})
        if _json(reduced):
            remaining.append(reduced)
    request.config.tools = remaining


def usage_of(response: LlmResponse) -> Mapping[str, Any] | None:
    usage = response.usage_metadata
    return None if usage is None else _json(usage)
