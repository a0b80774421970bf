"""Names of stored content: `ref:<kind>:<16 hex digits of its SHA-256>`.

refs: after scope. The same content has the same name on every machine; older forms of a name
are understood, never written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from holdfast.errors import StoreError

_PART = 262_144
DIGITS = 16
"""Digits of the hash that a name shows; more where two contents would share them."""

KIND = re.compile(r"[a-z][a-z0-9_]{0,39}")
REF = re.compile(r"\bref:([a-z][a-z0-9_]{0,39}):([0-9a-f]{16,64})(?![0-9a-f])")
"""A name inside a text."""

_ALIAS = re.compile(r"(?:content_|src_|sha256:)?([0-9a-f]{16,64})")
_FULL = re.compile(r"ref:([a-z][a-z0-9_]{0,39}):([0-9a-f]{16,64})(?::[a-z_]+)?")


class RefName(NamedTuple):
    """A name taken apart."""

    kind: str
    """Empty if the form has no kind."""
    digits: str
    """16 to 64 digits of the hash."""


def canonical(content: Any) -> bytes:
    """The bytes that are stored and hashed: text and bytes as they are, values as sorted JSON."""
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    if isinstance(content, str):
        return content.encode("utf-8", "surrogatepass")
    try:
        # Keys that are numbers become text first: only text can be sorted.
        return msgspec.json.encode(msgspec.to_builtins(content, str_keys=True), order="sorted")
    except (TypeError, ValueError, RecursionError):
        raise StoreError(
            "the content is neither text nor bytes nor a JSON value",
            fix="Turn it into text before it is stored.",
        ) from None


def canonical_parts(text: str) -> Iterator[bytes]:
    """The same bytes of a text, a part at a time: one of 20 MB is not copied to be measured."""
    for start in range(0, len(text), _PART):
        yield canonical(text[start : start + _PART])


def digest(data: bytes | memoryview) -> str:
    """The SHA-256 of content, in hex."""
    return hashlib.sha256(data).hexdigest()


def ref_id(kind: str, sha256: str, digits: int = DIGITS) -> str:
    """The name of content."""
    return f"ref:{kind}:{sha256[:digits]}"


def parse(name: str) -> RefName | None:
    """Take a name apart; None if it is none.

    Besides `ref:kind:hex` these forms are understood: `ref:kind:hex:view`, `content_hex`,
    `src_hex`, `sha256:hex` and the bare hash.
    """
    name = name.strip()
    if match := _FULL.fullmatch(name):
        return RefName(match[1], match[2])
    if match := _ALIAS.fullmatch(name):
        return RefName("", match[1])
    return None
