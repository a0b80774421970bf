"""Recorded agents through the proxy in a window they would have overflowed, in every dialect."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import holdfast
from tests.support.recorded import needs_trajectories
from tests.surfaces.proxy.harness import DIALECTS, running_proxy
from tests.surfaces.proxy.replaying import Retold, check, chosen, kept_prefixes, retell, story_of
from tests.surfaces.proxy.upstream import Upstream

pytestmark = [needs_trajectories, pytest.mark.slow]

WINDOW = 16_000
MOST_TURNS = 30


@cache
def recordings() -> list[dict[str, Any]]:
    """One of each source that has a short one."""
    short: dict[str, dict[str, Any]] = {}
    for one in chosen(WINDOW):
        if 15 <= len(story_of(one, "openai-chat").steps) <= MOST_TURNS:
            short.setdefault(one["source"], one)
        if len(short) == 3:
            break
    return list(short.values())


@pytest.fixture(scope="module", params=DIALECTS)
def told(request: pytest.FixtureRequest) -> list[Retold]:
    """Return three recordings that would overflow, in one dialect; every promise is checked."""
    made = []
    with Upstream(window=WINDOW) as upstream:
        with running_proxy({"request_limit": WINDOW}, upstream.url) as proxy:
            for recording in recordings():
                made.append(retell(story_of(recording, request.param), proxy, upstream))
                check(made[-1], proxy, WINDOW)
        assert upstream.refused == []
    return made


def test_every_request_fits_and_nothing_is_lost(told: list[Retold]) -> None:
    for one in told:
        last = one.turns[-1]
        dialect = one.story.dialect
        assert one.refusal == ""
        assert len(one.turns) == len(one.story.steps)
        model = last.got.model if last.got else ""
        assert holdfast.count(last.asked, dialect=dialect, model=model).tokens > WINDOW


def test_each_conversation_is_a_session_of_its_own(told: list[Retold]) -> None:
    sessions = [{turn.answered.headers["x-holdfast-session"] for turn in t.turns} for t in told]
    assert [len(names) for names in sessions] == [1, 1, 1]
    assert len(set.union(*sessions)) == 3
    assert [len(one.written) for one in told] == [len(one.turns) for one in told]


def test_what_was_sent_stays_the_same_until_a_fold(told: list[Retold]) -> None:
    kept = [prefix for one in told for prefix in kept_prefixes(one)]
    assert len(kept) > 30
    assert all(share == 1.0 for share, tools_changed in kept if not tools_changed)
    # The first citation adds the tool that opens it, once.
    assert sum(tools_changed for _, tools_changed in kept) <= len(told)


def test_long_results_are_cited(told: list[Retold]) -> None:
    edits = [edit for one in told for turn in one.written for edit in turn.edits]
    assert sum(edit.action == "cite" for edit in edits) > 10
