"""Whatever a model writes as options of `expand_ref`, over hostile contents: a typed answer.

An expansion within its tokens, or an ExpandError that quotes nothing; never another exception.
A short run is part of `make test`; `make fuzz` runs for FUZZ_SECONDS.
"""

from __future__ import annotations

import json
import os
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import ExpandError
from holdfast.expand import ExpandOptions
from tests.expand.made import CSV, JSON, LOG, MCP, opened

MOST_SECONDS = 20.0
"""Of the processor, for one opening of a small content; a hang is what is looked for."""
NAMES = ("lines", "page", "path", "fields", "slice", "pattern", "query", "around", "max_tokens",
         "offset", "limit", "unknown", "", "PATH", "lines ")  # fmt: skip
CONTENTS = st.one_of(
    st.sampled_from([LOG, JSON, CSV, MCP]),
    st.builds(lambda piece, times: piece * times, st.text(min_size=1, max_size=6),
              st.integers(1, 3_000)),
    st.builds(
        lambda piece, times: piece * times,
        st.sampled_from(["[", '{"a":', "(", "<!--", "\\u0040", '"', "|--", "a,b\n", "\r", "\0",
                         "[ref:x:", "😀", "\ufeff", "[None, '\\'", "a.", "<a b=", "- [", "\t "]),
        st.integers(1, 5_000),
    ),
    st.text(max_size=300),
)  # fmt: skip
DATA = CONTENTS.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=300)
WORDS = st.sampled_from(
    ["$", "$..*", "$..a", "[*]", "a[-1:]", "[" * 300, "." * 300, "/a/0", 'a["', "1-", "-5", "0",
     "1" * 400, "9" * 15, "9" * 16, "lines 1-2 of 9", "rows 1-9 of $", "paragraph 1",
     "characters 0-9", "section: (lines 1-1)", "a; b", r"\b", "(a*)*b", "(?i)x{1000}", "[",
     "(?P<n>",
     r"\pL{900}", "a{0}", "(?s).*", "\0", "\ud800", " ", "\u0661-\u0662", "1\u20132", "1e3", "NaN"]
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), WORDS, st.text(max_size=40),
    st.integers(-3, 200),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["offset", "limit", "start", "end", "first", "last", "from", "to", "x"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3)
OPTIONS = st.one_of(
    OBJECTS,
    OBJECTS,
    st.sampled_from(NAMES[:9]).flatmap(lambda name: VALUES.map(lambda value: {name: value})),
    OBJECTS.map(json.dumps),
    OBJECTS.map(lambda options: json.dumps(options)[:-1]),
    st.binary(max_size=60),
    st.text(max_size=60),
    VALUES,
)
KINDS = st.sampled_from(["", "csv", "log", "json", "html", "sql_dump", "x"])


def check(error: ExpandError) -> None:
    """What a model is told can be shown, and is no page."""
    assert str(error).isprintable()
    assert len(str(error)) < 600


def attempt(data: bytes, options: object, kind: str) -> None:
    begin = time.thread_time()
    try:
        opened(data, options, kind)
    except ExpandError as error:
        check(error)
    assert time.thread_time() - begin < MOST_SECONDS


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@given(DATA, OPTIONS, KINDS)
@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
def test_any_options_over_any_content_get_a_typed_answer(
    data: bytes, options: object, kind: str
) -> None:
    attempt(data, options, kind)


@given(OPTIONS)
@settings(max_examples=200, deadline=None)
def test_options_are_read_or_refused(options: object) -> None:
    try:
        wanted = ExpandOptions.parse(options)
    except ExpandError as error:
        check(error)
        return
    assert ExpandOptions.parse(wanted.to_dict()) == wanted


@pytest.mark.campaign
def test_any_options_for_a_long_time() -> None:
    until = time.monotonic() + float(os.environ.get("FUZZ_SECONDS", "600"))

    @given(DATA, OPTIONS, KINDS)
    @settings(max_examples=2_000, deadline=None, database=None, suppress_health_check=SLOW)
    def campaign(data: bytes, options: object, kind: str) -> None:
        attempt(data, options, kind)

    while time.monotonic() < until:
        campaign()
