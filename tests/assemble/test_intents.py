from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.assemble.intents import INTENTS, Intent, detect_intent, scores

SAID: dict[Intent, tuple[str, ...]] = {
    "quick_capture": (
        "Create a task for implementing context strategy",
        "Add a note: the deploy key is rotated every Friday",
        "Remind me to call the dentist tomorrow",
        "Remember that I am allergic to peanuts.",
        "todo: renew the passport",
        "Please log a bug: the export button does nothing",
        "Could you save this for later: build 4411 is the good one",
        "Note - Anna's birthday is on the 3rd of May",
        "File an issue for the broken login page",
        "Write this down: the gate code is on the fridge",
        "Set a reminder for the standup at 9",
        "Mark the second item as done",
        "My new address is Hafenstrasse 12.",
    ),
    "context_lookup": (
        "Search GitHub for alfred-system",
        "What did we discuss about caching?",
        "When is my flight?",
        "Who said that the budget was cut?",
        "Which database did we choose?",
        "Find the invoice from March",
        "Show me the list of open pull requests",
        "Do you remember the name of the restaurant?",
        "Where did I put the backup key?",
        "How many people signed up?",
        "Tell me what she said about the offer",
        "Did we agree on a date?",
        "What was the error code yesterday?",
        "Was there anything about parking?",
        "Wie heißt mein Hund?",
    ),
    "deep_analysis": (
        "Summarize the last hour of work",
        "Analyze why the latency went up after the release",
        "Why does the cache miss so often?",
        "Compare PostgreSQL and SQLite for this workload",
        "Explain the trade-offs of optimistic locking in detail",
        "Review this design and tell me what could go wrong",
        "What is the root cause of the outage?",
        "Evaluate the pros and cons of moving to Kubernetes",
        "Debug the failing test and explain what went wrong",
        "Give me a deep dive into the billing numbers",
    ),
    "planning": (
        "Plan the migration to the new data center",
        "How should we roll this out?",
        "Help me organize the team offsite",
        "What should I do before the deadline?",
        "Draft a roadmap for the next quarter",
        "Let's break this down into milestones",
        "Prioritize the backlog for the next sprint",
        "What are the next steps?",
        "I need to prepare an itinerary for Lisbon",
        "Outline the steps to launch the beta by next week",
    ),
}
LABELLED = [(text, intent) for intent, texts in SAID.items() for text in texts]


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("Search GitHub for alfred-system", "context_lookup"),
        ("What did we discuss about caching?", "context_lookup"),
        ("Create a task for implementing context strategy", "quick_capture"),
        ("Summarize the last hour of work", "deep_analysis"),
    ],
)
def test_the_four_queries_of_the_seed_have_the_intent_that_they_state(
    text: str, intent: Intent
) -> None:
    assert detect_intent(text) == intent


def test_nine_of_ten_turns_have_the_intent_that_a_reader_would_give_them() -> None:
    misses = {
        text: detect_intent(text) for text, intent in LABELLED if detect_intent(text) != intent
    }
    assert len(misses) <= len(LABELLED) // 10, misses


def test_signs_decide_only_between_equals() -> None:
    text_scores = scores("Search the plan")
    assert text_scores["context_lookup"] != text_scores["planning"]
    assert detect_intent("") == detect_intent("Hm.") == detect_intent("Wie heißt mein Hund?")


def test_what_is_pasted_behind_a_question_does_not_change_what_it_is_for() -> None:
    pasted = "\n" + "why analyze compare plan roadmap " * 5_000
    question = "Create a task for this: " + "x" * 2_000
    assert detect_intent(question + pasted) == detect_intent(question) == "quick_capture"


@given(st.text(max_size=300))
def test_every_text_has_one_intent_and_always_the_same(text: str) -> None:
    assert detect_intent(text) in INTENTS
    assert detect_intent(text) == detect_intent(text)
