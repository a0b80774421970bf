"""Answers of web searches: title, link and snippet of each result.

web_search: after main_rows. Google, Bing, Brave, DuckDuckGo, SerpApi, Tavily, Exa and their like
name these three differently, and tools also write them as text: `Title: …`, `URL: …`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.condense.alerts import alerts
from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.cutting import shortened
from holdfast.condense.main_rows import near_top, path_to
from holdfast.condense.objects import first_of, passages_with
from holdfast.condense.outline import outline
from holdfast.condense.pieces import prose_passages
from holdfast.condense.source import Source, once

kind = "web_search"

SNIPPET_CHARS = 200
_TITLE_CHARS = 80
_TOP = 10
"""As many results are shown before anything else of the answer."""
_TOP_CHARS = 600
"""Characters for all of these: a citation has room for some 250 tokens of them."""
_LEAST_CHARS = 15
"""Shorter titles and snippets are uninformative."""
_TITLES = ("title", "name")
_LINKS = ("link", "url", "href")
_SNIPPETS = ("snippet", "description", "content", "body", "text", "highlights", "summary")
_LISTS = ("organic_results", "organic", "webPages", "web", "results", "items", "value", "articles")
"""Keys of result lists, the most reliable first."""
_SURE = 4
"""As many of these lists are found only in answers of searches."""
_MOST_KEYS = 30
_LOOKED_AT = 20
# Uses `re`, because every line may match and RE2 takes ten times as long for each. It is linear:
# anchored to the start of a line, with repeats that are possessive or at its end.
_ENTRY = re.compile(
    r"(?mi)^(?:\d++[.)]\s*+)?\**+(title|url|link|description|snippet)\**+:\**+[ \t]*+(.*)"
)


class Result(msgspec.Struct, frozen=True):
    """One result of a search."""

    title: str
    link: str
    snippet: str
    where: str


class _Results(msgspec.Struct, frozen=True):
    listed: list[Result]
    score: float
    query: str = ""


def sniff(source: Source) -> float:
    """Sure of lists whose items have title, link and snippet."""
    search = _results(source)
    return search.score if search else 0.0


def condense(source: Source) -> Condensed:
    """Title, link and snippet of each result."""
    search = _results(source)
    if search is None:
        return Condensed(title="Web search, unreadable", unit="results", total=0, notes=())
    values = source.document
    notes = alerts(source)
    notes += _result_notes(search.listed)
    notes += outline(values.value, deepest=1) if values else []
    query_part = f' for "{shortened(search.query, 100)}"' if search.query else ""
    return Condensed(
        title=f"Web search{query_part}: {len(search.listed):,} results".replace("\n", " "),
        unit="results",
        total=len(search.listed),
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """Each result, then all of the answer."""
    search = _results(source)
    results = search.listed if search else []
    lines = [
        (f"{result.title}; {result.link}; {result.snippet}", result.where) for result in results
    ]
    if source.document is not None:
        return passages_with(source, lines)
    lines = lines or [(source.text, f"lines 1-{source.line_count}")]
    return [part for line, place in lines for part in prose_passages(line, place)]


def _result_notes(results: Sequence[Result]) -> list[Note]:
    """Return the first ten results with complete links, and titles and snippets as far as they fit.

    They are numbered, without their places, which would take a third of the tokens.
    """
    room = _TOP_CHARS // max(1, min(len(results), _TOP))
    notes = [
        Note("key", _told(number, result, room)) for number, result in enumerate(results[:_TOP], 1)
    ]
    notes += [
        Note("sample", _told(number, result, _TITLE_CHARS + SNIPPET_CHARS), result.where)
        for number, result in enumerate(results[_TOP:], _TOP + 1)
    ]
    return notes


def _told(number: int, result: Result, room: int) -> str:
    room -= len(result.link)
    title = _part(result.title, min(room, _TITLE_CHARS))
    snippet = _part(result.snippet, min(room - len(title), SNIPPET_CHARS))
    return f"{number}. " + " | ".join(filter(None, (title, result.link, snippet)))


def _part(text: str, most: int) -> str:
    words = " ".join(text.split())
    return "" if most < min(_LEAST_CHARS, len(words)) else shortened(words, most)


@once
def _results(source: Source) -> _Results | None:
    document = source.document
    if document is None:
        return _in_text(source)
    best: _Results | None = None
    for steps, item in near_top(source):
        if not isinstance(item, list) or not _are_results(item):
            continue
        score = _score(source, steps, item[0])
        if score > (best.score if best else 0):
            path = path_to(steps)
            results = [_result(entry, f"{path}[{n}]") for n, entry in enumerate(item)]
            best = _Results(results, score, _query(source))
    return best


def _score(source: Source, steps: tuple[str | int, ...], first: dict[str, Any]) -> float:
    names = [step for step in steps if isinstance(step, str)]
    if any(name in _LISTS[:_SURE] for name in names):
        return 0.95
    if "snippet" in first or "search" in source.tool.lower():
        return 0.93
    plain = all(type(value) is not dict for value in first.values())
    return 0.9 if plain and (not names or names[-1] in _LISTS) else 0.0


def _are_results(items: list[Any]) -> bool:
    looked = items[:_LOOKED_AT]
    good = sum(map(_is_result, looked))
    return bool(items) and isinstance(items[0], dict) and good >= 0.6 * len(looked)


def _is_result(item: Any) -> bool:
    if not isinstance(item, dict) or len(item) > _MOST_KEYS:
        return False
    link = _first(item, _LINKS)
    return link.startswith("http") and bool(_first(item, _TITLES)) and bool(_first(item, _SNIPPETS))


def _result(item: Any, where: str) -> Result:
    fields = item if isinstance(item, dict) else {}
    return Result(_first(fields, _TITLES), _first(fields, _LINKS), _first(fields, _SNIPPETS), where)


def _first(item: dict[str, Any], names: tuple[str, ...]) -> str:
    value = first_of(item, names, _is_text)
    return " ".join(value) if isinstance(value, list) else value or ""


def _is_text(value: Any) -> bool:
    """Return whether a value is text, or a list of texts; empty ones do not count."""
    texts = value if isinstance(value, list) else [value]
    return bool(value) and all(type(text) is str for text in texts)


def _query(source: Source) -> str:
    for _, item in near_top(source):
        if isinstance(item, dict):
            for name in ("q", "query", "originalQuery", "searchTerms"):
                if type(item.get(name)) is str:
                    return str(item[name])
    return ""


def _in_text(source: Source) -> _Results | None:
    """Results written as lines: each begins with its title."""
    if source.text[:4000].lower().count("url:") + source.text[:4000].lower().count("link:") < 2:
        return None
    results: list[Result] = []
    entry: dict[str, str] = {}
    first = 1
    for match in _ENTRY.finditer(source.text):
        name = match[1].lower()
        if name == "title":
            _close(results, entry, first, source.line_at(match.start()) - 1)
            entry, first = {}, source.line_at(match.start())
        entry["link" if name == "url" else name] = match[2].strip()
    _close(results, entry, first, source.line_count)
    return _Results(results, 0.9) if len(results) > 1 else None


def _close(listed: list[Result], entry: dict[str, str], first: int, last: int) -> None:
    if entry.get("title") and entry.get("link", "").startswith("http"):
        snippet = entry.get("snippet") or entry.get("description") or ""
        listed.append(Result(entry["title"], entry["link"], snippet, f"lines {first}-{last}"))
