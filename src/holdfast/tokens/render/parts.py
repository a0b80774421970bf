"""Token counts and text of request parts that all renderers share.

Blocks that no renderer knows (results of a provider's own tools, new item types) are counted as
JSON, because their rendering is not documented. Encrypted content is counted by its length and a
picture at a fixed size.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec


class Envelope(msgspec.Struct, frozen=True):
    """The tokens of everything except the messages."""

    system: float = 0
    tools: float = 0
    formatting: float = 0
    per_answer: float = 0
    """Tokens added to each assistant message because of the request's frame."""


def compact_json(value: Any) -> str:
    """Return JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def spaced_json(value: Any) -> str:
    """Return JSON with Python's default spacing."""
    return json.dumps(value, ensure_ascii=False)


def arguments_value(arguments: Any) -> Any:
    """Return a call's arguments or a schema as a value; text that is not JSON stays text."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def arguments_text(arguments: Any) -> str:
    """Return a call's arguments as compact JSON if they parse, otherwise unchanged."""
    value = arguments_value(arguments)
    return arguments if value is arguments and isinstance(value, str) else compact_json(value)


_HIDDEN_FIELDS = frozenset(
    "type id call_id tool_use_id status execution fingerprint signature caller container_id "
    "file_id approval_request_id cache_control citations page_age retrieved_at".split()
)
"""Fields that identify or encrypt a block and that the model does not see."""
_SEALED = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout"})
_PICTURES = {"image_generation_call": "result"}
"""Item types that hold a picture, and the field that holds it."""
# Estimate for providers without a measured value.
SEALED_CHARACTERS = 4.0
PICTURE_TOKENS = 1_100
"""Tokens of a picture of typical size."""


class UnknownContent(NamedTuple):
    """The countable content of unknown blocks."""

    text: str = ""
    sealed: int = 0
    """Number of encrypted characters."""
    pictures: int = 0

    def tokens(self, characters: float) -> float:
        """Return the tokens of the encrypted characters and pictures."""
        return self.sealed / characters + PICTURE_TOKENS * self.pictures


def unknown_content(values: list[Any]) -> UnknownContent:
    """Collect the countable content of unknown blocks."""
    texts: list[str] = []
    sealed = 0
    pictures = 0
    for value in values:
        if not isinstance(value, dict):
            continue
        picture = _PICTURES.get(str(value.get("type")), "")
        pictures += bool(value.get(picture)) + _embedded_pictures(value)
        visible, characters = _split_encrypted({key: value[key] for key in value if key != picture})
        sealed += characters
        texts.append(compact_json(visible) if visible else "")
    return UnknownContent("\n".join(filter(None, texts)), sealed, pictures)


def _is_picture(value: dict[str, Any]) -> bool:
    kind = value.get("media_type")
    return value.get("type") == "base64" and isinstance(kind, str) and kind.startswith("image/")


def _embedded_pictures(value: Any) -> int:
    """Return the number of base64 pictures in a value, in Anthropic's form."""
    if isinstance(value, list):
        return sum(map(_embedded_pictures, value))
    if not isinstance(value, dict):
        return 0
    return _is_picture(value) + sum(map(_embedded_pictures, value.values()))


def _split_encrypted(value: Any) -> tuple[Any, int]:
    """Return a value without hidden fields, and its number of encrypted characters."""
    if isinstance(value, list):
        pairs = [_split_encrypted(item) for item in value]
        return [visible for visible, _ in pairs], sum(sealed for _, sealed in pairs)
    if not isinstance(value, dict):
        return value, 0
    visible: dict[str, Any] = {}
    total = 0
    base64 = value.get("type") == "base64"
    picture = _is_picture(value)
    for key, field in value.items():
        if picture and key == "data":
            continue  # counted as a picture, whatever its bytes
        if key in _SEALED or (base64 and key == "data"):
            total += len(field) if isinstance(field, str) else 0
        elif key not in _HIDDEN_FIELDS and field is not None:
            visible[key], sealed = _split_encrypted(field)
            total += sealed
    return visible, total
