"""The plan of a request: its decisions so far, and the contents that must be read for the others.

`plan` decides without I/O. The plan names the contents to be cited; `finish` takes the citations
and returns the request that fits. A decision may depend on the size of a citation: how full the
window is at the second result depends on the citation of the first. Then `finish` returns a plan.

    outcome = plan(body, options)
    while isinstance(outcome, FitPlan):
        outcome = outcome.finish(read_here(outcome.reads))
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.cite import CitingRules
from holdfast.fitting.options import HIGH_WATER, LOW_WATER, FitOptions
from holdfast.fitting.reads import (
    Answer,
    PendingReads,
    PlanEntry,
    ReadRequest,
    Steps,
    entry_of,
    read_here,
)
from holdfast.fitting.state import FitState, Fitted
from holdfast.fitting.steps import basis_of, fit_steps
from holdfast.tokens import ModelContextRegistry
from holdfast.tokens.counter import Correction
from holdfast.trim.anchors import DEFAULT_ANCHORS, AnchorDefinition
from holdfast.trim.strategies import ContextStrategy
from holdfast.wire.responses import HiddenTurn


class FitInput(msgspec.Struct, frozen=True):
    """The arguments of `plan`."""

    body: object
    options: FitOptions
    state: FitState | None = None
    hidden: tuple[HiddenTurn, ...] = ()
    calibration: Correction | None = None

    def steps(self) -> tuple[Steps[Fitted], int]:
        """Return the steps from their beginning, and the limit that they keep."""
        basis = basis_of(self.body, self.options, self.state, self.hidden, self.calibration)
        return fit_steps(basis), basis.measure.most


class FitPlan:
    """The decisions about a request so far, and the contents that must be read for the others.

    A value: equal inputs and answers give equal plans, and `finish` returns the same each time.
    """

    __slots__ = ("_answers", "_fitted", "_inputs", "_pending", "_steps", "limit", "reads")

    def __init__(
        self,
        inputs: FitInput,
        answers: tuple[Sequence[Answer], ...],
        steps: Steps[Fitted],
        limit: int,
    ) -> None:
        self.reads: tuple[ReadRequest, ...]
        """The contents that must be read; empty if all is decided."""
        self.limit = limit
        """Maximum input tokens of the request that comes of it."""
        self._inputs = inputs
        self._answers = answers
        # A generator runs once: to finish a plan again, its steps run from the beginning.
        self._steps: Steps[Fitted] | None = steps
        self._fitted: Fitted | None = None
        self._pending: PendingReads | None = None
        try:
            self._pending = steps.send(answers[-1]) if answers else next(steps)
            self.reads = self._pending.reads
        except StopIteration as end:
            self._fitted, self.reads = end.value, ()

    @property
    def entries(self) -> tuple[PlanEntry, ...]:
        """The decisions, with their reasons."""
        if self._pending is not None:
            return (*map(entry_of, self._pending.edits), *self._pending.decisions)
        return self._fitted.plan if self._fitted is not None else ()

    def finish(self, answers: Sequence[Answer] = ()) -> FitPlan | Fitted:
        """Return the request, or the next plan if more contents must be read.

        `answers` are the citations and matches for `reads`, in this order; None for a content that
        may not be stored.

        Raises:
            BudgetExceededError: The request cannot fit.
        """
        if len(answers) != len(self.reads):
            raise ValueError(f"{len(self.reads)} answers are needed, not {len(answers)}")
        if self._fitted is not None:
            return self._fitted
        steps, self._steps = self._steps, None
        if steps is None:
            steps, _ = self._inputs.steps()
            next(steps)
            for earlier in self._answers:
                steps.send(earlier)
        later = FitPlan(self._inputs, (*self._answers, tuple(answers)), steps, self.limit)
        return later._fitted or later

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FitPlan) and self._values == other._values

    def __hash__(self) -> int:
        return hash((self.entries, self.limit))

    @property
    def _values(self) -> tuple[object, ...]:
        return self.entries, self.reads, self.limit

    def __repr__(self) -> str:
        return f"<FitPlan, {len(self.entries)} decisions, {len(self.reads)} contents to read>"


def plan(
    body: object,
    options: FitOptions,
    *,
    state: FitState | None = None,
    hidden: Sequence[HiddenTurn] = (),
    calibration: Correction | None = None,
) -> FitPlan:
    """Return the plan of a request within its limit.

    `hidden` are the answers with hidden calls, which are restored.

    Raises:
        BudgetExceededError: The request cannot fit.
    """
    inputs = FitInput(body, options, state, tuple(hidden), calibration)
    steps, limit = inputs.steps()
    return FitPlan(inputs, (), steps, limit)


def fit_request(
    body: object,
    options: FitOptions,
    *,
    state: FitState | None = None,
    hidden: Sequence[HiddenTurn] = (),
    calibration: Correction | None = None,
) -> Fitted:
    """Return a request within the limit, or raise; all contents are read in this process.

    Removed content must be stored before the request is sent.
    """
    outcome: FitPlan | Fitted = plan(
        body, options, state=state, hidden=hidden, calibration=calibration
    )
    while isinstance(outcome, FitPlan):
        outcome = outcome.finish(read_here(outcome.reads))
    return outcome


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
    registry: ModelContextRegistry | None = None,
    high_water: float = HIGH_WATER,
    low_water: float = LOW_WATER,
) -> Fitted:
    """Return a request of at most `limit` input tokens, or raise.

    The default limit is the model's own, less the room for `output` tokens; then the count's upper
    bound must fit, not only the count. Anchors are always kept.

    Removed content is in `Fitted.contents`, each under the ref in its edit. With `citing` rules,
    long tool results are replaced by citations, and expand_ref is offered: then the contents must
    be stored before the body is sent.
    """
    options = FitOptions(
        model=model or "",
        dialect=dialect,
        limit=limit,
        output=output,
        anchors=anchors,
        strategy=strategy,
        rules=citing or CitingRules(),
        cites=citing is not None,
        opens=citing is not None,
        platform=platform,
        high_water=high_water,
        low_water=low_water,
    )
    if registry is not None:
        options = msgspec.structs.replace(options, registry=registry)
    return fit_request(body, options, state=state, calibration=calibration)
