"""HoldfastStore beside LangGraph's own InMemoryStore: the same operations, the same answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from holdfast.errors import StoreError
from holdfast.integrations._host import Host
from holdfast.integrations.langgraph import HoldfastStore

NAMESPACES = st.lists(st.sampled_from(["a", "b", "users"]), min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k", "l", "Ünï"])
VALUES = st.dictionaries(st.sampled_from(["n", "text"]), st.integers(0, 3) | st.text(max_size=3))
FILTERS = st.none() | st.fixed_dictionaries({"n": st.integers(0, 3)})
OPS = st.one_of(
    st.tuples(NAMESPACES, KEYS, st.none() | VALUES).map(lambda op: PutOp(*op)),
    st.tuples(NAMESPACES, KEYS).map(lambda op: GetOp(*op)),
    st.tuples(NAMESPACES, FILTERS, st.integers(1, 5), st.integers(0, 2)).map(
        lambda op: SearchOp(*op)
    ),
    st.builds(
        ListNamespacesOp,
        st.none()
        | st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), NAMESPACES).map(
            lambda condition: (condition,)
        ),
        st.none() | st.integers(1, 3),
        st.integers(1, 5),
        st.integers(0, 2),
    ),
)


def plain(results: list[Any]) -> list[Any]:
    """Results without their times."""
    return [
        [getattr(i, "value", i) for i in result] if isinstance(result, list) else
        (None if result is None else (result.namespace, result.key, result.value))
        for result in results
    ]  # fmt: skip


@given(st.lists(st.lists(OPS, max_size=4), max_size=8))
@settings(max_examples=60, deadline=None)
def test_every_batch_is_answered_as_by_langgraphs_own_store(batches: list[list[Op]]) -> None:
    reference = InMemoryStore()
    with Host("memory:") as host:
        ours = HoldfastStore(host)
        for n, ops in enumerate(batches):
            expected = reference.batch(ops)
            got = asyncio.run(ours.abatch(ops)) if n % 2 else ours.batch(ops)
            assert plain(got) == plain(expected)
        again = HoldfastStore(host)  # as another process would read it
        everything: list[Op] = [SearchOp((), limit=1000), ListNamespacesOp(limit=1000)]
        items, names = plain(again.batch(everything))
        assert sorted(map(str, items)) == sorted(map(str, plain(reference.batch(everything))[0]))
        # Of a namespace whose last value was deleted before, nothing is left to be read.
        assert set(names) <= set(plain(reference.batch(everything))[1])


def test_two_processes_see_each_other(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    one, other = HoldfastStore(url), HoldfastStore(url)
    for n in range(10):
        (one, other)[n % 2].put(("a",), f"k{n}", {"n": n})
    assert len(one.search(("a",), limit=100)) == len(other.search(("a",), limit=100)) == 10
    one.delete(("a",), "k3")
    assert other.get(("a",), "k3") is None
    one.host.close()
    other.host.close()


def test_what_is_out_of_date_is_gone_and_what_is_read_lives_on() -> None:
    with Host("memory:") as host:
        store, now = HoldfastStore(host), 1_000.0
        store._clock = lambda: now
        store.put(("a",), "short", {"n": 1}, ttl=1)
        store.put(("a",), "read", {"n": 2}, ttl=1)
        now += 40
        assert store.get(("a",), "read") is not None
        now += 40
        assert store.get(("a",), "short", refresh_ttl=False) is None
        assert store.get(("a",), "read", refresh_ttl=False) is not None
        now += 40
        assert store.search(("a",)) == []
        later = HoldfastStore(host)
        later._clock = lambda: now
        assert later.get(("a",), "read") is None


def test_what_a_value_means_is_found_after_a_restart() -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[float(text.count(sign)) for sign in "abc"] for text in texts]

    index: Any = {"dims": 3, "embed": embed, "fields": ["text"]}
    with Host("memory:") as host:
        store = HoldfastStore(host, index=index)
        store.put(("d",), "1", {"text": "aaa"})
        store.put(("d",), "2", {"text": "bbb"})
        store.put(("d",), "3", {"text": "b"}, index=False)
        for each in (store, HoldfastStore(host, index=index)):
            [best, *_] = each.search(("d",), query="bb")
            assert best.key == "2"
            assert best.score == pytest.approx(1.0)


def test_what_is_no_json_is_refused_and_nothing_is_changed() -> None:
    with Host("memory:") as host:
        store = HoldfastStore(host)
        with pytest.raises(StoreError, match="JSON"):
            store.put(("a",), "k", {"n": object()})
        assert store.get(("a",), "k") is None
