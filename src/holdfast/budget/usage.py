"""Parse the token usage that providers report.

A report is untrusted: an invalid number is rejected, never converted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from holdfast.errors import SettingsError
from holdfast.faults import logged_faults
from holdfast.tokens import TokenCount

MOST_TOKENS = 100_000_000
"""Larger counts for one request are errors: this is ten times the largest window."""


class Usage(msgspec.Struct, frozen=True):
    """The tokens of one request, reported or planned; None if a side is unknown."""

    input: int | None = None
    """All input tokens, including cached ones."""
    output: int | None = None
    """All output tokens, including reasoning."""


class _Dialect(NamedTuple):
    """The fields in which a provider reports tokens, with those not included in the sums."""

    input: str
    output: str
    input_apart: tuple[str, ...] = ()
    output_apart: tuple[str, ...] = ()


_DIALECTS = (
    # Anthropic reports cached input separately; OpenAI Responses includes it under the same names.
    _Dialect(
        "input_tokens",
        "output_tokens",
        ("cache_read_input_tokens", "cache_creation_input_tokens"),
    ),
    _Dialect("prompt_tokens", "completion_tokens"),
    _Dialect(
        "promptTokenCount",
        "candidatesTokenCount",
        ("toolUsePromptTokenCount",),
        ("thoughtsTokenCount",),
    ),
    _Dialect(
        "prompt_token_count",
        "candidates_token_count",
        ("tool_use_prompt_token_count",),
        ("thoughts_token_count",),
    ),
    _Dialect("inputTokens", "outputTokens", ("cacheReadInputTokens", "cacheWriteInputTokens")),
    _Dialect("input", "output"),  # Holdfast's own `Usage`
)
_WRAPPERS = ("usage", "usageMetadata", "usage_metadata", "tokens")
"""Fields that contain the report in a response; Cohere nests `tokens` in `usage`."""


def token_count(value: object) -> int | None:
    """Return the value as a token count; None if it is negative, too large or not a number.

    Integral floats are valid, because some clients decode JSON numbers as floats.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return int(value) if 0 <= value <= MOST_TOKENS else None


def planned_usage(planned: int | TokenCount | Usage) -> Usage:
    """Return the maximum usage of a planned request; raise `SettingsError` if it is invalid.

    A number is input tokens. For a count the upper bound is used, which the provider should not
    exceed.
    """
    if isinstance(planned, Usage):
        planned_sides = planned.input or 0, planned.output or 0
    else:
        planned_sides = planned.upper if isinstance(planned, TokenCount) else planned, 0
    tokens, answer = token_count(planned_sides[0]), token_count(planned_sides[1])
    if tokens is None or answer is None:
        raise SettingsError(
            f"the planned tokens are not between 0 and {MOST_TOKENS:,}",
            where="planned",
            fix="Give whole numbers, a TokenCount or a Usage.",
        )
    return Usage(tokens, answer)


def reported_usage(report: object) -> Usage | None:
    """Return a provider's reported usage: a number of input tokens, or a usage object.

    Objects are read by keys or attributes, and a response by its usage object. Return None if any
    number is invalid or nothing is reported. Zero input counts as unknown, because some providers
    send it and no request is empty.
    """
    try:
        return _read(report)
    except ValueError:  # a number is invalid
        return None
    except Exception as error:  # noqa: BLE001 - a client's object may raise on attribute access
        logged_faults("holdfast.budget").add("usage", error)
        return None


def _read(report: object) -> Usage | None:
    if isinstance(report, int | float):
        return _known_usage(Usage(token_count(report)))
    for wrapper in _WRAPPERS:
        nested = _field(report, wrapper)
        report = report if nested is None or isinstance(nested, int | float) else nested
    for dialect in _DIALECTS:
        sides = _field(report, dialect.input), _field(report, dialect.output)
        if sides != (None, None):
            tokens = _sum(report, dialect.input, *dialect.input_apart)
            return _known_usage(Usage(tokens, _sum(report, dialect.output, *dialect.output_apart)))
    return None


def _sum(report: object, *keys: str) -> int | None:
    """Return the sum of the fields present; None if there are none. Raise if any is invalid."""
    values = [value for key in keys if (value := _field(report, key)) is not None]
    counts = [count for value in values if (count := token_count(value)) is not None]
    if len(counts) < len(values) or sum(counts) > MOST_TOKENS:
        raise ValueError
    return sum(counts) if values else None


def _known_usage(usage: Usage) -> Usage | None:
    usage = Usage(usage.input or None, usage.output)
    return usage if usage.input or usage.output else None


def _field(report: object, key: str) -> object:
    return report.get(key) if isinstance(report, Mapping) else getattr(report, key, None)
