"""The values that the guard's page recommends for troubleshooting show the cause."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast import count, fit, read
from holdfast.guard import ContextGuard, TargetContextConfig, estimate_messages_tokens
from tests.guard.harness import MODEL, PROVIDER, Handles, guard

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "guard.md"
PLACES = {
    "target": TargetContextConfig("openai", "gpt-4o", 128_000),
    "counters": guard(1000).counters,
    "evaluate()": guard(1000).evaluate(),
}


def looked_at() -> list[tuple[str, str]]:
    """Return each symptom of the page's last table, with the recommended names."""
    table = PAGE.read_text("utf-8").split("## When something is odd")[1]
    rows = re.findall(r"^\| ([A-Z][^|]+) \| (.+) \|$", table, re.MULTILINE)
    return [(symptom, name) for symptom, where in rows for name in re.findall(r"`(.+?)`", where)]


@pytest.mark.parametrize(("symptom", "name"), looked_at())
def test_every_name_that_the_page_says_to_look_at_is_there(symptom: str, name: str) -> None:
    place, _, attribute = name.rpartition(".")
    holders = [PLACES[place]] if place else [*PLACES.values(), guard(1000)]
    arguments = {"store", "tokens", "projected", "limit"}  # of the guard, a reservation, an entry
    assert name in arguments or any(hasattr(holder, attribute) for holder in holders), symptom


def test_the_page_tells_what_to_do_about_every_trouble_of_the_seed() -> None:
    assert list(dict(looked_at())) == [
        "Unexpected final turn",
        "Counts do not match",
        "A tool's output is refused",
        "A target is skipped",
        "The context does not grow",
    ]


def test_an_unexpected_final_turn_shows_in_the_limit_and_in_the_schemas() -> None:
    target = TargetContextConfig("openai", "gpt-4o", 8_000, max_output_tokens=6_000)
    it = ContextGuard([target], current_tokens=1_000, on_overflow="best_effort")
    it.set_schema(900)
    assert it.preflight("openai", "gpt-4o") == "final"
    assert target.limit == 8_000 - 256 - 6_000
    assert it.counters.schema > target.limit - it.counters.conversation


def test_counts_that_do_not_match_show_beside_what_the_provider_reports() -> None:
    it = guard(100_000, current_tokens=4_000)
    it.set_schema(500)
    expected = it.request_metrics(PROVIDER, MODEL).expected_tokens
    it.commit()
    it.observe_usage(5_200, 100)
    assert expected == 4_500
    assert it.request_metrics(PROVIDER, MODEL).expected_tokens == 5_300


def test_a_refused_output_shows_what_it_costs_and_a_store_takes_it() -> None:
    it = guard(1_000, current_tokens=700)
    reservation = it.reserve_tool_output("400")
    assert (reservation.ok, reservation.tokens) == (False, 400)
    assert it.evaluate().projected_tokens + reservation.tokens > 1_000
    assert guard(1_000, current_tokens=700, store=Handles(20)).reserve_tool_output("400").ok


def test_a_skipped_target_shows_its_window_and_the_projection_against_its_limit() -> None:
    it = guard(300, 900, current_tokens=500)
    assert it.evaluate_for(PROVIDER, MODEL) == "skip"
    (entry,) = it.evaluate().blocked
    assert (entry.model, entry.context_window, entry.limit, entry.projected) == (
        MODEL,
        300,
        300,
        500,
    )


def test_a_context_grows_by_what_is_added_and_reported_and_by_nothing_else() -> None:
    it = guard(1_000)
    it.commit()
    assert it.evaluate().projected_tokens == 0  # a message that nobody added
    it.add_pending(50)
    it.commit()
    it.commit()
    assert it.evaluate().projected_tokens == 50
    it.observe_usage(60, 15)
    assert it.evaluate().projected_tokens == 75


def test_a_long_conversation_goes_on_after_it_was_folded() -> None:
    """002-54: the guard ends a session only if folding it between turns is not enough."""
    model = "openai:gpt-4o"
    messages: list[dict[str, str]] = [{"role": "system", "content": "Be brief."}]
    for number in range(200):
        messages.append({"role": "user", "content": f"Question {number}: " + "why " * 40})
        messages.append({"role": "assistant", "content": f"Answer {number}: " + "so " * 40})
    messages.append({"role": "user", "content": "And now?"})
    target = TargetContextConfig("openai", "gpt-4o", 12_000, max_output_tokens=2_000)
    it = ContextGuard([target], current_tokens=estimate_messages_tokens(messages, model))
    assert it.evaluate_for("openai", "gpt-4o") == "final"
    folded = read(fit({"messages": messages}, model=model, limit=target.limit // 2).body)
    it.rebase(estimate_messages_tokens(folded, model))
    assert it.preflight("openai", "gpt-4o") == "ok"
    it.commit()
    it.observe_usage(count(folded, model=model).tokens, 40)
    assert it.reserve_tool_output("a short page " * 100).ok
