"""Count images, audio and documents with the vendors' published formulas.

Sizes are read from the first bytes of inline images. Media given by URL, or in a format without a
size, are counted as typical of their kind.
"""

from __future__ import annotations

import math
import re
from typing import Any

from holdfast.tokens.families import Constants
from holdfast.tokens.render.request import MessageView
from holdfast.wire import Media
from holdfast.wire.media import base64_size
from holdfast.wire.values import inner, take

# Size of an image that cannot be measured: most vendors scale down to this side length.
_TYPICAL_SIZE = (1024, 1024)
# A page or two, a minute of audio, ten seconds of video: the request does not state the length.
_TYPICAL_TOKENS = {"document": 3000.0, "audio": 1920.0, "video": 2630.0}

# OpenAI images in tiles of 512 pixels: base tokens and tokens per tile.
_TILES = (
    (re.compile(r"4o-mini"), (2833, 5667)),
    (re.compile(r"gpt-5"), (70, 140)),  # its mini and nano models use patches
    (re.compile(r"^o[13](?!.*mini)"), (75, 150)),
)
_USUAL_TILE = (85, 170)
# OpenAI images in patches of 32 pixels, at most 1,536: part of the model's name, a later part, and
# the factor on the number of patches. A client may send any text as a model name, and the pattern
# `gpt-5.*mini` would not be linear.
_PATCHES = (
    ("4.1-mini", "", 1.62),
    ("4.1-nano", "", 2.46),
    ("o4-mini", "", 1.72),
    ("gpt-5", "mini", 1.2),
    ("gpt-5", "nano", 1.5),
)


def media_tokens(medium: Media, view: MessageView, numbers: Constants, model: str) -> float:
    """Return the tokens of one medium of a message."""
    if medium.kind != "image":
        is_text = medium.kind == "document" and _is_text_document(view.value, medium)
        return 0.0 if is_text else _TYPICAL_TOKENS[medium.kind]
    width, height = _size(view.value, medium) or _TYPICAL_SIZE
    match numbers.root:
        case "claude":
            return _claude_image(width, height)
        case "gemini":
            return _gemini_image(width, height, numbers)
        case "openai":
            low = _detail(view.value, medium) == "low"
            return _openai_image(width, height, model, low=low)
    # Pixtral, Qwen VL and similar models: one token per patch of 28 pixels and one per row.
    rows, columns = math.ceil(height / 28), math.ceil(width / 28)
    return min(rows * columns + rows, 16_000)


def _claude_image(width: int, height: int) -> float:
    """Return the tokens of an image for Claude: scaled to 1,568 pixels, one token per 750 pixels.

    Source: docs.anthropic.com, vision.
    """
    scale = min(1.0, 1568 / max(width, height), math.sqrt(1_192_464 / (width * height)))
    return min(width * scale * height * scale / 750 + 10, 1590)


def _gemini_image(width: int, height: int, numbers: Constants) -> float:
    """Return the tokens of an image for Gemini: 258 per tile, or one tile from Gemini 2.5 on.

    Source: ai.google.dev, tokens.
    """
    if not numbers.family.startswith("gemini/2.0") or max(width, height) <= 400:
        return numbers["image"]
    unit = min(768, max(256, math.floor(min(width, height) / 1.5)))
    return numbers["image"] * (1 + math.ceil(width / unit) * math.ceil(height / unit))


def _openai_image(width: int, height: int, model: str, *, low: bool) -> float:
    """Return the tokens of an image for OpenAI.

    Source: platform.openai.com, images and vision.
    """
    for name, later, factor in _PATCHES:
        _, matched, suffix = model.partition(name)
        if matched and later in suffix:
            scale = min(1.0, math.sqrt(1536 * 32 * 32 / (width * height)))
            patches = math.ceil(width * scale / 32) * math.ceil(height * scale / 32)
            return min(patches, 1536) * factor + 2
    base, tile = next((price for pattern, price in _TILES if pattern.search(model)), _USUAL_TILE)
    if low:
        return base
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return base + tile * tiles


def _part(value: Any, medium: Media) -> Any:
    for step in medium.place:
        value = value[step]
    return value


def _detail(value: Any, medium: Media) -> str:
    part = _part(value, medium)
    return take(part, "detail") or take(part, "image_url", "detail")


def _is_text_document(value: Any, medium: Media) -> bool:
    """Return whether a document is given as text, which is counted as text."""
    return take(_part(value, medium), "source", "type") in ("text", "content")


def _size(value: Any, medium: Media) -> tuple[int, int] | None:
    part = _part(value, medium)
    for data in (
        take(part, "source", "data"),
        take(part, "inlineData", "data"),
        take(part, "inline_data", "data"),
        take(inner(part, "image", "source"), "bytes"),
        _data_url(take(part, "image_url", "url") or take(part, "image_url")),
    ):
        size = base64_size(data) if data else None
        if size and min(size) > 0:
            return size
    return None


def _data_url(address: str) -> str:
    return address.partition(",")[2] if address.startswith("data:") else ""
