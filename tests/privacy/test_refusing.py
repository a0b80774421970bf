"""privacy_policy=refuse: content that may not be stored stays in the request and out of the store.

Secrets are where tools print them: at the start of a line, which in the JSON of a request follows
the two characters of an escape, or with escaped characters.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import Holdfast, Settings
from holdfast.cite import CitingRules
from holdfast.errors import DamagedContentError, HoldfastError
from holdfast.fitting import FitOptions, fit_request
from holdfast.privacy import flags_in_json
from holdfast.store import Scope
from tests.fitting.test_citing import chat, in_dialect, log
from tests.privacy.made import PERSONAL, SECRETS, run
from tests.surfaces.proxy.harness import DIALECTS

TOKEN = "ghp_" + run(36)
LEAKS = {
    "at the start of a line": f"export A=1\n{TOKEN}\nexport B=2",
    "behind a tab": f"token\t{TOKEN}",
    "behind a Chinese sign": f"密码{TOKEN}。",
    "in quotes": f'token "{TOKEN}"',
}


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("leak", LEAKS.values(), ids=list(LEAKS))
def test_a_secret_is_seen_through_the_escapes_of_json(leak: str, ascii_only: bool) -> None:
    once = json.dumps({"role": "tool", "content": leak}, ensure_ascii=ascii_only)
    twice = json.dumps({"arguments": once}, ensure_ascii=ascii_only)
    for written in (once, twice):
        assert "github_token" in flags_in_json(written.encode())


def test_signs_of_a_datum_may_be_escaped_themselves() -> None:
    assert flags_in_json(rb'{"content": "ann.lee\u0040corp.com"}') == ("email",)
    assert flags_in_json(rb'{"arguments": "{\"to\": \"ann.lee\\u0040corp.com\"}"}') == ("email",)


@pytest.mark.parametrize(("kind", "secret"), [*SECRETS, *PERSONAL])
def test_each_kind_is_seen_at_the_start_of_a_line(kind: str, secret: str) -> None:
    assert kind in flags_in_json(json.dumps({"content": f"first\n{secret}\nlast"}).encode())


# --- it does not leave ---------------------------------------------------------------------------


def leaking(dialect: str, place: int, turns: int = 12) -> bytes:
    results = [f"{log(25, n)}\n" + (LEAKS["at the start of a line"] if n == place else "")
               for n in range(turns)]  # fmt: skip
    return in_dialect(chat(*results), dialect)


async def all_stored(engine: Holdfast, scope: Scope) -> bytes:
    """All that the store holds: contents, messages, and the turns themselves."""
    pieces = []
    async for line in engine.store.export(scope):
        pieces += [line, *_decoded(json.loads(line))]
    return b"\n".join(pieces)


def _decoded(value: Any) -> Iterator[bytes]:
    """The bytes that are written as base64 anywhere in a line."""
    if isinstance(value, dict):
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from _decoded(inner)
    if isinstance(value, str):
        try:
            yield b64decode(value, validate=True)
        except ValueError:
            return


@pytest.mark.parametrize("cites", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_may_not_be_stored_is_not_folded_and_not_cited(dialect: str, cites: bool) -> None:
    async def work() -> None:
        options = FitOptions(
            dialect=dialect,
            limit=2_600,
            cites=cites,
            opens=True,
            rules=CitingRules(privacy="refuse", threshold=100),
        )
        async with Holdfast.open("memory:", settings=Settings(privacy_policy="refuse")) as engine:
            session = engine.session("s")
            for turns in (4, 8, 12):
                body = leaking(dialect, 1, turns)
                fitted = await session.fit(body, options)
                assert TOKEN.encode() in fitted.body
                await engine.observe(session, fitted)
            assert any(edit.action in ("fold", "cite") for edit in fitted.edits)
            stored = await all_stored(engine, engine.scope)
            assert b"step" in stored, "the rest may be stored"
            assert TOKEN.encode() not in stored
            with pytest.raises(DamagedContentError, match="cannot be rebuilt"):
                await session.rebuild(1)

    asyncio.run(work())


def test_options_of_one_call_keep_its_secrets_out_of_the_store() -> None:
    async def work() -> None:
        async with Holdfast.open("memory:") as engine:
            session = engine.session("s")
            options = FitOptions(rules=CitingRules(privacy="refuse"))
            await engine.observe(session, await session.fit(leaking("openai-chat", 1, 3), options))
            assert TOKEN.encode() not in await all_stored(engine, engine.scope)

    asyncio.run(work())


BROKEN = {
    "openai-chat": {"role": "tool", "tool_call_id": "lost", "content": LEAKS["behind a tab"]},
    "openai-responses": {
        "type": "function_call_output", "call_id": "lost", "output": LEAKS["behind a tab"]
    },
    "anthropic": {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "lost", "content": LEAKS["behind a tab"]}
        ],
    },
    "gemini": {
        "role": "user",
        "parts": [
            {"functionResponse": {
                "name": "lost", "response": {"result": LEAKS["behind a tab"]}}}
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_repair_takes_nothing_out_that_may_not_be_stored(dialect: str) -> None:
    """The provider then reports the error, which is better than a loss without a trace."""
    key = {"openai-responses": "input", "gemini": "contents"}.get(dialect, "messages")
    body = json.loads(in_dialect(chat("fine", question="Hello?"), dialect))
    body[key].insert(1, BROKEN[dialect])
    for rules, leaves in ((CitingRules(privacy="refuse"), False), (CitingRules(), True)):
        fitted = fit_request(json.dumps(body).encode(), FitOptions(dialect=dialect, rules=rules))
        assert (TOKEN.encode() not in fitted.body) == leaves
        assert bool(fitted.contents) == leaves


def test_a_repair_that_loses_nothing_is_made_though_a_secret_stands_beside_it() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "fine"}
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "text", "text": TOKEN}, result]},
        ],
    }
    options = FitOptions(dialect="anthropic", rules=CitingRules(privacy="refuse"))
    fitted = fit_request(json.dumps(body).encode(), options)
    sent = json.loads(fitted.body)["messages"][2]["content"]
    assert [part["type"] for part in sent] == ["tool_result", "text"]
    assert [edit.action for edit in fitted.edits] == ["repair"]


def test_withheld_tools_do_not_bring_a_secret_into_the_store() -> None:
    async def work() -> None:
        body = json.loads(in_dialect(chat(*(log(10, n) for n in range(6))), "openai-chat"))
        function = body["tools"][0]["function"]
        function["description"] = f"Reads a log.\n{TOKEN}\n" + "It is a long story. " * 60
        sent_bodies = []
        async with Holdfast.open("memory:", settings=Settings(privacy_policy="refuse")) as engine:
            for limit in range(400, 1_400, 20):
                session = engine.session(f"s{limit}")
                try:
                    fitted = await session.fit(json.dumps(body).encode(), limit=limit)
                except HoldfastError:
                    continue
                sent_bodies.append(fitted.body)
                await engine.observe(session, fitted)
            assert TOKEN.encode() not in await all_stored(engine, engine.scope)
        assert sent_bodies
        assert all(TOKEN.encode() in sent_body for sent_body in sent_bodies)

    asyncio.run(work())


def test_an_error_says_that_something_may_not_be_stored() -> None:
    secret_results = [f"{log(40, n)}\n{TOKEN}" for n in range(8)]
    body = json.dumps(chat(*secret_results)).encode()
    options = FitOptions(limit=2_000, rules=CitingRules(privacy="refuse"), ends=False)
    with pytest.raises(HoldfastError) as failure:
        fit_request(body, options)
    assert "privacy" in str(failure.value)
    assert TOKEN not in str(failure.value)
    assert fit_request(body, FitOptions(limit=2_000)).tokens <= 2_000
