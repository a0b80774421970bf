"""Make a request fit: the same request if it fits, else one with its middle folded, still valid.

fitting: after trim. What was decided once is replayed with the next request, byte for byte, so
that the vendor's prompt cache keeps working; history is folded rarely, in one large step.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.errors import BudgetExceededError, ContextOptimizationError
from holdfast.tokens import ModelContextRegistry, TokenCount, count
from holdfast.tokens.counting import Correction, message_tokens
from holdfast.tokens.limits import input_limit
from holdfast.trim.anchors import DEFAULT_ANCHORS, AnchorDefinition, AnchorPreservationManager
from holdfast.trim.engine import ContextOptimizationEngine
from holdfast.trim.pieces import Cut, Fold, Piece, pieces_of
from holdfast.trim.strategies import ContextStrategy
from holdfast.wire import Conversation, Message, Violation, read, repair, validate, write
from holdfast.wire.exchanges import group
from holdfast.wire.rules.rule import check_at

HIGH_WATER = 0.85
"""Share of the limit above which history is folded."""
LOW_WATER = 0.5
"""Share of the limit that a fold goes down to."""
LEAST_GAIN = 0.2
"""A fold that would save less than this share of the limit waits until it must."""

shared_engine = ContextOptimizationEngine()
_registry = ModelContextRegistry()


class FitState(msgspec.Struct, frozen=True):
    """What was sent last time; pass it back with the next request."""

    source: Conversation
    """The conversation as the client sent it."""
    sent: Conversation
    """The conversation as it went out."""
    origins: tuple[tuple[int, int], ...]
    """For each message that went out, the client's messages that it stands for."""
    floor: int = 0
    """What the last fold came down to: the next one waits until there is something to gain."""

    @property
    def folds(self) -> tuple[Fold, ...]:
        """The digests in what was sent, and what each stands for."""
        found = (message.memo.get("fold") for message in self.sent.messages)
        return tuple(made for made in found if made is not None)

    def __repr__(self) -> str:
        return f"<FitState, {len(self.source.messages)} messages, {len(self.folds)} folds>"


class Fitted(msgspec.Struct, frozen=True):
    """A request that fits."""

    body: bytes
    """Ready to send."""
    count: TokenCount
    limit: int
    report: tuple[Cut, ...]
    """What was done this time, and why; empty if nothing was."""
    state: FitState

    @property
    def tokens(self) -> int:
        """Input tokens of the body."""
        return self.count.tokens

    def __repr__(self) -> str:
        return f"<Fitted, {self.tokens} of {self.limit} tokens, {len(self.report)} edits>"


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
    platform: str = "",
    calibration: Correction | None = None,
    high_water: float = HIGH_WATER,
    low_water: float = LOW_WATER,
) -> Fitted:
    """Return a request of at most `limit` input tokens, or raise.

    The limit is the model's own if none is given, less the room for `output` tokens; then the
    count's upper bound must fit, not only the count. Anchors are kept whatever it takes.
    """
    source = _read(body, dialect, state)
    model = model or source.model or ""
    if state is not None and source.messages[: len(state.source.messages)] != state.source.messages:
        state = None  # the client has rewritten its history
    sent, origins = _replay(source, state)
    if not _is_valid(sent, len(state.sent.messages) if state is not None else 0, model):
        source = sent = read(repair(write(source), source.dialect, model).body, source.dialect)
        origins = _one_by_one(0, len(source.messages))
        state = None

    by_bound = limit is None
    most = _default_limit(model, output) if limit is None else limit

    def counted(conversation: Conversation) -> TokenCount:
        return count(conversation, model=model, platform=platform, calibration=calibration)

    def size(made: TokenCount) -> int:
        return made.upper if by_bound else made.tokens

    now = counted(sent)
    report: tuple[Cut, ...] = ()
    floor = state.floor if state is not None else 0
    gain = size(now) - max(floor, round(low_water * most))
    due = state is not None and size(now) > high_water * most and gain > LEAST_GAIN * most
    if due or size(now) > most:
        manager = AnchorPreservationManager(anchors)
        # Tokens are estimated while choosing: a second look, with exact ones, is rarely needed.
        for _ in range(2):
            work = _Work(sent, origins, now, size(now) / max(1, now.tokens))
            sent, origins, cuts = work.trimmed(
                target=low_water * most,
                most=most,
                anchors=manager,
                strategy=strategy,
                model=model,
                platform=platform,
            )
            report += cuts
            now = counted(sent)
            if size(now) <= most:
                break
        floor = size(now)
    if size(now) > most:
        raise BudgetExceededError(
            f"the request has {size(now):,} tokens, and {most:,} are allowed",
            where="messages",
            fix="Raise the limit, offer fewer tools, or shorten the system text.",
        )
    made = FitState(source, sent, origins, floor)
    return Fitted(write(sent), now, most, report, made)


