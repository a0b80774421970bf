"""Whatever a model writes as options of `expand_ref`, over hostile contents: a typed answer.

An expansion within its tokens, or an ExpandError that quotes nothing; never another exception.
Hypothesis draws some and makes them small; the campaign of `make harden` draws by chance alone,
which is ten times as quick, and watches the memory.
"""

from __future__ import annotations

import gc
import json
import time
import traceback
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import ExpandError
from holdfast.expand import ExpandOptions
from tests.expand.made import CSV, JSON, LOG, MCP, opened
from tests.hardening.campaign import Campaign, short_and_full
from tests.hardening.openings import Opening, opening

MOST_SECONDS = 20.0
"""Seconds of CPU for one opening of a small content; the test searches for hangs."""
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
    """Check that an error for a model can be shown, and is no page."""
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


# --- by chance alone -----------------------------------------------------------------------------

OPENINGS = 900_000
_WATCHED = 20_000
"""Openings between two checks of the process's memory."""
_GROWTH_BYTES = 32 * 2**20
"""Allowed growth, after the first of these have filled the caches."""


def _wrong(drawn: Opening) -> str:
    """Return the violation in the result of an opening; empty if there is none."""
    try:
        attempt(*drawn)
    except AssertionError as error:
        return f"not as promised: {str(error)[:300]}"
    except Exception as error:  # noqa: BLE001 - whatever comes out of an expansion
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
    return ""


def _open_all(campaign: Campaign, most: int) -> None:
    resident: list[int] = []
    complaints: set[str] = set()  # the same fault again is no new finding
    for number in campaign.rounds(most):
        drawn = opening(campaign.chance(number))
        wrong = _wrong(drawn)
        if wrong and wrong[:60] not in complaints:
            complaints.add(wrong[:60])
            campaign.found(f"round {number}: {wrong} | {drawn!r:.2000}")
        if number % _WATCHED == _WATCHED - 1:
            gc.collect()
            resident.append(psutil.Process().memory_info().rss)
    settled = resident[2:]
    if settled and max(settled) - settled[0] > _GROWTH_BYTES:
        campaign.found(f"memory grew: {resident}")
    if resident:
        campaign.figures["resident MB"] = f"{resident[0] >> 20} to {resident[-1] >> 20}"


@short_and_full("openings", 1_000, OPENINGS, is_slow=False)
def test_openings_by_chance_get_a_typed_answer(campaign: Campaign, openings: int) -> None:
    _open_all(campaign, openings)
