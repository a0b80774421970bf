"""The records of a store: contents of refs, sessions with their turns and edits, usage.

Times are seconds since 1970, UTC; None means never.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """An original on its way into the store."""

    ref_id: str
    kind: str
    sha256: str
    data: bytes
    """The exact bytes."""
    summary: str = ""
    """Description of at most 500 characters."""
    compressed: str = ""
    """The citation that took its place."""
    compressed_tokens: int = 0
    """Tokens of the citation, for the audit."""
    tokens: int = 0
    """Tokens of the original in the conversation."""
    meta: dict[str, str] = {}
    """Where it came from: `tool`, `url`, `source_type`, `content_type`, `call_id`, …"""
    flags: tuple[str, ...] = ()
    """Kinds of secrets and personal data found in it."""
    ttl_seconds: float | None = None
    """How long it stays fresh; then it is stale, and may be cleaned up."""

    def __repr__(self) -> str:
        return f"<Content {self.ref_id}, {len(self.data)} bytes>"


State = Literal["fresh", "stale", "removed", "damaged"]


class RefInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a ref, without its content."""

    ref_id: str
    kind: str
    sha256: str
    size: int
    """Bytes of the original."""
    tokens: int
    summary: str
    compressed: str
    meta: dict[str, str]
    flags: tuple[str, ...]
    created_at: float
    expires_at: float | None
    accessed_at: float | None
    accesses: int
    state: State
    """`stale` is past its time but still there; `removed` leaves only this record."""

    def __repr__(self) -> str:
        return f"<RefInfo {self.ref_id}, {self.size} bytes, {self.state}>"


class Stored(msgspec.Struct, frozen=True):
    """An original, as it was stored."""

    info: RefInfo
    data: bytes

    def __repr__(self) -> str:
        return f"<Stored {self.info.ref_id}, {len(self.data)} bytes>"


ClientKey = tuple[str, str]
"""The client's own ids of its session and, where a subagent sends the request, of that subagent."""


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation over many requests."""

    session: str
    dialect: str = ""
    model: str = ""
    title: str = ""
    head: str = ""
    """Hash of the conversation as the client last sent it: a later request that begins with
    the same messages belongs to this session."""
    turns: int = 0
    created_at: float = 0.0
    updated_at: float = 0.0
    closed_at: float | None = None
    forked_from: str = ""
    """The session with the same first messages that continued differently; empty if none."""
    shared: int = 0
    """How many messages these are."""
    client: str = ""
    """The program that sent it, such as `claude-code`; empty if it is not known."""
    client_session: str = ""
    """The client's own id of its session; the conversations of one client session share it."""
    client_agent: str = ""
    """The client's own id of a subagent; empty for its main conversation."""
    purpose: str = ""
    """The purpose of a side request, such as `title`; empty for a conversation."""

    @property
    def client_key(self) -> ClientKey:
        """The client's identification of its conversation."""
        return self.client_session, self.client_agent

    def __repr__(self) -> str:
        # Without the title, which is the beginning of the user's first message.
        return f"<SessionRecord {self.session}, {self.turns} turns>"


EditAction = Literal[
    "cite",  # a long result was replaced by a citation
    "repeat",  # lines of an earlier result were replaced by a pointer
    "fold",  # messages were replaced by a digest
    "assemble",  # messages were replaced by quoted memory or a shorter form
    "shorten",  # the middle of a result was cut out
    "drop",  # messages were removed without a replacement
    "repair",  # content that the provider would refuse was corrected
    "rejoin",  # calls that the client never saw were brought back
    "thinking",  # thinking that is bound to other messages was taken out
    "restore",  # hidden content was put back by a person
    "open",  # a passage of hidden content was appended to a message that asks for it
    "words",  # words to the model were added
    "offer",  # a tool was added
    "defer",  # schemas of tools were replaced by a directory
    "withhold",  # tools were taken out, or may not be called
    "usage",  # the stream was asked to report its usage
    "layout",  # white space between messages was made even
    "refuse",  # calls of the tool that opens refs opened nothing, or repeated an earlier one
    "resend",  # the request was sent again without expand_ref: an empty answer, or a refusal
    "route",  # the request was sent to another upstream, under another name or in another dialect
    "answer",  # the answer cache answered, and nothing was sent
]


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """The fidelity record of one thing that was done to a request."""

    action: str
    """An `EditAction`; a store written by an earlier version may hold other words."""
    what: str = ""
    """In words: `folded into a digest`."""
    why: str
    where: str
    """In the client's units: `messages 3 to 42`, `message 7, 640 lines`, `$.tools`."""
    from_tokens: int = 0
    to_tokens: int = 0
    ref_id: str = ""
    """The ref of the removed content; empty if nothing was removed."""
    start: int = 0
    """The client's messages it is about."""
    stop: int = 0


OFFLINE = " (offline)"
"""Behind the name of a model in whose place the offline one answered: demos are summed apart."""


def saved_tokens(untouched: int, billed: int) -> int:
    """Return the tokens saved: those of the client's request less those billed over all calls.

    Negative for a loss. All reports of savings use this, and percentages are of `untouched`.
    """
    return untouched - billed


class TurnUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a request: predicted, reported, and untouched."""

    predicted: int = 0
    """Input tokens as it was sent, by our count."""
    untouched: int = 0
    """Input tokens as the client asked: what every share of savings is a share of."""
    input: int = 0
    """Input tokens billed over all calls of the answer: as reported, else as predicted."""
    cached: int = 0
    """Of the input, tokens read from the provider's cache."""
    cache_written: int = 0
    """Of the input, tokens written to the provider's cache."""
    cache_written_hour: int = 0
    """Of these, tokens written for an hour."""
    output: int = 0
    """Output tokens of all calls."""
    untouched_cached: int = 0
    """The same classes of the asked request, had it been sent: read from the cache,"""
    untouched_written: int = 0
    """written to it,"""
    untouched_written_hour: int = 0
    """of these for an hour,"""
    untouched_output: int = 0
    """and output."""
    expansions: int = 0
    expansion_tokens: int = 0
    cost: float | None = None
    """At list price, in US dollars to the billionth; None if the price is unknown."""
    saved_cost: float | None = None
    """The cost of the client's request less `cost`; negative for a loss."""
    demo_cost: float | None = None
    """The list price of a turn that the offline model answered: nobody is billed for it."""
    demo_saved_cost: float | None = None
    """The list price that such a turn would have had untouched, less `demo_cost`."""
    unreported: bool = False
    """No provider reported the usage: `input` and `cost` are estimates."""
    estimated: bool = False
    """`untouched` and `saved` are estimates: the tokens left out were not counted exactly."""
    assumed: bool = False
    """`saved_cost` is an estimate: no provider saw the request that was asked."""
    unpriced: bool = False
    """No list has a price for the model."""
    overflows: bool = False
    """The asked request exceeds the model's window: nobody would have answered it, and no saving is
    claimed."""
    failed: bool = False
    """There was no answer: no tokens were saved, and only those reported were billed."""
    answered: bool = False
    """Whether the answer cache answered: nothing was sent or billed."""
    lazy_saved: int = 0
    """Tokens of schemas of tools that were set aside in this request."""
    tool_searches: int = 0
    """Calls of the tool that finds such tools."""
    tool_calls: int = 0
    """Calls of the client's tools in the answer."""
    lazy_calls: int = 0
    """Of these, calls of tools whose schemas were set aside."""

    @property
    def saved(self) -> int:
        """Tokens saved: see `saved_tokens`."""
        return saved_tokens(self.untouched, self.input)


class TurnParts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the input tokens of a request are, as it was sent; all zero where that is not known."""

    header: int = 0
    """System text, and what providers put around a request."""
    tools: int = 0
    history: int = 0
    results: int = 0
    """Tokens of tool results in the client's request."""
    citations: int = 0
    """In the place of results."""
    summaries: int = 0
    """In the place of folded messages."""
    facts: int = 0
    """What memory put into an assembled turn."""


class Trail(msgspec.Struct, frozen=True):
    """The sent messages as a difference to the previous turn: most are the same."""

    shared: int
    """How many of the first messages are those of the turn before."""
    added: tuple[str, ...]
    """SHA-256 of each message after the shared ones; their bytes are stored once (see `messages`).
    """
    frame: str = ""
    """SHA-256 of the bytes around the messages, as wire/frame.py packs them."""


class ReplacedMessage(msgspec.Struct, frozen=True):
    """A sent message that is not the client's own, and the messages that it replaces."""

    at: int
    """Its position among the sent messages."""
    originals: tuple[str, ...]
    """SHA-256 of the client's messages in whose place it is; none if it was added."""
    edits: tuple[Edit, ...]
    """The reasons: edits of this turn, and earlier ones that still apply."""
    refs: tuple[str, ...] = ()
    """Refs of the removed contents."""
    own: int = 0
    """Which of the originals it is itself; the others were taken out beside it. -1: none."""
    digest: bytes = b""
    """The data that the engine needs to fold a digest again."""


class Patch(msgspec.Struct, frozen=True):
    """A change around the messages, and the bytes that undo it."""

    start: int
    stop: int
    was: bytes
    """The original bytes from start to stop."""
    edit: Edit
    name: str = ""
    """SHA-256 of that where it is long, such as a client's tools: then it is stored once, as
    messages are, and `was` is empty."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a session: the sent messages, and the edits that lead back to the client's."""

    number: int
    """Counted from 1, without gaps."""
    started_at: float
    model: str = ""
    status: int = 0
    """The provider's HTTP status; 0 if there was none."""
    error: str = ""
    """The provider's word for a failure, such as `authentication_error`; never its message."""
    sent: Trail | None = None
    """The messages that the model saw."""
    standings: tuple[ReplacedMessage, ...] = ()
    """The messages after the shared ones of `sent` that are not the client's own."""
    patches: tuple[Patch, ...] = ()
    """The changes around the messages, in order."""
    asked: str = ""
    """SHA-256 of the client's request: a rebuilt request is checked against it."""
    hidden: str = ""
    """SHA-256 of the parts of the answer that were hidden from the client; empty if none."""
    told: str = ""
    """SHA-256 of summaries of folded messages that no digest quotes yet; empty if none. Later turns
    quote only these, in any process."""
    edits: tuple[Edit, ...] = ()
    """The edits of this turn."""
    floor: int = 0
    """Tokens after the last fold, so that any process folds at the same point."""
    read_only: bool = False
    """Whether it was sent unchanged, with the edits only reported; or answered from the cache and
    not sent: no later turn continues it."""
    usage: TurnUsage = TurnUsage()
    parts: TurnParts = TurnParts()
    warnings: tuple[str, ...] = ()
    prefix_share: float = 0.0
    """Share of the bytes sent that are the beginning of the request before."""
    milliseconds: float = 0.0


