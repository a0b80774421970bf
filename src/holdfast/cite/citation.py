"""A citation and the rules it is made by: values, and how long a text is.

citation: the first word of cite.
"""

from __future__ import annotations

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
    """Tokens that this citation may take; it grows within them, see allowance.py. 0: none to spare,
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
