"""`holdfast memory facts`: list, find, note, look back and forget, as tables and as JSON."""

from __future__ import annotations

import pytest

from tests.surfaces.harness import Cli


@pytest.fixture
def noted(cli: Cli) -> Cli:
    for text, source, *more in (
        ("The deadline is 1 May 2026", "m1", "--subject", "deadline", "--tag", "Plan"),
        ("The deadline is 9 May 2026", "m2", "--subject", "deadline", "--tag", "Plan"),
        ("Answer in German", "m3", "--standing"),
    ):
        cli("memory", "facts", "add", text, "--source", source, *more)
    return cli


def test_the_current_facts_are_listed_and_with_all_their_history(noted: Cli) -> None:
    told = noted("memory", "facts", "list", "--output", "json").json
    assert {fact["text"] for fact in told} == {"The deadline is 9 May 2026", "Answer in German"}
    drawn = noted("memory", "facts", "list", "--all", "--tag", "plan", "--output", "table").out
    assert "superseded: The deadline is 1 May 2026" in drawn
    assert "m2" in drawn
    assert "German" not in drawn


def test_what_is_found_shows_its_score_and_what_always_counts(noted: Cli) -> None:
    told = noted("memory", "facts", "search", "when is the deadline?", "--output", "json").json
    assert [fact["text"] for fact in told] == ["The deadline is 9 May 2026", "Answer in German"]
    assert told[0]["score"] > told[1]["score"]
    assert told[0]["contradicts"] == []
    drawn = noted("memory", "facts", "search", "when is the deadline?", "--output", "table").out
    assert "score" in drawn
    assert "*" in drawn


def test_a_fact_is_replaced_and_looked_back_at_by_the_beginning_of_its_id(noted: Cli) -> None:
    (fact,) = noted("memory", "facts", "list", "--tag", "plan", "--output", "json").json
    beginning = fact["id"][:8]
    added = ("The deadline is in June", "--source", "m4", "--instead-of", beginning)
    (fresh,) = noted("memory", "facts", "add", *added, "--output", "json").json
    chain = noted("memory", "facts", "history", fresh["id"][:8], "--output", "json").json
    assert [each["sources"][0]["ref"] for each in chain] == ["m1", "m2", "m4"]
    missing = noted("memory", "facts", "history", "zzz")
    assert "no fact has this id" in missing.err


def test_forgetting_is_shown_first(noted: Cli) -> None:
    preview = noted("memory", "facts", "forget", "--words", "deadline")
    assert "2 facts would be removed: add --yes." in preview.err
    assert len(noted("memory", "facts", "list", "--all", "--output", "json").json) == 3
    gone = noted("memory", "facts", "forget", "--words", "german", "--yes", "--output", "json")
    assert "1 fact removed." in gone.err
    assert [fact["text"] for fact in gone.json] == ["Answer in German"]
    assert len(noted("memory", "facts", "list", "--all", "--output", "json").json) == 2
    assert "the filter is empty" in noted("memory", "facts", "forget", "--yes").err


def test_secrets_are_refused(cli: Cli) -> None:
    refused = cli("memory", "facts", "add", "The card is 4111 1111 1111 1111", "--source", "m")
    assert "credit_card" in refused.err
    assert cli("memory", "facts", "list", "--output", "json").json == []
