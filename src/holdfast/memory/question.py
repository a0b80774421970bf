"""A question as recall understands it: what it is about, whom it names, when, and what it asks for.

question: after dates and words. Names of those who speak, and dates, are taken out before anything
is compared: half of what was ever said shares a name with a question, and says nothing to it. That
was the greatest single gain of all that was measured. They count as signals of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import re2  # type: ignore[import-untyped]

from holdfast.memory import dates
from holdfast.search.words import terms_of, words_of

MOST_CHARACTERS = 4_000
"""Of a question: of a longer one the beginning and the end are read."""
_SHORTEST_NAME = 3

# What an assistant was asked for and gave: plans, lists, advice.
_OF_THE_ASSISTANT = re2.compile(
    r"(?i)\byou (?:\w+ )?(?:said|say|suggest|recommend|mention|told|tell|gave|give|advise|propose|"
    r"outline|provide|explain|list|help)|\byour (?:suggest|advice|recommend|answer|explanation|"
    r"response|plan)|\b(?:plan|schedule|steps?|approach|organi[sz]e[ds]?|breakdown|strateg)"
)

# A wish that was said before counts where advice is asked for.
_FOR_ADVICE = re2.compile(
    r"(?i)\b(?:suggest|recommend|advi[cs]e|should i|could i|can you|could you|would you|help me|"
    r"how (?:do|can|would) i|what (?:\w+ ){0,4}(?:would|should|do you think)|planning|ideas?)\b"
)


class Question(NamedTuple):
    """What is looked for."""

    text: str
    """Without names and dates: what is embedded."""
    full: tuple[int, ...]
    """Its words as numbers, each once."""
    about: tuple[int, ...]
    """The same without names and dates."""
    speakers: frozenset[str]
    """Of those who speak, whom it names."""
    days: tuple[dates.Span, ...]
    asks_assistant: bool
    """What an assistant said is looked for."""
    asks_advice: bool


def read_question(text: str, speakers: Iterable[str], today: int) -> Question:
    """Take a question apart; `speakers` are all who speak in what is searched."""
    if len(text) > MOST_CHARACTERS:
        half = MOST_CHARACTERS // 2
        text = f"{text[:half]} {text[-half:]}"
    text = text.encode("utf-8", "replace").decode()
    words = words_of(text)
    present = {_bare(word) for word in words}
    named = {speaker: _parts(speaker) & present for speaker in speakers}
    asked = frozenset(speaker for speaker, parts in named.items() if parts)
    names = set().union(*named.values()) if named else set()
    undated = words_of(dates.without_dates(text))
    about = [word for word in undated if _bare(word) not in names]
    return Question(
        text=" ".join(about) or text,
        full=tuple(dict.fromkeys(terms_of(words))),
        about=tuple(dict.fromkeys(terms_of(about))),
        speakers=asked,
        days=tuple(dates.spans_in(text, today)),
        asks_assistant=_OF_THE_ASSISTANT.search(text) is not None,
        asks_advice=_FOR_ADVICE.search(text) is not None,
    )


def _bare(word: str) -> str:
    return word.lower().removesuffix("'s").removesuffix("’s")  # noqa: RUF001 - as people write it


def _parts(speaker: str) -> set[str]:
    """The words that a speaker is called by; roles are no names."""
    if speaker in ("user", "assistant", "system", "tool"):
        return set()
    return {word.lower() for word in words_of(speaker) if len(word) >= _SHORTEST_NAME}
