"""Nothing crosses users or workspaces, in any method of the protocol."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import StoreError
from holdfast.store import Scope, Store
from holdfast.store.queue import NewJob
from holdfast.store.refs import digest
from tests.store.harness import (
    HERE,
    OTHER_USER,
    OTHER_WORKSPACE,
    Opener,
    content,
    exported,
    lines_of,
    named,
    session,
    turn,
)

MINE = content("mine alone", ttl_seconds=1.0)
STRANGERS = [
    OTHER_USER,
    OTHER_WORKSPACE,
    Scope("bob", "red", "s1"),
    # Names that a careless key would mix up with ours.
    Scope("annblue", "blue", "s1"),
    Scope("ann:blue", "blue", "s1"),
    Scope("blue", "ann", "s1"),
    Scope("ANN", "blue", "s1"),
    Scope("%", "%", "s1"),
    Scope("ann ", "blue", "s1"),
]
HEADER = [b'{"type":"holdfast","version":5}\n']
Attack = Callable[[Store, Scope], Awaitable[object]]


async def _filled(store: Store) -> None:
    await store.put(HERE, [MINE])
    await store.add_turn(HERE, turn(1, [b"m"]), session(), named(b"m"))
    await store.save_calibration(HERE, b"mine")
    await store.journal.append(HERE, "put back", [b"mine"])
    await store.link(HERE, ["resp_mine"])
    await store.jobs.enqueue(HERE, [NewJob(kind="x", key="mine", ref_id=MINE.ref_id)])
    await store.put_summary(HERE, "my summary", b"mine", source=MINE.sha256)


async def _refused(call: Awaitable[Any]) -> None:
    with pytest.raises(StoreError):
        await call


async def _put(store: Store, scope: Scope) -> None:
    await store.put(scope, [content("theirs")])
    assert [info.ref_id for info in await store.refs(scope)] == [content("theirs").ref_id]


async def _get(store: Store, scope: Scope) -> None:
    for name in (MINE.ref_id, MINE.sha256, f"content_{MINE.sha256[:16]}"):
        assert await store.get(scope, name) is None


async def _info(store: Store, scope: Scope) -> None:
    assert await store.info(scope, MINE.ref_id) is None


async def _refs(store: Store, scope: Scope) -> None:
    assert await store.refs(scope) == await store.refs(scope.of("")) == []
    await _refused(store.refs(scope, before=MINE.ref_id))


async def _forget(store: Store, scope: Scope) -> None:
    assert await store.forget(scope, [MINE.ref_id, MINE.sha256]) == 0


async def _session(store: Store, scope: Scope) -> None:
    assert await store.session(scope) is None


async def _session_beside(store: Store, scope: Scope) -> None:
    assert await store.session_beside(scope, "put back") == (None, 0)


async def _sessions(store: Store, scope: Scope) -> None:
    assert await store.sessions(scope) == []
    await _refused(store.sessions(scope, before="s1"))


async def _session_with_head(store: Store, scope: Scope) -> None:
    assert await store.session_with_head(scope, [session().head]) is None


async def _add_turn(store: Store, scope: Scope) -> None:
    await store.add_turn(scope, turn(1, [b"m"], model="theirs"), session(title="theirs"), {})
    assert await store.messages(scope, [digest(b"m")]) == {}


async def _turns(store: Store, scope: Scope) -> None:
    assert await store.turns(scope) == []


async def _messages(store: Store, scope: Scope) -> None:
    assert await store.messages(scope, [digest(b"m"), MINE.sha256]) == {}


async def _link(store: Store, scope: Scope) -> None:
    await store.link(scope, ["resp_mine"])


async def _session_linked(store: Store, scope: Scope) -> None:
    assert await store.session_linked(scope, "resp_mine") == ""


async def _close_session(store: Store, scope: Scope) -> None:
    await store.close_session(scope)


async def _delete_session(store: Store, scope: Scope) -> None:
    assert await store.delete_session(scope) == 0


async def _erase_session(store: Store, scope: Scope) -> None:
    assert not await store.erase_session(scope)


async def _usage(store: Store, scope: Scope) -> None:
    assert await store.usage(scope) == await store.usage(scope.of(""), by="session") == []


async def _calibration(store: Store, scope: Scope) -> None:
    assert await store.calibration(scope) is None


async def _save_calibration(store: Store, scope: Scope) -> None:
    await store.save_calibration(scope, b"theirs")


async def _summary(store: Store, scope: Scope) -> None:
    assert await store.summary(scope, "my summary") is None


async def _put_summary(store: Store, scope: Scope) -> None:
    await store.put_summary(scope, "my summary", b"theirs")
    assert await store.summary(scope, "my summary") == b"theirs"


async def _audit(store: Store, scope: Scope) -> None:
    assert await store.audit(scope) == []


async def _stats(store: Store, scope: Scope) -> None:
    stats = await store.stats(scope)
    assert stats.refs == stats.contents == stats.size == stats.sessions == stats.turns == 0
    assert stats.by_kind == {}


async def _verify(store: Store, scope: Scope) -> None:
    told: list[int] = []
    assert await store.verify(scope, lambda done, _: told.append(done)) == []
    assert told == []


async def _gc(store: Store, scope: Scope) -> None:
    assert (await store.gc(scope, grace_seconds=-10_000.0)).refs == 0


async def _expire(store: Store, scope: Scope) -> None:
    assert not await store.expire(scope, 1e12)


async def _erase(store: Store, scope: Scope) -> None:
    assert not await store.erase(scope)


async def _export(store: Store, scope: Scope) -> None:
    assert await exported(store, scope) == HEADER


async def _restore(store: Store, scope: Scope) -> None:
    await store.restore(scope, lines_of(await exported(store, HERE)))
    await store.forget(scope, [MINE.ref_id])
    await store.delete_session(scope)


ATTACKS: dict[str, Attack] = {
    name.removeprefix("_"): function
    for name, function in list(globals().items())
    if name.startswith("_")
    and inspect.iscoroutinefunction(function)
    and name not in ("_filled", "_refused")
}
WITHOUT_SCOPE = {"backup", "check", "close", "erase_all", "removals", "scopes", "scrub", "secret"}
"""Calls on the whole store: their callers may read the file."""


def test_every_method_of_the_protocol_is_attacked() -> None:
    methods = {
        name: inspect.signature(method)
        for name, method in inspect.getmembers(Store, inspect.isfunction)
        if not name.startswith("_")
    }
    scoped = {name for name, signature in methods.items() if "scope" in signature.parameters}
    assert methods.keys() - scoped == WITHOUT_SCOPE
    assert scoped == ATTACKS.keys()
    for name in scoped:
        assert list(methods[name].parameters)[:2] == ["self", "scope"], name


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_method_reads_or_changes_what_belongs_to_others(opener: Opener, attack: str) -> None:
    async def work(store: Store) -> None:
        await _filled(store)
        before = await exported(store, HERE)
        for stranger in STRANGERS:
            await ATTACKS[attack](store, stranger)
            assert await exported(store, HERE) == before, stranger
        opened = await store.get(HERE, MINE.ref_id)
        assert opened is not None
        assert opened.data == MINE.data

    opener.run(work)


def test_no_one_sees_or_changes_the_jobs_and_quotas_of_others(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await _filled(store)
        for stranger in STRANGERS:
            assert await store.jobs.latest(stranger) == []
            assert await store.jobs.spent(stranger) == {}
            assert await store.jobs.enqueue(stranger, [NewJob(kind="x", key="mine")]) == 1
            assert len(await store.jobs.latest(HERE)) == 1

    opener.run(work)


def test_sessions_of_one_user_see_each_others_refs(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await _filled(store)
        assert await store.get(HERE.of("s2"), MINE.ref_id)

    opener.run(work)


def test_equal_content_of_another_is_found_only_by_who_stored_it(opener: Opener) -> None:
    async def work(store: Store) -> None:
        await _filled(store)
        await store.put(OTHER_USER, [content("mine alone", "page")])
        assert await store.get(OTHER_USER, content("mine alone", "page").ref_id)
        assert await store.get(OTHER_USER, MINE.ref_id) is None
        assert [i.kind for i in await store.refs(OTHER_USER)] == ["page"]

    opener.run(work)


names = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=5
)


@given(one=st.tuples(names, names), other=st.tuples(names, names))
def test_two_scopes_share_records_only_if_they_are_equal(
    tmp_path_factory: pytest.TempPathFactory, one: tuple[str, str], other: tuple[str, str]
) -> None:
    folder: Path = tmp_path_factory.getbasetemp() / "scopes"
    made = content(repr((one, other)))

    async def work(store: Store) -> bool:
        await store.put(Scope(*one), [made])
        found = await store.info(Scope(*other), made.ref_id)
        await store.forget(Scope(*one), [made.ref_id])
        return found is not None

    assert Opener(f"sqlite:///{folder}/holdfast.db").run(work) == (one == other)
