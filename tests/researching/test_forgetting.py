"""Deleted runs: contents that only they used are deleted, shared contents stay and still verify."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.compat import ContentStore
from holdfast.errors import ResearchError
from holdfast.researching import ForgetResult, Report, forget, verify
from holdfast.store import Scope
from holdfast.store.opening import open_memory
from holdfast.store.protocol import Store
from holdfast.store.sqlite import SqliteStore
from tests.researching.made import researched, texts
from tests.store.harness import Clock

HOUR = 3_600.0


def faults(report: Report, store: Store) -> int:
    return len(asyncio.run(verify(report, store, Scope())).faults)


def forgotten(run: str, store: Store, scope: Scope | None = None) -> ForgetResult:
    return asyncio.run(forget(run, store, scope or Scope()))


def swept(store: Store) -> int:
    return asyncio.run(ContentStore(store).sweep())


def test_what_two_runs_use_stays_until_both_are_forgotten() -> None:
    store, sources = open_memory(), texts(5)
    one = researched("How long was it?", sources[:4], store=store).report
    two = researched("How long was it in part 3?", sources[2:], store=store).report
    assert forgotten(one.run, store) == ForgetResult(removed=2, shared=2)
    assert faults(one, store)
    assert not faults(two, store)
    assert forgotten(two.run, store) == ForgetResult(removed=3, shared=0)
    assert faults(two, store)
    assert asyncio.run(store.refs(Scope())) == []


def test_what_is_no_run_of_this_user_is_not_forgotten() -> None:
    store = open_memory()
    report = researched("How long was it?", texts(2), store=store).report
    for run, scope in (
        ("research-0000000000000000", Scope()),
        ("a session of the proxy", Scope()),
        (report.run, Scope("another")),
    ):
        with pytest.raises(ResearchError, match="no run with this name"):
            forgotten(run, store, scope)
    assert not faults(report, store)


def test_sources_of_a_discarded_run_stay_for_an_hour() -> None:
    clock = Clock()
    store = open_memory(clock=clock)
    left = researched("How long was it?", texts(3), store=store, discard=True).report
    stays = researched("How long was it in part 3?", texts(1, seed=9), store=store).report
    clock.advance(HOUR - 1)
    assert swept(store) == 0
    assert not faults(left, store)
    clock.advance(2 * HOUR)  # contents opened for the verification count as new for an hour
    assert swept(store) == 3
    assert faults(left, store)
    assert not faults(stays, store)


def test_a_discarded_run_that_is_asked_again_keeps_its_sources() -> None:
    clock = Clock()
    store = open_memory(clock=clock)
    first = researched("How long was it?", texts(3), store=store, discard=True).report
    again = researched("How long was it?", texts(3), store=store).report
    assert again.dump() == first.dump()
    clock.advance(3 * HOUR)
    assert swept(store) == 0
    assert not faults(again, store)


def test_a_discarded_run_is_gone_on_from_while_its_sources_are_there(tmp_path: Path) -> None:
    clock = Clock()
    store = open_memory(clock=clock)
    (tmp_path / "a.md").write_text("The dam of Gent broke in 1911.")
    first = researched("When did it break?", [tmp_path], store=store, discard=True).report
    again = researched("When did it break?", [tmp_path], store=store, discard=True, resume=True)
    assert again.report.dump() == first.dump()
    clock.advance(3 * HOUR)
    assert swept(store) == 1
    with pytest.raises(ResearchError, match="no longer has all sources"):
        researched("When did it break?", [tmp_path], store=store, resume=True)
    anew = researched("When did it break?", [tmp_path], store=store).report
    assert anew.dump() == first.dump()
    assert not faults(anew, store)


class Undeleting(SqliteStore):
    """A store that notes which sessions are deleted."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.deleted: list[str] = []

    async def delete_session(self, scope: Scope) -> int:
        self.deleted.append(scope.session)
        return await super().delete_session(scope)


def test_only_a_closed_session_is_deleted_when_a_run_begins_anew() -> None:
    store = Undeleting.in_memory()
    first = researched("How long was it in part 3?", texts(3), store=store)
    researched("How long was it in part 3?", texts(3), store=store)
    assert store.deleted == [], "another process may be working in it"
    asyncio.run(store.close_session(Scope().of(first.report.run)))
    researched("How long was it in part 3?", texts(3), store=store)
    assert store.deleted == [first.report.run]
