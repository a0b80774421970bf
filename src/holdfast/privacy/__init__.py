"""Find secrets and personal data in texts, and mask or refuse them before anything is stored."""

from holdfast.privacy.detectors import (
    Policy,
    SensitiveSpan,
    apply,
    check_unmasked,
    find,
    flags,
    flags_in_json,
    mask,
    secrets_in_json,
)

__all__ = [
    "Policy",
    "SensitiveSpan",
    "apply",
    "check_unmasked",
    "find",
    "flags",
    "flags_in_json",
    "mask",
    "secrets_in_json",
]
