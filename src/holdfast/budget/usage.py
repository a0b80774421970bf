"""Read how many tokens a request used, as each provider reports it.

A report is untrusted: what is no count of tokens is never made into one. It knows nothing about
limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from holdfast.errors import SettingsError
from holdfast.faults import logged_faults
from holdfast.tokens import TokenCount

MOST_TOKENS = 100_000_000
"""More than this in one request is a mistake: ten times the largest window there is."""


class Usage(msgspec.Struct, frozen=True):
    """The tokens of one request, reported or planned; None is a side of which nothing is known."""

    input: int | None = None
    """All input tokens, cached ones included."""
    output: int | None = None
    """All output tokens, reasoning included."""


class _Dialect(NamedTuple):
    """Where a provider reports its tokens, and what it leaves out of the sums."""

    input: str
    output: str
    input_apart: tuple[str, ...] = ()
    output_apart: tuple[str, ...] = ()


_DIALECTS = (
    # Anthropic reports cached input apart; OpenAI Responses, with the same names, within.
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
    _Dialect("input", "output"),  # our own `Usage`
)
_WRAPPERS = ("usage", "usageMetadata", "usage_metadata", "tokens")
"""Where the report stands in a response; Cohere puts `tokens` into `usage`."""


def whole(value: object) -> int | None:
    """The value as a count of tokens; None if it is none (negative, absurd, a truth value, …).

    Whole floats are counts, because some clients decode JSON numbers so.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return int(value) if 0 <= value <= MOST_TOKENS else None


def planned_usage(planned: int | TokenCount | Usage) -> Usage:
    """What a request is going to use at most; raises `SettingsError` if it is no such thing.

    A number is input tokens. Of a count the upper bound is taken, which the provider will not
    exceed.
    """
    if isinstance(planned, Usage):
        sides = planned.input or 0, planned.output or 0
    else:
        sides = planned.upper if isinstance(planned, TokenCount) else planned, 0
    tokens, answer = whole(sides[0]), whole(sides[1])
    if tokens is None or answer is None:
        raise SettingsError(
            f"the planned tokens are not between 0 and {MOST_TOKENS:,}",
            where="planned",
            fix="Give whole numbers, a TokenCount or a Usage.",
        )
    return Usage(tokens, answer)


def reported_usage(report: object) -> Usage | None:
    """What a provider reported: a number of input tokens, or its usage object in any dialect.

    Objects are read by their keys or by their attributes, a whole response by its usage. None if
    any number in it is no count, or if it says nothing. Zero input says nothing: providers that
    do not know send it, and no request is empty.
    """
    try:
        return _read(report)
    except ValueError:  # a number in it is no count
        return None
    except Exception as error:  # noqa: BLE001 - an object of a client's that raises when it is read
        logged_faults("holdfast.budget").add("usage", error)
        return None


def _read(report: object) -> Usage | None:
    if isinstance(report, int | float):
        return _said(Usage(whole(report)))
    for wrapper in _WRAPPERS:
        inside = _field(report, wrapper)
        report = report if inside is None or isinstance(inside, int | float) else inside
    for dialect in _DIALECTS:
        sides = _field(report, dialect.input), _field(report, dialect.output)
        if sides != (None, None):
            tokens = _sum(report, dialect.input, *dialect.input_apart)
            return _said(Usage(tokens, _sum(report, dialect.output, *dialect.output_apart)))
    return None


def _sum(report: object, *keys: str) -> int | None:
    """The sum of what is there; None if nothing is. Raises if anything there is no count."""
    there = [value for key in keys if (value := _field(report, key)) is not None]
    counts = [count for value in there if (count := whole(value)) is not None]
    if len(counts) < len(there) or sum(counts) > MOST_TOKENS:
        raise ValueError
    return sum(counts) if there else None


def _said(usage: Usage) -> Usage | None:
    usage = Usage(usage.input or None, usage.output)
    return usage if usage.input or usage.output else None


def _field(report: object, key: str) -> object:
    return report.get(key) if isinstance(report, Mapping) else getattr(report, key, None)
