"""Questions with an exact answer about tool results and conversations, in two separate sets.

Types, besides `key`, `row`, `line` and `sentence` of `benchmarks/questions.py`:

    gap      A line says "Accepted password for ___ from 10.0.0.5". What stands in place of ___?
    extreme  What is the `city` of the last row? Which `name` has the largest `amount`?
    error    Which error type is raised?

A question is admitted only if its answer occurs in the content, at most three times, and not in the
question. `tuning` questions may be looked at while the engine is changed; `final` ones may not. The
`seen` ones were final until 2026-11-19: their answers were read, so they count as tuning questions.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from benchmarks import recall_data
from benchmarks.judge.contents import Content, all_contents, hash_number
from benchmarks.questions import is_name, parse_content, questions, show_value

SETS = ("tuning", "seen", "final")
WHOLE = {"tuning": 15, "seen": 42, "final": 64}
"""Contents that are asked about in the turn that reads them."""
LATE = {"tuning": 6, "seen": 16, "final": 12}
"""Contents that are asked about one turn later."""
TALK = {"tuning": 12, "seen": 0, "final": 44}
"""Questions about conversations."""
PER_CONTENT = {"whole": 3, "late": 4}
LARGE_EVERY = 4
"""One of so many contents is large."""
_LONGEST_ANSWER = 160
_MOST_TIMES = 3
_MONTHS = (
    "January February March April May June July August September October November December".split()
)
_DATE = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{'|'.join(_MONTHS)})"
    rf"|(?P<month2>{'|'.join(_MONTHS)}) (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?)\b"
    r",? ?(?P<year>\d{4})?"
)


class JudgeQuestion(NamedTuple):
    """A question, its answer and what it is about."""

    id: str
    set_name: str
    """One of `SETS`."""
    about: str
    """`whole`, `late` or `talk`."""
    type: str
    text: str
    answer: str
    content: Content | None
    """None for a question about a conversation."""
    talk: str = ""
    """The name of the conversation."""


def is_right(reply: str, answer: str) -> bool:
    """Return whether the reply contains the answer as a whole word or phrase.

    Spaces, line ends and letter case count alike; a date may be written in another order.
    """
    spaced, wanted = (" ".join(text.split()).casefold() for text in (reply, answer))
    pattern = rf"(?<!\w){re.escape(wanted)}(?!\w)"
    if re.search(pattern, spaced):
        return True
    dates = list(_dates(answer))
    return bool(dates) and set(dates) <= set(_dates(reply))


def _dates(text: str) -> Iterator[tuple[int, str, str]]:
    for match in _DATE.finditer(text):
        day, month = match["day"] or match["day2"], match["month"] or match["month2"]
        yield int(day), month, match["year"] or ""


def judge_questions(set_name: str) -> list[JudgeQuestion]:
    """Return all questions of a set; those about one content follow each other."""
    whole, late = _contents_of(set_name)
    return [
        *_about(whole, "whole", set_name),
        *_about(late, "late", set_name),
        *_about_talks(set_name),
    ]


def _contents_of(set_name: str) -> tuple[list[Content], list[Content]]:
    """Return the contents of whole and of late questions; no two sets share a source."""
    name = "tuning" if set_name == "tuning" else "final"
    candidates = [content for content in all_contents() if content.set_name == name]
    if set_name == "final":
        seen = {content.source for part in _contents_of("seen") for content in part}
        candidates = [content for content in candidates if content.source not in seen]
    return _choose(candidates, WHOLE[set_name], LATE[set_name])


def _choose(
    candidates: list[Content], whole: int, late: int
) -> tuple[list[Content], list[Content]]:
    """Return contents of all kinds in turn, a quarter of them large, each of its own source."""
    waiting: dict[str, Iterator[Content]] = {}
    for size in ("small", "large"):
        kinds: defaultdict[str, list[Content]] = defaultdict(list)
        for content in candidates:
            if content.size == size and len(content_questions(content, 3)) >= 2:
                kinds[content.kind].append(content)
        order = sorted(kinds, key=hash_number)
        turns = itertools.zip_longest(*(kinds[kind] for kind in order))
        waiting[size] = iter([c for turn in turns for c in turn if c is not None])
    sources: set[str] = set()

    def take(number: int) -> list[Content]:
        chosen: list[Content] = []
        while len(chosen) < number:
            size = "small" if len(chosen) % LARGE_EVERY else "large"
            content = next(waiting[size], None)
            if content is None:
                break
            if content.source not in sources:
                sources.add(content.source)
                chosen.append(content)
        return chosen

    # Late ones first: they need the spread over the kinds most, being few.
    later = take(late)
    return take(whole), later


def _about(chosen: Iterable[Content], about: str, set_name: str) -> Iterator[JudgeQuestion]:
    for content in chosen:
        for type_, text, answer in content_questions(content, PER_CONTENT[about]):
            name = f"{content.id}-{hash_number(text) % 16**6:06x}"
            yield JudgeQuestion(name, set_name, about, type_, text, answer, content)


def content_questions(content: Content, most: int) -> list[tuple[str, str, str]]:
    """Return up to `most` questions about a content as (type, question, answer), types in turn."""
    chance = random.Random(content.id)
    by_type: defaultdict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for question in questions(content.text, seed=content.id, most=12):
        by_type[question.type].append((question.type, question.text, question.answer))
    value = parse_content(content.text)
    if value is None:
        by_type["gap"] = list(_gaps(content.text))
        by_type["error"] = list(_errors(content.text))
    else:
        by_type["extreme"] = list(_extremes(value))
    for asked in by_type.values():
        chance.shuffle(asked)
    order = sorted(by_type, key=lambda type_: hash_number(content.id + type_))
    turns = itertools.zip_longest(*(by_type[type_] for type_ in order))
    admitted = (q for turn in turns for q in turn if q and _is_fair(q, content.text))
    return list(itertools.islice(admitted, most))


def _is_fair(asked: tuple[str, str, str], text: str) -> bool:
    type_, question, answer = asked
    times = " ".join(text.split()).count(answer)
    is_exact = 3 <= len(answer) <= _LONGEST_ANSWER and 1 <= times <= _MOST_TIMES
    if not is_exact or answer in ("true", "false") or answer.casefold() in question.casefold():
        return False
    if type_ == "key":  # a plain name may stand at several depths
        path = question.split("`")[1]
        return not path.isidentifier() or text.count(f'"{path}"') == 1
    if type_ == "row":  # the value that names the row must name no other place
        return text.count(question.split('"')[1]) == 1
    return True


def _gaps(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield lines and sentences with one telling word left out."""
    plain = re.sub(r"<[^<>]*>", "\n", text) if text.lstrip()[:1] == "<" else text
    lines = [" ".join(line.split()) for line in plain.splitlines()]
    counts = Counter(lines)
    for line in lines:
        words = line.split(" ")
        if counts[line] > 1 or not 6 <= len(words) <= 60:
            continue
        for at in range(2, len(words) - 1):
            word = words[at].strip("\"'`,.;:()[]{}<>=")
            is_telling = re.search(r"\d|[A-Z]", word) and re.fullmatch(r"\w[\w./:@-]{2,40}", word)
            before, after = words[max(0, at - 6) : at], words[at + 1 : at + 7]
            if is_telling and len(re.findall(r"[A-Za-z]{3,}", " ".join(before + after))) >= 4:
                shown = " ".join([*before, words[at].replace(word, "___"), *after])
                template = re.escape(shown).replace("___", r"\S+")
                if len(re.findall(template, " ".join(lines))) == 1:
                    question = f'The content says "{shown}". What stands in place of ___?'
                    yield "gap", question, word
                break


