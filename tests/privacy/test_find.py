from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest
import re2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from holdfast import privacy
from holdfast.privacy import SensitiveSpan, find, flags, mask
from holdfast.privacy.detector import Detector
from holdfast.privacy.detectors import DETECTORS
from tests.privacy.formats import sample
from tests.privacy.made import HARMLESS, IN_CONTEXT, PEM, PERSONAL, SECRETS, run

ANYTHING = st.text(st.characters(exclude_categories=()))


def found_in(text: str) -> list[tuple[str, str]]:
    return [(f.kind, text[f.start : f.stop]) for f in find(text)]


@pytest.mark.parametrize(("kind", "secret"), SECRETS + PERSONAL)
@pytest.mark.parametrize("around", ["{}", "see {}, please", '{{"a": "{}"}}', "a\n{}\nb", "({})"])
def test_a_known_shape_is_found_exactly(kind: str, secret: str, around: str) -> None:
    assert found_in(around.format(secret)) == [(kind, secret)]


@pytest.mark.parametrize(("kind", "around", "secret"), IN_CONTEXT)
def test_what_only_its_surroundings_betray_is_found_exactly(
    kind: str, around: str, secret: str
) -> None:
    assert found_in(around.format(secret)) == [(kind, secret)]


@pytest.mark.parametrize("text", HARMLESS)
def test_hashes_ids_times_and_placeholders_are_not_flagged(text: str) -> None:
    assert found_in(text) == []


def test_every_kind_has_an_example() -> None:
    examples = {kind for kind, *_ in [*SECRETS, *PERSONAL, *IN_CONTEXT]}
    examples |= {kind for _, line in sample(1) for kind in flags(find(line))}
    assert examples == {detector.kind for detector in DETECTORS}


def test_a_key_in_a_json_string_is_found_to_its_end() -> None:
    escaped = PEM.replace("\n", "\\n")
    assert found_in(f'{{"key": "{escaped}"}}') == [("private_key", escaped)]


def test_a_key_that_was_cut_off_is_found_as_far_as_it_goes() -> None:
    head = PEM[:120]
    assert found_in(f"{head}\n\nand then some words") == [("private_key", head)]


def test_escapes_before_an_address_are_not_part_of_it() -> None:
    assert found_in(r"by \u003cjane@example.com\u003e\njoe@example.com") == [
        ("email", "jane@example.com"),
        ("email", "joe@example.com"),
    ]


def test_findings_that_overlap_become_one_of_the_telling_kind() -> None:
    token = "ghp_" + run(36)
    assert found_in(f'password = "{token}"') == [("github_token", token)]
    assert found_in("ftp://joe:pa55word@example.com") == [
        ("basic_auth_url", "joe:pa55word@example.com")
    ]


@given(ANYTHING, st.sampled_from(SECRETS + PERSONAL), ANYTHING)
def test_places_are_characters_whatever_stands_before(
    before: str, made: tuple[str, str], after: str
) -> None:
    kind, secret = made
    assert (kind, secret) in found_in(f"{before}𝄞\n\n{secret}\n\n{after}")


@given(ANYTHING)
def test_no_text_makes_it_fail(text: str) -> None:
    findings = find(text)
    assert all(0 <= f.start < f.stop <= len(text) for f in findings)
    assert list(findings) == sorted(findings, key=lambda f: f.start)
    assert all(a.stop <= b.start for a, b in itertools.pairwise(findings))


def test_a_finding_says_nothing_of_the_text() -> None:
    (finding,) = find("jane@example.com")
    assert repr(finding) == "SensitiveSpan(kind='email', start=0, stop=16)"
    assert set(SensitiveSpan.__struct_fields__) == {"kind", "start", "stop"}


def test_flags_are_sorted_and_named_once() -> None:
    assert flags(find("b@example.com, 219-09-9998, a@example.com")) == ("email", "us_ssn")
    assert flags(()) == ()


def test_every_pattern_runs_in_linear_time_on_re2() -> None:
    assert all(isinstance(d.compiled, re2._Regexp) for d in DETECTORS)
    for path in Path(privacy.__file__).parent.glob("*.py"):
        if path.stem == "escapes":  # possessive, and attacked by tests/hardening: faster than RE2
            continue
        imports = [
            n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Import)
        ]
        assert not {a.name for n in imports for a in n.names} & {"re", "regex"}


@pytest.mark.parametrize("text", ["eyJ-" * 5000, "key:" * 5000, "4-" * 9000, "a@a." * 5000])
def test_a_hostile_text_is_looked_at_once(text: str) -> None:
    looks = 0

    def refuse(data: bytes, start: int, stop: int) -> None:  # noqa: ARG001 - a check's shape
        nonlocal looks
        looks += stop - start

    for detector in DETECTORS:
        looks = 0
        list(Detector(detector.kind, detector.pattern, check=refuse).spans(text.encode()))
        assert looks <= 64 * len(text)


PIECES = st.lists(
    st.one_of(
        st.sampled_from([secret for _, secret in SECRETS + PERSONAL]),
        st.sampled_from([around.format(secret) for _, around, secret in IN_CONTEXT]),
        st.sampled_from(
            [*HARMLESS, "", " ", "-", ".", "/", "@", ":", "=", '"', "\n", "1", "a", "é"]
        ),
        ANYTHING,
    ),
    max_size=8,
)


@given(PIECES)
def test_nothing_is_found_in_what_was_masked(pieces: list[str]) -> None:
    text = "".join(pieces)
    findings = find(text)
    again = find(mask(text, findings))
    assert not set(flags(again)) & set(flags(findings))
