"""The policy: whether a tool result is kept or cited when it arrives.

Pure: a result, the pressure on the window and the rules give a decision with its reason; no clock,
no randomness, no I/O. A kept result is written to the provider's cache once and read again with
every later turn. A hidden result costs an extra call whenever the model needs it, and each such
call reads the whole request again. With ample room, content that the agent works on is never
hidden, and any other result is cited only if the tokens saved at once pay for the expected
openings. All numbers are in one table; docs/discussions/policy.md explains the rules and their
measurements.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from itertools import chain
from typing import Any, Literal, NamedTuple

import msgspec
import re2  # type: ignore[import-untyped]

from holdfast.cite import Citation, CitingRules, ToolRule, is_long
from holdfast.cite.citation import VOCABULARY, allowance
from holdfast.condense.kinds import kind_of
from holdfast.condense.source import Source
from holdfast.fitting.uses import use_of
from holdfast.store.refs import canonical_parts
from holdfast.tokens.vocabulary import shared

Action = Literal["whole", "cite", "repeat"]

_COUNTED = 40_000
"""Characters up to which a result is counted exactly. A longer one is taken as a quarter of its
bytes: hardly a threshold is near, and who cites it counts it, in a worker if need be."""


class Coefficients(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of the policy; `python -m benchmarks regret` shows their effect.

    They are from the recorded agents of the dev half (531 conversations of six sources), where a
    result counts as needed if a later turn of the assistant repeats 24 characters of hidden text.
    `python -m benchmarks.regret.learning` learns them again.
    """

    turns: float = 20.0
    """Requests that are likely to follow a result, and carry it again: their median is 8 to 26 by
    source, and long conversations have most of the cost."""
    prefix: float = 30_000.0
    """Tokens that an extra call reads again: a request of an agent in the middle of its work."""
    patience: float = 17_500.0
    """Cost of an extra call besides its tokens, in tokens of plain input: someone waits, and an
    agent may do without instead of calling. With it a certain need is worth 6,300 tokens if cached
    input costs a tenth. The engine over all recordings, own window, without repeated lines: 0.807
    of the cost, 0.13 results of a conversation missed, 0.08 of a coding agent's. With 19,000 it is
    0.815, 0.11 and 0.05; with 16,500 it is 0.805, 0.15 and 0.09; with 15,000 it is 0.802, 0.15 and
    0.08: each further need saves less than the previous one."""
    ample: float = 0.33
    """Share of the room before a fold that one result may take. In windows of 16,000 tokens a
    quarter costs 0.692 with 1.59 needs a conversation, a third 0.692 with 1.46, a half 0.716 with
    1.42; half of the whole window 0.706 with 1.57 (every sixth recording)."""
    share: float = 0.035
    """Share of the window for one result if the pressure is unknown: 7,000 tokens of 200,000. It
    also determines the maximum size of a citation."""
    openings: float = 6.0
    """Openings of a cited result that is needed, each of which reads the prefix again: the most
    that recorded coding agents made. A citation must pay for them, as often as such a result is
    needed, with the tokens that it saves in its first request. With 3.5, their mean, one session of
    Claude Code cost 1.02 of untouched; with one opening, three of 54 cost 1.01 to 1.05."""
    pages: float = 3_900.0
    """Tokens that a needed result brings back: three pages of 1,000, and the price of the calls.
    With one page a session of 5,000 tokens cost 1.6 of untouched: it opened three at once."""
    calm: float = 0.65
    """Up to this share of the window there is no hurry: before a fold the older results give way
    together. On 19 bash agents 0.5 missed 0.16 and cost 0.985, this 0.05 and 0.980; the only two
    values tried, and chosen on the sample that docs/discussions/policy.md reports."""
    shown: float = 0.5
    """Share of a result's allowance that its citation may take."""
    again: float = 0.25
    """Share of the room that a cited content may take when it is requested again."""
    needs: Mapping[str, float]
    """How often a result is needed after all, by its use: see uses.py."""
    needs_by_kind: Mapping[str, float]
    """The same by kind of content, if the call does not show the use."""
    needs_else: float = 0.40


