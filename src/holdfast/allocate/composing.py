"""The prompt of a plan, and the record of what stands in it.

composing: after planning and prompt. What room a plan leaves over goes to beginnings, which can
always use some more. Records are made from the parts of the prompt, never from the plan (X02).
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.allocate.candidates import Candidate
from holdfast.allocate.choosing import Option
from holdfast.allocate.fidelity import ContentFidelityRecord, Rung
from holdfast.allocate.prompt import Part
from holdfast.allocate.truncating import Count, truncated

NO_ROOM = "no room"


def parts_of(
    candidates: Sequence[Candidate], options: Sequence[Option], room: int, count: Count
) -> list[Part | None]:
    """What stands of each candidate in the prompt; None if nothing does."""
    sizes = _stretched(candidates, options, room)
    return [
        _part(candidate, option, size, count)
        for candidate, option, size in zip(candidates, options, sizes, strict=True)
    ]


def record_of(
    candidate: Candidate, option: Option, part: Part | None, phase: str, count: Count
) -> ContentFidelityRecord:
    """What became of an item, by what stands in the prompt."""
    original = candidate.original
    summary = candidate.summaries[option.asked] if option.asked is not None else None
    result = summary.result if summary else None
    shown = count(part.text) if part else 0
    is_whole = option.rung is Rung.RAW
    shortened = option.rung in (Rung.TRUNCATED, Rung.DROPPED)
    return ContentFidelityRecord(
        source_id=candidate.item.source_id,
        phase=phase,
        requested_level=_requested(candidate, option),
        level=option.rung,
        priority=candidate.item.priority,
        tokens_from=shown if is_whole else candidate.tokens,
        tokens_to=shown,
        provider=result.provider if result else "",
        model=result.model if result else "",
        truncated=option.rung is Rung.TRUNCATED or bool(result and result.truncated),
        dropped=option.rung is Rung.DROPPED,
        reason=next(reversed(candidate.failures.values()), NO_ROOM) if shortened else "",
        ref=original.ref if original and not is_whole else "",
        sha256=original.sha256 if original and not is_whole else "",
        checked=result.checked if result else 0,
        unsupported=result.unsupported if result else 0,
        cached=bool(result and result.cached),
        cost=result.cost if result else None,
        warnings=result.warnings if result else (),
    )


def _requested(candidate: Candidate, option: Option) -> Rung:
    """The level that was asked for: of a summariser in vain, if that is why it came otherwise."""
    if option.asked is not None:
        return Rung(option.asked)
    if option.rung is not Rung.RAW and candidate.failures:
        return Rung(next(reversed(candidate.failures)))
    return option.rung


def _part(candidate: Candidate, option: Option, size: int, count: Count) -> Part | None:
    item, original = candidate.item, candidate.original
    if option.rung is Rung.DROPPED:
        return None
    if option.rung is Rung.RAW:
        return Part(
            source_id=item.source_id,
            rung=Rung.RAW,
            text=item.content,
            tokens_from=candidate.tokens,
        )
    if option.asked is not None:
        text = candidate.summaries[option.asked].result.text
    else:
        text = truncated(original.visible if original else item.content, size, count)
    return Part(
        source_id=item.source_id,
        rung=option.rung,
        text=text,
        tokens_from=candidate.tokens,
        ref=original.ref if original else "",
    )


def _stretched(candidates: Sequence[Candidate], options: Sequence[Option], room: int) -> list[int]:
    """The tokens of each part, those of beginnings grown into what room is left, by weight."""
    sizes = [option.tokens for option in options]
    left = room - sum(option.cost for option in options)
    beginnings = [n for n, option in enumerate(options) if option.rung is Rung.TRUNCATED]
    for n in sorted(beginnings, key=lambda n: (-candidates[n].weight, n)):
        more = max(0, min(left, candidates[n].most_of_beginning() - sizes[n]))
        sizes[n] += more
        left -= more
    return sizes
