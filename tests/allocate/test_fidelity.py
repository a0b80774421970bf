"""Fidelity: the record describes the prompt."""

from __future__ import annotations

import json

import pytest

from holdfast.allocate import ContentFidelityRecord, ContentState, Rung, fidelity_key
from holdfast.errors import SettingsError
from holdfast.settings import Settings
from tests.allocate.made import allocated, item, read_prompt
from tests.allocate.summarisers import count_words

ITEMS = [item("kept", 50, 0.9), item("told", 400, 0.5), item("gone", 9_000, 0.0)]
CONFIG = Settings(min_items_per_phase=1)


def test_records_say_by_value_what_the_prompt_shows() -> None:
    result = allocated(ITEMS, 175, settings=CONFIG, phase="analysis")
    shown = read_prompt(result.text)
    records = result.fidelity_metadata
    assert set(records) == {"analysis:kept", "analysis:told", "analysis:gone"}

    whole = records["analysis:kept"]
    assert shown["kept"].text == ITEMS[0].content
    assert (whole.requested_level, whole.level) == (Rung.RAW, Rung.RAW)
    assert (whole.tokens_from, whole.tokens_to, whole.ref) == (50, 50, "")

    told = records["analysis:told"]
    assert (told.level, shown["told"].level) == (Rung.KEY_POINTS, "key_points")
    assert told.tokens_to == count_words(shown["told"].text) == 100
    assert (told.tokens_from, told.ref) == (400, shown["told"].ref)
    assert (told.provider, told.model) == ("honest", "first-words")
    assert (told.checked, told.unsupported) == (3, 1)
    assert (told.truncated, told.dropped, told.reason) == (False, False, "")

    gone = records["analysis:gone"]
    assert "gone" not in shown
    assert (gone.level, gone.dropped, gone.reason) == (Rung.DROPPED, True, "no room")
    assert (gone.tokens_from, gone.tokens_to) == (9_000, 0)
    assert gone.ref
    assert result.dropped_ids == ["gone"]


def test_a_state_keeps_the_records_of_every_phase() -> None:
    state = ContentState(query="Why?")
    for phase, budget in (("analysis", 175), ("synthesis", 20_000)):
        result = allocated(ITEMS, budget, settings=CONFIG, phase=phase)
        state.content_fidelity.update(result.fidelity_metadata)
        state.note(result.fidelity_metadata)
    assert [record.level for record in state.of("gone")] == [Rung.DROPPED, Rung.RAW]
    assert state.dropped_content_ids == ["gone"]
    assert state.content_fidelity[fidelity_key("gone", "synthesis")].phase == "synthesis"


def test_a_state_comes_back_as_it_was() -> None:
    state = ContentState(query="Why?", now=1.0)
    state.note(allocated(ITEMS, 175, settings=CONFIG).fidelity_metadata)
    assert ContentState.load(state.dump()) == state
    assert ContentState.load(json.loads(state.dump())) == state


def test_states_of_older_versions_load_with_defaults() -> None:
    older = {"query": "Why?", "sources": [1, 2], "metadata": {"fidelity": {}}}
    state = ContentState.load(older)
    assert (state.query, state.content_fidelity, state.dropped_content_ids) == ("Why?", {}, [])
    sparse = ContentState.load(b'{"content_fidelity": {"s": {"source_id": "s"}}}')
    assert sparse.content_fidelity["s"] == ContentFidelityRecord(source_id="s")


def test_two_states_share_nothing() -> None:
    first, second = ContentState(), ContentState()
    first.dropped_content_ids.append("a")
    first.content_fidelity["a"] = ContentFidelityRecord(source_id="a")
    assert (second.dropped_content_ids, second.content_fidelity) == ([], {})


@pytest.mark.parametrize("junk", [b"", b"[]", b"\xff", b'{"content_fidelity": 3}', {"now": "x"}])
def test_what_is_no_state_is_refused_without_its_content(junk: bytes) -> None:
    with pytest.raises(SettingsError, match="not the state of a run"):
        ContentState.load(junk)
