"""Reports of usage: every dialect is read, and nothing else is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.budget import MOST_TOKENS, Usage, reported_usage
from holdfast.budget.usage import planned_usage, token_count
from holdfast.errors import SettingsError
from tests.budget.made import counted

REPORTS: dict[str, tuple[object, Usage]] = {
    "a number is input": (120, Usage(120)),
    "a whole float": (120.0, Usage(120)),
    "our own": (Usage(5, 6), Usage(5, 6)),
    "OpenAI chat": (
        {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 16},
        },
        Usage(100, 20),
    ),
    "OpenAI responses": (
        {"input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 9}},
        Usage(100, 20),
    ),
    "Anthropic reports cached input apart": (
        {
            "input_tokens": 10,
            "cache_read_input_tokens": 80,
            "cache_creation_input_tokens": 10,
            "output_tokens": 20,
        },
        Usage(100, 20),
    ),
    "Anthropic with nulls": (
        {"input_tokens": 10, "cache_read_input_tokens": None, "output_tokens": 2},
        Usage(10, 2),
    ),
    "Anthropic wholly cached": (
        {"input_tokens": 0, "cache_read_input_tokens": 80, "output_tokens": 2},
        Usage(80, 2),
    ),
    "the end of Anthropic's stream": ({"output_tokens": 50}, Usage(None, 50)),
    "a gateway that tells cached input twice": (
        {"prompt_tokens": 100, "completion_tokens": 20, "cache_read_input_tokens": 80},
        Usage(100, 20),
    ),
    "Gemini reports thoughts apart": (
        {"promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 30},
        Usage(100, 50),
    ),
    "Gemini's client": (
        SimpleNamespace(
            prompt_token_count=100, candidates_token_count=None, tool_use_prompt_token_count=5
        ),
        Usage(105, None),
    ),
    "Bedrock Converse": (
        {"inputTokens": 10, "cacheReadInputTokens": 90, "outputTokens": 20},
        Usage(100, 20),
    ),
    "Cohere": (
        {
            "billed_units": {"input_tokens": 3, "output_tokens": 2},
            "tokens": {"input_tokens": 71.0, "output_tokens": 20.0},
        },
        Usage(71, 20),
    ),
    "a whole response": ({"id": "x", "usage": {"prompt_tokens": 7}}, Usage(7)),
    "a whole response of Gemini": ({"usageMetadata": {"promptTokenCount": 7}}, Usage(7)),
    "an object with attributes": (
        SimpleNamespace(usage=SimpleNamespace(input_tokens=7, output_tokens=1)),
        Usage(7, 1),
    ),
    "zero input is not known": ({"prompt_tokens": 0, "completion_tokens": 4}, Usage(None, 4)),
    "no output is an output": ({"prompt_tokens": 9, "completion_tokens": 0}, Usage(9, 0)),
}


class Hostile:
    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


MALFORMED: dict[str, Any] = {
    "negative": -1,
    "zero": 0,
    "absurd": MOST_TOKENS + 1,
    "beyond any machine word": 10**400,
    "true": True,
    "not a number": float("nan"),
    "infinite": float("inf"),
    "half a token": 1.5,
    "a text": "100",
    "nothing": None,
    "empty": {},
    "a list": [100],
    "a negative side": {"input_tokens": 100, "output_tokens": -5},
    "a negative cache": {"input_tokens": 100, "cache_read_input_tokens": -90},
    "a text for a number": {"prompt_tokens": "100", "completion_tokens": 1},
    "a truth value for a number": {"prompt_tokens": True},
    "NaN for a number": {"prompt_tokens": float("nan")},
    "parts that are absurd only in sum": {
        "input_tokens": MOST_TOKENS,
        "cache_read_input_tokens": MOST_TOKENS,
    },
    "only zeros": {"prompt_tokens": 0, "completion_tokens": 0},
    "other things": {"cost": 5},
    "an object that raises": Hostile(),
    "a usage of ours with nonsense": Usage(-5, 3),
}


@pytest.mark.parametrize(("report", "usage"), REPORTS.values(), ids=REPORTS)
def test_a_report_of_every_dialect_is_read(report: object, usage: Usage) -> None:
    assert reported_usage(report) == usage


@pytest.mark.parametrize("report", MALFORMED.values(), ids=MALFORMED)
def test_malformed_report_is_no_usage(report: object) -> None:
    assert reported_usage(report) is None


def test_only_a_report_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert reported_usage({"input_tokens": "many"}) is None
    assert caplog.records == []
    assert reported_usage(MALFORMED["an object that raises"]) is None
    assert [record.name for record in caplog.records] == ["holdfast.budget"]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.dictionaries(
            st.sampled_from(
                ["usage", "tokens", "input_tokens", "output_tokens", "prompt_tokens", "inputTokens"]
            ),
            inner,
            max_size=4,
        )
        | st.lists(inner, max_size=2)
    ),
    max_leaves=8,
)


@given(anything)
def test_whatever_is_reported_gives_counts_or_nothing(report: object) -> None:
    usage = reported_usage(report)
    if usage is not None:
        for side in (usage.input, usage.output):
            assert side is None or (type(side) is int and 0 <= side <= MOST_TOKENS)


@pytest.mark.parametrize("value", [0, 1, MOST_TOKENS, 7.0])
def test_counts_are_whole_numbers_up_to_the_most(value: float) -> None:
    assert token_count(value) == value


def test_of_a_planned_count_the_upper_bound_is_taken() -> None:
    assert planned_usage(counted(100)) == Usage(counted(100).upper, 0)
    assert planned_usage(7) == Usage(7, 0)
    assert planned_usage(Usage(None, 4)) == Usage(0, 4)


@pytest.mark.parametrize(
    "planned", [-1, True, 1.5, float("nan"), "5", None, Usage(-1), Usage(1, -2), 10**400]
)
def test_malformed_plan_is_refused_and_says_what_to_give(planned: Any) -> None:
    with pytest.raises(SettingsError, match="planned") as caught:
        planned_usage(planned)
    assert caught.value.fix
