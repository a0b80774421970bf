"""A citation and the rules it is made by: values, and how long a text is.

citation: the first word of cite.

How many tokens a citation may have: a share of its content by kind, within the room there is. Pure
numbers: it knows no text and no window. Without room a citation has its brief size, as under a
tight window or the policy `always`.
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
"""Which tool results are cited when they arrive: where it pays, every long one, or none."""
ToolRule = CitePolicy | int
"""The same for one tool; a number cites what has more tokens."""


class CitingRules(msgspec.Struct, frozen=True, kw_only=True):
    """When content is cited, and how."""

    threshold: int = 1_000
    """Content of more characters than this is cited."""
    threshold_bytes: int | None = None
    """And content of more bytes than this, however few characters they are.

    None: three times the characters, so that a higher threshold is not undone by the bytes.
    """
    most_tokens: int = 2_000
    """No citation has more, whatever the room."""
    room: int = 0
    """Tokens that this citation may take; it grows within them, see `allowance`. 0: none to spare,
    so it has its brief size."""
    shorten_to: int = 0
    """Tokens up to which the content would have stayed whole: one that is not much longer is
    shortened inside to as many, see shortening.py. 0: never."""
    privacy: Policy = "allow"
    """What happens to secrets and personal data: shown, masked in the citation, or refused."""
    ttl_seconds: float | None = None
    """How long the original stays fresh; None is for good."""
    ref_digits: int = DIGITS
    """Digits of the hash in a ref: more where two contents would share one."""
    opener: str = NAME
    """The name under which the tool that opens refs is offered in this conversation."""
    policy: CitePolicy = "auto"
    """Which tool results give way to citations in a request: see fitting/policy.py."""
    tokens: int | None = None
    """With "auto": results of more tokens than this are cited; None: weighed for each."""
    share: float | None = None
    """With "auto": most of the window that a result may take; None: the policy's own."""
    tools: tuple[tuple[str, ToolRule], ...] = ()
    """Other rules for some tools, by name or by a pattern with `*` and `?`."""
    repeats: bool = True
    """With "auto": whether lines that stand above are left out of a result, see remainder.py."""


class Excerpt(msgspec.Struct, frozen=True):
    """A part of the original that the citation quotes."""

    text: str
    where: str
    """In source units: `lines 45-67`, `rows 3-3 of $.items`."""
    relevance: float
    """How well it answers the question: above 0 only if there was one."""

    def __repr__(self) -> str:
        return f"<Excerpt of {len(self.text)} characters, {self.where}>"


class Fidelity(msgspec.Struct, frozen=True, kw_only=True):
    """What a citation kept of its original."""

    level: str
    """`cited`, `shortened` if most of it is shown as it stands, `full` if the content was short
    enough to stay, or `ends` if it could not be read whole: see workers/ends.py."""
    unit: str
    total: int
    """How many units the original has."""
    kept: tuple[str, ...]
    """The places that are quoted."""
    from_tokens: int
    to_tokens: int
    flags: tuple[str, ...] = ()
    """Kinds of secrets and personal data in the original."""
    reason: str = ""
    """Why only the ends are shown, where that is so."""


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """What stays in the conversation."""

    ref_id: str
    """Empty if the content was short enough to stay as it is."""
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
    """Whether a content is one to be cited."""
    if len(text) > rules.threshold:
        return True
    most = rules.threshold_bytes if rules.threshold_bytes is not None else 3 * rules.threshold
    return len(text.encode("utf-8", "surrogatepass")) > most


def count(text: str) -> int:
    """Tokens of a text; of a very long one, from its first million characters."""
    if len(text) <= _COUNTED_WHOLE:
        return count_ordinary(VOCABULARY, text)
    return round(count_ordinary(VOCABULARY, text[:_COUNTED_WHOLE]) * len(text) / _COUNTED_WHOLE)


BRIEF = 400
"""Tokens of a citation where there is no room for more: enough for what it is, how it ended, what
went wrong in it and the best answer."""
_MOST_SHARE = 1 / 3
"""Of the content, beyond the brief size: what would show more is better left whole."""
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
"""Tokens for each root of a token of the content, by kind. A root, because each further token shows
less of what is needed: of what recorded agents copied later from results of over 1,500 tokens, 26 %
stand in 400 tokens, 45 % in 800, 58 % in 1,600, and 63 % in half of the content. Files, runs and
pages are copied from; rows are looked up, and their answers stand in the brief size too: with 5.5
the median of 133 recorded results still has 95 % fewer tokens."""


def allowance(tokens: int, kind: str, room: int, most: int) -> int:
    """Most tokens of the citation of a content of so many tokens, with so much room for it."""
    wanted = min(tokens * _MOST_SHARE, math.sqrt(tokens) * _GROWTH.get(kind, _GROWTH_ELSE))
    return min(most, max(BRIEF, min(int(wanted), room)))