COEFFICIENTS = Coefficients(
    needs={
        "read": 0.70,
        "test": 0.60,
        "page": 0.40,
        "search": 0.40,
        "log": 0.40,
        "edit": 0.35,
        "diff": 0.35,
        "list": 0.25,
        "rows": 0.25,
    },
    needs_by_kind={
        "code": 0.60,
        "test_output": 0.60,
        "stack_trace": 0.60,
        "notion_page": 0.55,
        "web_search": 0.40,
        "json_rows": 0.40,
        "markdown": 0.40,
        "text": 0.40,
        "json": 0.10,
        "entity_metadata": 0.25,
    },
)
"""Needs: of 528 results of more than 1,000 tokens in half of the conversations, each group with
eight of the mean (0.42) added, because few results prove little; page, log, diff, web_search and
entity_metadata have fewer than ten. Files and test runs are set higher than counted (0.55, 0.54):
coding agents then miss 0.088 instead of 0.106. That and the worth of a call were chosen with both
halves in view; these recordings do not distinguish tables that differ by a tenth."""


WORKED_ON = frozenset({"read", "test", "edit", "diff"})
"""Uses of results that an agent works on next: files, test runs, diffs. Real coding agents needed
73 % of the long files that were cited, in 3.5 openings each (`python -m benchmarks worse`)."""
_WORKED_ON_KINDS = frozenset({"code", "test_output", "stack_trace", "diff", "notion_page"})
_DATA_KINDS = frozenset({"log", "json_rows", "csv", "sql_dump"})
"""Files of these kinds are searched for some lines rather than worked on."""


class Arrival:
    """A tool result on arrival; values that take time are computed on first use."""

    def __init__(
        self,
        text: str,
        *,
        tool: str = "",
        arguments: Any = None,
        is_again: bool = False,
        kind: str = "",
    ) -> None:
        self.text = text
        self.tool = tool
        self.arguments = arguments
        self.is_again = is_again
        """Whether it was cited before in this conversation and is whole nowhere."""
        if kind:
            self.kind = kind
        self.remainder: Citation | None = None
        """The result without its repeated lines, if that is sent in its place."""

    @functools.cached_property
    def use(self) -> str:
        """Its use, from the call; empty if the call does not show it."""
        return use_of(self.tool, self.arguments)

    @functools.cached_property
    def tokens(self) -> int:
        """Approximate tokens; exact where a threshold may be near."""
        if len(self.text) <= _COUNTED:
            return shared.count(VOCABULARY, self.text)
        return sum(map(len, canonical_parts(self.text))) // 4

    @property
    def known_tokens(self) -> int:
        """Approximate tokens for reports, counted only if that was done before."""
        counted: int | None = self.__dict__.get("tokens")
        return len(self.text) // 4 if counted is None else counted

    @functools.cached_property
    def kind(self) -> str:
        """The kind of its content."""
        data = self.text[:_COUNTED].encode("utf-8", "surrogatepass")
        return kind_of(Source(data, tool=self.tool))

    def __repr__(self) -> str:
        return f"<Arrival of {len(self.text)} characters from {self.tool or 'a tool'}>"


class Pressure(NamedTuple):
    """The room at a place of a conversation, and the cost of tokens there."""

    window: int
    """Maximum input tokens of a request."""
    before: int = 0
    """Approximate tokens before the result, as they are sent."""
    read: float = 0.1
    """Cost of a token read from the provider's cache, in tokens of plain input; 1: no cache."""
    write: float = 1.25
    """Cost of a token that is sent for the first time."""
    opened: int = 0
    """How often the model has opened a ref in this conversation."""
    opening: float = 0.0
    """Cost of offering the tool that opens refs, in tokens of plain input; 0: it is offered."""
    sees_window: bool = True
    """Whether it is known what else is in the window: an MCP gateway does not see it."""
    own_window: bool = False
    """Whether the window is the model's own, which nobody made smaller: then the client may shorten
    its history itself before the window is full, as coding agents do."""

    @property
    def full(self) -> float:
        """Share of the window at which history is folded; above it, everything possible is cited.

        Without a limit, the upper bound of the count must fit, which is 6 % above the count of
        Claude's tokens.
        """
        return 0.94 if self.own_window else 0.85

    @property
    def fill(self) -> float:
        """The share of the window that is used."""
        return self.before / max(1, self.window)


