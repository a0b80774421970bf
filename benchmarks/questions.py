"""Questions about real tool results, each with the exact text that answers it.

Built from the data on this machine, the same ones every time; nothing of the data is kept. Four
types, as a person would ask them:

    key         What does the key `agent.agentArn` hold?
    row         What is the `city` of the row whose `name` is "Thigpen"?
    line        Which line says "failed to open … : permission denied"? (numbers and ids left out)
    sentence    What does the text say about terrarium, cloche and moisture? (its rarest words)

A question never quotes its answer, and the answer's text stands at most twice in the content, so
that finding it is no accident. Each has a second phrasing, shorter and without quotes:

    key         value of agent.agentArn, or in words where these name one value only: agent arn?
    row         Thigpen: city?
    line        where is the line about failed to open permission denied
    sentence    anything on terrarium cloche moisture
"""

from __future__ import annotations

import ast
import csv
import io
import itertools
import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(os.environ.get("HOLDFAST_DATA") or Path(__file__).parents[2] / "shared" / "data")
MANIFEST = DATA / "tool_results" / "manifest.jsonl"
PER_FILE = 8
_LONGEST_ANSWER = 300
_SHORT_LIST = 10


class Question(NamedTuple):
    """A question, and the text that answers it."""

    type: str
    """`key`, `row`, `line` or `sentence`."""
    text: str
    answer: str
    """A part of the content; only spaces and line ends may differ."""
    brief: str
    """The same question in other words, without quotes."""


class Asked(NamedTuple):
    """A tool result and what is asked about it."""

    path: str
    kind: str
    content: str
    questions: tuple[Question, ...]


def asked(per_file: int = PER_FILE, *, brief: bool = False) -> Iterator[Asked]:
    """Every recorded tool result with its questions, in the second phrasing if `brief`."""
    for line in MANIFEST.read_text("utf-8").splitlines():
        entry = json.loads(line)
        content = (MANIFEST.parent / entry["path"]).read_bytes().decode()
        chosen = questions(content, seed=entry["path"], most=per_file)
        if brief:
            chosen = tuple(question._replace(text=question.brief) for question in chosen)
        yield Asked(entry["path"], entry["kind"], content, chosen)


def questions(content: str, *, seed: str, most: int = PER_FILE) -> tuple[Question, ...]:
    """Up to `most` questions about a content, of all the types that it allows, in turn."""
    chance = random.Random(seed)
    value = parse_content(content)
    is_text = value is None
    types = [_keys(value), _rows(value), _text_questions(content) if is_text else []]
    fair = [_fair(each, content, chance) for each in types]
    in_turn = (q for group in itertools.zip_longest(*fair) for q in group if q is not None)
    return tuple(itertools.islice(in_turn, most))


def holds(text: str, answer: str) -> bool:
    """Whether a text contains an answer; spaces and line ends count alike."""
    return " ".join(answer.split()) in " ".join(text.split())


def _fair(found: list[Question], content: str, chance: random.Random) -> Iterator[Question]:
    chance.shuffle(found)
    spaced = " ".join(content.split())
    for question in found:
        answer = question.answer
        is_short = 5 <= len(answer) <= _LONGEST_ANSWER
        if (
            is_short
            and answer not in question.text + question.brief
            and 1 <= spaced.count(answer) <= 2
        ):
            yield question


def parse_content(content: str) -> Any:
    """JSON, Python's way to write rows, or CSV as values; None for a text."""
    start = min((at for at in map(content.find, "[{") if 0 <= at < 200), default=-1)
    if start >= 0 and (start == 0 or content[start - 1] == "\n" or not content[:start].strip()):
        try:
            return json.loads(content[start:])
        except ValueError:
            pass
        try:
            return ast.literal_eval(re.sub(r"\bDecimal\(('[^']*')\)", r"\1", content[start:]))
        except (ValueError, SyntaxError):
            return None
    return _table(content)


def _table(content: str) -> list[dict[str, str]] | None:
    head = content[: content.find("\n")]
    separator = max(",\t;", key=head.count)
    names = next(csv.reader([head], delimiter=separator), [])
    is_header = len(names) >= 2 and all(re.fullmatch(r"[\w .()-]{1,40}", name) for name in names)
    if not is_header:
        return None
    rows = list(csv.reader(io.StringIO(content), delimiter=separator))[1:]
    even = sum(len(row) == len(names) for row in rows)
    if len(rows) < 5 or even < 0.95 * len(rows):
        return None
    return [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)]


