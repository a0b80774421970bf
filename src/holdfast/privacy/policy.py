"""What is done about findings: allow, mask or refuse.

policy: after detectors. Only what is shown is masked; the store keeps originals exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from holdfast.errors import PrivacyError
from holdfast.privacy.detectors import Finding, find, flags, merge

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