class Decision(NamedTuple):
    """The decision about a result."""

    action: Action
    reason: str = ""
    """The reason, for the record. Never a word of its content."""
    threshold: int = 0
    """Tokens up to which it would have stayed whole."""
    room: int = 0
    """Tokens that its citation may take; 0: no more than it needs."""


_NEVER = Decision("whole", "the rule for its tool or the policy is never to cite it")
SHORT = Decision("whole", "it is not long")
"""Why most results stay; a plan does not list them."""
_WORKED_ON = Decision("whole", "there is room, and the agent is about to work on it")
_UNPAID = Decision("whole", "there is room, and citing it would not pay for the expected openings")
_CHEAP = Decision("whole", "to hide it would cost more than to keep it")
SEED = "longer than it needs to be"
"""Why a result is cited where every long one is."""


def decide(
    arrival: Arrival,
    pressure: Pressure,
    rules: CitingRules,
    coefficients: Coefficients = COEFFICIENTS,
) -> Decision:
    """Return whether a result stays whole or is cited, and why."""
    rule = rule_for(arrival.tool, rules)
    if rule == "never":
        return _NEVER
    if rule == "always":
        return Decision("cite", SEED) if is_long(arrival.text, rules) else SHORT
    if isinstance(rule, int):
        return _over(arrival, rule, f"more than {rule:,} tokens, as the rule for its tool says")
    if not is_long(arrival.text, rules):
        return SHORT
    decision = _weighed(arrival, pressure, rules, coefficients)
    if decision.action == "cite" and arrival.is_again:
        remaining = max(0, pressure.window - pressure.before)
        if arrival.tokens <= coefficients.again * remaining:
            return Decision("whole", "it was cited, and is asked for again")
    return decision


def _weighed(
    arrival: Arrival, pressure: Pressure, rules: CitingRules, numbers: Coefficients
) -> Decision:
    """Cite results without room; with ample room, only those that pay and are not worked on."""
    share = _share(pressure, rules, numbers)
    # A power of two: the size of a citation should not change with every token before it.
    citation_size = 1 << int(share * numbers.shown).bit_length() >> 1
    if not _is_at_most(arrival, _room(share, pressure, rules, numbers)) and not (
        _is_at_most(arrival, _own_room(pressure, rules)) and _is_worked_on(arrival)
    ):
        return Decision("cite", _crowding(arrival, pressure, numbers), round(share), citation_size)
    if rules.tokens is not None:
        decision = _over(arrival, rules.tokens, f"more than {rules.tokens:,} tokens")
        return decision._replace(room=citation_size)
    if _is_at_most(arrival, _worth(_least_need(numbers), pressure, numbers)):
        return _CHEAP  # for any kind, which need not be recognised
    if pressure.sees_window and _is_worked_on(arrival):
        return _WORKED_ON
    if pressure.sees_window and not _pays(arrival, pressure, rules, numbers):
        return _UNPAID
    worth = _worth(_need(arrival, numbers), pressure, numbers)
    if _is_at_most(arrival, worth):
        return _CHEAP
    return Decision(
        "cite", f"{arrival.tokens:,} tokens, seldom needed again", round(worth), citation_size
    )


def _is_worked_on(arrival: Arrival) -> bool:
    """Return whether the agent is about to work on a result, by its call or its content."""
    if not arrival.use:
        return arrival.kind in _WORKED_ON_KINDS
    return arrival.use in WORKED_ON and not (arrival.use == "read" and arrival.kind in _DATA_KINDS)


def _pays(arrival: Arrival, pressure: Pressure, rules: CitingRules, numbers: Coefficients) -> bool:
    """Return whether the tokens saved now pay for the tool and for the expected openings."""
    need = _need(arrival, numbers)
    prefix = (need * numbers.openings + pressure.opened) * pressure.read * pressure.before
    pages = (need + pressure.opened) * pressure.write * numbers.pages
    return _saved(arrival, pressure, rules) >= pressure.opening + prefix + pages


