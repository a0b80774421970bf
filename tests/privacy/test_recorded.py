from __future__ import annotations

import json
from collections import Counter

import pytest

from holdfast.privacy import find, flags, mask
from tests.support.recorded import DATA

MANIFEST = DATA / "tool_results" / "manifest.jsonl"


@pytest.mark.skipif(
    not MANIFEST.exists(), reason="recorded tool results are not here; set HOLDFAST_DATA"
)
def test_recorded_results_hold_addresses_and_phones_and_no_false_alarms() -> None:
    files: Counter[str] = Counter()
    for line in MANIFEST.read_text("utf-8").splitlines():
        text = (MANIFEST.parent / json.loads(line)["path"]).read_text("utf-8")
        findings = find(text)
        files.update(flags(findings))
        assert not set(flags(find(mask(text, findings)))) & set(flags(findings))
        for each in findings:
            if each.kind == "email":  # addresses were replaced when the data was taken
                assert text[each.start : each.stop].endswith("@example.com")
    # Keys and tokens were redacted there, so any other kind would be a false alarm.
    assert set(files) == {"email", "phone"}
    assert files["email"] >= 20
