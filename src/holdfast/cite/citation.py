"""The values of a citation and its rules, and the size limit of a citation.

citation: first in the package. The size limit is a share of the content's tokens that depends on
its kind, within the available room. Without room a citation has its brief size, as in a tight
window or with the policy `always`.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from holdfast.expand.tool import NAME
from holdfast.privacy import Policy
from holdfast.store.records import Content
from holdfast.store.refs import DIGITS
from holdfast.tokens.vocabulary import count_ordinary

VOCABULARY = "o200k_base"
"""Citations are measured with one vocabulary, so that they are the same for every model."""

_COUNTED_WHOLE = 1_000_000

CitePolicy = Literal["auto", "always", "never"]
"""Which tool results are cited on arrival: those where it pays, every long one, or none."""
ToolRule = CitePolicy | int
"""The policy for one tool; a number cites results with more tokens."""


class CitingRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules for when and how content is cited."""

    threshold: int = 1_000
    """Content of more characters than this is cited."""
    threshold_bytes: int | None = None
    """Content of more bytes than this is cited too, even if it has few characters.

    None means three times `threshold`, so that raising the threshold raises both limits.
    """
    most_tokens: int = 2_000
    """Maximum tokens of any citation."""
    room: int = 0
    """Tokens available for this citation, which grows within them: see `allowance`. 0 means that
    none are free, so the citation has its brief size."""
    shorten_to: int = 0
    """Tokens up to which the content would have been sent in full. Slightly longer content is
    shortened to this size, see shortened_content.py. 0 means never."""
    privacy: Policy = "allow"
    """How secrets and personal data are handled: shown, masked in the citation, or refused."""
    ttl_seconds: float | None = None
    """Seconds until the original is stale; None means never."""
    ref_digits: int = DIGITS
    """Digits of the hash in a ref; more are used if two contents would share one."""
    opener: str = NAME
    """Name of the tool that opens refs in this conversation."""
    policy: CitePolicy = "auto"
    """Which tool results of a request are replaced by citations: see fitting/policy.py."""
    tokens: int | None = None
    """With "auto": results with more tokens are cited. None decides for each result."""
    share: float | None = None
    """With "auto": maximum share of the window for one result. None uses the policy's default."""
    tools: tuple[tuple[str, ToolRule], ...] = ()
    """Rules for single tools, by name or by a pattern with `*` and `?`."""
    repeats: bool = True
    """With "auto": whether lines that an earlier result shows are left out, see remainder.py."""


class Excerpt(msgspec.Struct, frozen=True):
    """A part of the original that the citation quotes."""

    text: str
    where: str
    """In source units: `lines 45-67`, `rows 3-3 of $.items`."""
    relevance: float
    """How well it answers the question; 0 without a question."""

    def __repr__(self) -> str:
        return f"<Excerpt of {len(self.text)} characters, {self.where}>"


class Fidelity(msgspec.Struct, frozen=True, kw_only=True):
    """Which parts of the original a citation shows."""

    level: str
    """`cited`, `shortened` if most of it is quoted, `full` if the content was short enough, or
    `ends` if it could not be read in full: see workers/ends.py."""
    unit: str
    total: int
    """Number of units in the original."""
    kept: tuple[str, ...]
    """The quoted places."""
    from_tokens: int
    to_tokens: int
    flags: tuple[str, ...] = ()
    """Kinds of secrets and personal data in the original."""
    reason: str = ""
    """The reason why only the ends are shown; otherwise empty."""


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """The text that replaces a content in the conversation."""

    ref_id: str
    """Empty if the content was short enough to be sent in full."""
    kind: str
    text: str
    tokens: int
    excerpts: tuple[Excerpt, ...]
    fidelity: Fidelity
    content: Content | None
    """The original, to be stored before the citation is used."""

    def __repr__(self) -> str:
        return f"<Citation {self.ref_id or 'none'}, {self.tokens} tokens>"


DEFAULT_RULES = CitingRules()


def is_long(text: str, rules: CitingRules) -> bool:
    """Return whether a content is long enough to be cited."""
    if len(text) > rules.threshold:
        return True
    most = rules.threshold_bytes if rules.threshold_bytes is not None else 3 * rules.threshold
    return len(text.encode("utf-8", "surrogatepass")) > most


def count(text: str) -> int:
    """Return the tokens of a text; those of a very long one are extrapolated."""
    if len(text) <= _COUNTED_WHOLE:
        return count_ordinary(VOCABULARY, text)
    return round(count_ordinary(VOCABULARY, text[:_COUNTED_WHOLE]) * len(text) / _COUNTED_WHOLE)


BRIEF = 400
"""Tokens of a citation without room for more: enough for its size, exit code, errors and the best
answer."""
_MOST_SHARE = 1 / 3
"""Maximum share of the content beyond the brief size. A larger share is better sent in full."""
_GROWTH = {
    "code": 16.0,
    "test_output": 16.0,
    "stack_trace": 16.0,
    "diff": 16.0,
    "markdown": 16.0,
    "text": 16.0,
    "log": 10.0,
    "notion_page": 10.0,
    "web_search": 10.0,
}
_GROWTH_ELSE = 5.5
"""Factor by kind for the square root of the content's tokens. The root is used because further
tokens help less and less: of the text that recorded agents later copied from results of over 1,500
tokens, 400 tokens hold 26 %, 800 hold 45 %, 1,600 hold 58 % and half of the content 63 %. Agents
copy from files, runs and pages. They look up rows, whose answers fit into the brief size: with 5.5
the median of 133 recorded results has 95 % fewer tokens."""


def allowance(tokens: int, kind: str, room: int, most: int) -> int:
    """Return the maximum tokens of a citation for a content with `tokens` and the given room."""
    useful = min(tokens * _MOST_SHARE, math.sqrt(tokens) * _GROWTH.get(kind, _GROWTH_ELSE))
    return min(most, max(BRIEF, min(int(useful), room)))
