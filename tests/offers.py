"""What a citation and a page offer, read from their text by rules of our own.

Nothing here asks the code that writes the offers: they are read as a model would read them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast.cite import Citation, count
from holdfast.expand import Expansion, expand, parse_call

_CALL = re.compile(r'\[Open any part: (\w+)\("([^"]+)", (.*)\)\]', re.DOTALL)
_ARGUMENT = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\[(?:"(?:[^"\\]|\\.)*"|[, ])*\]|\d+)')
_REMAIN = re.compile(r"\[[\d,]+ \w+ remain: (\w+) with (the same options and )?page=(\d+)\]\Z")
_PLACE = re.compile(
    r"- (lines \d+-\d+|characters \d+-\d+|rows \d+-\d+(?: of \$\S*)?|paragraphs? \d+(?:-\d+)?"
    r"|\$(?:\.[\w$-]+|\[\d+\]|\[\"(?:[^\"\\]|\\.)*\"\])*): "
)
_WORD = re.compile(r"(?<!\\)\b\w+\b(?!\\)")
"""No part of an escape: what a string holds is not what is written."""
_LONGEST_WORD = 40


class Offer(NamedTuple):
    tool: str
    ref: str
    arguments: dict[str, Any]


def offers(citation: str) -> list[Offer]:
    """The calls that the last line of a citation offers; the shortest citations have no room."""
    if "[Open any part: " not in citation:
        return []
    call = _CALL.fullmatch(citation[citation.rindex("[Open any part: ") :])
    assert call, citation[-300:]
    tool, ref, ways = call.groups()
    return [
        Offer(tool, ref, {name: json.loads(value) for name, value in _ARGUMENT.findall(way)})
        for way in re.split(r" \| (?=\w+=)", ways)
    ]


def places(citation: str) -> list[str]:
    """The places that the lines of a citation begin with."""
    return [found[1] for line in citation.split("\n") if (found := _PLACE.match(line))]


def next_page(page: str, arguments: dict[str, Any]) -> Offer | None:
    """The call that the last line of a page offers."""
    found = _REMAIN.search(page)
    if found is None:
        return None
    same = arguments if found[2] else {}
    return Offer(found[1], "", same | {"page": int(found[3])})


def opened(citation: Citation, arguments: dict[str, Any], tool: str) -> Expansion:
    """What a model gets that makes this call."""
    assert citation.content is not None
    ref, options = parse_call(json.dumps({"ref_id": citation.ref_id, **arguments}))
    data, kind = citation.content.data, citation.kind
    return expand(ref, data, kind, options, count=count, opener=tool)


def check_offers(citation: Citation, tool: str) -> int:
    """Everything that is offered opens, and so does what the opened pages offer; how many did."""
    assert citation.content is not None
    text = citation.content.data.decode("utf-8", "replace")
    tried = 0
    for arguments in _calls(citation, text, tool):
        page = opened(citation, arguments, tool)
        _check_page(page, arguments)
        following = next_page(page.text, arguments)
        assert (following is None) == page.complete, arguments
        if following is not None:
            assert following.tool == tool
            _check_page(opened(citation, following.arguments, tool), following.arguments)
        tried += 1
    return tried


def _check_page(page: Expansion, arguments: dict[str, Any]) -> None:
    assert not page.reason, (arguments, page.reason)
    assert page.content.strip(), arguments


def _calls(citation: Citation, text: str, tool: str) -> Iterator[dict[str, Any]]:
    for offer in offers(citation.text):
        assert (offer.tool, offer.ref) == (tool, citation.ref_id)
        words = _words(citation, text)
        if "pattern" in offer.arguments:
            yield from ({"pattern": re.escape(word)} for word in words[:1])
        elif "query" in offer.arguments:
            yield from ({"query": " ".join(words)} for _ in words[:1])
        else:
            yield offer.arguments
    for place in places(citation.text):
        yield {"around": place}
        if place.startswith("$"):
            yield {"path": place}
        if place.startswith("lines "):
            yield {"lines": place.removeprefix("lines ")}


def _words(citation: Citation, text: str) -> list[str]:
    """Words that the citation quotes from the content: what a model would ask about."""
    quoted = " ".join(excerpt.text for excerpt in citation.excerpts) or text
    there = set(_WORD.findall(text))
    words = [word for word in dict.fromkeys(_WORD.findall(quoted)) if word in there]
    whole = [word for word in words if 2 <= len(word) <= _LONGEST_WORD]
    return sorted(whole, key=len, reverse=True)[:4]
