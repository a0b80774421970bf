"""Compute an upper bound for a count, valid in at least 99 of 100 cases.

The margin is `tokens * relative + absolute`. bounds.toml has both terms, fitted by family and kind
of request.
"""

from __future__ import annotations

import math
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from holdfast.tokens.families import Constants

# For families without recordings. Hosts render tools with prompts of up to 900 tokens.
_WIDEST = {"text": (64.0, 0.5), "tools": (900.0, 0.5)}


def upper_bound(tokens: float, numbers: Constants, *, has_tools: bool, dialect: str) -> int:
    """Return the number of tokens that the provider's report should not exceed."""
    kind = ("tools" if has_tools else "text") + (
        "-responses" if dialect == "openai-responses" else ""
    )
    absolute, relative = _slack(numbers.family, numbers.accuracy, kind)
    return math.ceil(tokens * (1 + relative) + absolute)


@cache
def _slack(family: str, accuracy: str, kind: str) -> tuple[float, float]:
    table = _table()
    for key in (f"{family}|{kind}", f"class:{accuracy}|{kind}", f"class:{accuracy}"):
        if key in table:
            return table[key]["absolute"], table[key]["relative"]
    return _WIDEST[kind.removesuffix("-responses")]


@cache
def _table() -> dict[str, Any]:
    text = (files("holdfast.tokens") / "bounds.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["bound"]  # type: ignore[no-any-return]
