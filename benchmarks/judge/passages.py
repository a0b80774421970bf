"""The passage of a content that answers a question, as a person would copy it out."""

from __future__ import annotations

import json
import re

from benchmarks.judge.contents import count
from benchmarks.judge.questions import JudgeQuestion
from benchmarks.questions import parse_content, show_value, tables_of

MOST_TOKENS = 300


def passage_for(question: JudgeQuestion) -> str:
    """Return the field, row or lines that hold the answer, in at most 300 tokens."""
    assert question.content is not None
    text, answer = question.content.text, question.answer
    if question.type == "key":
        path = question.text.split("`")[1]
        return f"{path}: {answer}"
    if question.type in ("row", "extreme"):
        for table in tables_of(parse_content(text)):
            for row in table:
                if answer in map(show_value, row.values()):
                    written = json.dumps(row, ensure_ascii=False)
                    return written if count(written) <= MOST_TOKENS else _around(written, answer)
    return _around(text, answer)


def _around(text: str, answer: str) -> str:
    """Return the lines around the answer, fewer of them if they are long."""
    spaced = text if answer in text else " ".join(text.split())
    whole_word = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", spaced)
    at = whole_word.start() if whole_word else spaced.find(answer)
    start, end = at, at + len(answer)
    for characters in (400, 200, 100, 0):
        start = max(0, at - characters)
        end = min(len(spaced), at + len(answer) + characters)
        if count(spaced[start:end]) <= MOST_TOKENS:
            break
    return spaced[start:end].strip()
