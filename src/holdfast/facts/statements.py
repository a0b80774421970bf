"""Decide which clauses of a message are facts.

Useless facts are worse than none. A clause must begin with its subject (the speaker, something of
the speaker's, or a name), must make a statement rather than ask, guess, greet or praise, and must
be clear without context (see `pronouns`). English only: in other languages only tool results give
facts.
"""

from __future__ import annotations

from typing import NamedTuple

import re2  # type: ignore[import-untyped]

from holdfast.facts.clauses import LEAST_CHARACTERS, MessageClause
from holdfast.facts.pronouns import is_self_contained
from holdfast.search.words import is_stop_word
from holdfast.store.fact_store import FactKind

_MOST_CHARACTERS = 320
_LEAST_CONTENT_WORDS = 3
"""Minimum words of a statement that are neither stop words nor the speaker."""

_WORD = re2.compile(r"[A-Za-z0-9_$€£#@%+&/.:-]*[A-Za-z0-9%](?:'[A-Za-z]+)?")

# --- who it is about -----------------------------------------------------------------------------

_TIME = (
    r"(?:(?:yesterday|today|tonight|tomorrow|recently|lately|currently|now|right now|this morning"
    r"|last night|last \w+|next \w+|this \w+|on \w+day|in \d{4}|in \w+ \d{4}|on \w+ \d{1,2}"
    r"|\w+ \w+ ago|the other day|these days|nowadays|years ago|since \d{4}),? )?"
)
_VERB = (
    r"(?:is|are|was|were|has|have|had|will|goes|went|works|worked|lives|lived|loves|got|gets|takes"
    r"|took|costs|cost|starts|started|ends|ended|runs|needs|includes|moved|bought|owns|joined|left"
    r"|graduated|turned|gave|made|came|said|told|decided|agreed|wants|wanted|suggested|recommended)"
)
_ABOUT_SPEAKER = re2.compile(
    rf"(?i)^{_TIME}(?:just |also |even |already |[a-z]+ and |my [a-z]+ and |my [a-z]+ [a-z]+ and )*"
    r"(?:I|I'm|I've|I'd|I'll|we|we're|we've|we'll)\s"
)
_ABOUT_OWN = re2.compile(rf"(?i)^{_TIME}(?:My|Our) (?:[\w'&-]+ ){{1,5}}?{_VERB}\s")
_ABOUT_NAMED = re2.compile(
    # One capitalised word may be any word that begins a sentence; only names of two words are
    # certain.
    rf"^(?:[A-Z][a-z'.-]+(?: (?:of|the|de|van))?(?: [A-Z][\w'.-]+){{1,3}}|[A-Z]{{2,}}) {_VERB}\s"
)
_ABOUT_THE = re2.compile(
    r"^(?:The|Our|My) (?:[\w'&.#/-]+ ){1,6}?(?:is|are|was|were|costs?|will be|has|starts?|ends?) "
)
_NO_NAMES = frozenset(
    """the this that these those there here it he she they we you i what which who how why when
    where thanks thank wow hey hi hello yes no yeah great good nice cool awesome sure okay ok
    sounds looks seems glad happy sorry congrats congratulations love can could would should
    will do does did is are was were have has had if so but and or as at by for from in of on
    to with let lets please maybe perhaps anyway one some any all every each both most many
    much more another such not never always being having getting making taking everything
    something anything nothing everyone someone my our your his her its their""".split()
)

# --- what is no statement of fact ----------------------------------------------------------------

