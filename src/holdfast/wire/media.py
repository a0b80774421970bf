"""Read and write images, audio, video and documents in each dialect.

Base64 data and URLs are converted; ids of files stored at a provider are not, because no other
provider can read them. Image sizes are read from the first bytes of the file.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import struct
from collections.abc import Callable
from typing import Any

from holdfast.wire.blocks import Media


class CarriedMedia(Media, frozen=True, kw_only=True):
    """A dialect-independent medium; either `data` or `url` is set."""

    data: str = ""
    """Base64 data."""
    url: str = ""
    name: str = ""
    """File name, if the request has one."""


def read_media(part: Any, block: Media, dialect: str) -> CarriedMedia | None:
    """Return the content of a media part; None if it cannot be converted."""
    reader = _READERS.get(dialect)
    carried = reader(part, block) if reader and isinstance(part, dict) else None
    return carried if carried is not None and (carried.data or carried.url) else None


def write_media(media: CarriedMedia, dialect: str) -> dict[str, Any] | None:
    """Return a message part with the medium; None if the dialect cannot express it."""
    writer = _WRITERS.get(dialect)
    return writer(media) if writer else None


def _text(value: Any, *keys: str) -> str:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _medium_at(block: Media, address: str, *, media_type: str = "", name: str = "") -> CarriedMedia:
    """Return the medium at an address, which may contain the data: `data:image/png;base64,…`."""
    head, comma, data = address.partition(",")
    if head.startswith("data:") and comma and head.endswith(";base64"):
        stated = head[len("data:") : -len(";base64")]
        return CarriedMedia(kind=block.kind, media_type=stated, data=data, name=name)
    guessed = media_type or (mimetypes.guess_type(address.partition("?")[0])[0] or "")
    return CarriedMedia(kind=block.kind, media_type=guessed, url=address, name=name)


def _address(media: CarriedMedia) -> str:
    return media.url or f"data:{media.media_type};base64,{media.data}"


# --- OpenAI ------------------------------------------------------------------------------------


def _sound(part: dict[str, Any], block: Media) -> CarriedMedia:
    sound = part.get("input_audio")
    kind = f"audio/{_text(sound, 'format') or 'wav'}"
    return CarriedMedia(kind=block.kind, media_type=kind, data=_text(sound, "data"))


def _from_chat(part: dict[str, Any], block: Media) -> CarriedMedia | None:
    if block.kind == "image":
        return _medium_at(block, _text(part, "image_url", "url") or _text(part, "image_url"))
    if block.kind == "audio":
        return _sound(part, block)
    name = _text(part, "file", "filename")
    return _medium_at(block, _text(part, "file", "file_data"), name=name)


def _to_chat(media: CarriedMedia) -> dict[str, Any] | None:
    if media.kind == "image":
        return {"type": "image_url", "image_url": {"url": _address(media)}}
    if media.kind == "audio" and media.data:
        form = media.media_type.rpartition("/")[2].removeprefix("x-")
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}}
    if media.kind == "document" and media.data:
        document = {"filename": media.name or "document.pdf", "file_data": _address(media)}
        return {"type": "file", "file": document}
    return None


def _from_responses(part: dict[str, Any], block: Media) -> CarriedMedia | None:
    if block.kind == "image":
        return _medium_at(block, _text(part, "image_url"))
    if block.kind == "audio":
        return _sound(part, block)
    address = _text(part, "file_data") or _text(part, "file_url")
    return _medium_at(block, address, name=_text(part, "filename"))


def _to_responses(media: CarriedMedia) -> dict[str, Any] | None:
    if media.kind == "image":
        return {"type": "input_image", "image_url": _address(media), "detail": "auto"}
    if media.kind != "document":
        return None
    if media.url:
        return {"type": "input_file", "file_url": media.url}
    name = media.name or "document.pdf"
    return {"type": "input_file", "filename": name, "file_data": _address(media)}


# --- Anthropic ---------------------------------------------------------------------------------

_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def _from_anthropic(part: dict[str, Any], block: Media) -> CarriedMedia | None:
    source = part.get("source")
    name = _text(part, "title")
    if _text(source, "type") == "url":
        return _medium_at(block, _text(source, "url"), name=name)
    if _text(source, "type") != "base64":
        return None
    kind = _text(source, "media_type")
    return CarriedMedia(kind=block.kind, media_type=kind, data=_text(source, "data"), name=name)


def _to_anthropic(media: CarriedMedia) -> dict[str, Any] | None:
    if media.kind not in ("image", "document"):
        return None
    source: dict[str, Any] = {"type": "url", "url": media.url}
    if media.data:
        fits = _IMAGES if media.kind == "image" else ("application/pdf",)
        if media.media_type not in fits:
            return None
        source = {"type": "base64", "media_type": media.media_type, "data": media.data}
    part = {"type": media.kind, "source": source}
    return {**part, "title": media.name} if media.name and media.kind == "document" else part


# --- Gemini ------------------------------------------------------------------------------------


def _from_gemini(part: dict[str, Any], block: Media) -> CarriedMedia | None:
    for key in ("inlineData", "inline_data"):
        if isinstance(part.get(key), dict):
            data = _text(part, key, "data")
            return CarriedMedia(kind=block.kind, media_type=block.media_type, data=data)
    address = _text(part, "fileData", "fileUri") or _text(part, "file_data", "file_uri")
    if "generativelanguage.googleapis.com" in address or address.startswith("gs://"):
        return None  # a file stored at the provider
    return _medium_at(block, address, media_type=block.media_type)


def _to_gemini(media: CarriedMedia) -> dict[str, Any] | None:
    if not media.media_type:
        return None
    if media.data:
        return {"inlineData": {"mimeType": media.media_type, "data": media.data}}
    return {"fileData": {"mimeType": media.media_type, "fileUri": media.url}}


_READERS: dict[str, Callable[[dict[str, Any], Media], CarriedMedia | None]] = {
    "openai-chat": _from_chat,
    "openai-responses": _from_responses,
    "anthropic": _from_anthropic,
    "gemini": _from_gemini,
}
_WRITERS: dict[str, Callable[[CarriedMedia], dict[str, Any] | None]] = {
    "openai-chat": _to_chat,
    "openai-responses": _to_responses,
    "anthropic": _to_anthropic,
    "gemini": _to_gemini,
}


_HEAD_CHARACTERS = 65_536 * 4 // 3  # a JPEG's frame header may follow large metadata


def base64_size(data: str) -> tuple[int, int] | None:
    """Return width and height of a base64 PNG, GIF, WebP or JPEG; None if unknown."""
    head = data[:_HEAD_CHARACTERS]
    try:
        return image_size(base64.b64decode(head[: len(head) // 4 * 4], validate=False))
    except (binascii.Error, ValueError):
        return None


def image_size(head: bytes) -> tuple[int, int] | None:
    """Return width and height from the first bytes of an image file; None if unknown."""
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack(">II", head[16:24])
        if head.startswith((b"GIF87a", b"GIF89a")):
            return struct.unpack("<HH", head[6:10])
        if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
            return _webp_size(head)
        if head.startswith(b"\xff\xd8"):
            return _jpeg_size(head)
    except (struct.error, IndexError):
        pass  # truncated data
    return None


def _webp_size(head: bytes) -> tuple[int, int] | None:
    match head[12:16]:
        case b"VP8X":
            return (
                int.from_bytes(head[24:27], "little") + 1,
                int.from_bytes(head[27:30], "little") + 1,
            )
        case b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack("<HH", head[26:30])
            return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    position = 2
    while head[position] == 0xFF:
        marker = head[position + 1]
        # Start-of-frame markers hold the size; C4, C8 and CC have other meanings.
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[position + 5 : position + 9])
            return width, height
        position += 2 + int.from_bytes(head[position + 2 : position + 4], "big")
    return None
