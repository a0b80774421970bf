"""The width and height of an image, read from the first bytes of its file."""

from __future__ import annotations

import base64
import binascii
import struct

_HEAD_CHARACTERS = 65_536 * 4 // 3  # a JPEG's frame header may stand behind large metadata


def base64_size(data: str) -> tuple[int, int] | None:
    """Width and height of a PNG, GIF, WebP or JPEG given in base64; None if it cannot be told."""
    head = data[:_HEAD_CHARACTERS]
    try:
        return image_size(base64.b64decode(head[: len(head) // 4 * 4], validate=False))
    except (binascii.Error, ValueError):
        return None


def image_size(head: bytes) -> tuple[int, int] | None:
    """Width and height from the first bytes of an image file; None if it cannot be told."""
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
        pass  # cut short
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
        # Start-of-frame markers hold the size; C4, C8 and CC are other things in their range.
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[position + 5 : position + 9])
            return width, height
        position += 2 + int.from_bytes(head[position + 2 : position + 4], "big")
    return None