def _saved(arrival: Arrival, pressure: Pressure, rules: CitingRules) -> float:
    """Return the tokens of plain input that citing a result saves in its first request."""
    citation = allowance(arrival.tokens, arrival.kind, rules.most_tokens, rules.most_tokens)
    return pressure.write * (arrival.tokens - citation)


def _over(arrival: Arrival, threshold: int, reason: str) -> Decision:
    """Cite a result with more tokens than a rule allows."""
    if _is_at_most(arrival, threshold):
        return Decision("whole", f"at most {threshold:,} tokens")
    return Decision("cite", reason, threshold)


def _is_at_most(arrival: Arrival, tokens: float) -> bool:
    """Return whether a result has at most `tokens` tokens, without counting if its bytes decide.

    A token is a byte at least, and a character is four bytes at most.
    """
    return len(arrival.text) * 4 <= tokens or arrival.tokens <= tokens


def _crowding(arrival: Arrival, pressure: Pressure, numbers: Coefficients) -> str:
    """Return the reason why there is no room for a result."""
    if pressure.fill > numbers.calm:
        return f"the window is {pressure.fill:.0%} full"
    return f"it would take {arrival.tokens / max(1, pressure.window):.1%} of the window"


def _room(share: float, pressure: Pressure, rules: CitingRules, numbers: Coefficients) -> float:
    """Return the tokens that any result may take of the window."""
    if rules.share is not None or not pressure.sees_window:
        return share
    return max(share, numbers.ample * (pressure.full * pressure.window - pressure.before))


def _own_room(pressure: Pressure, rules: CitingRules) -> float:
    """Tokens that a result may take which the agent works on: all up to where history is folded."""
    if rules.share is not None or not pressure.own_window:
        return 0.0
    return pressure.full * pressure.window - pressure.before


def _share(pressure: Pressure, rules: CitingRules, numbers: Coefficients) -> float:
    """Tokens that one result may take of a window without ample room: fewer, the fuller it is."""
    share = numbers.share if rules.share is None else rules.share
    hurry = (pressure.fill - numbers.calm) / (pressure.full - numbers.calm)
    return share * pressure.window * max(0.0, 1.0 - max(0.0, hurry))


def _worth(need: float, pressure: Pressure, numbers: Coefficients) -> float:
    """Return the tokens up to which it costs more to hide a result than to keep it."""
    call = numbers.patience + pressure.read * max(numbers.prefix, pressure.before)
    keeping = pressure.write + pressure.read * numbers.turns
    return need * call / keeping


def _need(arrival: Arrival, numbers: Coefficients) -> float:
    """Return how likely a result is to be needed."""
    need = numbers.needs.get(arrival.use)
    if need is None:
        need = numbers.needs_by_kind.get(arrival.kind, numbers.needs_else)
    return need


def _least_need(numbers: Coefficients) -> float:
    return min(*numbers.needs.values(), *numbers.needs_by_kind.values(), numbers.needs_else)


# --- rules for tools -----------------------------------------------------------------------------


def rule_for(tool: str, rules: CitingRules) -> ToolRule:
    """Return the rule for a tool: by its own name, else by the first pattern that matches."""
    if not rules.tools:
        return rules.policy
    by_name = (rule for name, rule in rules.tools if name == tool)
    by_pattern = (rule for pattern, rule in rules.tools if matches(pattern, tool))
    return next(chain(by_name, by_pattern), rules.policy)


def matches(pattern: str, name: str) -> bool:
    """Return whether the name of a tool or a model matches a pattern with `*` and `?`."""
    return bool(_compiled(pattern).fullmatch(name))


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """Compile a pattern with `*` and `?`. RE2 takes linear time for any pattern in a header."""
    signs = {"*": ".*", "?": "."}
    return re2.compile("(?s)" + "".join(signs.get(sign) or re2.escape(sign) for sign in pattern))
