"""A request of Google ADK as Gemini's: its contents, what stands around them, and back.

adk_request: before google_adk. Contents are pydantic's models of Gemini's own JSON, so that each is
written as it would be sent.
"""

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
    """How contents are written, and read back."""

    dialect = "gemini"

    def write(self, message: types.Content) -> Sequence[Mapping[str, Any]]:
        """A content as it is."""
        return [_json(message)]

    def read(self, parts: Sequence[tuple[Any, types.Content | None]]) -> Sequence[types.Content]:
        """Contents that were edited, and digests."""
        return [types.Content.model_validate_json(encode(value)) for value, _ in parts]


def _note(content: types.Content) -> object:
    return content.role, [snapshot(vars(part)) for part in content.parts or ()]


def _knows(note: Any, content: types.Content) -> bool:
    role, parts = note
    own = content.parts or ()
    if content.role != role or len(own) != len(parts):
        return False
    if len(own) == 1:  # nearly always, and a thousand times a call
        return bool(vars(own[0]) == parts[0])
    return all(map(eq, map(vars, own), parts))


BY_PARTS: Memo[types.Content] = Memo(_note, _knows)
"""A content by what is in it: ADK copies contents and parts for each request. Texts are shared
between the copies, so that comparing them compares no characters."""


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
    """Offer no other functions than these: nothing else could make room."""
    left: list[Any] = []
    for tool in request.config.tools or ():
        if not isinstance(tool, types.Tool) or not tool.function_declarations:
            left.append(tool)
            continue
        offered = [each for each in tool.function_declarations if each.name in names]
        others = tool.model_copy(update={"function_declarations": offered or None})
        if _json(others):
            left.append(others)
    request.config.tools = left


def usage_of(response: LlmResponse) -> Mapping[str, Any] | None:
    usage = response.usage_metadata
    return None if usage is None else _json(usage)
