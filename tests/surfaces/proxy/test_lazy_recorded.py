"""Recorded agents with sixty tools more: the calls arrive as before, and the prefix stays."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice

import pytest

from tests.support.recorded import needs_trajectories
from tests.surfaces.proxy.harness import DIALECTS, running_proxy
from tests.surfaces.proxy.lazy_replaying import (
    kept_shares,
    lazy_model,
    rebuilt,
    requests_of,
    with_tools,
)
from tests.surfaces.proxy.replaying import chosen, retell, story_of
from tests.surfaces.proxy.upstream import Upstream

LAZY = {"lazy_tool_tokens": 5_000}
_STEPS = 6


@needs_trajectories
@pytest.mark.parametrize(
    ("dialect", "way"), [*((dialect, "own") for dialect in DIALECTS), ("anthropic", "provider")]
)
def test_every_recorded_call_reaches_the_client_as_before(dialect: str, way: str) -> None:
    recording = next(
        each
        for each in islice(chosen(16_000, overflows=False), 40)
        if sum(bool(message.get("tool_calls")) for message in each["messages"]) > 1
    )
    story = with_tools(story_of(recording, dialect))
    del story.steps[_STEPS:]
    settings = LAZY | {"lazy_tools": way}
    with Upstream() as upstream, running_proxy(settings, upstream.url) as proxy:
        told = retell(story, proxy, upstream, lazy_model(dialect))
        assert not told.refusal
        assert upstream.refused == []
        sent = requests_of(told)
        assert any(turn.between for turn in told.turns)  # tools were set aside, and looked for
        assert sent[-1].tokens < replace(sent[-1], body=told.turns[-1].asked).tokens / 2
        assert set(kept_shares(told)) == {1.0}
        for turn, body in zip(told.turns, rebuilt(told, proxy), strict=True):
            assert json.loads(body) == json.loads(turn.asked)
