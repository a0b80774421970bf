"""Random openings: a content, and a model's options with a ref of it.

Most options are nearly valid, so that the random part reaches the code after the parser; contents
are small, because faults of form need no size.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import NamedTuple

from tests.expand.made import CSV, JSON, LOG, MCP

KINDS = ("", "csv", "log", "json", "html", "sql_dump", "x")
NAMES = ("lines", "page", "path", "fields", "slice", "pattern", "query", "around", "max_tokens")
ODD_NAMES = ("offset", "limit", "unknown", "", "PATH", "lines ")
INNER_NAMES = ("offset", "limit", "start", "end", "first", "last", "from", "to", "x")
PIECES = (
    "[", '{"a":', "(", "<!--", "\\u0040", '"', "|--", "a,b\n", "\r", "\0", "[ref:x:", "😀",
    "\ufeff", "[None, '\\'", "a.", "<a b=", "- [", "\t ", "word ", "\n", "{}", "[],", "1,", "é",
    '{"a": 1}\n', "|a|b|\n", "\u2028", "\ud800", "e\u0301", "x" * 90 + " ",
)  # fmt: skip
"""Parts of contents: signs that each kind recognises, and halves of them."""
WHOLE = (
    LOG[:3_000], CSV[:2_000], MCP, JSON[:2_500] + "]}", LOG[-900:],
    json.dumps({"items": [{"id": n, "name": f"n{n}"} for n in range(30)], "next": None}),
    "".join(f'{{"a": {n}, "b": "c{n}"}}\n' for n in range(40)),
    "# A\n\ntext\n\n## B\n\n```py\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "<html><body><h1>A</h1><p>b <a href='/c'>d</a></p></body></html>",
    "[{'a': None, 'b': Decimal('1.10')}, {'a': (1, 2)}]",
    "CREATE TABLE a (\n  b int\n);\nINSERT INTO a VALUES (1), (2);\n",
)  # fmt: skip
"""Contents of a kind."""
WORDS = (
    "$", "$..*", "$..a", "[*]", "a[-1:]", "[" * 300, "." * 300, "/a/0", 'a["', "1-", "-5", "0",
    "1" * 400, "9" * 15, "9" * 16, "lines 1-2 of 9", "rows 1-9 of $", "paragraph 1", "items[3].id",
    "characters 0-9", "section: (lines 1-1)", "a; b", r"\b", "(a*)*b", "(?i)x{1000}", "[", "name",
    "(?P<n>", r"\pL{900}", "a{0}", "(?s).*", "\0", "\ud800", " ", "\u0661-\u0662", "1\u20132",
    "1e3", "NaN", "3-7", "ERROR", "$.items", "items", "id,name", "$.items[*].name", "^$", "worker",
    "rows 2-3 of $.items", "$.items[2]", "which one failed?", "12:00:03", ".", "(?m)^a", "a" * 3000,
)  # fmt: skip
NUMBERS = (
    0, 1, 2, 3, 7, 100, 101, 200, 8000, 8001, -1, -3, 10**12, 10**13, 2**63, -(2**70), 10**300,
)  # fmt: skip


class Opening(NamedTuple):
    """A content and the options of its opening."""

    data: bytes
    options: object
    kind: str


def opening(chance: random.Random) -> Opening:
    """Something to be opened in some way."""
    return Opening(_content(chance), _options(chance), chance.choice(KINDS))


def _content(chance: random.Random) -> bytes:
    draw = chance.random()
    if draw < 0.45:
        text = chance.choice(WHOLE)
        if chance.random() < 0.3:  # cut anywhere, as a limit of a tool would
            text = text[chance.randrange(len(text)) :][: chance.randrange(1, len(text))]
    elif draw < 0.75:
        text = chance.choice(PIECES) * chance.randrange(1, 60)
    elif draw < 0.9:
        text = "".join(chance.choices(PIECES, k=chance.randrange(1, 40)))
    elif draw < 0.905:  # a few that have many pages
        text = chance.choice((LOG, CSV, JSON, chance.choice(PIECES) * 3_000))
    else:
        return chance.randbytes(chance.randrange(200))
    return text.encode("utf-8", "surrogatepass")


def _options(chance: random.Random) -> object:
    draw = chance.random()
    if draw < 0.05:
        return chance.randbytes(chance.randrange(40))
    if draw < 0.1:
        return _value(chance, 2)
    names = chance.choices(NAMES, k=chance.choice((0, 1, 1, 1, 1, 1, 1, 1, 2, 3)))
    if chance.random() < 0.1:
        names.append(chance.choice(ODD_NAMES))
    options = {name: _of_name(name, chance) for name in names}
    if draw < 0.85:
        return options
    written = json.dumps(options)
    return written if draw < 0.95 else written[: chance.randrange(len(written))]


def _of_name(name: str, chance: random.Random) -> object:
    """Mostly a value of the type that an option takes."""
    draw = _OF_TYPE.get(name) if chance.random() < 0.7 else None
    return draw(chance) if draw is not None else _value(chance, 2)


def _number(chance: random.Random) -> int:
    return chance.randrange(-2, 60) if chance.random() < 0.8 else chance.choice(NUMBERS)


def _word(chance: random.Random) -> str:
    return chance.choice(WORDS)


_OF_TYPE: dict[str, Callable[[random.Random], object]] = {
    "lines": lambda chance: f"{_number(chance)}-{_number(chance)}",
    "page": _number,
    "path": _word,
    "fields": lambda chance: [_word(chance) for _ in range(chance.randrange(1, 4))],
    "slice": lambda chance: {"offset": _number(chance), "limit": _number(chance)},
    "pattern": _word,
    "query": _word,
    "around": _word,
    "max_tokens": lambda chance: 100 + 10 * _number(chance),
}


def _value(chance: random.Random, depth: int) -> object:
    draw = chance.random()
    if draw < 0.5:
        return _word(chance)
    if draw < 0.7:
        return _number(chance)
    if draw < 0.8 or not depth:
        return chance.choice((None, True, False, 1.5, float("nan"), float("inf"), -0.0, 1e300, ""))
    if draw < 0.9:
        return [_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    names = chance.sample(INNER_NAMES, chance.randrange(4))
    return {name: _value(chance, depth - 1) for name in names}
