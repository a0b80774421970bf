"""Cite a content that could not be read in time by its ends and its size.

ends: after tasks. It reads a few hundred characters, however long the content is, so that no
content can block this process too. The original is stored whole, as with every citation, and the
citation states that it shows the ends only, and why.
"""

from __future__ import annotations

from holdfast.cite import BRIEF, Citation, CitingRules, Excerpt, count
from holdfast.cite.composition import CitationText, citation_of
from holdfast.condense.places import with_unit
from holdfast.errors import PrivacyError
from holdfast.expand.tool import call_of
from holdfast.privacy import apply, find
from holdfast.quoting import READ_MORE, STORED
from holdfast.store.records import Content
from holdfast.store.refs import digest, ref_id

KIND = "text"
_END_BYTES = 600
"""Of each end: with its frame the citation stays under 400 tokens for most scripts."""
_LEAST_BYTES = 40
_FIRST_LINES = 80
_COUNTED_BYTES = 1_000_000
_LINE = "  | "
"""Prefix of each line of content, so that none can imitate a line of our text."""


def cite_ends(data: bytes, reason: str, rules: CitingRules, tool: str = "") -> Citation:
    """Cite a content by its beginning and its end; `reason` explains why.

    Raises:
        PrivacyError: the policy refuses secrets, and the content could not be searched for them.
    """
    if rules.privacy == "refuse":
        raise PrivacyError(
            f"the content could not be searched for secrets: {reason}",
            fix="Send it in smaller parts, or set the policy to `mask` or `allow`.",
        )
    sha256 = digest(data)
    name = ref_id(KIND, sha256, rules.ref_digits)
    total = data.count(b"\n") + (not data.endswith(b"\n"))
    tokens = _tokens(data)
    lines = with_unit(total, "lines")
    title = f"Text, {lines}; only the ends are shown, because reading it all {reason}"
    size_shown = f"{lines}, {len(data):,} bytes, about {tokens:,} tokens"
    head = f"{STORED}{name}; {size_shown}; first and last lines]"
    find = f"lines 1-{min(_FIRST_LINES, total)}" if total > 1 else "page 2"
    foot = f"{READ_MORE}{call_of(rules.opener, name, find)}]" if rules.opener else ""
    size = _END_BYTES
    while True:
        excerpts = _ends(data, size, total, rules)
        quoted_lines = [line for excerpt in excerpts for line in _quoted(excerpt)]
        text = "\n".join(filter(None, [head, title, *quoted_lines, foot]))
        if count(text) <= min(BRIEF, rules.most_tokens) or size <= _LEAST_BYTES:
            break
        size //= 2
    used = count(text)
    content = Content(
        ref_id=name,
        kind=KIND,
        sha256=sha256,
        data=data,
        summary=title,
        compressed=text,
        compressed_tokens=used,
        tokens=tokens,
        meta={"tool": tool} if tool else {},
        ttl_seconds=rules.ttl_seconds,
    )
    composed = CitationText(text, title, used, excerpts, "lines", total)
    return citation_of(content, composed, level="ends", reason=reason)


def _tokens(data: bytes) -> int:
    """About how many tokens a content has, from its beginning: it is not decoded as a whole."""
    beginning = data[:_COUNTED_BYTES]
    tokens = count(beginning.decode("utf-8", "replace"))
    return round(tokens * len(data) / max(1, len(beginning)))


def _ends(data: bytes, size: int, total: int, rules: CitingRules) -> tuple[Excerpt, ...]:
    first = _shown(data[:size], rules)
    last = _shown(data[-size:], rules)
    stop, start = first.count("\n") + 1, total - last.count("\n")
    return (
        Excerpt(first, f"lines 1-{stop}", 0.0),
        Excerpt(last, f"lines {start}-{total}", 0.0),
    )


def _shown(part: bytes, rules: CitingRules) -> str:
    # A character that was cut in two is no part of the text.
    text = part.decode("utf-8", "ignore").strip("\n")
    return apply(rules.privacy, text, find(text))


def _quoted(excerpt: Excerpt) -> list[str]:
    return [f"- {excerpt.where}:", *(f"{_LINE}{line}" for line in excerpt.text.splitlines())]
