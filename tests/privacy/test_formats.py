"""Every key format of the labelled sample is found and masked; lines that look like one are not."""

from __future__ import annotations

import json
import random
import re

import pytest

from holdfast.privacy import find, flags, mask
from holdfast.privacy.credentials import CREDENTIALS
from tests.privacy.formats import FORMATS, HARMLESS, UNKNOWN, sample, value_of

KINDS = {detector.kind for detector in CREDENTIALS}


@pytest.mark.parametrize("around", ["{}", "2026-01-01 INFO using {} now", "a\n{}\nb"])
@pytest.mark.parametrize(("name", "line"), sample(2))
def test_a_key_of_each_format_is_found(name: str, line: str, around: str) -> None:
    assert KINDS & set(flags(find(around.format(line)))), name
    assert KINDS & set(flags(find(json.dumps({"out": around.format(line)})))), name


@pytest.mark.parametrize("name", [name for name, t in FORMATS.items() if t.count("{") == 1])
def test_nothing_of_a_key_is_left_after_masking(name: str) -> None:
    template = FORMATS[name]
    start, stop = re.split(r"\{\w+\}", template)
    line = value_of(template, random.Random(1))
    value = line[len(start) : len(line) - len(stop)]
    masked = mask(line, find(line))
    assert not any(value[n : n + 6] in masked for n in range(len(value) - 5))


@pytest.mark.parametrize("line", HARMLESS)
def test_a_line_that_looks_like_a_secret_is_none(line: str) -> None:
    assert not KINDS & set(flags(find(line)))


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_key_of_an_unknown_format_is_found_behind_its_name(name: str) -> None:
    value = value_of(UNKNOWN[name], random.Random(1))
    assert KINDS & set(flags(find(f"export SERVICE_API_KEY={value}")))


@pytest.mark.parametrize(
    "password", ["sunflowergarden", "s3cr3t-example-Pa55", "Trustno-example-1!"]
)
def test_passwords_of_letters_and_with_the_word_example_are_found(password: str) -> None:
    assert [f.stop - f.start for f in find(f'password = "{password}"')] == [len(password)]


@pytest.mark.parametrize("part", ["d", "p", "q", "dp", "dq", "qi", "k"])
def test_each_private_part_of_a_json_web_key_is_masked(part: str) -> None:
    value = value_of("{s43}", random.Random(1))
    key = json.dumps({"kty": "RSA", "n": "public-modulus-of-it", part: value})
    for text in (key, json.dumps({"body": key})):
        masked = mask(text, find(text))
        assert value not in masked
        assert "public-modulus-of-it" in masked
    assert not find(json.dumps({"n": 1, part: value}))  # no key
