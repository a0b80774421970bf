"""What escapes hide is found all the same, and masked where it is written."""

from __future__ import annotations

import asyncio
import html
import json
from base64 import b64decode
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Holdfast, Settings
from holdfast.cite import CitingRules, cite
from holdfast.errors import PrivacyError
from holdfast.fitting import FitOptions
from holdfast.privacy import apply, escapes, find, flags, flags_in_json
from tests.fitting.test_citing import chat, in_dialect, log
from tests.privacy.made import run
from tests.support.steps import is_linear
from tests.surfaces.proxy.harness import DIALECTS

SECRETS = {
    "github_token": "ghp_" + run(36),
    "basic_auth_url": "https://admin:s3cretPw9@db.corp.com/x",
    "generic_secret_assignment": "contraseña=Xk9!vbn3qq",
    "email": "ann.lee@corp.com",
}


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(sign):04x}" for sign in text)


def in_json(text: str, levels: int) -> str:
    for _ in range(levels):
        text = json.dumps({"a": text})
    return text


WRITINGS: dict[str, Callable[[str], str]] = {
    "as JSON": lambda secret: in_json(f"line\n{secret}\nend", 1),
    "as JSON in JSON": lambda secret: in_json(f"line\n{secret}\nend", 2),
    "as JSON in JSON in JSON in JSON": lambda secret: in_json(f"line\n{secret}\nend", 4),
    "each sign escaped": escaped,
    "each sign escaped, in large letters": lambda s: escaped(s).upper().replace("\\U", "\\u"),
    "each sign escaped, deep in JSON": lambda secret: in_json('{"v":"' + escaped(secret) + '"}', 5),
    "escapes of escapes": lambda secret: escaped(secret).replace("\\", "\\u005c"),
    "slashes escaped": lambda secret: json.dumps({"v": secret}).replace("/", "\\/"),
    "in the query of an address": lambda s: json.dumps({"v": f"https://x.y/?q={quote(s, '')}"}),
    "encoded twice": lambda secret: f"https://x.y/?q={quote(quote(secret, ''), '')}",
    "in HTML": lambda s: html.escape(s).replace("@", "&#64;").replace(":", "&#x3a;"),
}


@pytest.mark.parametrize("writing", WRITINGS)
@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_found_and_masked_however_it_is_written(kind: str, writing: str) -> None:
    written = WRITINGS[writing](SECRETS[kind])
    text = f"before, {written} and after"
    assert kind in flags_in_json(text.encode())
    findings = find(text)
    assert kind in flags(findings)
    masked = apply("mask", text, findings)
    assert masked.startswith("before, ")
    assert masked.endswith("after")
    assert "masked]" in masked
    assert find(masked) == ()


@pytest.mark.parametrize(
    "escape",
    [
        *(f"&#{number};" for number in (0, 0x10FFFF, 0x110000, 10**9)),
        *(f"&#x{number:x};" for number in (0, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0x10FFFF, 0x110000)),
        *("\\ud800", "\\udfff", "\\u0000"),
    ],
)
def test_an_escape_of_any_number_hides_nothing_behind_it(escape: str) -> None:
    text = f"{escape} {escape} {SECRETS['github_token']}"
    assert "github_token" in flags(find(text))
    assert "github_token" in flags_in_json(json.dumps(text).encode())


def test_a_name_of_a_password_may_be_written_with_a_combining_sign() -> None:
    assert flags(find("contrasen\u0303a=Xk9!vbn3qq")) == ("generic_secret_assignment",)


@pytest.mark.parametrize("writing", WRITINGS)
def test_a_result_with_a_hidden_secret_is_refused(writing: str) -> None:
    result = log(60, 1) + WRITINGS[writing](SECRETS["generic_secret_assignment"])
    rules = CitingRules(privacy="refuse", threshold=100)
    with pytest.raises(PrivacyError, match="generic_secret_assignment"):
        cite(result, rules=rules)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_hidden_secret_neither_folds_nor_enters_the_store(dialect: str) -> None:
    """In the arguments of a call and in its result, as the client writes them: in ASCII."""
    secret = '{"contraseña": "Xk9!vbn3qq"}'

    async def work() -> None:
        results = [log(25, n) + (secret if n == 1 else "") for n in range(10)]
        body = json.dumps(json.loads(in_dialect(chat(*results), dialect))).encode()
        assert b"contrase\\\\u00f1a" in body or b"contrase\\u00f1a" in body
        rules = CitingRules(privacy="refuse", threshold=100)
        options = FitOptions(dialect=dialect, limit=2_400, rules=rules)
        async with Holdfast.open("memory:", settings=Settings(privacy_policy="refuse")) as engine:
            session = engine.session("s")
            fitted = await session.fit(body, options)
            await engine.observe(session, fitted)
            assert b"Xk9!vbn3qq" in fitted.body
            assert any(edit.action in ("fold", "cite") for edit in fitted.edits)
            async for line in engine.store.export(engine.scope):
                assert b"Xk9!vbn3qq" not in line
                assert not any("Xk9!vbn3qq" in text for text in _texts(json.loads(line)))

    asyncio.run(work())


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [text for inner in value for text in _texts(inner)]
    try:
        return [b64decode(value, validate=True).decode("utf-8", "replace")]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []


PIECES = st.sampled_from(
    ["\\", "\\u0040", "\\u00", "%40", "%C3", "%", "&#64;", "&#x3a;", "&quot;", "&", "ann", "@", "é",
     "corp.com", " ", "\\n", '"', "\\ud83d", "😀", "password=", "Xk9!vbn3qq", "%25", "\ud800"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
def test_places_are_those_of_the_text_as_it_is_written(text: str) -> None:
    findings = find(text)
    ends = [0, *(place for finding in findings for place in (finding.start, finding.stop))]
    assert ends == sorted(ends)
    assert ends[-1] <= len(text)
    assert all(finding.stop > finding.start for finding in findings)


ATTACKS = (
    "\\",
    "\\u",
    "\\u005c",
    "%25",
    "%",
    "&#",
    "&#38;",
    "&#38;#",
    "\\n@",
    "a%40b.c ",
    "\\u0040",
)


@pytest.mark.parametrize("pump", ATTACKS)
def test_work_grows_no_faster_than_the_text(pump: str) -> None:
    def work(size: int) -> Callable[[], object]:
        text = pump * (size // len(pump))
        return lambda: find(text)

    assert is_linear(work, 10_000)


SIGNS = st.sampled_from(
    [
        b"\\",
        b"\\u0040",
        b"\\n",
        b"%40",
        b"%25",
        b"&amp;",
        b"&#64;",
        b"a",
        b"words of a line, ",
        b"u00",
    ]
)


@given(st.lists(SIGNS, max_size=60).map(b"".join))
def test_readings_in_pieces_are_the_forms_of_the_whole(data: bytes) -> None:
    forms = [data, *(plain.data for plain in escapes.plain_forms(data))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(escapes, "_PIECE", 5)
        assert list(escapes.unescaped_forms(data)) == forms
