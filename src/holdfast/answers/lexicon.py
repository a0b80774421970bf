"""Words that questions are put in: which say nothing, which say the same, and which may not differ.

lexicon: the first of this folder; data, with the few functions that look it up. Written by hand for
English from what the words mean, and fitted to no set of pairs: what is shipped here is under the
licence of the project. A word that is not listed is taken at its word, in whatever language: it
must stand in both questions.
"""

from __future__ import annotations

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
    ("'s", ""),  # is, has or of: none of them says what is asked
)
TYPED = {
    **{f"{verb}nt": f"{verb} not" for verb in "is are was were do does did has have had".split()},
    **{f"{verb}nt": f"{verb} not" for verb in "would should could must need".split()},
    **{"cant": "can not", "wont": "will not", "whats": "what is", "hows": "how is", "im": "i am"},
    **{"wats": "what is", "u": "you", "ur": "your", "pls": "please", "plz": "please"},
}
"""Contractions as they are typed in a hurry."""

NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero _ two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
} | {
    **dict(zip("thirty forty fifty sixty seventy eighty ninety".split(), "30 40 50 60 70 80 90".split(), strict=True)),
    **{"hundred": "100", "thousand": "1000", "million": "1000000", "billion": "1000000000"},
    **{"dozen": "12", "half": "1/2", "once": "1x", "twice": "2x", "double": "2x", "triple": "3x"},
    **{"second": "2nd", "third": "3rd", "fourth": "4th", "fifth": "5th", "single": "1"},
}
"""Numbers in words, as the digits that they mean. `first` and `one` have other uses as well."""

