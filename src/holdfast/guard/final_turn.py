"""The final turn of a session: offered tools, completion, and the guidance for the model.

A session ends with a final report and, if the caller requires it, META for the report.
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
    """The progress of the final report; each step returns the next state.

    A captured report cannot be replaced. While META is missing the report is locked, and a retry
    may only add META.
    """

    required_meta: frozenset[str] = frozenset()
    """Names of the META entries that the session requires."""
    captured: bool = False
    meta: frozenset[str] = frozenset()
    """Names of the META entries received."""

    @property
    def missing_meta(self) -> frozenset[str]:
        """Return the required META entries that were not received."""
        return self.required_meta - self.meta

    @property
    def locked(self) -> bool:
        """Return whether the report was received and META is missing."""
        return self.captured and bool(self.missing_meta)

    @property
    def ready(self) -> bool:
        """Return whether the session may end; a forced final turn does not change it."""
        return self.captured and not self.missing_meta

    def with_report(self) -> FinalReport:
        """Return the state after the model's report; a second report does not replace the first."""
        return msgspec.structs.replace(self, captured=True)

    def with_meta(self, *names: str) -> FinalReport:
        """Return the state after receiving META entries."""
        return msgspec.structs.replace(self, meta=self.meta | set(names))

    def tools_for_turn(
        self,
        tools: Iterable[str],
        *,
        final: bool,
        final_tools: Iterable[str] = (FINAL_REPORT_TOOL,),
        extra_tools: Iterable[str] = (),
    ) -> tuple[str, ...]:
        """Return the tools to offer, in their original order.

        An ordinary turn offers all tools, a final turn the final-turn tools and the allowed extra
        ones, and a locked report only the final-turn tools.
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
        """Return the guidance for the model's next turn; empty in an ordinary turn.

        It is empty once the session is ready, because a model that is asked again rewrites its
        report.
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
    """Return guidance that this turn is the last, why, and how to end it."""
    lines = [
        f"{because} This is your final turn: do not gather more information.",
        f"Give your final report now{_by_calling(final_tools)}, from what you have gathered so "
        "far, and say in it what is missing.",
    ]
    if extra := sorted(extra_tools):
        lines.append(f"Before it you may call only {_name_list(extra, 'or')}.")
    if needed := sorted(meta):
        lines.append(f"The report must come with its META: {_name_list(needed, 'and')}.")
    return "\n".join(lines)


def meta_guidance(missing: Iterable[str]) -> str:
    """Return guidance that the report was received and only META is missing."""
    return (
        "Your final report was received and is locked: do not send it again or change it.\n"
        f"Only its META is missing. Provide {_name_list(sorted(missing), 'and')}, and nothing else."
    )


def _by_calling(tools: Iterable[str]) -> str:
    names = tuple(tools)
    return f" by calling {_name_list(names, 'or')}" if names else ""


def _name_list(names: Iterable[str], word: str) -> str:
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} {word} {last}" if most else last