_ADVERB = (
    r"(?:just|really|also|still|totally|completely|definitely|truly|so|do|always|have|am|was|did"
    r"|kinda|kind of|sort of|sorta|actually|honestly|only|absolutely|even|often|sometimes|now"
    r"|been|very"
    r"|super|too|more|quite|pretty|all|a bit|a little|always been|feeling|getting)"
)
_NO_FACT = re2.compile(
    rf"(?i)^(?:.{{0,40}} )?(?:I|I'm|I'd|I'll|I've|we|we're|we'll|we've)\s+(?:{_ADVERB} )*(?:"
    # thinking, feeling and wishing
    r"agree|guess|suppose|wonder|wondering|mean|meant|bet|see|understand|appreciate|hear|heard"
    r"|think|thinking|thought|know|knew|believe|imagine|doubt|promise|glad|sorry|sure|unsure"
    r"|curious|hope|hoping|wish|proud|feel|felt|excited|grateful|thankful|happy|stoked|thrilled"
    r"|blessed|lucky|worry|worried|concerned|confused|stuck|struggling|figure|figured|reckon"
    r"|assume|assuming|passionate|inspired|amazed|impressed|honored|humbled|touched|speechless"
    r"|interested|admire|respect|trust|value|dunno|swear|remember|realized?|noticed|look forward"
    r"|looking forward|feeling|lost|have no doubt|no doubt|torn|a bit|leaning|open to|all about"
    r"|in love|into|keen|eager|nervous|anxious|stressed|afraid|scared|surprised"
    # asking for help with something
    r"|like (?:to )?(?:know|see|understand|some|help|advice|your|hear|learn|get)|figuring"
    r"|want (?:to )?(?:make sure|ensure|know|see|understand|be sure|get|learn|avoid|be able|focus)"
    r"|need to (?:know|understand|make sure|ensure|figure|see)|wanting to|frustrated|overwhelmed"
    r"|having (?:trouble|issues|problems|a hard time|difficulty)|getting an? error|facing"
    r"|(?:gonna|going to) (?:keep|be|stay|try|make|continue|stick|do|manage|take it)"
    # talking
    r"|wanted to|have to (?:say|admit)|must (?:say"
    r"|admit)|gotta say|would say|let|remind|ask|asking|say|said|talking about|referring|recommend"
    r"|suggest|saw|want(?:ed)? (?:you|it|this|that|them)|need (?:you|it|this|that|help|your|some"
    r"|advice|a little)|get (?:it|that|you)|got (?:it|you|this|that)|told|mentioned|call"
    # states that pass within the hour
    r"|here|with you|in|down|good|fine|ok|okay|doing|back|off|done|ready|swamped|busy|tired"
    r"|exhausted|bad|well|great|better|on it|wait|try|check|be sure|keep|be there|missed?|forgot"
    r"|forget|consider|up|out|sick|hungry"
    # negations and possibilities
    r"|not|never|couldn't|can't|cannot|could|might|may|should|would|won't|wouldn't|didn't|don't"
    r"|can|haven't|hadn't|wasn't|'d"
    r")\b"
)
_PREFERRING = re2.compile(
    r"(?i)\b(?:I|we) (?:(?:really|usually|generally|also|always|still|much|would|strongly) )*"
    r"(?:prefer|insist on|hate|dislike|can't stand)\b|\bmy favou?rite (?:[\w'-]+ ){1,4}?(?:is"
    r"|are) |\bis my favou?rite [a-z]"
    r"|\bI'm (?:allergic to|a vegetarian|a vegan|vegetarian|vegan|lactose|gluten)\b"
    r"|\bI (?:never|always) (?:eat|drink|use|want|buy|take|work|fly)\b"
    r"|\bI (?:don't|do not) (?:eat|drink)\b"
)
_INSTRUCTING = re2.compile(
    r"(?i)^(?:please,? )?(?:(?:always|never) [a-z]{3,}|from now on|going forward"
    r"|in (?:the )?future|whenever I"
    r"|when I ask|every time I|any time I|remember (?:to|that I)"
    r"|make sure (?:to |that |you )?always"
    r"|don't ever|do not ever|call me|address me as|refer to me as|stop (?:using|adding|calling)"
    r"|only (?:use|answer|reply|respond)|use metric|answer (?:in|me in)|reply in|respond in)\b"
)
_DECIDING = re2.compile(
    r"(?i)\b(?:(?:I|we)(?:'ve| have)? (?:\w+ )?(?:decided|chose|chosen|agreed|opted|settled on"
    r"|went with|picked|switched (?:to|from)|committed to|finali[sz]ed|approved|rejected|declined"
    r"|cancelled)|(?:I|we)'(?:m|re) (?:going with|switching to|sticking with)"
    r"|(?:the|our|my) decision (?:is|was))\b"
)
_TO_DO = re2.compile(
    r"(?i)\b(?:(?:I|we) (?:\w+ )?(?:need to|have to|must|plan to|want to|intend to|aim to|hope to)"
    r"|(?:I|we)'(?:m|re) (?:\w+ )?(?:going to|gonna|planning|about to|trying to|preparing"
    r"|working on|aiming|supposed to|scheduled|considering)|(?:I|we)'ll|deadline"
    r"|due (?:on|by|in|date)|to-?do)\b"
)
_BEING = re2.compile(
    r"(?i)\b(?:my (?:[\w'-]+ ){1,4}(?:is (?:called|named|a|an)|are (?:called|named)|works|lives)"
    r"|my (?:full )?name(?: is|'s)|I'm (?:from|married|single|divorced|engaged|based)"
    r"|(?:I'm|I am) an? (?:[a-z]+ )?(?:[a-z]{3,}(?:er|or|ist|ian|ant|ent)|fan)"
    r"|I (?:am from|live|work (?:as|at|for)|grew up|was born|own|graduated|studied|majored"
    r"|have (?:a|an|two|three|four|\d+) (?:[a-z]+ )?(?:brothers?|sisters?|sons?|daughters?|kids?"
    r"|children|dogs?|cats?|pets?|turtles?|degree|house|car|job|company|business|store|studio"
    r"|allergy)))\b"
)
LINK = re2.compile(r"https?://[^\s<>\"'`)\]}]+[^\s<>\"'`)\]}.,;:!?]")
AMOUNT = re2.compile(
    r"(?i)(?:[$€£]\s?\d[\d,.]*\d?(?:\s?[kmb]\b|\s(?:million|billion|thousand))?|\b\d[\d,.]*\s?(?:%"
    r"|percent|ms|s|sec|seconds?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|km|kms"
    r"|miles?|mi|m|cm|mm|kg|lbs?|pounds?|grams?|g|oz|ml|l|liters?|litres?|gb|mb|kb|tb|tokens?"
    r"|dollars?|euros?|usd|eur|gbp|degrees?|°[cf]|mph|rows?|users?|requests?|people|words?|pages?"
    r"|points?|calories|kcal|steps?)(?:\b|\s|$))"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = re2.compile(
    rf"(?i)\b(?:\d{{4}}-\d\d-\d\d|\d{{1,2}}/\d{{1,2}}/\d{{2,4}}|{_MONTH} \d{{1,2}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH})\b"
)
_REMARKING = re2.compile(
    r"(?i)^(?:always|never|don't ever) (?:good|nice|great|happy|fun|been|better|too|know|knew|mind"
    r"|thought|heard|had|would|really|gets?|wanted|felt|feels|there|ready|here|saw|did|was|is"
    r"|were|said|went|got"
    r"|[a-z]+(?:ing|ed))\b|\b(?:you|your|yourself)\b|, (?:found|got|but) "
)
_PRAISING = re2.compile(
    r"(?i)^(?:my|our) (?:[\w'&-]+ ){1,5}?(?:is|are|was|were|has been|have been) (?:(?:so|really"
    r"|pretty"
    r"|very|super|just|like|always|such|truly|quite|the|a|an|my|our) )*(?:awesome|great|amazing"
    r"|cool"
    r"|nice|wonderful|important|fun|good|incredible|special|priceless|everything|best|half|rock"
    r"|lovely"
    r"|fantastic|excited|happy|proud|supportive|adorable|cute|lifesaver|blast|joy|inspiring)\b"
)
_TRYING = re2.compile(r"(?i)\b(?:trying|tried|try) to (\w+)")
_BUILDING = frozenset(
    """set implement build create integrate migrate switch design deploy cut reduce save tailor
    finalize
    optimize plan launch file sell buy rent hire raise publish release finish complete cancel book
    move organize quit start open lose gain exchange return pay schedule apply""".split()
)
_NUMBER = re2.compile(r"\d")
_OWNING = re2.compile(r"(?i)\bmy [a-z]")
_WHEN = re2.compile(
    r"(?i)\b(?:yesterday|today|tonight|tomorrow|(?:last|next|this|every|each) (?:week|weekend"
    r"|month|year"
    r"|summer|winter|spring|fall|night|morning|day|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
    r"|(?:days?|weeks?|months?|years?) ago|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b"
    r"|\"[^\"]{3,}\""
)
_SHARING = re2.compile(rf"(?i)^{_TIME}(?:we|we're|we've|our)\s")
_NAME_INSIDE = re2.compile(r"\s(?:\W?[A-Z][a-z]+|[A-Z]{2,})")
_DANGLING = re2.compile(
    r"(?i)(?:,? (?:and |but )?(?:given that|now that|since|because|while|although|as|if|when|which"
    r"|so that|where|after)|, (?:and |but )?with) [^,]*$"
)
_VOWING = re2.compile(r"(?i)^(?:I'll|we'll|I will|we will)\s")
_SPEAKERS = frozenset("i i'm i've i'd i'll we we're we've we'll just really".split())
_UNFINISHED = (
    *(":", "…", "...", ","),
    *(
        f" {word}"
        for word in "and or but to of the a so in is was are that um umm uh ah with for as".split()
    ),
)
_CLOSED = (("(", ")"), ("“", "”"), ("[", "]"))


class FactStatement(NamedTuple):
    """A clause that is a fact."""

    text: str
    kind: FactKind
    standing: bool
    start: int
    stop: int


def read_statement(clause: MessageClause) -> FactStatement | None:
    """Return a user's clause as a fact; None if it is none or cannot be understood alone."""
    text = clause.plain
    if clause.asks or not LEAST_CHARACTERS <= len(text) <= _MOST_CHARACTERS:
        return None
    if clause.first and clause.last and _INSTRUCTING.match(text) and not _REMARKING.search(text):
        return _as_statement(clause, "decision", standing=True)
    words = [word.lower() for word in _WORD.findall(text)]
    if not _is_about_something(text, words):
        return None
    prefers = _PREFERRING.search(text) is not None
    if (_NO_FACT.match(text) and not prefers) or _is_empty_talk(text) or not is_complete(clause):
        return None
    if not (prefers or _is_specific(text)):
        return None
    if sum(map(_is_content_word, words)) < _LEAST_CONTENT_WORDS or not is_self_contained(
        text, words
    ):
        return None
    return _as_statement(clause, _kind(text), standing=prefers)


def _as_statement(clause: MessageClause, kind: FactKind, *, standing: bool) -> FactStatement:
    return FactStatement(clause.text, kind, standing, clause.start, clause.stop)


def _kind(text: str) -> FactKind:
    kinds: tuple[tuple[object, FactKind], ...] = (
        (LINK.search(text), "link"),
        (_DECIDING.search(text), "decision"),
        (_TO_DO.search(text), "task"),
        (AMOUNT.search(text), "metric"),
        (_BEING.search(text), "entity"),
    )
    return next((kind for is_one, kind in kinds if is_one), "fact")


def _is_about_something(text: str, words: list[str]) -> bool:
    if _ABOUT_SPEAKER.match(text) or _ABOUT_OWN.match(text):
        return True
    if bool(words) and words[0] not in _NO_NAMES and _ABOUT_NAMED.match(text):
        return True
    return bool(_ABOUT_THE.match(text)) and bool(AMOUNT.search(text) or _DATE.search(text))


def _is_specific(text: str) -> bool:
    """Return whether a statement is specific: it holds for few people or few days.

    Measured on dialogues: a third of the statements without a name, a day or a quotation were
    useless to a reader without the context, and hardly any with one. A number alone needs something
    of the speaker's that it measures.
    """
    if any(pattern.search(text) for pattern in (_DATE, _NAME_INSIDE, _WHEN, _BEING)):
        return True
    return bool(_NUMBER.search(text) or _DECIDING.search(text)) and bool(_OWNING.search(text))


def _is_asking_for_help(text: str) -> bool:
    """Return whether the speaker is trying to do something they need help with: no plan."""
    attempt = _TRYING.search(text)
    return attempt is not None and attempt[1].lower() not in _BUILDING


def _is_empty_talk(text: str) -> bool:
    """Return whether a clause only praises, or vows or shares something without a time or a name.

    "We" needs a name, because nothing else shows who it is.
    """
    if _PRAISING.match(text) or _is_asking_for_help(text):
        return True
    if _VOWING.match(text):
        return not _DATE.search(text)
    return bool(_SHARING.match(text)) and not (_NAME_INSIDE.search(text) or _DATE.search(text))


def _is_content_word(word: str) -> bool:
    return len(word) > 2 and not is_stop_word(word) and word not in _SPEAKERS


def is_complete(clause: MessageClause) -> bool:
    """Return whether a clause is complete: no open quote or bracket, no missing part."""
    text = clause.plain
    if not clause.first and _SHARING.match(text):  # the clause before shows who "we" are
        return False
    if not clause.last and _DANGLING.search(text):  # the main clause comes after it
        return False
    if text.rstrip("\"'”)").endswith(_UNFINISHED) or text.count('"') % 2 or text.count("`") % 2:
        return False
    return all(text.count(opened) == text.count(closed) for opened, closed in _CLOSED)
