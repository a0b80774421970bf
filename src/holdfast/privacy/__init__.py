"""Find secrets and personal data in texts, and mask or refuse them before anything is stored."""

from holdfast.privacy.detectors import (
    Finding,
    Policy,
    apply,
    check_unmasked,
    find,
    flags,
    flags_in_json,
    mask,
    secrets_in_json,
)

__all__ = [
    "Finding",
    "Policy",
    "apply",
    "check_unmasked",
    "find",
    "flags",
    "flags_in_json",
    "mask",
    "secrets_in_json",
]
