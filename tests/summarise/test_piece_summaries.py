"""Answers that are no summaries are rejected."""

from __future__ import annotations

import pytest

from holdfast.summarise.piece_summaries import objection, strip_wrapping

SOURCE = (
    "The migration of the billing service to the new cluster failed at night, because the schema "
    "of the invoices table was locked by a report. It was rolled back in the morning."
)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        (" \n ...", "empty"),
        ("<think>The migration of the billing service failed, so I must say that", "empty"),
        ("I'm sorry, but I can't help with that.", "declined"),
        ("I cannot summarize this text.", "declined"),
        ("As an AI language model I have no access to files.", "declined"),
        ("Please provide the text you would like me to shorten.", "declined"),
        ("Error: context length exceeded", "an error"),
        ('{"error": {"message": "overloaded"}}', "an error"),
        ("<!DOCTYPE html><html><body>502</body></html>", "an error"),
        ("Previous conversation was too long to summarize.", "an error"),
        ("Conversation was too long to summarize.", "an error"),
        ("Photosynthesis lets green plants turn sunlight into sugar and oxygen.", "something else"),
        ("Something went wrong.", "an error"),
        ("Request timed out.", "an error"),
        ("Too many requests", "an error"),
        ("429 Too Many Requests", "an error"),
        ("The model is currently overloaded.", "an error"),
        ('{"type": "error", "code": 7}', "an error"),
        ("null", "an error"),
        ("(no output)", "an error"),
        ("Execution done.", "something else"),
        ("BOUNDARY 0123 says the migration failed", "repeats"),
    ],
)
def test_no_summary_is_told_by_its_reason(answer: str, reason: str) -> None:
    assert reason in objection(strip_wrapping(answer, cut=False), SOURCE, "0123")


@pytest.mark.parametrize(
    "answer",
    [
        "The billing service's migration failed, and was rolled back.",
        "Here is a summary:\nThe billing service's migration failed.",
        "**Summary:** The billing migration failed at night.",
        "<think>I must be short.</think>\nThe billing migration failed at night.",
        "```\nThe billing migration failed at night.\n```",
    ],
)
def test_a_summary_is_taken_without_what_is_around_it(answer: str) -> None:
    text = strip_wrapping(answer, cut=False)
    assert text.startswith("The billing")
    assert not text.endswith("```")
    assert objection(text, SOURCE) == ""


def test_an_error_that_the_source_quotes_is_no_error_of_the_summary() -> None:
    source = "ValueError: no such port 8081 in the configuration, said the proxy when it started."
    assert objection("ValueError: no such port 8081 in the configuration", source) == ""


def test_the_last_sentence_of_an_answer_that_was_cut_is_left_out() -> None:
    assert strip_wrapping("It failed at night. It was rolled ba", cut=True) == "It failed at night."
    assert strip_wrapping("It failed at night. It was rolled back.", cut=True).endswith("back.")
