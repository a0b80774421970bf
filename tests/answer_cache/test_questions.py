"""Which questions read the same, which are told apart and by what, and which share no answer."""

from __future__ import annotations

import pytest

from holdfast.answer_cache.guards import GUARDS, disagreement, unshared_because
from holdfast.answer_cache.reading import MOST_CHARACTERS, read
from holdfast.answer_cache.signing import sign
from holdfast.wire import read as wire_read
from tests.support.steps import steps

SAME = [
    ("How can I lose weight fast?", "What is the best way to reduce weight quickly?"),
    ("How do I reset a password?", "How can you reset a password"),
    ("What is photosynthesis?", "Please explain photosynthesis"),
    ("What are the best movies of all time?", "Which are the best films of all time?"),
    ("Why is the sky blue?", "What is the reason that the sky is blue?"),
    ("What's the difference between TCP and UDP?", "How is UDP different from TCP?"),
    (
        "How was education in Singapore during the war?",
        "How was education during the war in Singapore?",
    ),
    ("That's not fair.", "That is unfair."),
    ("Can a phone cost 15k?", "Can a phone cost 15,000?"),
    ("Carrots are being grated by a woman", "A woman is grating carrots"),
    ("how can we improve our writing?", "How do I improve my writing?"),
]
TOLD_APART = [
    ("numbers", "How far is 5 km?", "How far is 6 km?"),
    ("numbers", "Who won in 1998?", "Who won in 2002?"),
    ("units", "How far is 5 km?", "How far is 5 miles?"),
    ("dates", "Is it cold in March in Oslo in July?", "Is it cold in March in Oslo in June?"),
    ("dates", "Who was the mayor of Paris?", "Who will be the mayor of Paris?"),
    ("names", "What is the capital of France?", "What is the capital of Spain?"),
    ("negations", "Why do cats purr?", "Why don't cats purr?"),
    ("negations", "You're not sick, are you?", "You're sick, aren't you?"),
    ("negations", "Is it legal to swim?", "Is it illegal to swim?"),
    ("antonyms", "How do I install the driver?", "How do I uninstall the driver?"),
    ("antonyms", "How do I enable logging?", "How do I disable logging?"),
    ("question word", "When was the bridge built?", "Where was the bridge built?"),
    ("question word", "How many dogs are there?", "How much dogs are there?"),
    ("question word", "Why do deer make sounds?", "How do deer make sounds?"),
    ("small words", "What is the best tea?", "What is the worst tea?"),
    ("small words", "Fly from Oslo to Rome?", "Fly from Rome to Oslo?"),
    ("small words", "Is coffee healthy?", "Is coffee healthy before sleep?"),
    ("persons", "What is IQ?", "What is your IQ?"),
    ("signs", "What does # mean in Python?", "What does @ mean in Python?"),
    ("words", "What is a good keyboard?", "What is a good keyboard cover?"),
    ("order of roles", "Does a cat chase a dog?", "Does a dog chase a cat?"),
    ("names", "Was ist die Hauptstadt?", "Was ist die Sprache?"),
    ("words", "東京 の 人口 は?", "大阪 の 人口 は?"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_asks_the_same_reads_the_same(one: str, other: str) -> None:
    first, second = read(one), read(other)
    assert first is not None
    assert second is not None
    assert disagreement(first, second) == ""
    assert sorted(first.text.split()) == sorted(second.text.split())


@pytest.mark.parametrize(("guard", "one", "other"), TOLD_APART)
def test_what_changes_the_answer_tells_questions_apart(guard: str, one: str, other: str) -> None:
    first, second = read(one), read(other)
    assert first is not None
    assert second is not None
    assert disagreement(first, second) == disagreement(second, first) == guard


def test_every_guard_has_a_question_that_it_alone_is_named_for() -> None:
    assert {guard for guard, _, _ in TOLD_APART} == GUARDS.keys()


def test_acronyms_are_not_taken_for_small_words() -> None:
    one, other = read("How big is the US market?"), read("How big is the market?")
    assert one is not None
    assert other is not None
    assert disagreement(one, other)


@pytest.mark.parametrize(
    "prompt",
    [
        "What is the weather like?",
        "What happened today?",
        "Who is the current champion?",
        "What films come out next week?",
        "Where is my last order?",
        "Did I pay the bill?",
        "What is our address?",
        "Do you remember what I said?",
        "",
        "x" * (MOST_CHARACTERS + 1),
    ],
)
def test_personal_and_timely_questions_share_no_answer(prompt: str) -> None:
    assert unshared_because(prompt)


@pytest.mark.parametrize("prompt", ["How do I fix my printer?", "What is the capital of France?"])
def test_other_questions_may_share_one(prompt: str) -> None:
    assert unshared_because(prompt) == ""


@pytest.mark.parametrize(
    "piece",
    [
        "a ",
        "is being ",
        " by ",
        "not ",
        "what is the best way to ",
        "1",
        "-",
        "'",
        "((",
        "é",
        "\ud800",
    ],
)
def test_hostile_questions_take_a_bounded_number_of_steps(piece: str) -> None:
    """The longest question of one piece over and over takes a few milliseconds."""
    prompt = (piece * MOST_CHARACTERS)[:MOST_CHARACTERS]
    assert steps(lambda: (read.__wrapped__(prompt), unshared_because(prompt))) < 100_000
    assert read("b" * 10_000_000) is None


def test_a_request_for_several_answers_is_never_signed() -> None:
    chat = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Why?"}]}
    asked = {"contents": [{"role": "user", "parts": [{"text": "Why?"}]}]}
    for number, is_signed in ((None, True), (1, True), (2, False)):
        several = {} if number is None else {"n": number}
        config = {} if number is None else {"generationConfig": {"candidateCount": number}}
        assert (sign(wire_read({**chat, **several}, "openai-chat")) is not None) == is_signed
        assert (sign(wire_read({**asked, **config}, "gemini")) is not None) == is_signed
