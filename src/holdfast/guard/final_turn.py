"""The last turn of a session: which tools it offers, when it is done, what the model is told.

final_turn: beside counters; knows nothing about tokens. A session ends with a final report and,
where the caller demands it, with META beside the report.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

FINAL_REPORT_TOOL = "agent__final_report"
PROGRESS_TOOL = "agent__progress_report"

FinalTurnReason = Literal["context"]
"""Why the final turn was forced."""


class FinalReport(msgspec.Struct, frozen=True, kw_only=True):
    """How far the final report is; each step returns the next state.

    Once captured the report stands. While META is missing it is locked: a retry may add META, and
    nothing else.
    """

    required_meta: frozenset[str] = frozenset()
    """Names of the META entries without which the session is not done."""
    captured: bool = False
    meta: frozenset[str] = frozenset()
    """The META entries that arrived."""

    @property
    def missing_meta(self) -> frozenset[str]:
        """What is still asked for."""
        return self.required_meta - self.meta

    @property
    def locked(self) -> bool:
        """Whether the report is there and its META is not."""
        return self.captured and bool(self.missing_meta)

    @property
    def ready(self) -> bool:
        """Whether the session may end; a forced final turn changes nothing about it."""
        return self.captured and not self.missing_meta

    def with_report(self) -> FinalReport:
        """The model gave its report; a second one does not replace the first."""
        return msgspec.structs.replace(self, captured=True)

    def with_meta(self, *names: str) -> FinalReport:
        """The model gave META."""
        return msgspec.structs.replace(self, meta=self.meta | set(names))

    def tools_for_turn(
        self,
        tools: Iterable[str],
        *,
        final: bool,
        final_tools: Iterable[str] = (FINAL_REPORT_TOOL,),
        extra_tools: Iterable[str] = (),
    ) -> tuple[str, ...]:
        """Return the tools to offer, in their order.

        All of them in an ordinary turn; the final-turn tools and the allowed extra ones in a final
        turn; the final-turn tools alone while the report is locked.
        """
        if self.locked:
            allowed = set(final_tools)
        elif final:
            allowed = {*final_tools, *extra_tools}
        else:
            return tuple(tools)
        return tuple(name for name in tools if name in allowed)

    def guidance(
        self,
        *,
        reason: FinalTurnReason | None,
        final_tools: Iterable[str] = (FINAL_REPORT_TOOL,),
        extra_tools: Iterable[str] = (),
    ) -> str:
        """Return what to tell the model before its turn; empty in an ordinary turn.

        Empty too once the session is ready: asked again, a model writes its report again.
        """
        if self.ready:
            return ""
        if self.locked:
            return meta_guidance(self.missing_meta)
        if reason is None:
            return ""
        return final_turn_guidance(final_tools, extra_tools, self.missing_meta)


def final_turn_guidance(
    final_tools: Iterable[str],
    extra_tools: Iterable[str] = (),
    meta: Iterable[str] = (),
    *,
    because: str = "The conversation has reached the limit of its context window.",
) -> str:
    """Tell the model that this turn is its last, why, and how to end it."""
    lines = [
        f"{because} This is your final turn: do not gather more information.",
        f"Give your final report now{_by_calling(final_tools)}, from what you have gathered so "
        "far, and say in it what is missing.",
    ]
    if extra := sorted(extra_tools):
        lines.append(f"Before it you may call only {_listed(extra, 'or')}.")
    if needed := sorted(meta):
        lines.append(f"The report must come with its META: {_listed(needed, 'and')}.")
    return "\n".join(lines)


def meta_guidance(missing: Iterable[str]) -> str:
    """Tell the model that its report was taken and only META is missing."""
    return (
        "Your final report was received and is locked: do not send it again or change it.\n"
        f"Only its META is missing. Provide {_listed(sorted(missing), 'and')}, and nothing else."
    )


def _by_calling(tools: Iterable[str]) -> str:
    names = tuple(tools)
    return f" by calling {_listed(names, 'or')}" if names else ""


def _listed(names: Iterable[str], word: str) -> str:
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} {word} {last}" if most else last
