"""The tokens of a request's frame: what a renderer gives for everything but the messages.

The text of blocks that no renderer knows: what a provider's own tools did, or new items. How a
provider shows these to its model is not documented, so their text is counted as JSON; what is
sealed is counted by its length, and pictures as one picture.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec


class Envelope(msgspec.Struct, frozen=True):
    """Tokens of everything but the messages."""

    system: float = 0
    tools: float = 0
    formatting: float = 0
    per_answer: float = 0
    """What each assistant message costs more because of the frame."""


def compact_json(value: Any) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def spaced_json(value: Any) -> str:
    """JSON as Python prints it."""
    return json.dumps(value, ensure_ascii=False)


def arguments_value(arguments: Any) -> Any:
    """A call's arguments, or a schema, as a value; text that is no JSON stays text."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def arguments_text(arguments: Any) -> str:
    """A call's arguments as compact JSON where they parse, else as sent."""
    value = arguments_value(arguments)
    return arguments if value is arguments and isinstance(value, str) else compact_json(value)


_UNSHOWN = frozenset(
    "type id call_id tool_use_id status execution fingerprint signature caller container_id "
    "file_id approval_request_id cache_control citations page_age retrieved_at".split()
)
"""Fields that address or seal a block rather than say something."""
_SEALED = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout"})
_PICTURES = {"image_generation_call": "result"}
"""Items that hold a picture, and where."""
SEALED_CHARACTERS = 4.0
"""Characters of sealed text to a token, where nothing is known of the provider."""
PICTURE_TOKENS = 1_100
"""A picture of the usual size."""


class Foreign(NamedTuple):
    """What is to be counted of blocks that are not known."""

    text: str = ""
    sealed: int = 0
    """Characters that only the provider can read."""
    pictures: int = 0

    def tokens(self, characters: float) -> float:
        """Tokens of what is no text, at so many sealed characters to a token."""
        return self.sealed / characters + PICTURE_TOKENS * self.pictures


def foreign(values: list[Any]) -> Foreign:
    """What is to be counted of the values of blocks."""
    texts: list[str] = []
    sealed = 0
    pictures = 0
    for value in values:
        if not isinstance(value, dict):
            continue
        picture = _PICTURES.get(str(value.get("type")), "")
        pictures += bool(value.get(picture)) + _embedded_pictures(value)
        shown, characters = _parted({key: value[key] for key in value if key != picture})
        sealed += characters
        texts.append(compact_json(shown) if shown else "")
    return Foreign("\n".join(filter(None, texts)), sealed, pictures)


def _is_picture(value: dict[str, Any]) -> bool:
    kind = value.get("media_type")
    return value.get("type") == "base64" and isinstance(kind, str) and kind.startswith("image/")


def _embedded_pictures(value: Any) -> int:
    """How many pictures a value holds as base64, as Anthropic writes them."""
    if isinstance(value, list):
        return sum(map(_embedded_pictures, value))
    if not isinstance(value, dict):
        return 0
    return _is_picture(value) + sum(map(_embedded_pictures, value.values()))


def _parted(value: Any) -> tuple[Any, int]:
    """A value without what is not shown, and how many characters of it are sealed."""
    if isinstance(value, list):
        pairs = [_parted(item) for item in value]
        return [shown for shown, _ in pairs], sum(sealed for _, sealed in pairs)
    if not isinstance(value, dict):
        return value, 0
    shown: dict[str, Any] = {}
    total = 0
    base64 = value.get("type") == "base64"
    picture = _is_picture(value)
    for key, field in value.items():
        if picture and key == "data":
            continue  # counted as a picture, whatever its bytes
        if key in _SEALED or (base64 and key == "data"):
            total += len(field) if isinstance(field, str) else 0
        elif key not in _UNSHOWN and field is not None:
            shown[key], sealed = _parted(field)
            total += sealed
    return shown, total
