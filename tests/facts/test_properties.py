"""Facts added, superseded and forgotten in any order: only current facts of the scope are found.

Three ledgers of two users share a store, and each has a model of its facts. Both the store in
memory and the file are driven, and every answer of `top` is compared with the model.
"""

from __future__ import annotations

import asyncio
import tempfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from holdfast.errors import StoreConflictError
from holdfast.facts import Fact, FactFilter, FactIndexCache, Ledger
from holdfast.facts.ledger import SECRETS
from holdfast.privacy import find
from holdfast.store import Scope, open_store
from holdfast.store.fact_store import key_of
from holdfast.store.opening import open_memory
from tests.privacy.made import UPPER, run
from tests.store.harness import HERE

SCOPES = (Scope("ann", "blue"), Scope("bob", "blue"), Scope("ann", "red"))
whose = st.sampled_from(range(len(SCOPES)))
sessions = st.sampled_from(["", "s1", "s2"])
texts = st.sampled_from([f"the {thing} is {n}" for thing in ("car", "house") for n in "abc"])
subjects = st.sampled_from(["", "car", "house"])


class Ledgers(RuleBasedStateMachine):
    """The ledger against a dictionary of the current facts."""

    url = "memory:"

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        url = self.url.format(folder=self.folder.name)
        self.store = self.do(open_store(url))
        indexes = FactIndexCache(self.store, None)
        self.ledgers = [Ledger(self.store, scope, indexes) for scope in SCOPES]
        self.current: list[dict[str, Fact]] = [{} for _ in SCOPES]
        self.superseded: list[set[str]] = [set() for _ in SCOPES]
        self.added: list[dict[str, None]] = [{} for _ in SCOPES]
        """Ids in the order of adding: they are random, and the order of a set of them would be."""
        self.time = 0.0

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        self.do(self.store.close())
        self.loop.close()
        self.folder.cleanup()

    def _noted(self, who: int, fact: Fact, replaced: set[str]) -> None:
        current = self.current[who]
        if fact.subject:
            replaced |= {i for i, old in current.items() if old.subject == fact.subject}
        self.superseded[who] |= replaced - {fact.id}
        self.current[who] = {i: f for i, f in current.items() if i not in replaced}
        self.current[who][fact.id] = fact
        self.added[who][fact.id] = None

    @rule(who=whose, text=texts, subject=subjects, session=sessions)
    def add(self, who: int, text: str, subject: str, session: str) -> None:
        self.time += 1.0
        adding = self.ledgers[who].add(
            text, source_ref="m", subject=subject, session=session, at=self.time
        )
        self._noted(who, self.do(adding), set())

    @rule(who=whose, text=texts, data=st.data())
    def supersede(self, who: int, text: str, data: st.DataObject) -> None:
        existing = self.current[who].keys() | self.superseded[who]
        candidates = [fact_id for fact_id in self.added[who] if fact_id in existing]
        if not candidates:
            return
        old = data.draw(st.sampled_from(candidates))
        self.time += 1.0
        call = self.ledgers[who].supersede(old, text, source_ref="m", at=self.time)
        if old in self.current[who]:
            self._noted(who, self.do(call), {old})
        else:
            with pytest.raises(StoreConflictError):
                self.do(call)

    @rule(who=whose, words=st.sampled_from(["car", "is b", "nobody"]))
    def forget(self, who: int, words: str) -> None:
        forgotten = {fact.id for fact in self.do(self.ledgers[who].forget(FactFilter(words=words)))}
        for fact_id, fact in list(self.current[who].items()):
            assert (fact_id in forgotten) == (words in fact.text)
        self.current[who] = {i: f for i, f in self.current[who].items() if i not in forgotten}
        self.superseded[who] -= forgotten

    @invariant()
    def what_is_found_is_current_and_ours(self) -> None:
        for who, ledger in enumerate(self.ledgers):
            ranked = self.do(ledger.top("which car and which house", k=50))
            assert {each.fact.id for each in ranked} == self.current[who].keys()
            assert all(each.fact.is_current for each in ranked)
            assert not self.superseded[who] & self.current[who].keys()
            assert len({key_of(each.fact.text) for each in ranked}) == len(ranked)
            of_subject = [each.fact.subject for each in ranked if each.fact.subject]
            assert len(set(of_subject)) == len(of_subject)


class FileLedgers(Ledgers):
    """The same on SQLite."""

    url = "sqlite:///{folder}/holdfast.db"


TestLedgers = Ledgers.TestCase
TestLedgers.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestFileLedgers = FileLedgers.TestCase
TestFileLedgers.settings = settings(max_examples=5, stateful_step_count=15, deadline=None)


@pytest.mark.campaign
def test_ledgers_agree_over_many_histories() -> None:
    for machine in (Ledgers, FileLedgers):
        run_state_machine_as_test(
            machine, settings=settings(max_examples=400, stateful_step_count=40, deadline=None)
        )


KEYS = st.sampled_from(
    ["AKIA" + run(16, UPPER), "password=hunter2isSecret!9", "4111 1111 1111 1111"]
)
TEMPLATES = st.sampled_from(
    [
        "I keep {} in the safe of my house in Rome since 3 May.",
        "My new key for Berlin is {} and my budget is $300.",
        "Always use {} when I ask about the store in Oslo.",
    ]
)


@given(key=KEYS, template=TEMPLATES, around=st.text(alphabet="aI .,\n", max_size=20))
@settings(max_examples=40, deadline=None)
def test_no_secret_becomes_a_fact(key: str, template: str, around: str) -> None:
    async def work() -> None:
        store = open_memory()
        ledger = Ledger(store, HERE, FactIndexCache(store, None))
        text = f"{around} {template.format(key)}"
        await ledger.extract([{"role": "user", "content": text}])
        await ledger.extract(f'{{"id": "a1", "name": "{key}", "state": "on"}}', source_ref="r")
        for fact in await ledger.latest():
            assert not SECRETS & {finding.kind for finding in find(fact.text)}
            assert key not in fact.text

    asyncio.run(work())


@given(text=st.text(max_size=300))
@settings(max_examples=25, deadline=None)
def test_any_message_gives_facts_that_can_be_stored(text: str) -> None:
    async def work() -> None:
        store = open_memory()
        ledger = Ledger(store, HERE, FactIndexCache(store, None))
        sentence = f"I met {text} in Rome on 3 May. {text}"
        for fact in await ledger.extract([{"role": "user", "content": sentence, "id": "m"}]):
            assert len(fact.text) <= 500
            start, stop = map(int, fact.place.removeprefix("characters ").split("-"))
            assert fact.text.startswith(f"User: {sentence[start:stop]}"[:40])

    asyncio.run(work())
