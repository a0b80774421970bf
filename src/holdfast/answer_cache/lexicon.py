"""Word lists for questions: filler words, synonyms, and words that may not differ.

Written by hand for English from the meaning of words: no number and no list was computed from a
set of pairs, so that all of it is under the project's licence. same.txt has a line for each group
of synonyms, antonyms.txt a line for a word and its opposites. An unlisted word, in any language,
must be in both questions.
"""

from __future__ import annotations

from importlib import resources

CONTRACTIONS = (
    ("can't", "can not"),
    ("cannot", "can not"),
    ("won't", "will not"),
    ("shan't", "shall not"),
    ("ain't", "is not"),
    ("n't", " not"),
    ("let's", "let us"),
    ("'re", " are"),
    ("'ve", " have"),
    ("'ll", " will"),
    ("'m", " am"),
    ("'d", " would"),
    ("'s", ""),  # is, has or of: none of them carries meaning
)
TYPED = {
    **{f"{verb}nt": f"{verb} not" for verb in "is are was were do does did has have had".split()},
    **{f"{verb}nt": f"{verb} not" for verb in "would should could must need".split()},
    **{"cant": "can not", "wont": "will not", "whats": "what is", "hows": "how is", "im": "i am"},
    **{"wats": "what is", "u": "you", "ur": "your", "pls": "please", "plz": "please"},
}
"""Contractions as they are typed in a hurry."""

