"""What Gemini refuses, in its words: rules G1 to G6, written from the list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.provider.tokens import functions

_DATA = {
    *("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode"),
    *("codeExecutionResult", "toolCall", "toolResponse"),
}
_BESIDE = {"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"}
_FIELDS = {"role", "parts"}
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_CAMEL = re.compile(r"_([a-z])")
_CALL_TURN = (
    "Please ensure that function call turn comes immediately after a user turn or after a "
    "function response turn."
)
_RESPONSE_TURN = (
    "Please ensure that function response turn comes immediately after a function call turn."
)
_COUNTS = (
    "Please ensure that the number of function response parts is equal to the number of function "
    "call parts of the function call turn."
)


def violations(value: dict[str, Any], model: str) -> Iterator[str]:
    contents = _camel(value["contents"])
    if isinstance(contents, dict):  # one may leave the brackets out
        contents = [contents]
    for content in contents:
        if isinstance(content.get("parts"), dict):
            content["parts"] = [content["parts"]]
    if not contents:
        yield "* GenerateContentRequest.contents: contents is not specified"
        return
    for number, content in enumerate(contents):
        yield from _content(content, number)
    yield from _turns(contents)
    if contents[-1].get("role") == "model":
        yield (
            "Please ensure that single turn requests end with a user role or the role field is "
            "empty."
        )
    if model.startswith("gemini-3"):
        yield from _signatures(contents)
    for function in functions(value):
        if "name" in function and not _NAME.fullmatch(function["name"]):
            yield (
                "Invalid function name. Must start with a letter or an underscore. Must be "
                "alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes "
                "(-), with a maximum length of 64."
            )


def _camel(value: Any) -> Any:
    """Return keys in camel case: Gemini accepts both spellings of its own; values inside calls
    belong to the tool.
    """
    if isinstance(value, list):
        return [_camel(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        _CAMEL.sub(lambda found: found[1].upper(), name): inner
        if name in ("args", "response")
        else _camel(inner)
        for name, inner in value.items()
    }


def _content(content: dict[str, Any], number: int) -> Iterator[str]:
    if content.get("role", "user") not in ("user", "model", "function"):
        yield "Please use a valid role: user, model."
    for name in content.keys() - _FIELDS:
        yield _unknown(name, f"contents[{number}]")
    parts = content.get("parts")
    if not parts:
        at = f"GenerateContentRequest.contents[{number}].parts"
        yield f"* {at}: contents.parts must not be empty."
    for place, part in enumerate(parts or ()):
        if not isinstance(part, dict):
            continue  # a list in a list is flattened
        at = f"contents[{number}].parts[{place}]"
        for name in part.keys() - _DATA - _BESIDE:
            yield _unknown(name, at)
        if len(part.keys() & _DATA) != 1:
            yield f"* {at}.data: required oneof field 'data' must have one initialized field"


def _unknown(name: str, path: str) -> str:
    return f"Invalid JSON payload received. Unknown name \"{name}\" at '{path}': Cannot find field."


def _ids(content: dict[str, Any], kind: str) -> list[str]:
    """The id of each call or response; empty where there is none, which Gemini allows."""
    return [str(part[kind].get("id") or "") for part in content.get("parts") or () if kind in part]


def _turns(contents: list[Any]) -> Iterator[str]:
    """Yield violations of G2 and G3: turns of calls and of responses directly follow each other.

    Names are not compared: recorded responses have any, and were accepted. So was plain text
    instead of all responses, and a turn of the model in several contents.
    """
    asked: list[str] = []
    for number, content in enumerate(contents):
        calls, responses = _ids(content, "functionCall"), _ids(content, "functionResponse")
        if calls and number == 0:
            yield _CALL_TURN
        if responses and not asked:
            yield _RESPONSE_TURN
        elif responses and not _answer(responses, asked):
            yield _COUNTS
        asked = [*asked, *calls] if content.get("role") == "model" else []
    if asked:
        yield _COUNTS


def _answer(responses: list[str], asked: list[str]) -> bool:
    """Whether there is a response to every call, in any order."""
    if len(responses) != len(asked):
        return False
    return "" in responses + asked or set(responses) == set(asked)


def _signatures(contents: list[Any]) -> Iterator[str]:
    """Yield violations of G5: in the current turn the first call of each step has the model's
    signature.
    """
    start = max(
        (n for n, c in enumerate(contents)
         if c.get("role", "user") == "user" and not _ids(c, "functionResponse")),
        default=0,
    )  # fmt: skip
    for number in range(start, len(contents)):
        calls = [part for part in contents[number].get("parts") or () if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            yield (
                "Function call is missing a thought_signature in functionCall parts. This is "
                "required for tools to work correctly, and missing thought_signature may lead to "
                "degraded model performance. Additional data, function call "
                f"`default_api:{calls[0]['functionCall'].get('name')}` , position {number}."
            )