def _errors(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield a question for the one type of error that a text names."""
    types = set(re.findall(r"\b[A-Z]\w*(?:Error|Exception)\b", text))
    if len(types) == 1:
        yield "error", "Which type of error or exception does the output name?", types.pop()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    bad = [line for line in lines if re.search(r"\b(?:ERROR|FATAL|FAILED)\b", line)]
    if len(bad) == 1:
        yield "error", "Quote the one line that reports an error or a failure.", bad[0]


def _extremes(value: Any) -> Iterator[tuple[str, str, str]]:
    """Yield questions for the first, the last and the largest of the longest table's rows."""
    rows = value if isinstance(value, list) else []
    if len(rows) < 4 or not all(isinstance(row, dict) for row in rows):
        return
    for key in rows[0]:
        shown = [show_value(row.get(key)) for row in rows]
        if all(shown) and len(set(shown)) == len(shown) and is_name(shown[0]):
            yield "extreme", f"What is the `{key}` of the first row?", shown[0]
            yield "extreme", f"What is the `{key}` of the last row?", shown[-1]
            for number in rows[0]:
                values = [row.get(number) for row in rows]
                is_number = all(type(each) in (int, float) for each in values)
                if is_number and number != key and values.count(top := max(values)) == 1:
                    question = f"Which `{key}` has the largest `{number}`?"
                    yield "extreme", question, shown[values.index(top)]


def _about_talks(set_name: str) -> Iterator[JudgeQuestion]:
    """Yield questions about LoCoMo's conversations whose answer stands in the evidence."""
    admitted = []
    for talk in recall_data.locomo():
        texts = {turn["id"]: turn["content"] for turn in talk.turns}
        for asked in talk.asked:
            name = f"{talk.name}-{hash_number(asked.text) % 16**6:06x}"
            is_tuning = hash_number(name) % 4 == 0
            evidence = " ".join(texts.get(turn, "") for turn in asked.evidence)
            if is_tuning == (set_name == "tuning") and _is_fair_talk(asked, evidence):
                answer = asked.answer.strip('"')
                about = ("talk", asked.category, asked.text, answer, None, talk.name)
                admitted.append(JudgeQuestion(name, set_name, *about))
    admitted.sort(key=lambda question: hash_number(question.id))
    chosen = admitted[: TALK[set_name]]
    yield from sorted(chosen, key=lambda question: question.talk)


def _is_fair_talk(asked: recall_data.Asked, evidence: str) -> bool:
    if not 3 <= len(asked.answer) <= 40 or asked.answer.casefold() in asked.text.casefold():
        return False
    is_short = len(asked.answer.split()) <= 4
    is_date = any(_dates(asked.answer))
    is_quoted = "," not in asked.answer and is_right(evidence, asked.answer.strip('"'))
    return is_short and (is_date or is_quoted)
