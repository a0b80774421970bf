"""Two settings over one session, on a page of the running proxy."""

from __future__ import annotations

import pytest

from holdfast.engine.session_replay import Way, replay
from holdfast.surfaces.proxy.dashboard import comparison, links
from holdfast.wire import read
from tests.surfaces.proxy.harness import Running
from tests.surfaces.proxy.test_dashboard import hrefs, shown, view

SESSION = "nightly-build"


def test_a_session_leads_to_the_page_and_nothing_is_worked_out_until_asked(busy: Running) -> None:
    assert links.compare(SESSION) in hrefs(busy, links.session(SESSION))
    page = shown(busy, links.compare(SESSION))
    assert "Compare two settings" in page
    assert "What each would have come to" not in page


def test_both_sides_are_what_the_engine_makes_of_the_very_requests(busy: Running) -> None:
    engine = busy.service.engine
    session = engine.session(SESSION)
    record = busy.do(engine.store.session(session.scope))
    assert record is not None
    bodies = [busy.do(session.rebuild(n)) for n in range(1, record.turns + 1)]
    requests = [read(body, record.dialect) for body in bodies]
    always = busy.do(replay(engine, requests, record.model, Way(policy="always")))
    never = busy.do(replay(engine, requests, record.model, Way(policy="never")))
    asked = busy.do(replay(engine, requests, record.model, None))
    page = shown(busy, links.compare(SESSION, a="never", b="always"))
    assert f"{asked.tokens:,}" in page
    for side in (always, never):
        assert f"{side.tokens:,}" in page
    assert always.cited > never.cited == 0
    assert f"All {record.turns} of {record.turns} requests" in page


def test_an_assembled_turn_can_be_held_against_a_fitted_one(busy: Running) -> None:
    page = shown(busy, links.compare(SESSION, a="auto", b="assemble", b_limit="3000"))
    assert "assemble each turn, at most 3,000" in page


def test_nothing_of_a_comparison_is_kept(busy: Running) -> None:
    engine = busy.service.engine
    before = busy.do(engine.store.stats(engine.scope))
    sessions = len(busy.do(engine.store.sessions(engine.scope)))
    shown(busy, links.compare(SESSION, a="always", b="never"))
    assert busy.do(engine.store.stats(engine.scope)) == before
    assert len(busy.do(engine.store.sessions(engine.scope))) == sessions


@pytest.mark.parametrize(
    ("asked", "way"),
    [
        ({}, Way(policy="auto")),
        ({"a": "<script>", "a_limit": "-1"}, Way(policy="auto")),
        ({"a": "never", "a_limit": "9" * 50}, Way(policy="never")),
        ({"a": "never", "a_limit": "999999999"}, Way(policy="never", limit=100_000_000)),
        ({"a": "assemble", "a_limit": "\uff12000"}, Way(mode="assemble")),
        ({"a": "always", "a_limit": "2000"}, Way(policy="always", limit=2_000)),
    ],
)
def test_whatever_an_address_names_is_a_way_or_passed_over(asked: dict[str, str], way: Way) -> None:
    assert comparison.ways_in(asked)[0] == way


def test_a_session_that_is_not_there_is_a_page_that_says_so(busy: Running) -> None:
    assert view(busy, links.compare("nobody", a="auto")).status == 404


def test_only_the_last_requests_that_are_not_too_large_are_compared(
    busy: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "MOST_REQUESTS", 2)
    assert "The last 2 of" in shown(busy, links.compare(SESSION, a="auto", b="never"))
    monkeypatch.setattr(comparison, "MOST_BYTES", 10)
    assert "too large" in shown(busy, links.compare(SESSION, a="auto", b="never"))
