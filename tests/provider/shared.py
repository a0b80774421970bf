"""Helpers for the rules of all providers: the strings of a value, OpenAI's words for a bad one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

SURROGATE = re.compile("[\ud800-\udfff]")
LONGEST_STRING = 10_485_760
_NAME = re.compile(r"[a-zA-Z0-9_-]+")


def strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string of a value, with its path in OpenAI's notation."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from strings(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from strings(inner, f"{path}[{number}]")


def empty_array(path: str) -> str:
    return (
        f"Invalid '{path}': empty array. Expected an array with minimum length 1, "
        "but got an empty array instead."
    )


def long_array(path: str, most: int, length: int) -> Iterator[str]:
    if length > most:
        yield (
            f"Invalid '{path}': array too long. Expected an array with maximum length {most}, "
            f"but got an array with length {length} instead."
        )


def long_string(path: str, text: str, most: int = LONGEST_STRING) -> Iterator[str]:
    if len(text) > most:
        yield (
            f"Invalid '{path}': string too long. Expected a string with maximum length {most}, "
            f"but got a string with length {len(text)} instead."
        )


def bad_name(path: str, name: Any, most: int = 64) -> Iterator[str]:
    """A function's name that OpenAI refuses."""
    yield from long_string(path, str(name), most)
    if not _NAME.fullmatch(str(name)):
        yield (
            f"Invalid '{path}': string does not match pattern. "
            "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        )