class UsageTotal(msgspec.Struct, frozen=True, kw_only=True):
    """Usage over many turns, by one name."""

    name: str
    """The model, the session or the day, as asked for."""
    turns: int
    predicted: int
    untouched: int
    input: int
    cached: int
    output: int
    expansions: int
    expansion_tokens: int
    cost: float
    """Of the turns whose price is known, in US dollars."""
    saved_cost: float
    failed: int = 0
    """Of the turns, those without an answer."""
    answered: int = 0
    """Number of turns answered from the cache."""
    lazy: int = 0
    """Of the turns, those in which schemas of tools were set aside."""
    lazy_saved: int = 0
    """Tokens of these schemas."""
    tool_searches: int = 0
    tool_calls: int = 0
    lazy_calls: int = 0
    """Of the calls of tools, those of tools whose schemas were set aside (004-57)."""
    cache_written: int = 0
    cache_written_hour: int = 0
    demo_cost: float = 0.0
    demo_saved_cost: float = 0.0
    unreported: int = 0
    """Of the turns, those whose billed tokens are estimates."""
    estimated: int = 0
    """Of the turns, those whose saved tokens are estimates."""
    assumed: int = 0
    """Of the turns, those whose saved money is an estimate."""
    unpriced: int = 0
    """Of the turns, those without a known price."""
    overflows: int = 0
    """Of the turns, those whose asked request exceeds the model's window."""

    @property
    def saved(self) -> int:
        """Tokens saved: see `saved_tokens`."""
        return saved_tokens(self.untouched, self.input)


NANO = 1_000_000_000
"""Sums of dollars are taken in whole billionths, so that their order changes nothing."""


def sum_dollars(amounts: Iterable[float | None]) -> float:
    """Return the exact sum of amounts to the billionth of a dollar; unknown ones are left out."""
    return sum(round(amount * NANO) for amount in amounts if amount is not None) / NANO


def summed(name: str, parts: Iterable[UsageTotal]) -> UsageTotal:
    """Return the sum of several usages under a new name."""
    totals = list(parts)
    counts: dict[str, Any] = {}
    for field in UsageTotal.__struct_fields__[1:]:
        amounts = [getattr(total, field) for total in totals]
        counts[field] = sum_dollars(amounts) if field.endswith("cost") else sum(amounts)
    return UsageTotal(name=name, **counts)


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One compression, in ids, hashes and counts: never content."""

    at: float
    session: str
    ref_id: str
    sha256: str
    action: str
    """`stored`, `seen again`, `removed`, `damaged`."""
    size: int
    from_tokens: int
    to_tokens: int
    flags: tuple[str, ...] = ()


class Summary(msgspec.Struct, frozen=True):
    """Data derived from a content once."""

    key: str
    """Its content and method; the creator chooses the key."""
    value: bytes
    source: str = ""
    """SHA-256 of its stored content, with which it is removed. Empty if there is none."""
    expires_at: float | None = None

    def __repr__(self) -> str:
        return f"<Summary {self.key}, {len(self.value)} bytes>"


class StoreStats(msgspec.Struct, frozen=True, kw_only=True):
    """How full a store is, for one user and workspace."""

    refs: int
    contents: int
    size: int
    """Bytes of all originals."""
    stored: int
    """Bytes they take up."""
    sessions: int
    """Client sessions, and conversations without one; side requests do not count."""
    turns: int
    stale: int
    damaged: int
    flagged: int
    by_kind: dict[str, int]


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """A damaged record."""

    sha256: str
    why: str
    refs: tuple[str, ...]


class ErasedRecords(msgspec.Struct, frozen=True, kw_only=True):
    """The records that were removed for good."""

    sessions: int = 0
    turns: int = 0
    """Requests of these sessions."""
    refs: int = 0
    records: int = 0
    """All others: remembered turns, facts, answers, journal entries, summaries, tools, jobs."""

    def __add__(self, other: ErasedRecords) -> ErasedRecords:
        return ErasedRecords(
            sessions=self.sessions + other.sessions,
            turns=self.turns + other.turns,
            refs=self.refs + other.refs,
            records=self.records + other.records,
        )

    def __bool__(self) -> bool:
        return bool(self.sessions or self.turns or self.refs or self.records)


class CleanupResult(msgspec.Struct, frozen=True):
    """The result of a clean-up."""

    refs: int
    contents: int
    bytes: int
    """Of the originals."""
