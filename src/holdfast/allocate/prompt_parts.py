"""Build the parts of the prompt from a plan, and the fidelity record of each item.

Unused tokens go to beginnings, which can always be longer. Records describe the parts of the
prompt, not the plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.allocate.candidates import AllocationCandidate
from holdfast.allocate.fidelity import ContentFidelityRecord, Rung
from holdfast.allocate.level_choice import Option
from holdfast.allocate.prompt import PromptPart
from holdfast.allocate.truncation import Count, truncate_to_tokens

NO_ROOM = "no room"


def build_parts(
    candidates: Sequence[AllocationCandidate], options: Sequence[Option], room: int, count: Count
) -> list[PromptPart | None]:
    """Return the part of each candidate in the prompt; None for dropped ones."""
    sizes = _sizes(candidates, options, room)
    return [
        _part(candidate, option, size, count)
        for candidate, option, size in zip(candidates, options, sizes, strict=True)
    ]


def build_record(
    candidate: AllocationCandidate,
    option: Option,
    part: PromptPart | None,
    phase: str,
    count: Count,
) -> ContentFidelityRecord:
    """Return the fidelity record of an item, from its part in the prompt."""
    original = candidate.original
    summary = candidate.summaries[option.asked] if option.asked is not None else None
    result = summary.result if summary else None
    shown_tokens = count(part.text) if part else 0
    is_complete = option.rung is Rung.RAW
    shortened = option.rung in (Rung.TRUNCATED, Rung.DROPPED)
    return ContentFidelityRecord(
        source_id=candidate.item.source_id,
        phase=phase,
        requested_level=_requested(candidate, option),
        level=option.rung,
        priority=candidate.item.priority,
        tokens_from=shown_tokens if is_complete else candidate.tokens,
        tokens_to=shown_tokens,
        provider=result.provider if result else "",
        model=result.model if result else "",
        truncated=option.rung is Rung.TRUNCATED or bool(result and result.truncated),
        dropped=option.rung is Rung.DROPPED,
        reason=next(reversed(candidate.failures.values()), NO_ROOM) if shortened else "",
        ref=original.ref if original and not is_complete else "",
        sha256=original.sha256 if original and not is_complete else "",
        checked=result.checked if result else 0,
        unsupported=result.unsupported if result else 0,
        cached=bool(result and result.cached),
        cost=result.cost if result else None,
        warnings=result.warnings if result else (),
    )


def _requested(candidate: AllocationCandidate, option: Option) -> Rung:
    """Return the requested level; after a failed summary, the level of that request."""
    if option.asked is not None:
        return Rung(option.asked)
    if option.rung is not Rung.RAW and candidate.failures:
        return Rung(next(reversed(candidate.failures)))
    return option.rung


def _part(
    candidate: AllocationCandidate, option: Option, size: int, count: Count
) -> PromptPart | None:
    item, original = candidate.item, candidate.original
    if option.rung is Rung.DROPPED:
        return None
    if option.rung is Rung.RAW:
        return PromptPart(
            source_id=item.source_id,
            rung=Rung.RAW,
            text=item.content,
            tokens_from=candidate.tokens,
        )
    if option.asked is not None:
        text = candidate.summaries[option.asked].result.text
    else:
        text = truncate_to_tokens(original.visible if original else item.content, size, count)
    return PromptPart(
        source_id=item.source_id,
        rung=option.rung,
        text=text,
        tokens_from=candidate.tokens,
        ref=original.ref if original else "",
    )


def _sizes(
    candidates: Sequence[AllocationCandidate], options: Sequence[Option], room: int
) -> list[int]:
    """Return the tokens of each part; beginnings grow into the unused tokens, heaviest first."""
    sizes = [option.tokens for option in options]
    remaining = room - sum(option.cost for option in options)
    beginnings = [n for n, option in enumerate(options) if option.rung is Rung.TRUNCATED]
    for n in sorted(beginnings, key=lambda n: (-candidates[n].weight, n)):
        more = max(0, min(remaining, candidates[n].most_of_beginning() - sizes[n]))
        sizes[n] += more
        remaining -= more
    return sizes
