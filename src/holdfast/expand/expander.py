"""Open a part of a stored content, exactly and within a token limit.

expander: after all kinds of options. Surfaces and the engine call its one function with the bytes
of the content; it knows no store.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.errors import ExpandError
from holdfast.expand.around import place
from holdfast.expand.content import OpenContent
from holdfast.expand.content_match import MatchRules, match_content
from holdfast.expand.expansion import (
    LONGEST_REF,
    Count,
    Expansion,
    PageFrame,
    frame,
    miss,
    shorten_where,
)
from holdfast.expand.options import ExpandOptions
from holdfast.expand.pages import NoPage, show, surround
from holdfast.expand.pattern import by_pattern
from holdfast.expand.query import by_query
from holdfast.expand.region import Region, lines
from holdfast.expand.rows import NoSuchPart, by_structure
from holdfast.expand.tool import NAME, call_of, find_of, is_example
from holdfast.quoting import inline

_LONGEST_FIND = 200
_LEAST_FOR_CALL = 300
"""Minimum tokens of a page that ends with the complete next call, which takes about 30."""
_ANSWER_TOKENS = 300
"""Maximum tokens of the answer to a call that copies the example."""
_LAST_LINES = 40
"""Lines in the suggested call if the requested lines are after the end."""
_Failure = ExpandError | NoSuchPart | NoPage
_COPIED = "answer to the question; the call repeated the example"
_NOT_UTF8 = "bytes that are not UTF-8 are shown as U+FFFD"


def expand(  # noqa: PLR0913 what to open, and how to say it, by name
    ref_id: str,
    data: bytes,
    kind: str,
    options: ExpandOptions,
    *,
    count: Count,
    note: str = "",
    opener: str = NAME,
) -> Expansion:
    """Return the requested part of a content in at most `options.max_tokens`.

    The last line has the call for the next page, with `opener` as the name of the tool. If there
    is no such part, the expansion has the reason and the next step.
    """
    opened = OpenContent(data, kind)
    if not opened.source.is_exact:
        note = f"{note} · {_NOT_UTF8}" if note else _NOT_UTF8
    if not opened.text:
        return miss("this content is empty", "", count=count, ref_id=ref_id)
    if options.question and is_example(options, opened.source):
        answer = _answer(ref_id, data, kind, options, count)
        if answer is not None:
            return answer
    attempts = _in_order(opened, options)
    failures: list[_Failure] = []
    for attempt in attempts:
        used = _used(attempt, attempts, failures)
        around = frame(
            ref_id,
            " · ".join(filter(None, (used, note))),
            find=find_of(attempt) if attempt.max_tokens >= _LEAST_FOR_CALL else None,
            opener=opener,
            count=count,
        )
        try:
            if attempt.around:
                return _surroundings(opened, attempt, around, count)
            return show(_region(opened, attempt), attempt, around, count)
        except (ExpandError, NoSuchPart, NoPage) as error:
            failures.append(error)
    failure = failures[0]
    if isinstance(failure, ExpandError):
        raise failure
    call = failure.call if isinstance(failure, NoPage) else _call(opener, ref_id, failure.find)
    return miss(
        failure.reason,
        f"Call {call}.",
        count=count,
        ref_id=ref_id[:LONGEST_REF],
        there=failure.there if isinstance(failure, NoSuchPart) else "",
        most=options.max_tokens,
    )


def _answer(
    ref_id: str, data: bytes, kind: str, options: ExpandOptions, count: Count
) -> Expansion | None:
    """Return the passage that answers the user's question; None if there is none.

    Small models copy a call that they see: most of their calls had the example of the citation.
    """
    most = min(_ANSWER_TOKENS, options.max_tokens)
    rules = MatchRules(note=_COPIED, max_tokens=most, privacy="allow")
    quotation = match_content(ref_id, data, kind, options.question, rules, count).quotation
    if not quotation:
        return None
    lines = quotation.splitlines()[2:-1]  # without the first line and the fences
    content = "\n".join(line.removeprefix("- ") for line in lines)
    return Expansion(text=quotation, content=content, tokens=count(quotation), is_answer=True)


def _call(opener: str, ref_id: str, find: str) -> str:
    """Return a call that opens an existing part; its path may have any name of the content."""
    find = inline(find)
    return call_of(opener, ref_id[:LONGEST_REF], find if len(find) <= _LONGEST_FIND else "")


def _in_order(opened: OpenContent, options: ExpandOptions) -> list[ExpandOptions]:
    """Return the options to try, copies of the citation's example last.

    Models copy the example into a call beside the words that they mean. If a call has several
    options and a page number that none of them has, their first pages are tried too.
    """
    most = options.max_tokens
    attempts = [msgspec.structs.replace(options, otherwise=())]
    attempts += [msgspec.structs.replace(each, max_tokens=most) for each in options.otherwise]
    if len(attempts) == 1:
        return attempts
    attempts.sort(key=lambda attempt: is_example(attempt, opened.source))
    if len({_way(attempt) for attempt in attempts}) > 1:
        attempts += [msgspec.structs.replace(each, page=1) for each in attempts if each.page > 1]
    return attempts


def _used(
    attempt: ExpandOptions, attempts: Sequence[ExpandOptions], failures: Sequence[_Failure]
) -> str:
    """Return a note on which of several options was used, and why; empty if there was one."""
    if len({_way(each) for each in attempts}) == 1:
        return ""
    way = f"by {_way(attempt)}"
    if not failures:
        return way
    if isinstance(failures[0], NoPage):
        return f"{way}, because {failures[0].reason} by {_way(attempts[0])}"
    return f"{way}, because {_way(attempts[0])} finds nothing"


_WAYS = {
    "path": "path", "fields": "fields", "slice": "rows", "lines": "lines", "pattern": "pattern",
    "around": "place", "query": "words",
}  # fmt: skip
"""Words for the options, whose names a model does not know."""


def _way(options: ExpandOptions) -> str:
    return next((word for name, word in _WAYS.items() if getattr(options, name)), "page")


def _region(opened: OpenContent, options: ExpandOptions) -> Region:
    if options.lines:
        return _lines(opened, *options.lines)
    if options.pattern:
        return by_pattern(opened, options.pattern, options.max_tokens)
    if options.query:
        return by_query(opened, options)
    if options.path or options.fields or options.slice:
        return by_structure(opened, options)
    return opened.whole()


def _lines(opened: OpenContent, first: int, last: int | None) -> Region:
    total = opened.source.line_count
    if first > total:
        last_lines = f"lines {max(1, total - _LAST_LINES)}-{total}"
        raise NoSuchPart(f"there are only {total:,} lines", last_lines)
    first = max(1, total + 1 + first) if first < 0 else first
    if opened.is_one_line:
        return opened.whole()
    return lines(opened.source, first, min(last or total, total))


def _surroundings(
    opened: OpenContent, options: ExpandOptions, around: PageFrame, count: Count
) -> Expansion:
    region, start, end = place(opened, options.around)
    first, last = surround(region, start, end, options, around, count)
    where = region.where(first, last)
    content = region.text[first:last]
    named = shorten_where(where, count) + region.total
    text = around.around(content, named, "", 1)
    return Expansion(text=text, content=content, where=where, unit=region.unit, tokens=count(text))
