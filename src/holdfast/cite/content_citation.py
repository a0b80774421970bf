"""Make the citation of a content.

content_citation: last in the package. It stores nothing: a citation carries the original, which
must be in the store before the citation is shown to a model.
"""

from __future__ import annotations

from typing import Any

from holdfast.cite.citation import (
    DEFAULT_RULES,
    Citation,
    CitingRules,
    Fidelity,
    allowance,
    count,
    is_long,
)
from holdfast.cite.composition import Handle, citation_of, compose
from holdfast.cite.sections import LEAST_TOKENS
from holdfast.cite.shortened_content import shortened_content
from holdfast.condense.kinds import condenser_for
from holdfast.condense.source import Source
from holdfast.errors import StoreError
from holdfast.expand.tool import example
from holdfast.privacy import apply, find, flags
from holdfast.store.records import Content
from holdfast.store.refs import KIND, canonical, digest, ref_id

_SUMMARY_CHARACTERS = 500
_QUESTION_CHARACTERS = 2_000
_FRAME_AND_KEYS = 200
"""Tokens of the first and the last line of a citation, and of its key lines."""


def cite(
    content: Any,
    *,
    kind: str | None = None,
    question: str | None = None,
    source_url: str | None = None,
    tool: str = "",
    rules: CitingRules = DEFAULT_RULES,
) -> Citation:
    """Return the citation of a content: text, bytes or a JSON value.

    The same input gives the same bytes. Content at or under the threshold, or content that a
    citation would not shorten, is returned unchanged.
    """
    if kind is not None and not KIND.fullmatch(kind):
        raise StoreError(
            "the kind of the content is not a valid name",
            where="kind",
            fix="Use lower-case letters, digits and underscores, such as build_log.",
        )
    data = canonical(content)
    source = Source(data, tool=tool, url=source_url or "")
    if not is_long(source.text, rules):
        return _unchanged(source, kind)
    tokens = count(source.text)
    findings = find(source.text)
    visible = apply(rules.privacy, source.text, findings)
    condenser = condenser_for(source, kind)
    visible_source = source
    if visible is not source.text:
        visible_source = Source(visible.encode(), tool=tool, url=source.url)
    sha256 = digest(data)
    name = ref_id(kind or condenser.kind, sha256, rules.ref_digits)
    short_question = (question or "")[:_QUESTION_CHARACTERS]
    handle = Handle(name, rules.opener, tokens, example(source, tokens, visible))
    composed = shortened_content(
        handle, visible_source, condenser, short_question, rules.shorten_to
    )
    level = "cited" if composed is None else "shortened"
    if composed is None:
        most = allowance(tokens, condenser.kind, rules.room, rules.most_tokens)
        composed = compose(
            handle, visible_source, condenser, short_question, min(most, _most_of(tokens))
        )
    if composed.tokens >= tokens:
        return _unchanged(source, kind)
    original = Content(
        ref_id=name,
        kind=kind or condenser.kind,
        sha256=sha256,
        data=data,
        summary=composed.title[:_SUMMARY_CHARACTERS],
        compressed=composed.text,
        compressed_tokens=composed.tokens,
        tokens=tokens,
        meta={k: v for k, v in (("tool", tool), ("url", source.url)) if v},
        flags=flags(findings),
        ttl_seconds=rules.ttl_seconds,
    )
    return citation_of(original, composed, level=level)


def _most_of(tokens: int) -> int:
    """Return the maximum tokens of a citation, regardless of the room: half of the content.

    Half of a content just over the threshold would only hold the first and last lines of a
    citation. Three quarters are allowed there, so that the end of the content is shown too.
    """
    return max(LEAST_TOKENS, tokens // 2, min(tokens * 3 // 4, _FRAME_AND_KEYS))


def _unchanged(source: Source, kind: str | None) -> Citation:
    tokens = count(source.text)
    fidelity = Fidelity(
        level="full",
        unit="characters",
        total=len(source.text),
        kept=("all",),
        from_tokens=tokens,
        to_tokens=tokens,
    )
    return Citation(
        ref_id="",
        kind=kind or "",
        text=source.text,
        tokens=tokens,
        excerpts=(),
        fidelity=fidelity,
        content=None,
    )
