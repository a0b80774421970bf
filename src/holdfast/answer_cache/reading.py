"""The normalised form of a question: its kind, its words, and the parts that may not differ.

Pure, in linear time: every pattern is RE2, and a question of more than `MOST_CHARACTERS` is not
read at all. `How can I lose weight fast?` and `What is the best way to reduce weight quickly?`
read the same.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec
import re2  # type: ignore[import-untyped]

from holdfast.answer_cache import lexicon
from holdfast.search.stems import EndingRule, Stemmer

MOST_CHARACTERS = 400
"""Longer questions include their material, which cannot be separated from the wording."""

_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"
_WHO = r"(?:i|we|you|one|someone|somebody|anyone|people|a person|they)"
_WAYS = r"(?:ways?|methods?|steps?|tips?|techniques?|approach(?:es)?|means|procedure|process|trick)"
_FINE = r"(?:best|good|better|great|right|proper|correct|possible|effective|different|other)"
_POLITE = r"(?:please|kindly)"
# In this order: each one reads the output of the previous one.
_FRAMES: tuple[tuple[str, str], ...] = (
    (r"^(?:(?:hi|hello|hey|ok|okay|so|well|and|but)\b[ ,.!]*)+", ""),
    (rf"\b{_POLITE}\b", " "),
    (
        r"^(?:(?:can|could|would|will) (?:you|anyone|anybody|someone|somebody) )?(?:explain"
        r"|describe|define|tell|show|teach)(?: to)?(?: me| us)?(?: about| of)?"
        r" (what|which|how|why|when|where|who|if|whether)\b",
        r"\1",
    ),
    (
        r"^(?:(?:can|could|would|will) (?:you|anyone|anybody|someone|somebody) )?(?:(?:explain"
        r"|define|describe)(?: to)?(?: me| us)?|tell (?:me|us) about)\b",
        "what",
    ),
    (
        r"^(?:i|we) (?:want|would like|need|wish|d like) to know\b|^(?:do|does) (?:you|anyone"
        r"|anybody|someone) know\b|^(?:i|we) (?:am|was|are|were) wondering\b|^(?:do|does) (?:you"
        r"|anyone|anybody) have any idea\b|^any idea\b|\b(?:do|did|would) you (?:think|believe"
        r"|guess|suppose|say)\b|^in your opinion\b|\baccording to you\b|^is it true that\b",
        "",
    ),
    (
        r"^how (?:is|are|do|does|did) (.+?) (?:different|differ|distinct)(?: from)? (.+)$",
        r"what difference \1 \2",
    ),
    (r"\bdifferences? between\b", "difference"),
    (
        r"\bhow come\b|\bfor what reasons?\b|^what (?:is|are|was|were) the (?:\w+ )?"
        r"(?:reasons?|causes?) (?:for|of|behind|that|why|to)\b|^what makes\b|^what cause[sd]?\b",
        "why",
    ),
    (rf"\bwhat (?:should|can|could|must|do|would|may) {_WHO} do (?:to|for|in order to)\b", "how"),
    (rf"\bwhat (?:should|can|could|must|do|would|may) {_WHO} do\b", "what do"),
    # Carrots are being grated by a woman: a woman is grating carrots.
    (
        r"^(.+?) (is|are|was|were) (?:being (\w+)|(\w+(?:ed|en|wn)))( .+?)? by ([^,.?]+?)"
        r"( (?:with|on|at|into|from|who|and)\b.*|[,.?].*)?$",
        r"\6 \2 \3\4 \1\5\7",
    ),
    # A guitar which is electric: an electric guitar.
    (
        r"\b(\w+),? (?:which|that|who) (?:is|are|was|were) (\w+)(,? (?:and|on|in|at|with|is|are)\b"
        r"|[,.?]|$)",
        r"\2 \1\3",
    ),
    (r"\b(my|your|our|his|her|their) own\b", r"\1"),
    (r"\bwith no\b|\bwithout any\b", "without"),
    (
        rf"\bwhat (?:is|are|would be|will be|should be|s|were|was)? ?(?:the|some|a|your|any|few)* ?"
        rf"(?:most )?(?:{_FINE} )*{_WAYS} (?:to|for|of|in order to|by which|in which|{_WHO} can)\b",
        "how",
    ),
    (rf"^(?:what|which|the) (?:is )?(?:the )?(?:{_FINE} )*{_WAYS} (?:to|for|of)\b", "how"),
    (
        rf"\b(?:is|are) there (?:a|any|some|an)? ?(?:{_FINE} )*{_WAYS} "
        rf"(?:to|for|of|that|{_WHO} can)\b",
        "how",
    ),
    (rf"\bis it possible (?:for {_WHO} )?to\b|\bis it possible that\b", "can"),
    (
        rf"\bhow (?:exactly |actually |else )?"
        rf"(?:do|can|could|should|would|does|will|might|may|must|to)(?: {_WHO})?\b",
        "how",
    ),
    (r"\bhow (?:best )?to\b", "how"),
    (r"\bwhat (?:kinds?|types?|sorts?|variet(?:y|ies)|category) of\b", "what"),
    (r"\bwhat time\b", "when"),
    (r"\b(?:at|in|to|from) (?:what|which) (?:place|city|location)\b", "where"),
    (r"^(?:list|name|suggest|recommend|give me|mention|enumerate)\b|^any\b", "what"),
    (r"\bwhich\b", "what"),
    (r"\b(?:vs|versus)\b\.?", "or"),
    (r"\bin order to\b|\bso as to\b", "to"),
    (r"\b(?:united states of america|united states|the states)\b", "usa"),
    (r"\bunited kingdom\b|\bgreat britain\b", "uk"),
)
_COMPILED = tuple((re2.compile(pattern), words) for pattern, words in _FRAMES)
_WORD = re2.compile(
    r"\d[\d,.:]*\d[a-z]*|[\p{L}\p{M}\p{N}_]+(?:[.'&:@][\p{L}\p{M}\p{N}_]+)*[+#]*|[%$€£¥°]|[,;]"
)
_HYPHEN = re2.compile(r"(\p{L})[-/](\p{L})")
_SIGN = re2.compile(r"""[^\p{L}\p{M}\p{N}_\s.,;:!?'"“”()\[\]…%$€£¥°/-]+""")
_NUMBER = re2.compile(r"\d[\d,.:]*(?:st|nd|rd|th|s|k|m|bn|x)?")
_COUNTING = re2.compile(r"^(?:q?\d{1,2}[.):]|[a-e]\))\s+")
_DIGIT = re2.compile(r"\d")
_FIRST = re2.compile(r"(?:^|[.!?:;\n\"“(]\s*)([\p{L}\p{N}][\p{L}\p{M}\p{N}'&.-]*)")
# Only inflection and spelling: the ending that makes a noun of a verb may change the answer.
_without_inflection = Stemmer(
    (
        EndingRule("ies", "y", min_letters=2),  # movies and movie, cities and city
        EndingRule("ie", "y", min_letters=3),
        *(EndingRule(f"{end}es", end) for end in ("ss", "x", "ch", "sh", "z")),
        *(EndingRule(end, end) for end in ("ss", "us", "is")),  # no plurals
        EndingRule("s"),
    ),
    tuple(
        EndingRule(end, min_letters=3, needs_vowel=True, single_from=3, doubled="lsz")
        for end in ("ing", "ed")
    ),
    (
        EndingRule("our", "or", min_letters=3),
        EndingRule("isation", "ization"),
        EndingRule("ise", "ize", min_letters=3),
    ),
    (EndingRule("e", min_letters=3),),
)
_HOW_MUCH = re2.compile(
    r"\bhow (many|much|long|old|far|often|tall|high|big|large|deep|fast|soon|heavy|hot|cold|good"
    r"|bad|well|hard|easy|important|common|likely|close|early|late|expensive|safe)\b"
)
_QUESTIONS = ("why", "how", "who", "whom", "whose", "when", "where", "what")
_OPENERS = {
    **dict.fromkeys(("is", "are", "am", "was", "were"), "is"),
    **dict.fromkeys(("do", "does", "did"), "does"),
    **dict.fromkeys(("can", "could", "may", "might"), "can"),
    **dict.fromkeys(("should", "must", "shall"), "should"),
    **dict.fromkeys(("will", "would"), "will"),
    **dict.fromkeys(("has", "have", "had"), "has"),
}
_TIMES = {
    **dict.fromkeys(("was", "were", "did", "had"), "past"),
    **dict.fromkeys(("will", "shall"), "future"),
}
_JOINS = frozenset(", ; in on at of for with to by as about during and".split())
"""Words between the parts of a question: parts may be moved, the words inside them may not."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A question as it is compared."""

    asked: str
    """Why, how many, where …, or how a question without such a word opens; empty: a statement."""
    words: tuple[str, ...]
    """Its words in order, as the first of their group, without filler words."""
    parts: tuple[tuple[str, ...], ...]
    """The same, part by part."""
    numbers: tuple[str, ...]
    units: frozenset[str]
    dates: frozenset[str]
    names: frozenset[str]
    """Words that are written as names."""
    negations: tuple[str, ...]
    """Each with the next word: "not ill" differs from "not well"."""
    deciding: tuple[str, ...]
    """Small words that change the answer, sorted; some with the next word."""
    persons: frozenset[str]
    times: frozenset[str]
    """Past and future, from its verbs."""
    signs: tuple[str, ...]
    """Characters that are neither words nor punctuation."""

    @property
    def text(self) -> str:
        """The text to embed: equal for two questions with the same meaning."""
        return " ".join(dict.fromkeys((*self.asked.split(), *self.words, *self.numbers)))


@lru_cache(maxsize=4_096)
def read(prompt: str) -> Reading | None:
    """The reading of a question; None if it is empty, or too long to be one."""
    if not prompt.strip() or len(prompt) > MOST_CHARACTERS or not _is_unicode(prompt):
        return None
    plain = unicodedata.normalize("NFKC", prompt).replace(_APOSTROPHE, "'").replace("`", "'")
    plain = _HYPHEN.sub(r"\1 \2", " ".join(plain.split()))
    low = _COUNTING.sub("", _uncontracted(_with_acronyms(plain).lower()))
    framed = low
    for pattern, words in _COMPILED:
        framed = pattern.sub(words, framed.strip())
    tokens = _turned([match.group().rstrip(".") for match in _WORD.finditer(framed)])
    content = [(_canonical(token) if _is_content(token) else "") for token in tokens]
    behind = _behind(content)
    return Reading(
        asked=_asked(framed, tokens, is_question="?" in plain),
        words=tuple(filter(None, content)),
        parts=_parts(tokens, content),
        numbers=tuple(sorted(_number(token) for token in tokens if _is_number(token))),
        units=frozenset(_canonical(t) for t in tokens if stem(t) in lexicon.UNITS),
        dates=frozenset(tokens) & (lexicon.DATES - {"may", "fall", "march"}),
        names=_names(plain),
        negations=tuple(sorted(_negations(tokens, behind))),
        deciding=tuple(sorted(_deciding(tokens, behind))),
        persons=frozenset(lexicon.PERSONS[token] for token in tokens if token in lexicon.PERSONS),
        times=frozenset(_TIMES[token] for token in low.split() if token in _TIMES),
        signs=tuple(sorted(match.group() for match in _SIGN.finditer(plain))),
    )


def _is_unicode(prompt: str) -> bool:
    """Whether no half of a surrogate pair is in it, which RE2 could not read."""
    return not any("\ud800" <= sign <= "\udfff" for sign in prompt)


def _with_acronyms(plain: str) -> str:
    """`US`, `IT` and `WHO` are no small words, unless all is written in capitals."""
    if plain.isupper():
        return plain
    words = plain.split(" ")
    return " ".join(
        f"{word}_"
        if len(word) > 1
        and word.isupper()
        and word.isalpha()
        and word.lower() in lexicon.SAYS_NOTHING
        else word
        for word in words
    )


def _uncontracted(low: str) -> str:
    for short, expansion in lexicon.CONTRACTIONS:
        if "'" in low or short == "cannot":
            low = low.replace(short, expansion)
    return " ".join(lexicon.TYPED.get(word, word) for word in low.split(" "))


def _asked(framed: str, tokens: list[str], *, is_question: bool) -> str:
    """Return the question word; a `which` inside a statement is none."""
    if amount := _HOW_MUCH.search(framed):
        return str(amount.group())
    first = tokens[0] if tokens else ""
    if not is_question and first not in _QUESTIONS and first not in _OPENERS:
        return ""
    if first in _OPENERS:
        return _OPENERS[first]
    question_word = next((token for token in tokens if token in _QUESTIONS), "")
    return "who" if question_word in ("whom", "whose") else question_word


def _turned(tokens: Iterable[str]) -> list[str]:
    """`unfair` as `not fair`, `wrong` as `not right`."""
    turned: list[str] = []
    for token in tokens:
        base = lexicon.COMPLEMENTS.get(token) or lexicon.opposite(token)
        if base and turned[-1:] == ["not"]:  # "not dead" is "alive"
            turned[-1:] = [base]
        else:
            turned += ("not", base) if base else (token,)
    return turned


def _behind(content: Sequence[str]) -> list[str]:
    """Return the next meaningful word for each position."""
    behind, last = [""] * len(content), ""
    for at in reversed(range(len(content))):
        behind[at] = last
        last = content[at] or last
    return behind


def _negations(tokens: Sequence[str], behind: Sequence[str]) -> Iterator[str]:
    before = ""
    for token, word in zip(tokens, behind, strict=True):
        if kind := lexicon.NEGATIONS.get(token):
            # "cannot" differs from "does not".
            yield f"{'can ' if before in ('can', 'could') else ''}{kind} {word}"
        before = token


def _deciding(tokens: Sequence[str], behind: Sequence[str]) -> Iterator[str]:
    for token, word in zip(tokens, behind, strict=True):
        if token in lexicon.BINDING:
            yield f"{token} {word}"
        elif token in lexicon.WHAT_DECIDES:
            yield _canonical(token)


def _parts(tokens: Sequence[str], content: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    parts: list[list[str]] = [[]]
    for token, word in zip(tokens, content, strict=True):
        if token in _JOINS:
            parts.append([])
        elif word:
            parts[-1].append(word)
    return tuple(tuple(part) for part in parts if part)


def _is_number(token: str) -> bool:
    return token in lexicon.NUMBERS or _NUMBER.fullmatch(token) is not None


def _number(token: str) -> str:
    digits = lexicon.NUMBERS.get(token, token).replace(",", "").rstrip(".:")
    for ending, zeros in (("k", "000"), ("bn", "000000000")):
        if digits.removesuffix(ending).isdigit() and digits.endswith(ending):
            return digits.removesuffix(ending) + zeros
    return digits


def _is_content(token: str) -> bool:
    if token in lexicon.SAYS_NOTHING or token in lexicon.PERSONS or token in _JOINS:
        return False
    if token in lexicon.WHAT_DECIDES or token in lexicon.NEGATIONS:
        return False
    return not _is_number(token)


def _canonical(token: str) -> str:
    base = stem(token.rstrip("_"))
    return _SAME.get(base, base)


def _names(plain: str) -> frozenset[str]:
    """Words with a capital that does not begin a sentence, and words with a capital inside."""
    first = {match.start(1) for match in _FIRST.finditer(plain)}
    names = set()
    for match in _WORD.finditer(plain):
        word = match.group()
        inside = any(letter.isupper() for letter in word[1:])
        if word[0].isalpha() and (inside or (word[0].isupper() and match.start() not in first)):
            low = word.lower()
            if _is_content(low):
                names.add(_canonical(low))
    return frozenset(names)


def stem(word: str) -> str:
    """Return a word without the endings of its inflection; numbers and short words stay."""
    return word if len(word) <= 3 or _DIGIT.search(word) else _without_inflection(word)


_SAME = {stem(word): stem(first) for word, first in lexicon.same_words().items()}
