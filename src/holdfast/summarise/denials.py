"""What a source only denies: `was not successful` does not bear out `was successful`.

denials: before support. A word that a source has nowhere but behind a `not` must not stand in a
sentence that denies nothing. That finds the lie which is a sentence of the source without its one
small word, and no other: what is put in other words is not judged. English, and the plainest words
of German, French and Spanish. Linear: each text is read once or twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from holdfast.search.stems import first_letters

# Between a denial and what it denies may stand two words that say nothing themselves. `Not only`
# and `not just` deny nothing.
_DENIED = re.compile(
    r"(?:\b(?:not|never|cannot|without|no|neither|nor|nicht|kein(?:e[mnrs]?)?|nie|pas|jamais|nunca)"
    r"|n['’]t)(?![ ](?:only|just|merely|nur|seulement)\b)"  # noqa: RUF001
    r"(?:[ ](?:the|a|an|any|be|been|being|yet|to|so|very|longer|more|have|had|of|for|all|in|on|by"
    r"|at|up))"
    r"{0,2}[ ]([^\W\d_]{4,})",
    re.IGNORECASE,
)
_DENYING = re.compile(
    r"\b(?:no|not|never|cannot|without|none|nothing|nobody|neither|nor|nicht|kein(?:e[mnrs]?)?|nie"
    r"|ohne|pas|jamais|sans|nunca|sin|fail\w*|unable|refus\w*|den(?:y|ie[sd])|reject\w*|lack\w*"
    r"|miss(?:ed|es|ing)|absent|absence|prevent\w*|avoid\w*|forb\w+|prohibit\w*|disallow\w*"
    r"|block\w*|stop(?:s|ped)?|ceas\w+|hardly|barely|rather|instead|(?:un|dis|non)\w{4,})\b"
    r"|n['’]t\b",  # noqa: RUF001
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{4,}")
_STEM_LETTERS = 6
"""Letters by which a word is known again in another form: `connect`, `connected`."""


def denied_only(source: str, sentences: Iterable[str]) -> set[str]:
    """Those of the sentences that say, denying nothing, what their source only denies."""
    denials = Counter(_stem(match[1]) for match in _DENIED.finditer(source))
    if not denials:
        return set()
    claims = {
        sentence: stems
        for sentence in sentences
        if not _DENYING.search(sentence)
        and (stems := {_stem(word) for word in _WORD.findall(sentence)} & denials.keys())
    }
    if not claims:
        return set()
    wanted = set().union(*claims.values())
    told = Counter(stem for word in _WORD.findall(source) if (stem := _stem(word)) in wanted)
    only_denied = {stem for stem in wanted if told[stem] <= denials[stem]}
    return {sentence for sentence, stems in claims.items() if stems & only_denied}


def _stem(word: str) -> str:
    return first_letters(word, _STEM_LETTERS)
