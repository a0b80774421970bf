"""A request's body unpacked, as its `content-encoding` says, within the bounds of a plain one.

encodings: before app, which unpacks what is to be read and passes the rest on as it came. Codex
sends zstd, and HTTP clients can be told to send gzip; the upstream gets what was unpacked.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import zstandard

from holdfast.errors import LimitError, WireError

ACCEPTED = "gzip, deflate, zstd"
"""What a client may pack its body with."""

_MOST_LAYERS = 2
"""Encodings of one body; a third is an attack, for each multiplies what one byte can become."""
_MOST_FRAMES = 1_000
"""Parts that follow each other in one body; without an end, empty ones would keep us for long."""
_SIP = 512
"""Bytes that are read at once: four of zstd may stand for 128 KiB, so these for 16 MiB."""
_MOST_WINDOW = 8 * 2**20
"""Bytes of memory that a zstd frame may ask for (RFC 9659 allows no more in HTTP)."""


class UnknownEncodingError(WireError):
    """The body is packed in a way that the proxy does not know."""


def unpacked(body: bytes, encoding: str, most: int) -> bytes:
    """The body without its encodings; of at most `most` bytes, whatever it is packed from.

    Raises:
        UnknownEncodingError: an encoding is none of `ACCEPTED`.
        LimitError: there is more in it than may be sent at once.
        WireError: it is not packed as it says.
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
        # Not chained: what a library says of the bytes may quote them.
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
    """What is in a body: members of gzip (RFC 1952) and frames of zstd (RFC 8878) may follow."""
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
