"""The offers of a citation and a page, parsed independently from their text.

Nothing here uses the code that writes the offers: they are read as a model would read them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast.cite import Citation, count
from holdfast.expand import Expansion, expand, parse_call

_TEXT = r'"(?:[^"\\]|\\.)*"'
_CALL = re.compile(rf"(\w+)\(({_TEXT})(?:, ({_TEXT}))?\)")
_FOOT = re.compile(rf"\[Read more: ({_CALL.pattern})\]")
_REMAIN = re.compile(
    rf"\[[\d,]+ \w+ remains?: (?:({_CALL.pattern})|add (\", page \d+\") to find)\]\Z"
)
_PLACE = re.compile(
    r"- (lines? [\d-]+|characters \d+-\d+|rows? [\d-]+(?: of \$\S*)?|paragraphs? \d+(?:-\d+)?"
    r"|\$(?:\.[\w$-]+|\[\d+\]|\[\"(?:[^\"\\]|\\.)*\"\])*): "
)
_BEHIND = re.compile(r" \((lines? [\d-]+)\)$", re.M)
_WORD = re.compile(r"(?<!\\)\b\w+\b(?!\\)")
"""No part of an escape, whose characters differ from the string's."""
_LONGEST_WORD = 40


class Offer(NamedTuple):
    tool: str
    ref: str
    arguments: dict[str, Any]


def offers(citation: str) -> list[Offer]:
    """The call that the last line of a citation offers; the shortest citations have no room."""
    if "[Read more: " not in citation:
        return []
    foot = _FOOT.fullmatch(citation[citation.rindex("[Read more: ") :])
    assert foot, citation[-300:]
    assert "…" not in foot[0], "a placeholder would be copied"
    assert " | " not in foot[0], "alternatives would be copied together"
    return [_offer(foot[1])]


def _offer(call: str) -> Offer:
    made = _CALL.fullmatch(call)
    assert made, call
    tool, ref, find = made.groups()
    return Offer(tool, json.loads(ref), {"find": json.loads(find)} if find else {})


def places(citation: str) -> list[str]:
    """The places that the lines of a citation begin with."""
    before = [found[1] for line in citation.split("\n") if (found := _PLACE.match(line))]
    return [*before, *_BEHIND.findall(citation)]


def next_page(page: str, arguments: dict[str, Any]) -> Offer | None:
    """Return the call in the last line of a page; on a small page only the arguments."""
    remain = _REMAIN.search(page)
    if remain is None:
        return None
    if remain[1]:
        return _offer(remain[1])
    suffix = json.loads(remain[5])
    return Offer("", "", arguments | {"find": f"{arguments.get('find', '')}{suffix}"})


def opened(citation: Citation, arguments: dict[str, Any], tool: str) -> Expansion:
    """Return the result of this call."""
    assert citation.content is not None
    ref, options = parse_call(json.dumps({"ref": citation.ref_id, **arguments}))
    data, kind = citation.content.data, citation.kind
    return expand(ref, data, kind, options, count=count, opener=tool)


def check_offers(citation: Citation, tool: str) -> int:
    """Open everything that is offered, also on opened pages; return the number."""
    assert citation.content is not None
    text = citation.content.data.decode("utf-8", "replace")
    tried = 0
    for arguments in _calls(citation, text, tool):
        page = opened(citation, arguments, tool)
        _check_page(page, arguments)
        following = next_page(page.text, arguments)
        assert (following is None) == page.complete, arguments
        if following is not None:
            assert following.tool in (tool, "")
            _check_page(opened(citation, following.arguments, tool), following.arguments)
        tried += 1
    return tried


def _check_page(page: Expansion, arguments: dict[str, Any]) -> None:
    assert not page.reason, (arguments, page.reason)
    assert page.content.strip(), arguments


def _calls(citation: Citation, text: str, tool: str) -> Iterator[dict[str, Any]]:
    words = _words(citation, text)
    for offer in offers(citation.text):
        assert (offer.tool, offer.ref) == (tool, citation.ref_id)
        yield offer.arguments
        yield from ({"find": f"/{re.escape(word)}/"} for word in words[:1])
        yield from ({"find": " ".join(words)} for _ in words[:1])
    for place in places(citation.text):
        yield {"find": place}
        yield {"around": place}
        if place.startswith("$"):
            yield {"path": place}
        if place.startswith("lines "):
            yield {"lines": place.removeprefix("lines ")}


def _words(citation: Citation, text: str) -> list[str]:
    """Return words that the citation quotes from the content, as a model's query."""
    quoted = " ".join(excerpt.text for excerpt in citation.excerpts) or text
    there = set(_WORD.findall(text))
    words = [word for word in dict.fromkeys(_WORD.findall(quoted)) if word in there]
    whole = [word for word in words if 2 <= len(word) <= _LONGEST_WORD]
    return sorted(whole, key=len, reverse=True)[:4]