NUMBERS = {
    **{word: str(number) for number, word in enumerate(
        "zero _ two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )},
    **{"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70"},
    **{"eighty": "80", "ninety": "90"},
    **{"hundred": "100", "thousand": "1000", "million": "1000000", "billion": "1000000000"},
    **{"dozen": "12", "half": "1/2", "once": "1x", "twice": "2x", "double": "2x", "triple": "3x"},
    **{"second": "2nd", "third": "3rd", "fourth": "4th", "fifth": "5th", "single": "1"},
}  # fmt: skip
"""Numbers in words, as the digits that they mean. `first` and `one` have other uses as well."""

NEGATIONS = {
    **dict.fromkeys("not no none nor neither nothing nobody nowhere".split(), "not"),
    **dict.fromkeys("hardly barely scarcely rarely seldom".split(), "hardly"),
    **{word: word for word in "never without except unless".split()},
}
"""What turns a statement round, and how."""
COMPLEMENTS = {
    **{"wrong": "right", "false": "true", "dead": "alive", "absent": "present"},
    **{
        "unable": "able",
        "asleep": "awake",
        "abnormal": "normal",
        "unready": "ready",
        "uncertain": "sure",
    },
}
"""Words that are nothing but the negation of another: there is no third."""

WHAT_DECIDES = frozenset(
    """all every each both most many more less least few fewer fewest only alone even too enough
    almost nearly always sometimes often again still yet already before after until till since
    between against than from into onto out off down over under above below inside outside away
    behind within or if when while because although though but whether first last next previous
    same other another else either must should best worst better worse good bad top this these those
    following given below above""".split()
)
"""Small words that change the answer: a question with one more or less of them is another."""
BINDING = frozenset("from into onto before after than against over under until since".split())
"""Prepositions that determine the next word: not `from A to B` but from B to A."""

UNITS = frozenset(
    """% percent degree celsius fahrenheit kelvin meter metre km kilometer kilometre cm mm mile yard
    foot feet inch kg kilogram gram pound lb ounce oz ton tonne liter litre gallon ml watt kw volt
    amp joule calorie kcal byte kb mb gb tb bit hz mhz ghz second minute hour day week month year
    decade century $ € £ ¥ dollar euro rupee rs inr usd eur gbp cent yen yuan lakh crore""".split()
)

DATES = frozenset(
    """january february march april may june july august september october november december monday
    tuesday wednesday thursday friday saturday sunday spring summer autumn fall winter christmas
    easter morning noon afternoon evening night midnight ad bc""".split()
)

SAYS_NOTHING = frozenset(
    """a an the some any of in on at to for by with as about is are am be been being was were do
    does did doing done have has had having can could may might would will shall it its that there
    here and so just really actually exactly basically generally usually simply literally truly ever
    please kindly thanks thank hi hello hey ok okay well anyway perhaps maybe possibly etc thing
    things kind kinds type types sort sorts lot lots several various certain particular like i me we
    us you one ones someone somebody anyone anybody everyone people person they them themselves
    yourself myself oneself get gets getting got go goes going also such then very quite up back
    during through via per regarding concerning which what how why where who whom whose let
    suppose guys guy folks""".split()
)

PERSONS = {
    **dict.fromkeys("my our your mine ours yours".split(), "own"),
    **dict.fromkeys("he him his himself".split(), "he"),
    **dict.fromkeys("she her hers herself".split(), "she"),
    **dict.fromkeys("their theirs".split(), "their"),
}
"""Words for the owner: a client that asks how to do something means its own, under any name."""


NEGATED = ("un", "in", "im", "ir", "il", "dis", "non")
"""Beginnings that turn a word into its opposite, where the rest is in `_ADJECTIVES`."""

_ADJECTIVES = frozenset(
    """accurate acceptable active adequate appropriate available aware believable capable
    certain clean clear comfortable common complete consistent convenient correct dependent direct
    easy effective efficient equal ethical even expected fair familiar finished formal fortunate
    friendly grateful happy healthy helpful honest important interesting known legal likely limited
    logical lucky mature moral mortal natural necessary normal obedient official organized patient
    perfect personal pleasant polite popular possible practical predictable probable proper rational
    ready real realistic reasonable regular related relevant reliable responsible safe satisfied
    secure significant similar skilled stable successful sufficient suitable sure tidy true truthful
    trustworthy usual valid visible wanted welcome well willing wise worthy""".split()
)

PERSONAL = (
    r"(?i)\b(?:my|mine|our|ours|myself|ourselves|remind me|remember)\b"
    r"|\b(?:am|was|were|did|do|have|had|will|shall) (?:i|we)\b"
    r"|\b(?:i|we) (?:am|was|were|have|had|did|bought|ordered|paid|sent|said|told|asked)\b"
    r"|\bi'(?:m|ve|d)\b"
    r"|\b(?:last|previous|earlier|recent) (?:order|message|question|answer|request|e-?mail|meeting"
    r"|chat|conversation|invoice|bill|payment|visit)\b"
)
"""A question about who asks: `When does my last order arrive?`"""
TIMELY = (
    r"(?i)\b(?:today|tonight|tomorrow|yesterday|now|nowadays|currently|current|latest|newest|recent"
    r"|recently|upcoming|ongoing|trending|breaking|soon|ago|weather|forecast|news|headlines?"
    r"|deadline|so far|at the moment|at present|these days|up[ -]to[ -]date|as of|what time"
    r"|what day|what date|how old|(?:this|next|last|past) (?:hour|morning|afternoon|evening|night"
    r"|week|weekend|month|quarter|year|season|time)|(?:exchange|interest|inflation) rates?"
    r"|stock prices?|price of)\b"
)
"""A question whose answer depends on the day."""


def _groups(name: str) -> list[list[str]]:
    """The lines of a table, each as its words."""
    table = (resources.files(__package__) / name).read_text("utf-8")
    return [line.split() for line in table.splitlines() if line]


def antonyms() -> list[list[str]]:
    """Groups of words whose first is the opposite of each of the others."""
    return _groups("antonyms.txt")


def same_words() -> dict[str, str]:
    """Return the first word of its group for each word."""
    first: dict[str, str] = {}
    for group in _groups("same.txt"):
        for word in group:
            first.setdefault(word, first.get(group[0], group[0]))
    return first


def opposite(word: str) -> str:
    """The word that this one negates, such as `fair` for `unfair`; empty if it negates none."""
    for beginning in NEGATED:
        if word.startswith(beginning) and word[len(beginning) :] in _ADJECTIVES:
            return word[len(beginning) :]
    return ""