def _default_limit(model: str, output: int | None) -> int:
    return input_limit(_registry.resolve(model or "unknown:unknown"), output=output)


def _read(body: object, dialect: str | None, state: FitState | None) -> Conversation:
    if isinstance(body, Conversation):
        return body
    return read(body, dialect, previous=state.source if state is not None else None)


def _replay(
    source: Conversation, state: FitState | None
) -> tuple[Conversation, tuple[tuple[int, int], ...]]:
    """What went out last time, and what the client has added since."""
    if state is None:
        return source, _one_by_one(0, len(source.messages))
    known = len(state.source.messages)
    origins = state.origins + _one_by_one(known, len(source.messages))
    if state.sent is state.source:
        return source, origins  # nothing was ever trimmed
    return source.with_messages(state.sent.messages + source.messages[known:]), origins


def _one_by_one(start: int, stop: int) -> tuple[tuple[int, int], ...]:
    return tuple((n, n + 1) for n in range(start, stop))


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


def unfold(state: FitState, fold: Fold) -> FitState:
    """Put back what a digest stands for, for the next request."""
    messages: list[Message] = []
    origins: list[tuple[int, int]] = []
    for message, origin in zip(state.sent.messages, state.origins, strict=True):
        if message.memo.get("fold") == fold:
            messages.extend(state.source.messages[fold.start : fold.stop])
            origins.extend(_one_by_one(fold.start, fold.stop))
        else:
            messages.append(message)
            origins.append(origin)
    sent = state.sent.with_messages(tuple(messages))
    return FitState(state.source, sent, tuple(origins), state.floor)


class _Work:
    """One trim, from a conversation to the conversation that takes its place."""

    def __init__(
        self,
        conversation: Conversation,
        origins: tuple[tuple[int, int], ...],
        now: TokenCount,
        scale: float,
    ) -> None:
        self.conversation = conversation
        self.origins = origins
        self.now = now
        self.scale = scale
        """By how much the measured size exceeds the plain count."""

    def trimmed(
        self,
        *,
        target: float,
        most: float,
        anchors: AnchorPreservationManager,
        strategy: str | ContextStrategy,
        model: str,
        platform: str,
    ) -> tuple[Conversation, tuple[tuple[int, int], ...], tuple[Cut, ...]]:
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
            conversation=self.conversation,
            measure=measure,
            strategy=strategy,
        )
        messages: list[Message] = []
        origins: list[tuple[int, int]] = []
        for piece in result.pieces:
            messages.extend(piece.messages)
            if len(piece.messages) == 1:
                origins.append((piece.start, piece.stop))
            else:
                origins.extend(_one_by_one(piece.start, piece.stop))
        made = self.conversation.with_messages(tuple(messages))
        broken = _broken_rule(self.conversation, made, model)
        if broken is not None:
            raise ContextOptimizationError(
                f"the trimmed request would break rule {broken.rule}",
                where=broken.path,
                fix="Choose another strategy, or repair the request first: see holdfast.repair.",
            )
        return made, tuple(origins), result.cuts


def _broken_rule(before: Conversation, after: Conversation, model: str) -> Violation | None:
    """A rule that a trim broke: exchanges stay whole, so only what is new is looked at."""
    places = {id(message): n for n, message in enumerate(before.messages)}
    now = [places.get(id(message), -1) for message in after.messages]
    touched = [n for n, place in enumerate(now) if place < 0]
    ends = [-1, *now, len(before.messages)]
    seams = [n for n in range(len(ends) - 1) if ends[n] < 0 or ends[n + 1] != ends[n] + 1]
    found = check_at(after.seen(), after.context(model), touched=touched, seams=seams)
    return next(found, None)
