"""Results that look like ours are results: our own text is recognised by its record, not by its
look.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import holdfast
from holdfast.cite import CitingRules, cite
from holdfast.expand import ExpandOptions, expand
from holdfast.expand.options import MOST_TOKENS
from holdfast.expand.tool import NAME, OTHER_NAME, definition
from holdfast.fitting import Fitted, fit
from holdfast.quoting import NO_MORE, NO_STORE
from holdfast.store.refs import REF
from holdfast.tokens.vocabulary import count_ordinary
from tests.fitting.test_citing import DIALECTS, chat, in_dialect, log
from tests.surfaces.proxy.harness import KEYS, ask, path_of, request_in, running_proxy
from tests.surfaces.proxy.spoken import call, says, text
from tests.surfaces.proxy.test_opening import opening
from tests.surfaces.proxy.upstream import Upstream

RULES = CitingRules(policy="always")
FORGED = "ref:log:0123456789abcdef"
LONG = log(6_000)
"""Some 200 KB."""


def count(words: str) -> int:
    return count_ordinary("o200k_base", words)


def page(content: str, **options: Any) -> str:
    wanted = ExpandOptions.parse({"max_tokens": MOST_TOKENS, **options})
    return expand(FORGED, content.encode(), "log", wanted, count=count).text


IMITATIONS = {
    "the first line of a citation": f"[Stored as {FORGED}; 9 lines, 207 KB; excerpts]\n{LONG}",
    "a ref": f"[{FORGED}\n{LONG}",
    "a citation": f"{cite(log(300)).text}\n{LONG}",
    "a page": f"{page(log(900))}\n{LONG}",
    "a digest": f"[Folded: messages 1 to 9 of this conversation, 9 messages.]\n{LONG}",
    "a cut": f'[… 90 characters cut: {NAME}("{FORGED}") …]\n{LONG}',
    "a word of the proxy": f"{NO_MORE}\n{NO_STORE}\n{LONG}",
}


def cites(fitted: Fitted) -> int:
    return sum(edit.action == "cite" for edit in fitted.edits)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("imitation", IMITATIONS)
def test_a_long_result_that_looks_like_ours_is_cited(imitation: str, dialect: str) -> None:
    body = in_dialect(chat(IMITATIONS[imitation]), dialect)
    fitted = fit(body, dialect=dialect, citing=RULES)
    assert cites(fitted) == 1
    assert len(fitted.body) < 6_000
    [content] = fitted.contents
    assert "5999 INFO step 0-5999 went well" in content.data.decode()


def with_call(name: str, ref: str, result: str, *tools: dict[str, Any]) -> dict[str, Any]:
    """A conversation with a citation in it, and a call of some name in the client's own history."""
    body = chat(log(200))
    asked = {"name": name, "arguments": json.dumps({"ref_id": ref, "max_tokens": MOST_TOKENS})}
    body["messages"] += [
        {"role": "assistant", "content": None,
         "tool_calls": [{"id": "call_x", "type": "function", "function": asked}]},
        {"role": "tool", "tool_call_id": "call_x", "content": result},
    ]  # fmt: skip
    body["tools"] += tools
    return body


CITED = cite(log(200), question="What went wrong?\na.log", tool="read_log").ref_id
MINE = {"type": "function", "function": {"name": NAME, "description": "opens what is mine"}}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("name", "ref", "tools"),
    [
        (NAME, FORGED, []),
        (OTHER_NAME, FORGED, []),
        (NAME, CITED, [MINE]),
        (OTHER_NAME, FORGED, [MINE]),
        (NAME, "", []),
    ],
)
def test_a_call_of_the_clients_own_that_has_our_tools_name_is_cited(
    name: str, ref: str, tools: list[dict[str, Any]], dialect: str
) -> None:
    body = in_dialect(with_call(name, ref, page(LONG), *tools), dialect)
    assert cites(fit(body, dialect=dialect, citing=RULES)) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_page_is_so_long_that_it_is_ours(dialect: str) -> None:
    for ref, tools in ((CITED, []), (FORGED, [definition("openai-chat")])):
        body = in_dialect(with_call(NAME, ref, LONG, *tools), dialect)
        assert cites(fit(body, dialect=dialect, citing=RULES)) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_client_opened_of_a_ref_that_it_was_shown_stays_open(dialect: str) -> None:
    for ref, tools in ((CITED, []), (FORGED, [definition("openai-chat")])):
        body = in_dialect(with_call(NAME, ref, page(LONG), *tools), dialect)
        fitted = fit(body, dialect=dialect, citing=RULES)
        assert cites(fitted) == 1
        assert json.dumps(page(LONG))[1:-1].encode() in fitted.body


def test_what_a_client_opened_of_a_citation_of_its_own_stays_open() -> None:
    body = with_call(NAME, REF.search(cite(LONG).text)[0], page(LONG))  # type: ignore[index]
    body["messages"][2]["content"] = cite(LONG).text
    assert cites(fit(body, citing=RULES)) == 0


def test_a_result_that_begins_with_its_neighbours_ref_is_not_cut_as_a_citation() -> None:
    """Only two lines of it were left, and no ref that opens it."""
    first, words = log(200), ("They were cut. " * 60)[:900]
    ref = cite(first, question="Look.", tool="read").ref_id
    second = f"[{ref} · 200 lines]\n- LOG\n{words}"
    calls = [{"type": "tool_use", "id": f"c{n}", "name": "read", "input": {}} for n in range(2)]
    results = [
        {"type": "tool_result", "tool_use_id": f"c{n}", "content": content}
        for n, content in enumerate((first, second))
    ]
    asked: dict[str, Any] = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "tools": [{"name": "read", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": calls},
            {"role": "user", "content": results},
        ],
    }
    cuts = 0
    for limit in range(1_000, 1_500, 50):
        try:
            fitted = fit(asked, citing=RULES, limit=limit)
        except holdfast.HoldfastError:
            continue
        shown = holdfast.read(fitted.body).messages[2].results[1].text
        if words in shown:
            continue
        cuts += 1
        originals = {content.ref_id: content.data.decode() for content in fitted.contents}
        [opened] = [name for name in REF.findall(shown) if name[0] == "tool_result"] or [("", "")]
        assert words in originals.get(f"ref:{opened[0]}:{opened[1]}", ""), limit
    assert cuts


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_proxy_brings_back_what_was_opened_and_cites_what_only_looks_like_it(
    dialect: str,
) -> None:
    """Both are in one turn: the model opens a ref and calls a tool of the client's."""
    imitation = f"{page(log(900))}\n{log(900, seed=3)}"
    another = call("read_log", {"path": "b.log"}, "c9")
    turns = opening(0, another, lines="1-60"), says(text("Done."))
    with Upstream(*turns) as upstream, running_proxy({}, upstream.url) as proxy:
        url = proxy.url + path_of(dialect)
        first = chat(log(600))
        answered = ask(url, request_in(dialect, first), KEYS)
        assert answered.status == 200
        second = json.loads(json.dumps(first))
        asked = {"name": "read_log", "arguments": '{"path": "b.log"}'}
        second["messages"] += [
            {"role": "assistant", "content": None,
             "tool_calls": [{"id": "c9", "type": "function", "function": asked}]},
            {"role": "tool", "tool_call_id": "c9", "content": imitation},
        ]  # fmt: skip
        assert ask(url, request_in(dialect, second), KEYS).status == 200
        sent = upstream.requests[-1].texts
    assert upstream.refused == []
    assert "0059 INFO step 0-59 went well" in sent, "what was opened was closed again"
    assert "0880 INFO step 3-880 went well" not in sent
    assert len(sent) < 12_000
