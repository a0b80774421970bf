"""Find, mask or refuse secrets and personal data in a text.

A finding holds its kind and position but no text, so it can be logged. A text is searched as
written and again without its escapes, because it may be JSON or a part of it; masking applies only
to displayed text, and the store keeps exact originals.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from holdfast.errors import PrivacyError, UnmaskedError
from holdfast.privacy.credentials import CREDENTIALS
from holdfast.privacy.detector import matching_patterns
from holdfast.privacy.escapes import UnescapedText, plain_forms, unescaped_forms
from holdfast.privacy.personal import PERSONAL

DETECTORS = CREDENTIALS + PERSONAL
_RANK = {detector.kind: rank for rank, detector in reversed([*enumerate(DETECTORS)])}


@functools.cache
def _occurring() -> Callable[[bytes], Sequence[int]]:
    return matching_patterns(DETECTORS)  # compiled on first use


class SensitiveSpan(msgspec.Struct, frozen=True):
    """A span of a text that contains a secret or personal data."""

    kind: str
    """Name of the detector: `aws_access_key`, `email`, …"""
    start: int
    """Start offset in characters of the text."""
    stop: int


def find(text: str) -> tuple[SensitiveSpan, ...]:
    """Return all findings in a text, sorted and without overlaps."""
    data = text.encode("utf-8", "surrogatepass")
    findings = _find_in_bytes(data)
    forms: list[UnescapedText] = []
    for plain in plain_forms(data):
        forms.append(plain)
        findings += (_map_back(finding, forms) for finding in _find_in_bytes(plain.data))
    merged = merge(findings)
    return tuple(merged if len(data) == len(text) else _in_characters(merged, data))


def flags_in_json(data: bytes) -> tuple[str, ...]:
    """Return the kinds found in JSON bytes, sorted."""
    return flags(
        finding for reading in unescaped_forms(data) for finding in _find_in_bytes(reading)
    )


def secrets_in_json(data: bytes) -> set[bytes]:
    """Return the detected values themselves, for comparison; never log or store them."""
    return {
        reading[f.start : f.stop]
        for reading in unescaped_forms(data)
        for f in _find_in_bytes(reading)
    }


def _find_in_bytes(data: bytes) -> list[SensitiveSpan]:
    """Return the findings in bytes, with byte offsets and without removing escapes."""
    return [
        SensitiveSpan(DETECTORS[index].kind, start, stop)
        for index in _occurring()(data)
        for start, stop in DETECTORS[index].spans(data)
    ]


def _map_back(finding: SensitiveSpan, forms: Sequence[UnescapedText]) -> SensitiveSpan:
    """Return a finding with its offsets mapped back through each round of unescaping."""
    start, stop = finding.start, finding.stop
    for plain in reversed(forms):
        start, stop = plain.written(start), plain.written(stop)
    return SensitiveSpan(finding.kind, start, stop)


def merge(findings: Iterable[SensitiveSpan]) -> list[SensitiveSpan]:
    """Return findings in order; overlapping ones are merged and take the more specific kind."""
    merged: list[SensitiveSpan] = []
    for each in sorted(findings, key=lambda f: (f.start, f.stop)):
        if merged and each.start < merged[-1].stop:
            last = merged.pop()
            kind = min(last.kind, each.kind, key=lambda k: _RANK.get(k, len(_RANK)))
            merged.append(SensitiveSpan(kind, last.start, max(last.stop, each.stop)))
        else:
            merged.append(each)
    return merged


def flags(findings: Iterable[SensitiveSpan]) -> tuple[str, ...]:
    """Return the kinds found, sorted, as records store them."""
    return tuple(sorted({finding.kind for finding in findings}))


def _in_characters(findings: Iterable[SensitiveSpan], data: bytes) -> list[SensitiveSpan]:
    """Return findings with offsets in characters instead of bytes, in one pass."""
    counted, at, characters = [], 0, 0
    for each in findings:
        start = characters + _length(data[at : each.start])
        stop = start + _length(data[each.start : each.stop])
        counted.append(SensitiveSpan(each.kind, start, stop))
        at, characters = each.stop, stop
    return counted


def _length(data: bytes) -> int:
    return len(data.decode("utf-8", "surrogatepass"))


Policy = Literal["allow", "mask", "refuse"]

ROUNDS = 16
"""Maximum rounds of searching a masked text again; only artificial chains of numbers need more."""


def mask(text: str, findings: Iterable[SensitiveSpan]) -> str:
    """Return the text with findings replaced by `[email masked]` and the like.

    A mask can expose its neighbour: `219-09-9998-` is no SSN before a word but is one before a
    bracket. Such new findings of the same kinds are masked as well.
    """
    secrets = merge(findings)
    kinds = flags(secrets)
    for _ in range(ROUNDS):
        if not secrets:
            break
        text = _mask_spans(text, secrets)
        secrets = [each for each in find(text) if each.kind in kinds]
    return text


def _mask_spans(text: str, findings: Iterable[SensitiveSpan]) -> str:
    pieces: list[str] = []
    at = 0
    for each in findings:
        pieces += text[at : each.start], f"[{each.kind.replace('_', ' ')} masked]"
        at = each.stop
    return "".join([*pieces, text[at:]])


def apply(policy: Policy, text: str, findings: Iterable[SensitiveSpan]) -> str:
    """Return the text that may be displayed under a policy.

    Raises:
        PrivacyError: the policy is `refuse` and something was found.
    """
    secrets = tuple(findings)
    if not secrets or policy == "allow":
        return text
    if policy == "mask":
        return mask(text, secrets)
    raise PrivacyError(
        f"The content holds {', '.join(flags(secrets))}, and the policy is to refuse that",
        fix="Remove it from the content, or set the policy to `mask` or `allow`.",
    )


def check_unmasked(policy: Policy) -> None:
    """Raise if a policy forbids sending an unedited request.

    With `mask`, citations hide secrets that the client's own bytes contain.
    """
    if policy == "mask":
        raise UnmaskedError(
            "an internal error of Holdfast: the request was not sent, as it was not masked",
            where="privacy_policy mask",
            fix="Report the error in the log; with another policy the request would be sent.",
        )
