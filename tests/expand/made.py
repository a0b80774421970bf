"""Contents made for the tests of expand, and the counter they are counted with."""

from __future__ import annotations

import json
from typing import Any

from holdfast.expand import ExpandOptions, Expansion, expand
from holdfast.tokens.vocabulary import count_ordinary

REF = "ref:log:0123456789abcdef"


def count(text: str) -> int:
    return count_ordinary("o200k_base", text)


def opened(data: bytes | str, options: Any = None, kind: str = "", note: str = "") -> Expansion:
    """Expand, and check what holds for every expansion."""
    raw = data.encode() if isinstance(data, str) else data
    wanted = ExpandOptions.parse(options)
    made = expand(REF, raw, kind, wanted, count=count, note=note)
    assert made.tokens == count(made.text) <= wanted.max_tokens
    assert made.text.startswith(f"[{REF}")
    assert made.content in made.text
    assert made.complete == (made.remaining == 0) == (made.next is None)
    assert made.reason or made.content
    return made


def pages(data: bytes | str, options: dict[str, Any], kind: str = "") -> list[Expansion]:
    """Every page, each by the options that the one before it gave."""
    made = [opened(data, options, kind)]
    while made[-1].next is not None:
        assert ExpandOptions.parse(made[-1].next).page == len(made) + 1
        made.append(opened(data, made[-1].next, kind))
    return made


LOG = "".join(
    f"12:00:{n % 60:02d} {'ERROR' if n % 97 == 0 else 'INFO'} worker-{n} took {n % 300} ms\n"
    for n in range(1, 1001)
)

ROWS: list[dict[str, Any]] = [
    {"id": n, "name": f"n{n}", "owner": {"login": f"u{n}"}, "price": n + 0.5, "tags": ["a", "b"]}
    for n in range(400)
]
JSON = json.dumps({"total": 400, "items": ROWS, "next": None}).replace('.5, "tags"', '.50, "tags"')
CSV = "id,name,note\n" + "".join(f'{n},n{n},"a\nb, {n}"\n' for n in range(300))
MCP = json.dumps({"content": [{"type": "text", "text": json.dumps({"items": ROWS[:3]})}]})
