"""Make a request fit: the same request if it fits, else one with its middle folded, still valid.

fit: the last step of fitting. What was decided once is replayed with the next request, byte for
byte, so that the vendor's prompt cache keeps working; history is folded rarely, in one large step.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.cite import CitingRules
from holdfast.errors import BudgetExceededError, ContextOptimizationError
from holdfast.expand.tool import definition
from holdfast.fitting.arrival import cite_arrivals, expansion_tool, names_ref
from holdfast.fitting.following import followed
from holdfast.fitting.keeping import Kept
from holdfast.fitting.state import FitState, Fitted, Origins, one_by_one
from holdfast.store.records import Edit
from holdfast.tokens import ModelContextRegistry, TokenCount, count
from holdfast.tokens.counting import Correction, message_tokens
from holdfast.tokens.limits import input_limit
from holdfast.trim.anchors import DEFAULT_ANCHORS, AnchorDefinition, AnchorPreservationManager
from holdfast.trim.engine import ContextOptimizationEngine
from holdfast.trim.pieces import Bench, Piece, pieces_of
from holdfast.trim.strategies import ContextStrategy
from holdfast.wire import Conversation, Message, Violation, read, repair, validate, write
from holdfast.wire.exchanges import group
from holdfast.wire.rules.rule import check_at
from holdfast.wire.tools import with_tool

HIGH_WATER = 0.85
"""Share of the limit above which history is folded."""
LOW_WATER = 0.5
"""Share of the limit that a fold goes down to."""
LEAST_GAIN = 0.2
"""A fold that would save less than this share of the limit waits until it must."""

shared_engine = ContextOptimizationEngine()
_registry = ModelContextRegistry()


def fit(  # noqa: PLR0913 - named arguments, of which most calls need two
    body: object,
    *,
    model: str | None = None,
    dialect: str | None = None,
    limit: int | None = None,
    output: int | None = None,
    anchors: Sequence[AnchorDefinition] = DEFAULT_ANCHORS,
    strategy: str | ContextStrategy = "auto",
    state: FitState | None = None,
    citing: CitingRules | None = None,
    platform: str = "",
    calibration: Correction | None = None,
    high_water: float = HIGH_WATER,
    low_water: float = LOW_WATER,
) -> Fitted:
    """Return a request of at most `limit` input tokens, or raise.

    The limit is the model's own if none is given, less the room for `output` tokens; then the
    count's upper bound must fit, not only the count. Anchors are kept whatever it takes.

    With `citing` rules, long tool results give way to citations, and the tool that opens them is
    offered: then the originals in `Fitted.contents` must be stored before the body is sent.
    """
    if citing is None and state is not None and state.refs:
        state = None  # refs are not shown without the tool that opens them
    taken = _take_up(body, dialect, model, state)
    model = model or taken.source.model or ""
    kept = Kept(citing)
    if citing is not None:
        taken = _cite(taken, citing, kept)
    sent, origins, report = taken.sent, taken.origins, taken.report
    floor, refs = taken.floor, taken.refs

    by_bound = limit is None
    most = _default_limit(model, output) if limit is None else limit

    def counted(conversation: Conversation) -> TokenCount:
        return count(conversation, model=model, platform=platform, calibration=calibration)

    def size(made: TokenCount) -> int:
        return made.upper if by_bound else made.tokens

    now = counted(sent)
    gain = size(now) - max(floor, round(low_water * most))
    went_on = 0 < taken.known < len(sent.messages)  # a request sent again goes out as it did
    due = went_on and size(now) > high_water * most and gain > LEAST_GAIN * most
    if due or size(now) > most:
        manager = AnchorPreservationManager(anchors)
        if citing is not None:
            sent = _offering(taken.source, sent)  # what is folded leaves a ref
        # Tokens are estimated while choosing: a second look, with exact ones, is rarely needed.
        for _ in range(2):
            work = _Work(sent, origins, now, size(now) / max(1, now.tokens), kept)
            sent, origins, cuts = work.trimmed(
                target=low_water * most,
                most=most,
                anchors=manager,
                strategy=strategy,
                model=model,
                platform=platform,
            )
            report += cuts
            refs = citing is not None and names_ref(sent.messages)
            if not refs:
                sent = taken.source.with_messages(sent.messages)  # there is nothing to open
            now = counted(sent)
            if size(now) <= most:
                break
        floor = size(now)
    if size(now) > most:
        raise BudgetExceededError(
            f"the request has {size(now):,} tokens, and {most:,} are allowed",
            where="messages",
            fix="Raise the limit, offer fewer tools, or shorten the system text.",
            kind="input",
            limit=most,
            planned=size(now),
        )
    made = FitState(taken.source, sent, origins, floor, refs, taken.asked)
    return Fitted(write(sent), now, most, report, made, kept.contents(sent.messages, report))


def _default_limit(model: str, output: int | None) -> int:
    return input_limit(_registry.resolve(model or "unknown:unknown"), output=output)


class _Taken(msgspec.Struct, frozen=True):
    """A request as it is taken up, with what was decided before."""

    source: Conversation
    sent: Conversation
    origins: Origins
    known: int
    """How many of the messages in `sent` went out before."""
    floor: int = 0
    refs: bool = False
    report: tuple[Edit, ...] = ()
    asked: Conversation | None = None
    """What the client sent, if `source` is that after a repair."""


def _take_up(
    body: object, dialect: str | None, model: str | None, state: FitState | None
) -> _Taken:
    """Read a request, put what went out last time before what is new, and mend what is broken."""
    previous = None if state is None else state.asked or state.source
    asked = body if isinstance(body, Conversation) else read(body, dialect, previous=previous)
    source = asked
    if state is not None and state.asked is not None:
        source = _repaired_before(asked, state.asked, state.source)
    if state is not None:
        state = followed(state, source)
    sent, origins = _replay(source, state)
    known = len(state.sent.messages) if state is not None else 0
    model = model or source.model or ""
    if not _is_valid(sent, known, model):
        source = read(repair(write(asked), asked.dialect, model).body, asked.dialect)
        origins = one_by_one(0, len(source.messages))
        return _Taken(source, source, origins, 0, asked=asked)
    if state is None:
        return _Taken(source, sent, origins, 0)
    mended = asked if source is not asked else None
    return _Taken(source, sent, origins, known, state.floor, state.refs, asked=mended)


def _repaired_before(
    asked: Conversation, old: Conversation, repaired: Conversation
) -> Conversation:
    """A request whose beginning was repaired last time: the repair stands, what is new follows."""
    known = len(old.messages)
    if asked.messages[:known] != old.messages:
        return asked
    return asked.with_messages(repaired.messages + asked.messages[known:])


def _cite(taken: _Taken, rules: CitingRules, kept: Kept) -> _Taken:
    """Put citations in the place of what is long among the new, and offer to open them."""
    name, _ = expansion_tool(taken.source)
    arrived = cite_arrivals(taken.sent, taken.known, taken.origins, rules, name)
    for citation in arrived.citations:
        if citation.content is not None:
            kept.cited(citation.content)
    sent = arrived.conversation
    # Without refs before, only what is new is read; with refs, they may have been unfolded since.
    refs = names_ref(sent.messages if taken.refs else sent.messages[taken.known :])
    if refs:
        sent = _offering(taken.source, sent)
    return msgspec.structs.replace(taken, sent=sent, refs=refs, report=arrived.edits)


def _offering(source: Conversation, sent: Conversation) -> Conversation:
    """A request that offers to open refs, unless it does already."""
    name, offered = expansion_tool(sent)
    if offered:
        return sent
    return with_tool(sent, definition(source.dialect, name))


def _replay(source: Conversation, state: FitState | None) -> tuple[Conversation, Origins]:
    """What went out last time, and what the client has added since."""
    if state is None:
        return source, one_by_one(0, len(source.messages))
    known = len(state.source.messages)
    origins = state.origins + one_by_one(known, len(source.messages))
    if state.sent is state.source:
        return source, origins  # nothing was ever trimmed
    return source.with_messages(state.sent.messages + source.messages[known:]), origins


def _is_valid(sent: Conversation, known: int, model: str) -> bool:
    """Whether a request obeys the rules; behind `known` messages, only what was added is read."""
    if not known:
        return not validate(sent, model=model)
    if not all(exchange.complete for exchange in group(sent.messages[known:])):
        return False
    end = len(sent.messages)
    touched, seams = range(known, end), range(known, end + 1)
    found = check_at(sent.seen(), sent.context(model), touched=touched, seams=seams)
    return next(found, None) is None


class _Work:
    """One trim, from a conversation to the conversation that takes its place."""

    def __init__(
        self,
        conversation: Conversation,
        origins: Origins,
        now: TokenCount,
        scale: float,
        kept: Kept,
    ) -> None:
        self.conversation = conversation
        self.origins = origins
        self.now = now
        self.scale = scale
        """By how much the measured size exceeds the plain count."""
        self.kept = kept

    def trimmed(
        self,
        *,
        target: float,
        most: float,
        anchors: AnchorPreservationManager,
        strategy: str | ContextStrategy,
        model: str,
        platform: str,
    ) -> tuple[Conversation, Origins, tuple[Edit, ...]]:
        kept = anchors.identify(self.conversation.messages)
        pieces = pieces_of(self.conversation, self.now, kept, self.origins)
        # What is not messages cannot be trimmed: the rest is what there is for them.
        around = self.now.tokens - sum(piece.tokens for piece in pieces)
        room = most / self.scale - around - 2

        def measure(piece: Piece) -> float:
            return message_tokens(self.conversation, piece.messages, model, platform)

        result = shared_engine.optimize(
            pieces,
            target=max(0.0, target / self.scale - around),
            most=max(0.0, room),
            bench=Bench(self.conversation.dialect, measure, self.kept.keep),
            strategy=strategy,
        )
        messages: list[Message] = []
        origins: list[tuple[int, int]] = []
        for piece in result.pieces:
            messages.extend(piece.messages)
            if len(piece.messages) == 1:
                origins.append((piece.start, piece.stop))
            else:
                origins.extend(one_by_one(piece.start, piece.stop))
        made = self.conversation.with_messages(tuple(messages))
        broken = _broken_rule(self.conversation, made, model)
        if broken is not None:
            raise ContextOptimizationError(
                f"the trimmed request would break rule {broken.rule}",
                where=broken.path,
                fix="Choose another strategy, or repair the request first: see holdfast.repair.",
            )
        return made, tuple(origins), result.edits


def _broken_rule(before: Conversation, after: Conversation, model: str) -> Violation | None:
    """A rule that a trim broke: exchanges stay whole, so only what is new is looked at."""
    places = {id(message): n for n, message in enumerate(before.messages)}
    now = [places.get(id(message), -1) for message in after.messages]
    touched = [n for n, place in enumerate(now) if place < 0]
    ends = [-1, *now, len(before.messages)]
    seams = [n for n in range(len(ends) - 1) if ends[n] < 0 or ends[n + 1] != ends[n] + 1]
    found = check_at(after.seen(), after.context(model), touched=touched, seams=seams)
    return next(found, None)
