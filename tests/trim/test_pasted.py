"""A document and a question in one message of the user: what does not fit is cited for it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import holdfast
from holdfast import Holdfast
from holdfast.cite import CitingRules
from holdfast.fitting import FitOptions, Fitted, fit_request
from tests.fitting.test_citing import DIALECTS, in_dialect, refs_in, tool_names
from tests.trim.test_long_texts import texts

LIMIT = 3_000
CLAUSES = [f"Clause {n}. The keeper of lighthouse {n} is paid {n * 7} coins." for n in range(600)]
DOCUMENT = "\n\n".join(CLAUSES)
ASKED = "How many coins is the keeper of lighthouse 333 paid?"
TOLD = "You are reading a contract. Answer with a number."
OPTIONS = FitOptions(cites=True, opens=True, limit=LIMIT)


def message(*parts: str) -> dict[str, Any]:
    content: Any = [{"type": "text", "text": part} for part in parts]
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": content}]}


ONE_TEXT = f"{TOLD}\n\n{DOCUMENT}\n\n{ASKED}"
BODIES = {
    "a string": {"model": "gpt-4o", "messages": [{"role": "user", "content": ONE_TEXT}]},
    "one part": message(ONE_TEXT),
    "several parts": message(TOLD, DOCUMENT, ASKED),
    "a fence": message(f"{ASKED}\n\n```\n{DOCUMENT}\n```\n{TOLD}"),
    "a tag": message(f"<contract>\n{DOCUMENT}\n</contract>\n\n{ASKED} {TOLD}"),
}


def fitted(body: bytes, dialect: str, **changes: Any) -> Fitted:
    options = FitOptions(**{"cites": True, "opens": True, "limit": LIMIT} | changes)
    return fit_request(holdfast.read(body, dialect), options)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("shape", BODIES)
def test_the_document_is_cited_for_the_question_which_stays(shape: str, dialect: str) -> None:
    body = in_dialect(BODIES[shape], dialect)
    turn = fitted(body, dialect)
    assert turn.tokens <= LIMIT
    assert holdfast.validate(turn.body, dialect) == []
    shown = "\n".join(texts(turn.body, dialect))
    assert ASKED in shown
    assert TOLD in shown
    assert CLAUSES[333] in shown  # the subject of the question
    [edit] = [edit for edit in turn.edits if edit.action == "cite"]
    assert edit.what == "cited a document in a user's message"
    [content] = turn.contents
    assert content.data.decode() in json.dumps(json.loads(body), ensure_ascii=False).replace(
        "\\n", "\n"
    )
    assert {content.ref_id} == {edit.ref_id} == set(refs_in(turn.body))
    assert tool_names(turn.body, dialect) == ["expand_ref"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_is_rebuilt_exactly_and_sent_the_same_next_time(dialect: str) -> None:
    first = BODIES["several parts"]
    answer = {"role": "assistant", "content": "2331"}
    more = [*first["messages"], answer, {"role": "user", "content": "Thanks."}]
    bodies = [in_dialect(first, dialect), in_dialect({**first, "messages": more}, dialect)]

    async def main() -> list[Fitted]:
        async with Holdfast.open("memory:") as engine:
            session = engine.session("s")
            requests = []
            for body in bodies:
                request = await session.fit(holdfast.read(body, dialect), limit=LIMIT)
                await engine.observe(session, request)
                requests.append(request)
            assert [await session.rebuild(n) for n in (1, 2)] == bodies
            return requests

    before, after = asyncio.run(main())
    shown = texts(before.body, dialect)
    assert texts(after.body, dialect)[: len(shown)] == shown


def test_what_fits_is_not_cited() -> None:
    body = in_dialect(BODIES["a string"], "openai-chat")
    assert fitted(body, "openai-chat", limit=40_000).body == body


def test_without_citations_the_middle_of_the_document_goes_and_the_question_stays() -> None:
    body = in_dialect(BODIES["a string"], "openai-chat")
    turn = fitted(body, "openai-chat", cites=False)
    [text] = texts(turn.body)
    assert text.startswith(TOLD)
    assert text.endswith(ASKED)
    assert turn.tokens <= LIMIT


def test_what_may_not_be_stored_stays() -> None:
    secret = "AKIA" + "IOSFODNN7EXAMPLE"
    value = message(f"{DOCUMENT}\n\nkey {secret}\n\n{DOCUMENT}", ASKED)
    with pytest.raises(holdfast.HoldfastError, match="must be kept"):
        fitted(json.dumps(value).encode(), "openai-chat", rules=CitingRules(privacy="refuse"))


def test_a_file_in_an_earlier_message_is_cited_for_what_is_asked_last() -> None:
    messages = [
        {"role": "user", "content": f"These are the files.\n\n{DOCUMENT}"},
        {"role": "assistant", "content": "Ok."},
        {"role": "user", "content": ASKED},
    ]
    turn = fitted(json.dumps({"model": "gpt-4o", "messages": messages}).encode(), "openai-chat")
    assert CLAUSES[333] in texts(turn.body)[0]
