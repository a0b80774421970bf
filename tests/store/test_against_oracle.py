"""Each store does the same as the model, for any calls in any order."""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast.errors import HoldfastError
from holdfast.store import Content, Scope, Store, open_store
from holdfast.store.protocol import GRACE_SECONDS
from holdfast.store.records import RefInfo, Stored, StoreStats
from tests.store.harness import Clock, content, exported, lines_of, named, session, turn
from tests.store.oracle.store import model_store

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
    """Every step is taken in store and model; both must answer the same, or fail the same."""

    url = ""
    """Of the store; a new file without one."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.folder = tempfile.TemporaryDirectory()
        self.path = self.url or f"sqlite:///{self.folder.name}/holdfast.db"
        self.mark = uuid.uuid4().hex[:8]
        self.model = model_store(self.clock)
        self.store = self.loop.run_until_complete(open_store(self.path, clock=self.clock))

    def teardown(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.loop.close()
        self.folder.cleanup()

    def here(self, scope: Scope) -> Scope:
        """Return the scope in a workspace of this run: a server keeps those of earlier runs."""
        return Scope(scope.user, f"{scope.workspace} {self.mark}", scope.session)

    def both(self, scope: Scope, call: Callable[[Store, Scope], Awaitable[Any]]) -> Any:
        expected, actual = (
            self.loop.run_until_complete(_outcome(call, store, self.here(scope)))
            for store in (self.model, self.store)
        )
        assert actual == expected
        return expected

    @rule(seconds=st.sampled_from([1.0, 500.0, GRACE_SECONDS]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @precondition(lambda self: self.url != "memory:")
    @rule()
    def reopened(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.store = self.loop.run_until_complete(open_store(self.path, clock=self.clock))

    @rule(scope=scopes, made=st.lists(contents, max_size=3))
    def put(self, scope: Scope, made: list[Content]) -> None:
        self.both(scope, lambda store, here: store.put(here, made))

    @rule(scope=scopes, name=names)
    def get(self, scope: Scope, name: str) -> None:
        self.both(scope, lambda store, here: store.get(here, name))

    @rule(scope=scopes, name=names)
    def info(self, scope: Scope, name: str) -> None:
        self.both(scope, lambda store, here: store.info(here, name))

    @rule(
        scope=scopes,
        kind=st.sampled_from(["", "log"]),
        limit=st.integers(0, 3),
        before=st.just("") | names,
    )
    def refs(self, scope: Scope, kind: str, limit: int, before: str) -> None:
        self.both(
            scope, lambda store, here: store.refs(here, kind=kind, limit=limit, before=before)
        )

    @rule(scope=scopes, gone=st.lists(names, max_size=2))
    def forget(self, scope: Scope, gone: list[str]) -> None:
        self.both(scope, lambda store, here: store.forget(here, gone))

    @rule(scope=scopes, number=st.integers(1, 3), said=messages, at=st.sampled_from([1.0, 2.0]))
    def add_turn(self, scope: Scope, number: int, said: list[bytes], at: float) -> None:
        record = session(scope.session, updated_at=at)
        one = turn(number, said)
        self.both(scope, lambda store, here: store.add_turn(here, one, record, named(*said[:2])))

    @rule(scope=scopes, linked=st.lists(st.sampled_from(["r1", "r2", "r3"]), max_size=2))
    def link(self, scope: Scope, linked: list[str]) -> None:
        self.both(scope, lambda store, here: store.link(here, linked))
        self.both(scope, lambda store, here: store.session_linked(here, "r1"))

    @rule(scope=scopes)
    def close_session(self, scope: Scope) -> None:
        self.both(scope, lambda store, here: store.close_session(here))

    @rule(scope=scopes)
    def delete_session(self, scope: Scope) -> None:
        self.both(scope, lambda store, here: store.delete_session(here))

    @rule(scope=scopes, heads=st.lists(st.sampled_from(["head of s1", "head of s2"])))
    def look_at_sessions(self, scope: Scope, heads: list[str]) -> None:
        self.both(scope, lambda store, here: store.sessions(here))
        self.both(scope, lambda store, here: store.session_with_head(here, heads))
        self.both(scope, lambda store, here: store.session_with_head(here, heads, client=("", "")))
        self.both(scope, lambda store, here: store.session_beside(here, "put back"))
        self.both(scope, lambda store, here: store.turns(here, after=1))
        self.both(scope, lambda store, here: store.usage(here, by="session"))

    @rule(scope=scopes, grace=st.sampled_from([0.0, 400.0, GRACE_SECONDS]))
    def gc(self, scope: Scope, grace: float) -> None:
        self.both(scope, lambda store, here: store.gc(here, grace_seconds=grace))

    @rule(source=scopes, goal=scopes)
    def moved(self, source: Scope, goal: Scope) -> None:
        lines = self.loop.run_until_complete(exported(self.model, self.here(source)))
        self.both(goal, lambda store, here: store.restore(here, lines_of(lines)))

    @rule(scope=scopes)
    def verify(self, scope: Scope) -> None:
        assert self.both(scope, lambda store, here: store.verify(here)) == []

    @invariant()
    def the_same_is_stored(self) -> None:
        for user in ("ann", "bob"):
            for workspace in ("blue", "red"):
                scope = Scope(user, workspace)
                self.both(scope, _sorted_export)
                self.both(scope, lambda store, here: store.stats(here))


async def _sorted_export(store: Store, scope: Scope) -> list[bytes]:
    return sorted(await exported(store, scope))


async def _outcome(
    call: Callable[[Store, Scope], Awaitable[Any]], store: Store, scope: Scope
) -> Any:
    try:
        return _comparable(await call(store, scope))
    except HoldfastError as error:
        return type(error), error.what


def _comparable(value: Any) -> Any:
    """Return a value without fields that may differ between stores: bytes on disk, pending
    accesses.
    """
    match value:
        case Stored(info, data):
            return (_comparable(info), data)
        case RefInfo():
            return msgspec.structs.replace(value, accesses=0, accessed_at=None)
        case StoreStats():
            return msgspec.structs.replace(value, stored=0)
        case _:
            return value


def _run_against_model(url: str, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        type("Machine", (Twins,), {"url": url}),
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None),
    )


EXAMPLES = {"sqlite": 15, "memory": 15, "postgres": 4}


def url_of(kind: str, request: pytest.FixtureRequest) -> str:
    if kind == "postgres":
        return str(request.getfixturevalue("postgres_store_url"))
    return "memory:" if kind == "memory" else ""


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_store_agrees_with_the_model(kind: str, request: pytest.FixtureRequest) -> None:
    _run_against_model(url_of(kind, request), EXAMPLES[kind], 20)


@pytest.mark.campaign
@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_store_agrees_with_the_model_over_many_histories(
    kind: str, request: pytest.FixtureRequest
) -> None:
    _run_against_model(url_of(kind, request), 400, 40)
