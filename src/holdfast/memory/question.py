"""Analysis of a recall question: its topic, speakers, days and kind.

Speakers' names and dates are removed before the question is compared with texts, because half of a
conversation shares a name with the question without answering it. This was the greatest single gain
of all that was measured. Names and dates count as signals of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import re2  # type: ignore[import-untyped]

from holdfast.memory import dates
from holdfast.search.words import terms_of, words_of

MOST_CHARACTERS = 4_000
"""Maximum characters of a question; of a longer one the beginning and the end are read."""
_SHORTEST_NAME = 3

# The question asks about an assistant's earlier reply: a plan, a list, advice.
_ASKS_ASSISTANT = re2.compile(
    r"(?i)\byou (?:\w+ )?(?:said|say|suggest|recommend|mention|told|tell|gave|give|advise|propose|"
    r"outline|provide|explain|list|help)|\byour (?:suggest|advice|recommend|answer|explanation|"
    r"response|plan)|\b(?:plan|schedule|steps?|approach|organi[sz]e[ds]?|breakdown|strateg)"
)

# The question asks for advice, so that wishes stated earlier count.
_ASKS_ADVICE = re2.compile(
    r"(?i)\b(?:suggest|recommend|advi[cs]e|should i|could i|can you|could you|would you|help me|"
    r"how (?:do|can|would) i|what (?:\w+ ){0,4}(?:would|should|do you think)|planning|ideas?)\b"
)


class RecallQuestion(NamedTuple):
    """A question as recall ranks by it."""

    text: str
    """The question without names and dates, which is embedded."""
    full: tuple[int, ...]
    """Ids of its words, each once."""
    about: tuple[int, ...]
    """The same, without names and dates."""
    speakers: frozenset[str]
    """Names of the speakers that it mentions."""
    days: tuple[dates.DaySpan, ...]
    asks_assistant: bool
    """Whether it asks about an assistant's earlier reply."""
    asks_advice: bool


def read_question(text: str, speakers: Iterable[str], today: int) -> RecallQuestion:
    """Analyse a question; `speakers` are all speakers of the searched turns."""
    if len(text) > MOST_CHARACTERS:
        half = MOST_CHARACTERS // 2
        text = f"{text[:half]} {text[-half:]}"
    text = text.encode("utf-8", "replace").decode()
    words = words_of(text)
    present = {_bare(word) for word in words}
    named = {speaker: _parts(speaker) & present for speaker in speakers}
    mentioned = frozenset(speaker for speaker, parts in named.items() if parts)
    names = set().union(*named.values()) if named else set()
    undated = words_of(dates.without_dates(text))
    about = [word for word in undated if _bare(word) not in names]
    return RecallQuestion(
        text=" ".join(about) or text,
        full=tuple(dict.fromkeys(terms_of(words))),
        about=tuple(dict.fromkeys(terms_of(about))),
        speakers=mentioned,
        days=tuple(dates.spans_in(text, today)),
        asks_assistant=_ASKS_ASSISTANT.search(text) is not None,
        asks_advice=_ASKS_ADVICE.search(text) is not None,
    )


def _bare(word: str) -> str:
    return word.lower().removesuffix("'s").removesuffix("’s")  # noqa: RUF001 - as people write it


def _parts(speaker: str) -> set[str]:
    """Return the words of a speaker's name; roles such as "user" are no names."""
    if speaker in ("user", "assistant", "system", "tool"):
        return set()
    return {word.lower() for word in words_of(speaker) if len(word) >= _SHORTEST_NAME}
