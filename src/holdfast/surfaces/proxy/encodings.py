"""Decompression of a request's body by its `content-encoding`, with the limits of a plain body.

app decompresses bodies that it reads and forwards others unchanged. Codex sends zstd, and HTTP
clients can be configured to send gzip; the upstream gets the decompressed body.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import zstandard

from holdfast.errors import LimitError, WireError

ACCEPTED = "gzip, deflate, zstd"
"""Accepted compressions of a body."""

_MOST_LAYERS = 2
"""Encodings of one body; a third is an attack, because each multiplies the size of one byte."""
_MOST_FRAMES = 1_000
"""Parts that follow each other in one body; without an end, empty ones would keep us for long."""
_SIP = 512
"""Bytes read at once: four of zstd may represent 128 KiB, so these 16 MiB."""
_MOST_WINDOW = 8 * 2**20
"""Bytes of memory that a zstd frame may ask for (RFC 9659 allows no more in HTTP)."""


class UnknownEncodingError(WireError):
    """The body is packed in a way that the proxy does not know."""


def unpacked(body: bytes, encoding: str, most: int) -> bytes:
    """Return the decompressed body, of at most `most` bytes.

    Raises:
        UnknownEncodingError: an encoding is none of `ACCEPTED`.
        LimitError: the body is larger than allowed.
        WireError: the body does not match its encoding.
    """
    names = [name.strip().lower() for name in encoding.split(",")]
    layers = [name for name in names if name not in ("", "identity")]
    if len(layers) > _MOST_LAYERS or any(name not in _READERS for name in layers):
        raise UnknownEncodingError(
            "the body is packed in a way that the proxy cannot read",
            where="content-encoding",
            fix=f"Send it as it is, or with one of {ACCEPTED}.",
        )
    for name in reversed(layers):  # the last one was applied last (RFC 9110, 8.4)
        body = _within(most, name, body) if body else body
    return body


def without_encoding(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The headers of a body that was unpacked."""
    return tuple((name, value) for name, value in headers if name.lower() != "content-encoding")


def _within(most: int, name: str, body: bytes) -> bytes:
    """Unpack one layer; a bomb is given up as soon as it is too large, never held whole."""
    pieces: list[bytes] = []
    size = 0
    try:
        for piece in _pieces(body, _READERS[name]):
            size += len(piece)
            if size > most:
                raise LimitError(
                    f"the body is larger than {most:,} bytes when it is unpacked",
                    where="content-encoding",
                    fix="Send less at once.",
                )
            pieces.append(piece)
    except (zlib.error, zstandard.ZstdError, EOFError):
        # Not chained: a library's error may quote the bytes.
        raise WireError(
            f"the body is not packed as {name}",
            where="content-encoding",
            fix="Send it whole, with the header that fits it, or as it is.",
        ) from None
    return b"".join(pieces)


class _Reader(Protocol):
    """What zlib and zstandard have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _gzip(_: bytes) -> _Reader:
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


def _deflate(body: bytes) -> _Reader:
    # It means zlib's format, but some clients have always left its header out (RFC 9110, 8.4.1.2).
    has_header = body[0] & 0x0F == zlib.DEFLATED and int.from_bytes(body[:2], "big") % 31 == 0
    return zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)


def _zstd(_: bytes) -> _Reader:
    return zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW).decompressobj()


_READERS: Mapping[str, Callable[[bytes], _Reader]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _zstd,
}


def _pieces(body: bytes, begin: Callable[[bytes], _Reader]) -> Iterator[bytes]:
    """Yield the body's pieces: gzip members (RFC 1952) and zstd frames (RFC 8878) may repeat."""
    at = 0
    for _ in range(_MOST_FRAMES):
        reader = begin(body)
        while not reader.eof:
            if at >= len(body):
                raise EOFError
            yield reader.decompress(body[at : at + _SIP])
            at += _SIP
        at = min(at, len(body)) - len(reader.unused_data)
        if at == len(body):
            return
    raise EOFError
