"""The tool as models see it, in every dialect, and their calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

import holdfast
from holdfast.errors import ExpandError, ShapeError
from holdfast.expand import (
    ExpandOptions,
    Slice,
    definition,
    missing,
    note_of,
    parse_call,
    parse_retrieval,
    retrieval_definition,
    retrieve,
    stale_line,
)
from holdfast.expand.excerpts import excerpts_of
from holdfast.expand.retrieval import Request, RetrievalResult
from holdfast.expand.tool import OTHER_NAME, PARAMETERS
from holdfast.store.records import RefInfo, State, Stored
from holdfast.wire import DIALECTS
from tests.expand.made import JSON, LOG, REF, count

BODIES: dict[str, dict[str, Any]] = {
    "openai-chat": {"messages": [{"role": "user", "content": "hi"}]},
    "openai-responses": {"input": [{"role": "user", "content": "hi"}]},
    "anthropic": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "converse": {"messages": [{"role": "user", "content": [{"text": "hi"}]}]},
    "cohere": {"messages": [{"role": "user", "content": "hi"}]},
}


def body_with(dialect: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    listed = {"toolConfig": {"tools": tools}} if dialect == "converse" else {"tools": tools}
    return {"model": "gpt-4o"} | BODIES[dialect] | listed


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("made", [definition, retrieval_definition])
def test_a_request_with_the_tool_is_valid_and_offers_it(dialect: str, made: Any) -> None:
    body = body_with(dialect, [made(dialect), made(dialect, name=OTHER_NAME)])
    conversation = holdfast.read(json.dumps(body).encode(), dialect)
    assert holdfast.validate(holdfast.write(conversation), dialect) == []
    first, second = conversation.tools
    assert second.name == OTHER_NAME
    assert first.description == second.description
    assert first.parameters["required"]
    assert "additionalProperties" not in json.dumps(body)


def test_the_tool_costs_little() -> None:
    without = holdfast.count(body_with("openai-chat", [])).tokens
    with_tool = holdfast.count(body_with("openai-chat", [definition("openai-chat")])).tokens
    assert with_tool - without <= 80


def test_what_a_caller_changes_does_not_reach_the_next() -> None:
    definition("anthropic")["input_schema"]["properties"].clear()
    assert definition("anthropic")["input_schema"] == PARAMETERS


def test_the_tool_has_two_parameters_and_says_what_the_second_takes() -> None:
    assert list(PARAMETERS["properties"]) == ["ref", "find"]
    assert PARAMETERS["required"] == ["ref"]
    for taken in ("words", "question", "lines 40-80", "JSON path", "/pattern/", "page 2"):
        assert taken in PARAMETERS["properties"]["find"]["description"]


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"query": "timeout"}, ExpandOptions(query="timeout")),
        ({"lines": "4-9"}, ExpandOptions(lines=(4, 9))),
        ({"path": "$.a"}, ExpandOptions(path="$.a")),
        ({"fields": ["a"]}, ExpandOptions(fields=("a",))),
        ({"offset": 4, "limit": 2}, ExpandOptions(slice=Slice(4, 2))),
        ({"around": 4}, ExpandOptions(around="4")),
        ({"page": 2}, ExpandOptions(page=2)),
        ({"max_tokens": 200}, ExpandOptions(max_tokens=200)),
    ],
)
def test_options_that_the_tool_no_longer_lists_are_taken(
    given: dict[str, Any], options: ExpandOptions
) -> None:
    """Sessions that began with an earlier version keep its definition."""
    assert parse_call({"ref_id": REF} | given) == (REF, options)


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(ShapeError):
        definition("none")


@pytest.mark.parametrize(
    "arguments",
    [
        {"ref_id": REF, "offset": 3, "limit": 2},
        {"ref_id": f" {REF} ", "slice": {"offset": 3, "limit": 2}, "query": None},
        {"ref_id": REF, "options": {"slice": {"offset": 3, "limit": 2}}},
        {"ref_id": REF, "options": '{"slice": [3, 2]}'},
        {"ref": REF, "offset": 3, "limit": 2},
        {"id": REF, "offset": 3, "limit": 2},
        json.dumps({"ref_id": REF, "offset": "3", "limit": "2"}),
    ],
)
def test_a_call_is_understood(arguments: object) -> None:
    assert parse_call(arguments) == (REF, ExpandOptions(slice=Slice(3, 2)))


@pytest.mark.parametrize(
    "arguments", [None, "", "x", [], {}, {"ref_id": 7}, {"ref_id": " "}, "[" * 9999]
)
def test_a_call_without_a_ref_is_refused(arguments: object) -> None:
    with pytest.raises(ExpandError):
        parse_call(arguments)


# --- misses --------------------------------------------------------------------------------------


def info(state: State = "fresh", **more: Any) -> RefInfo:
    values: dict[str, Any] = {
        "ref_id": REF, "kind": "log", "sha256": "0" * 64, "size": 9, "tokens": 3,
        "summary": "a log",
        "compressed": "", "meta": {"tool": "run"}, "flags": (), "created_at": 0.0,
        "expires_at": None, "accessed_at": None, "accesses": 0, "state": state,
    }  # fmt: skip
    return RefInfo(**(values | more))


@pytest.mark.parametrize(
    ("ref", "known", "reason", "step"),
    [
        (REF, None, "no content is stored", "call the original tool again"),
        ("my file", None, "not a ref", "Copy a ref from this conversation"),
        (REF, info("removed"), "removed", "Call the tool run again"),
        (REF, info("damaged"), "damaged", "Call the tool run again"),
        (REF, info("removed", meta={}), "removed", "Call the original tool again"),
    ],
)
def test_a_ref_that_cannot_be_opened_gives_a_reason_and_a_step(
    ref: str, known: RefInfo | None, reason: str, step: str
) -> None:
    made = missing(ref, known, count=count)
    assert reason in made.reason
    assert reason in made.text
    assert step in made.text
    assert made.tokens == count(made.text)
    assert not made.content


def test_a_stale_ref_says_so() -> None:
    assert stale_line(info("stale")) == "a log [stale - use expand_ref to refresh]"
    assert stale_line(info(), "open_it") == "a log"
    assert stale_line(info("stale"), "open_it") == "a log [stale - use open_it to refresh]"
    assert "call the tool run again" in note_of(info("stale"))
    assert note_of(info()) == ""


# --- Retrieve Stored Content ---------------------------------------------------------------------

META = {"source_type": "web", "url": "https://example.org/a", "content_type": "text/plain"}


def ask(arguments: object) -> Request:
    request = parse_retrieval(arguments)
    assert isinstance(request, Request)
    return request


def answer(arguments: object, data: str, **more: Any) -> dict[str, Any]:
    request, stored = ask(arguments), Stored(info(meta=META), data.encode())
    excerpts = excerpts_of(stored, request.terms) if request.excerpt_only else []
    made = retrieve(request, stored, excerpts, count=count, **more)
    assert (made.success, made.result_code) == (True, "SUCCESS")
    assert count(made.message) <= more.get("max_tokens", 8000)
    result: dict[str, Any] = json.loads(made.message)
    return result


def test_retrieval_needs_an_id() -> None:
    for arguments in ({}, {"ContentID": ""}, {"ContentID": None, "ExcerptOnly": True}):
        made = parse_retrieval(arguments)
        assert isinstance(made, RetrievalResult)
        assert (made.success, made.message) == (False, "ContentID parameter is required")


def test_retrieval_of_an_unknown_id_says_which() -> None:
    made = retrieve(ask({"contentid": "content_1"}), None, count=count)
    assert (made.success, made.message) == (False, "Content not found for ID: content_1")


def test_excerpts_hold_the_terms_with_place_and_relevance() -> None:
    terms = {"ContentID": "content_1", "ExcerptOnly": "true", "SearchTerms": " worker-388 , ERROR"}
    made = answer(terms, LOG)
    assert made["contentId"] == "content_1"
    assert (made["sourceType"], made["sourceUrl"]) == ("web", "https://example.org/a")
    assert made["totalLength"] == len(LOG)
    best = made["excerpts"][0]
    assert "worker-388 " in best["text"]
    assert best["location"] == "lines 388-388"
    assert best["relevance"].startswith("on worker-388")
    assert all(len(one["text"]) <= 500 for one in made["excerpts"])


def test_each_of_many_terms_has_its_best_excerpt() -> None:
    names = [f"worker-{n}" for n in (11, 57, 103, 149, 195, 241, 287)]
    made = answer({"ContentID": "c", "ExcerptOnly": True, "SearchTerms": ",".join(names)}, LOG)
    texts = "\n".join(one["text"] + " " for one in made["excerpts"])
    assert [name for name in names if f"{name} " not in texts] == []


def test_excerpts_without_terms_are_the_beginning() -> None:
    [head] = answer({"ContentID": "c", "ExcerptOnly": True}, LOG)["excerpts"]
    assert head["location"] == "beginning"
    assert LOG.startswith(head["text"].rstrip("…"))
    assert len(head["text"]) <= 500


def test_full_content_comes_with_type_and_metadata() -> None:
    made = answer({"ContentID": "c"}, "short text")
    assert made["content"] == "short text"
    assert made["contentType"] == "text/plain"
    assert made["metadata"] == META
    assert "remaining" not in made


@pytest.mark.parametrize("data", [LOG, JSON, '"\\\n' * 5000, "🦊" * 9000])
@pytest.mark.parametrize("tokens", [300, 2000])
def test_full_content_is_guarded_and_says_what_remains(data: str, tokens: int) -> None:
    made = answer({"ContentID": "c"}, data, max_tokens=tokens)
    assert data.startswith(made["content"])
    assert made["remaining"]
    assert made["next"] == {"ContentID": "c", "Offset": len(made["content"])}


@pytest.mark.parametrize("data", [LOG, JSON, '"\\\n' * 3000, "🦊" * 3000])
@pytest.mark.parametrize("tokens", [300, 2000])
def test_every_next_page_that_is_offered_opens_and_together_they_are_all(
    data: str, tokens: int
) -> None:
    content, arguments = "", {"ContentID": "c"}
    while arguments:
        page = answer(arguments, data, max_tokens=tokens)
        assert page["content"]
        content += page["content"]
        arguments = page.get("next", {})
    assert content == data


@pytest.mark.parametrize("offset", ["many", -3, 2.5, [1]])
def test_an_offset_that_is_none_is_refused(offset: object) -> None:
    refused = parse_retrieval({"ContentID": "c", "Offset": offset})
    assert isinstance(refused, RetrievalResult)
    assert "Offset" in refused.message


def test_an_offset_beyond_the_end_says_how_long_the_content_is() -> None:
    stored = Stored(info(meta=META), b"short text")
    answered = retrieve(ask({"ContentID": "c", "Offset": "10"}), stored, count=count)
    assert not answered.success
    assert "has 10 characters" in answered.message


def test_excerpts_say_why_nothing_matched() -> None:
    terms = {"ContentID": "c", "ExcerptOnly": True, "SearchTerms": "zeppelin, worker-388"}
    assert answer(terms, LOG)["notFound"] == ["zeppelin"]
    nothing = answer(terms | {"SearchTerms": "zeppelin, quagga"}, LOG)
    assert nothing["excerpts"] == []
    assert nothing["reason"] == "none of these terms stands in the content: zeppelin, quagga"
    assert "ExcerptOnly" in nothing["next"]
