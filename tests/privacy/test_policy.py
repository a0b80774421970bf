from __future__ import annotations

import pytest

from holdfast.errors import PrivacyError
from holdfast.privacy import SensitiveSpan, apply, find, mask

TEXT = "Write to jane@example.com or call +44 20 7946 0958."


def test_masked_text_says_what_stood_there() -> None:
    assert mask(TEXT, find(TEXT)) == "Write to [email masked] or call [phone masked]."


def test_findings_that_overlap_are_masked_once() -> None:
    both = [SensitiveSpan("email", 0, 6), SensitiveSpan("generic_secret_assignment", 4, 9)]
    assert mask("0123456789", both) == "[generic secret assignment masked]9"


def test_findings_that_touch_are_masked_apart() -> None:
    both = [SensitiveSpan("email", 0, 4), SensitiveSpan("phone", 4, 9)]
    assert mask("0123456789", both) == "[email masked][phone masked]9"


def test_what_a_mask_uncovers_is_masked_too() -> None:
    text = "219-09-9998 and 219-09-9998-jane@example.com"
    hidden, address = SensitiveSpan("us_ssn", 0, 11), SensitiveSpan("email", 28, 44)
    assert mask(text, [hidden, address]) == "[us ssn masked] and [us ssn masked]-[email masked]"


def test_only_the_kinds_that_were_given_are_masked() -> None:
    secrets = [finding for finding in find(TEXT) if finding.kind == "phone"]
    assert mask(TEXT, secrets) == "Write to jane@example.com or call [phone masked]."


def test_allow_changes_nothing() -> None:
    assert apply("allow", TEXT, find(TEXT)) == TEXT


def test_mask_masks() -> None:
    assert apply("mask", TEXT, find(TEXT)) == mask(TEXT, find(TEXT))


def test_refuse_names_the_kinds_and_never_the_content() -> None:
    with pytest.raises(PrivacyError) as caught:
        apply("refuse", TEXT, find(TEXT))
    assert "email, phone" in str(caught.value)
    assert "jane" not in str(caught.value)
    assert "7946" not in str(caught.value)


def test_refuse_lets_pass_what_holds_nothing() -> None:
    assert apply("refuse", "nothing here", find("nothing here")) == "nothing here"
