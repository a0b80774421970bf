"""Find secrets and personal data in a text, before anything is stored or shown.

detectors: after credentials, personal and escapes, before policy. It says what kind stands where,
never what it is: a finding holds no text, so it can be logged. A text is looked at as it is
written and as it reads without its escapes, for it may be JSON, or a part of it.

What is done about findings: allow, mask or refuse. Only what is shown is masked; the store keeps
originals exact.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from holdfast.errors import PrivacyError, UnmaskedError
from holdfast.privacy.credentials import CREDENTIALS
from holdfast.privacy.detector import any_of
from holdfast.privacy.escapes import Plain, plain_forms, readings
from holdfast.privacy.personal import PERSONAL

DETECTORS = CREDENTIALS + PERSONAL
_RANK = {detector.kind: rank for rank, detector in reversed([*enumerate(DETECTORS)])}


@functools.cache
def _occurring() -> Callable[[bytes], Sequence[int]]:
    return any_of(DETECTORS)  # compiled when it is first needed


class Finding(msgspec.Struct, frozen=True):
    """A place in a text that holds a secret or something personal."""

    kind: str
    """What it is: `aws_access_key`, `email`, …"""
    start: int
    """Where it stands, in characters of the text."""
    stop: int


def find(text: str) -> tuple[Finding, ...]:
    """Every secret and personal datum with a known shape, in order, none overlapping another."""
    data = text.encode("utf-8", "surrogatepass")
    findings = _found(data)
    forms: list[Plain] = []
    for plain in plain_forms(data):
        forms.append(plain)
        findings += (_as_written(finding, forms) for finding in _found(plain.data))
    merged = merge(findings)
    return tuple(merged if len(data) == len(text) else _in_characters(merged, data))


def flags_in_json(data: bytes) -> tuple[str, ...]:
    """The kinds found in some JSON, sorted."""
    return flags(finding for reading in readings(data) for finding in _found(reading))


def secrets_in_json(data: bytes) -> set[bytes]:
    """The secrets and data themselves: to be compared, never to be logged or stored."""
    return {reading[f.start : f.stop] for reading in readings(data) for f in _found(reading)}


def _found(data: bytes) -> list[Finding]:
    """What stands in some bytes as they are, places in bytes."""
    return [
        Finding(DETECTORS[index].kind, start, stop)
        for index in _occurring()(data)
        for start, stop in DETECTORS[index].spans(data)
    ]


def _as_written(finding: Finding, forms: Sequence[Plain]) -> Finding:
    """The same, where it stands before escapes were taken away, one round after the other."""
    start, stop = finding.start, finding.stop
    for plain in reversed(forms):
        start, stop = plain.written(start), plain.written(stop)
    return Finding(finding.kind, start, stop)


def merge(findings: Iterable[Finding]) -> list[Finding]:
    """Findings in order; those that overlap become one, of the kind that says more."""
    merged: list[Finding] = []
    for each in sorted(findings, key=lambda f: (f.start, f.stop)):
        if merged and each.start < merged[-1].stop:
            last = merged.pop()
            kind = min(last.kind, each.kind, key=lambda k: _RANK.get(k, len(_RANK)))
            merged.append(Finding(kind, last.start, max(last.stop, each.stop)))
        else:
            merged.append(each)
    return merged


def flags(findings: Iterable[Finding]) -> tuple[str, ...]:
    """The kinds found, sorted: what a record keeps."""
    return tuple(sorted({finding.kind for finding in findings}))


def _in_characters(findings: Iterable[Finding], data: bytes) -> list[Finding]:
    """The same places counted in characters: one pass over the bytes."""
    counted, at, characters = [], 0, 0
    for each in findings:
        start = characters + _length(data[at : each.start])
        stop = start + _length(data[each.start : each.stop])
        counted.append(Finding(each.kind, start, stop))
        at, characters = each.stop, stop
    return counted


def _length(data: bytes) -> int:
    return len(data.decode("utf-8", "surrogatepass"))


Policy = Literal["allow", "mask", "refuse"]

ROUNDS = 16
"""How often a masked text is looked at again; made-up chains of numbers would need more."""


def mask(text: str, findings: Iterable[Finding]) -> str:
    """The text with `[email masked]` and the like where something was found.

    A mask can uncover what its neighbour hid: `219-09-9998-` is no number of a person before a
    word, but before a bracket it is. Such findings of the same kinds are masked as well.
    """
    secrets = merge(findings)
    kinds = flags(secrets)
    for _ in range(ROUNDS):
        if not secrets:
            break
        text = _masked(text, secrets)
        secrets = [each for each in find(text) if each.kind in kinds]
    return text


def _masked(text: str, findings: Iterable[Finding]) -> str:
    pieces: list[str] = []
    at = 0
    for each in findings:
        pieces += text[at : each.start], f"[{each.kind.replace('_', ' ')} masked]"
        at = each.stop
    return "".join([*pieces, text[at:]])


def apply(policy: Policy, text: str, findings: Iterable[Finding]) -> str:
    """The text that may be shown.

    Raises:
        PrivacyError: The policy is to refuse, and something was found.
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
    """Raise if a policy forbids to send a request that was not made to fit.

    With `mask`, citations hide secrets that the client's own bytes show.
    """
    if policy == "mask":
        raise UnmaskedError(
            "an internal error of Holdfast: the request was not sent, as it was not masked",
            where="privacy_policy mask",
            fix="Report the error in the log; with another policy the request would be sent.",
        )
