"""Tell whether a statement can be understood without its context.

`I` and `we` refer to the speaker, who is named with the statement; `you` to somebody else. `It`,
`they`, `he` and `she` need a noun before them in the same statement. `This` and `those` point out
of it, unless they name a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import re2  # type: ignore[import-untyped]

from holdfast.search.words import is_stop_word

_OF_OTHERS = frozenset("you your yours you're you've you'll you'd u ur yourself y'all".split())
_POINTING = frozenset("this these those here".split())
_REFERRING = frozenset(
    "it its it's itself it'll they them their theirs they're they've they'll he him his himself"
    " he's she her hers herself she's there".split()
)
_TIMES = frozenset(
    "week month year morning afternoon evening weekend summer winter spring fall autumn semester"
    " quarter past coming monday tuesday wednesday thursday friday saturday sunday january february"
    " march april may june july august september october november december".split()
)
_NAMING = frozenset("a an the my our two three four five six".split())
_SAYING = frozenset(
    """said say says told tell believe realize realized decided decide mean
    means ensure confirm confirmed noticed agreed shows show suggests so fact given now proves
    showed saying idea chance something anything everything someone people place places""".split()
)
_BEFORE_OBJECT = frozenset(
    "from of at in on for about with like to by after during before than love loved".split()
)
_ELSEWHERE = re2.compile(
    r"(?i)\b(?:the same|the former|the latter|the others?|the ones?|this one|that one"
    r"|new ones?|another one|one of them|the above|the following|like that|like this"
    r"|do so|did so|doing so|me too|mentioned|as you|otherwise|accordingly|therefore|as well$|too$"
    r"|(?:\d+|a few|few|some|any|one|two|three) more|everything else|anything else|someone else"
    r"|again"
    r"|(?:on|got|get|have|had|made|make|bought|for|with|like|of|need|want|see|saw|tried"
    r"|finished) one"
    r"|(?:for|about|with|on|in|of|to|at|from|like) it$|our last|my last|my other|another"
    r"|favou?rite ones?|\bone$|both [a-z]+s|the [a-z]+ of the [a-z]+,|the thought|afterwards?"
    r"|later on$|top pick|an experience|of them|of it|of those|(?:am|'m|been|was|be) one"
    r"|something|stuff|some things|so that was"
    r"|that was|that's|that is|since we|so many things|since then|ever since|back then|then$"
    r"|below|above|earlier$|so far$|all of them"
    r"|either$|instead$|together$|the first one|the second one|such things|the rest"
    r"|what happened)"
)
# Common topics of conversations: with only `the` before them, they are those of this conversation.
_KNOWN_HERE = re2.compile(
    r"(?i)\bthe (?:[\w-]+ ){0,2}(?:draft|sprint|deadline|project|app|event|team|meeting|session"
    r"|plan"
    r"|idea|show|game|class|book|story|movie|trip|job|offer|issue|problem|code|function|file|error"
    r"|command|task|list|feedback|refunds?|payment|contract|progress|flights?|orders?|items?|color"
    r"|address|website|platform|results?|changes?|details|process|place|group|language|structure"
    r"|series|novel|application|essay|interview|role|position|company|test|script|page|store|return"
    r"|exchange|product|ticket|price|difference)\b[.,!;)]?(?: ([\w#']+))?"
)
_IDENTIFYING = frozenset(
    """of for from in on at with about called named due starting that i we number #""".split()
)
_LEAST_BEFORE = 4
"""Minimum words before a pronoun, so that one of them can be its noun: `I told her` has none."""


def is_self_contained(text: str, words: Sequence[str]) -> bool:
    """Return whether a text has no word that refers to its context; `words` are lower case."""
    if _ELSEWHERE.search(text.rstrip(".! ")) or not all(
        map(_is_identified, _KNOWN_HERE.finditer(text))
    ):
        return False
    return all(_is_clear(words, at) for at in range(len(words)))


def _is_identified(match: Any) -> bool:
    """Return whether the words after a noun identify it."""
    following = match[1] or ""
    is_name = following[:1].isupper() or any(map(str.isdigit, following))
    return is_name or following.lower() in _IDENTIFYING


def _is_clear(words: Sequence[str], at: int) -> bool:
    word = words[at]
    following = words[at + 1] if at + 1 < len(words) else ""
    if word in _OF_OTHERS:
        return False
    if word in _POINTING:
        return following in _TIMES
    if word == "that":
        return _joins(words, at)
    if word == "there":
        return following in ("is", "are", "was", "were")
    return word not in _REFERRING or _names_something(words[:at])


def _joins(words: Sequence[str], at: int) -> bool:
    """Return whether a `that` joins a clause to the words before it and does not point."""
    if at == 0 or at + 2 >= len(words) or words[at - 1] in _BEFORE_OBJECT:
        return False
    return words[at - 1] in _SAYING or any(
        word in _NAMING for word in words[max(0, at - 4) : at - 1]
    )


def _names_something(words: Sequence[str]) -> bool:
    """Return whether the words contain a noun to which a later pronoun can refer."""
    return len(words) >= _LEAST_BEFORE and any(
        word in _NAMING and not is_stop_word(following) for word, following in pairwise(words)
    )
