"""Flag secrets and personal data before anything is compressed, and mask or refuse them.

detector → vendor_keys → credentials · personal, escapes → detectors → policy, each using only what
stands before it.
"""

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