NEGATIONS = {
    **dict.fromkeys("not no none nor neither nothing nobody nowhere".split(), "not"),
    **dict.fromkeys("hardly barely scarcely rarely seldom".split(), "hardly"),
    **{word: word for word in "never without except unless".split()},
}
"""What turns a statement round, and how."""
COMPLEMENTS = {
    **{"wrong": "right", "false": "true", "dead": "alive", "absent": "present"},
    **{"asleep": "awake", "abnormal": "normal", "unready": "ready", "uncertain": "sure"},
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
"""Of these, those that say something of the word behind them: not `from A to B` but from B to A."""

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
    """a an the some any of in on at to for by with as about is are am be been being was were do does
    did doing done have has had having can could may might would will shall it its that there here
    and so just really actually exactly basically generally usually simply literally truly ever
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
"""Whose it is: a client who asks how to do something means its own, whatever it calls itself."""

_SAME = """
way ways method methods technique techniques approach approaches
tip tips suggestion suggestions advice advise recommendation recommendations
best greatest finest top
buy purchase
begin start commence
big large huge
quick fast rapid quickly rapidly
movie film
phone mobile cellphone cell smartphone
photo picture image pic photograph
happen occur
kid child children
man men male
woman women female lady
doctor physician
car automobile
fix repair resolve solve
improve enhance upgrade boost
learn study
obtain acquire
help assist
need require requirement
choose select pick
show display
delete remove erase
use using used utilize utilise usage
change alter modify
important essential crucial
difference differ different differentiate distinguish distinction
example instance
meaning mean means meant definition define
country nation
website site webpage
application app
program programme programming
favorite favourite
math maths mathematics mathematical
television tv
fridge refrigerator
information info
earn make made making
money cash
lose reduce losing
weight fat
speak talk
increase raise grow
cost price charge
salary pay wage
prepare preparation
job work career
company firm organization organisation
beginner newbie starter
language lingo
city town
house home
error issue problem
answer reply response
question query
simple easy
hard difficult tough
rich wealthy
smart intelligent clever
beautiful pretty
angry mad
scared afraid frightened
ill sick
end finish
create build develop
write written writing wrote
know knowing knew known knowledge
understand understanding understood
think thought thinking
feel feeling felt
go going went gone
find finding found
become became
take taking took taken
give giving gave given
see seeing saw seen
come coming came
buy bought
teach taught
say said
speak spoke spoken
choose chose chosen
win won
lose lost
keep kept
sleep slept sleeping
eat ate eaten
run ran
foot feet
tooth teeth
mouse mice
person persons
color colour
center centre
behavior behaviour
theater theatre
meter metre
liter litre
gray grey
email mail e-mail
usa us u.s u.s.a america
uk u.k britain
india indian
china chinese
japan japanese
germany german
russia russian
france french
world earth globe
avoid prevent
break crack
sure certain
join enroll
allow permit
visit see
reduce decrease
burn lose
hide conceal
cheap affordable inexpensive
rs inr rupee rupees
dollar dollars usd
percent %
hours hour hrs hr
minutes minute mins min
kilometer kilometre km
kilogram kg
ac a.c
pc computer
ca c.a
btech b.tech
phd ph.d
purpose aim goal objective
benefit advantage
drawback disadvantage
effect impact influence consequence
reason cause
exam examination test
relationship relation
student pupil
trip journey
lawyer attorney
song track
novel book
holiday vacation
shop store
street road
gift present
near nearby close
stop quit
own possess
marry wed
occupation profession
consider think
"""

ANTONYMS = """
good bad evil poor
best worst
better worse
big small little
large small
high low
long short
tall short
fast slow
hot cold
warm cool
young old
new old
early late
easy hard difficult
simple complex complicated
rich poor
strong weak
light dark heavy
open close closed shut
begin end finish stop
start end finish stop
buy sell
give take receive
increase decrease reduce lower
rise fall drop
raise lower
win lose
gain lose
love hate
like dislike hate
accept reject refuse
allow forbid prohibit ban
include exclude
import export
import deport
enter leave exit
arrive depart leave
push pull
add remove subtract delete
multiply divide
install uninstall
enable disable
connect disconnect
lock unlock
encrypt decrypt
encode decode
upload download
save delete spend
send receive
ask answer
male female
man woman
men women
boy girl
husband wife
father mother
king queen
black white
left right
north south east west
true false
right wrong
correct incorrect wrong
legal illegal
safe dangerous unsafe
full empty
first last
more less fewer
most least
many few
all none
always never
everyone nobody
before after
above below
over under
inside outside
in out
up down
on off
with without
maximum minimum
max min
advantage disadvantage
pro con
benefit drawback risk
success failure
positive negative
public private
internal external
introvert extrovert
single married
alive dead
live die
birth death
war peace
day night
morning evening
summer winter
front back
top bottom
inner outer
remember forget
learn teach
borrow lend
cause prevent
attack defend
agree disagree
appear disappear
awake asleep
clean dirty
cheap expensive
dry wet
hard soft
happy sad
healthy ill sick
near far
past future
rough smooth
thick thin
wide narrow
beautiful ugly
veg nonveg
vegetarian carnivore
gain reduce
active inactive passive
natural artificial
same different unlike
smallest largest biggest
smaller larger bigger
highest lowest
older younger
oldest youngest
deeper shallower
north-east south-west
"""

NEGATED = ("un", "in", "im", "ir", "il", "dis", "non")
"""Beginnings that turn a word into its opposite, where the rest is in `_ADJECTIVES`."""

_ADJECTIVES = frozenset(
    """able accurate acceptable active adequate appropriate available aware believable capable
    certain clean clear comfortable common complete consistent convenient correct dependent direct
    easy effective efficient equal ethical even expected fair familiar finished formal fortunate
    friendly grateful happy healthy helpful honest important interesting known legal likely limited
    logical lucky mature moral mortal natural necessary normal obedient official organized patient
    perfect personal pleasant polite popular possible practical predictable probable proper rational
    ready real realistic reasonable regular related relevant reliable responsible safe satisfied secure
    significant similar skilled stable successful sufficient suitable sure tidy true truthful trustworthy
    usual valid visible wanted welcome well willing wise worthy""".split()
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
    r"|deadline|so far|at the moment|at present|these days|up[ -]to[ -]date|as of|what time|what day"
    r"|what date|how old|(?:this|next|last|past) (?:hour|morning|afternoon|evening|night|week|weekend"
    r"|month|quarter|year|season|time)|(?:exchange|interest|inflation) rates?|stock prices?"
    r"|price of)\b"
)
"""A question whose answer depends on the day."""


def groups(table: str) -> list[list[str]]:
    """The lines of a table, each as its words."""
    return [line.split() for line in table.splitlines() if line]


def same_words() -> dict[str, str]:
    """Each word of a group, and the first of that group, which stands for all of them."""
    first: dict[str, str] = {}
    for group in groups(_SAME):
        for word in group:
            first.setdefault(word, first.get(group[0], group[0]))
    return first


def opposite(word: str) -> str:
    """The word that this one negates, such as `fair` for `unfair`; empty if it negates none."""
    for beginning in NEGATED:
        if word.startswith(beginning) and word[len(beginning) :] in _ADJECTIVES:
            return word[len(beginning) :]
    return ""
