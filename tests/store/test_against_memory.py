"""SQLite does what the store in memory does, whatever is asked of it in whatever order."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from holdfast.errors import HoldfastError
from holdfast.store import Content, Scope, Store, open_store
from holdfast.store.protocol import GRACE_SECONDS
from holdfast.store.records import RefInfo, Stored, StoreStats
from tests.store.harness import Clock, content, exported, lines_of, named, session, turn

scopes = st.builds(
    Scope,
    st.sampled_from(["ann", "bob"]),
    st.sampled_from(["blue", "red"]),
    st.sampled_from(["", "s1", "s2"]),
)
contents = st.builds(
    content,
    st.sampled_from(["a", "b", "c" * 300, "d"]),
    st.sampled_from(["log", "page"]),
    summary=st.sampled_from(["", "sum"]),
    compressed=st.sampled_from(["", "short"]),
    tokens=st.sampled_from([0, 9]),
    flags=st.sampled_from([(), ("key",)]),
    ttl_seconds=st.sampled_from([None, 0.0, 600.0, 9000.0]),
)
names = contents.flatmap(lambda c: st.sampled_from([c.ref_id, c.sha256, f"src_{c.sha256[:20]}"]))
messages = st.lists(st.sampled_from([b"a", b"m", b"n" * 400]), max_size=3)


class Twins(RuleBasedStateMachine):
    """Every step is taken in both stores; both must answer the same, or fail the same."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.folder = tempfile.TemporaryDirectory()
        self.path = f"sqlite:///{self.folder.name}/holdfast.db"
        self.memory = self.loop.run_until_complete(open_store("memory:", clock=self.clock))
        self.sqlite = self.loop.run_until_complete(open_store(self.path, clock=self.clock))

    def teardown(self) -> None:
        self.loop.run_until_complete(self.sqlite.close())
        self.loop.close()
        self.folder.cleanup()

    def both(self, call: Callable[[Store], Awaitable[Any]]) -> Any:
        expected, found = (
            self.loop.run_until_complete(_outcome(call, store))
            for store in (self.memory, self.sqlite)
        )
        assert found == expected
        return expected

    @rule(seconds=st.sampled_from([1.0, 500.0, GRACE_SECONDS]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def reopened(self) -> None:
        self.loop.run_until_complete(self.sqlite.close())
        self.sqlite = self.loop.run_until_complete(open_store(self.path, clock=self.clock))

    @rule(scope=scopes, made=st.lists(contents, max_size=3))
    def put(self, scope: Scope, made: list[Content]) -> None:
        self.both(lambda store: store.put(scope, made))

    @rule(scope=scopes, name=names)
    def get(self, scope: Scope, name: str) -> None:
        self.both(lambda store: store.get(scope, name))

    @rule(scope=scopes, name=names)
    def info(self, scope: Scope, name: str) -> None:
        self.both(lambda store: store.info(scope, name))

    @rule(
        scope=scopes,
        kind=st.sampled_from(["", "log"]),
        limit=st.integers(0, 3),
        before=st.just("") | names,
    )
    def refs(self, scope: Scope, kind: str, limit: int, before: str) -> None:
        self.both(lambda store: store.refs(scope, kind=kind, limit=limit, before=before))

    @rule(scope=scopes, gone=st.lists(names, max_size=2))
    def forget(self, scope: Scope, gone: list[str]) -> None:
        self.both(lambda store: store.forget(scope, gone))

    @rule(scope=scopes, number=st.integers(1, 3), said=messages, at=st.sampled_from([1.0, 2.0]))
    def add_turn(self, scope: Scope, number: int, said: list[bytes], at: float) -> None:
        record = session(scope.session, updated_at=at)
        one = turn(number, said)
        self.both(lambda store: store.add_turn(scope, one, record, named(*said[:2])))

    @rule(scope=scopes, linked=st.lists(st.sampled_from(["r1", "r2", "r3"]), max_size=2))
    def link(self, scope: Scope, linked: list[str]) -> None:
        self.both(lambda store: store.link(scope, linked))
        self.both(lambda store: store.session_linked(scope, "r1"))

    @rule(scope=scopes)
    def close_session(self, scope: Scope) -> None:
        self.both(lambda store: store.close_session(scope))

    @rule(scope=scopes)
    def delete_session(self, scope: Scope) -> None:
        self.both(lambda store: store.delete_session(scope))

    @rule(scope=scopes, heads=st.lists(st.sampled_from(["head of s1", "head of s2"])))
    def look_at_sessions(self, scope: Scope, heads: list[str]) -> None:
        self.both(lambda store: store.sessions(scope))
        self.both(lambda store: store.session_with_head(scope, heads))
        self.both(lambda store: store.session_with_head(scope, heads, client=("", "")))
        self.both(lambda store: store.session_beside(scope, "put back"))
        self.both(lambda store: store.turns(scope, after=1))
        self.both(lambda store: store.usage(scope, by="session"))

    @rule(scope=scopes, grace=st.sampled_from([0.0, 400.0, GRACE_SECONDS]))
    def gc(self, scope: Scope, grace: float) -> None:
        self.both(lambda store: store.gc(scope, grace_seconds=grace))

    @rule(source=scopes, goal=scopes)
    def moved(self, source: Scope, goal: Scope) -> None:
        lines = self.loop.run_until_complete(exported(self.memory, source))
        self.both(lambda store: store.restore(goal, lines_of(lines)))

    @rule(scope=scopes)
    def verify(self, scope: Scope) -> None:
        assert self.both(lambda store: store.verify(scope)) == []

    @invariant()
    def the_same_is_stored(self) -> None:
        for user in ("ann", "bob"):
            for workspace in ("blue", "red"):
                scope = Scope(user, workspace)
                self.both(lambda store, scope=scope: _sorted_export(store, scope))  # type: ignore[misc]
                self.both(lambda store, scope=scope: store.stats(scope))  # type: ignore[misc]


async def _sorted_export(store: Store, scope: Scope) -> list[bytes]:
    return sorted(await exported(store, scope))


async def _outcome(call: Callable[[Store], Awaitable[Any]], store: Store) -> Any:
    try:
        return _comparable(await call(store))
    except HoldfastError as error:
        return type(error), error.what


def _comparable(value: Any) -> Any:
    """Without what the stores may see differently: bytes on disk, accesses under way."""
    match value:
        case Stored(info, data):
            return (_comparable(info), data)
        case RefInfo():
            return msgspec.structs.replace(value, accesses=0, accessed_at=None)
        case StoreStats():
            return msgspec.structs.replace(value, stored=0)
        case _:
            return value


TestTwins = Twins.TestCase
TestTwins.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)


@pytest.mark.campaign
def test_twins_agree_over_many_histories() -> None:
    run_state_machine_as_test(
        Twins, settings=settings(max_examples=400, stateful_step_count=40, deadline=None)
    )