def _keys(value: Any) -> list[Question]:
    """Every value with its path, names and numbers of places; the rows of long lists left out."""
    found: list[tuple[str, str]] = []
    waiting = [("", value)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, dict):
            waiting += [(f"{path}.{key}" if path else str(key), v) for key, v in node.items()]
        elif isinstance(node, list) and len(node) <= _SHORT_LIST:
            waiting += [(f"{path}[{place}]", v) for place, v in enumerate(node)]
        elif path and (text := show_value(node)):
            found.append((path, text))
    words = {path: _words(path) for path, _ in found}
    times = Counter(words.values())
    briefs = {
        path: f"{said}?" if times[said] == 1 else f"value of {path}" for path, said in words.items()
    }
    return [
        Question("key", f"What does the key `{path}` hold?", text, briefs[path])
        for path, text in found
    ]


def _words(path: str) -> str:
    """The last three names of a path in plain words: `agent.agentArn` is agent agent arn."""
    names = [name for name in re.split(r"[.\[\]]+", path) if name and not name.isdigit()]
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", " ".join(names[-3:]))
    return " ".join(word.lower() for word in words)


def _rows(value: Any) -> list[Question]:
    """Pairs of fields of one row: the first names it, the second is asked for."""
    table = max(tables_of(value), key=len, default=[])
    if len(table) < 3:
        return []
    counts: Counter[tuple[str, str]] = Counter()
    flat = [{key: text for key, v in row.items() if (text := show_value(v))} for row in table]
    for row in flat:
        counts.update(row.items())
    found = []
    for row in flat:
        names = [
            key
            for key, v in row.items()
            if counts[key, v] == 1 and 3 <= len(v) <= 60 and is_name(v)
        ]
        wanted = [key for key, v in row.items() if not is_link(v)]
        for name, target in itertools.product(names[:2], wanted):
            if name != target and row[name] not in row[target]:
                text = f'What is the `{target}` of the row whose `{name}` is "{row[name]}"?'
                brief = f"{row[name]}: {_words(target)}?"
                found.append(Question("row", text, row[target], brief))
    return found


def tables_of(value: Any) -> Iterator[list[dict[str, Any]]]:
    """Every list of objects inside a value."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting += node.values()
        elif isinstance(node, list):
            if node and all(isinstance(row, dict) for row in node):
                yield node
            waiting += node


def show_value(value: Any) -> str:
    """A value as the content shows it; empty if it cannot be found there letter by letter."""
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, str):
        return value if value.isprintable() and not set(value) & set('"\\') else ""
    return str(value) if isinstance(value, int | float) else ""


def is_name(value: str) -> bool:
    """Whether a person would call a row by it."""
    is_day = re.match(r"\d{4}[-/]\d\d[-/]\d\d", value) is not None
    is_word = re.search(r"[A-Za-z]{3}", value) is not None and not is_link(value)
    is_code = len(value) > 16 and " " not in value and re.search(r"\d|=$", value) is not None
    return is_day or (is_word and not is_code)


def is_link(value: str) -> bool:
    return "://" in value or value.startswith("/")


def _text_questions(content: str) -> list[Question]:
    return _sentences(content) if _is_markup(content) else _lines(content)


def _is_markup(content: str) -> bool:
    return content.lstrip()[:1] == "<" or "</p>" in content


def _lines(content: str) -> list[Question]:
    """Lines whose message, without ids and numbers, stands once in the content."""
    lines = [line.strip() for line in content.splitlines()]
    messages = {line: _message(line) for line in lines}
    counts = Counter(messages[line] for line in lines)
    return [
        Question(
            "line",
            f'Which line says "{message}"?',
            line,
            f"where is the line about {message}",
        )
        for line, message in messages.items()
        if counts[message] == 1 and len(message.split()) >= 4 and len(message) < 0.7 * len(line)
    ]


def _message(line: str) -> str:
    """The words of a line: no numbers, ids, paths or times, as a person remembers it."""
    words = [word.strip("[](){}<>'\",;:=") for word in line.split()]
    kept = [word for word in words if re.fullmatch(r"[A-Za-z][A-Za-z'_.-]{1,30}", word)]
    return " ".join(kept[-10:])


def _sentences(content: str) -> list[Question]:
    """Sentences of paragraphs without markup inside, asked for by their rarest words."""
    counts = Counter(re.findall(r"[a-z]{4,}", content.lower()))
    found = []
    for paragraph in re.findall(r"<(?:p|li|td|AbstractText)\b[^<>]*>([^<>&]{60,})</", content):
        for sentence in re.split(r"(?<=[.!?])\s+", " ".join(paragraph.split())):
            words = list(dict.fromkeys(re.findall(r"[A-Za-z]{4,}", sentence)))
            if len(words) < 8 or not sentence.isprintable():
                continue
            rarest = sorted(words, key=lambda word: (counts[word.lower()], -len(word)))[:3]
            asked_for = [word for word in words if word in rarest]
            text = f"What does the text say about {', '.join(asked_for[:2])} and {asked_for[2]}?"
            brief = f"anything on {' '.join(asked_for[::-1])}"
            found.append(Question("sentence", text, sentence, brief))
    return found
