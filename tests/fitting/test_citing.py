"""Fit with citations: long results are cited on arrival, the same every time, and can be opened."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.cite import CitingRules
from holdfast.expand.tool import NAME, OTHER_NAME, definition
from holdfast.fitting import FitState, cite_results, fit, unfold

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
RULES = CitingRules(policy="always")


def log(lines: int, seed: int = 0) -> str:
    return "\n".join(f"{n:04} INFO step {seed}-{n} went well" for n in range(lines))


def chat(*results: str, question: str = "What went wrong?", **extra: Any) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for n, result in enumerate(results):
        call = {"id": f"call_{n}", "type": "function",
                "function": {"name": "read_log", "arguments": '{"path": "a.log"}'}}  # fmt: skip
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{n}", "content": result})
    tool = {"type": "function", "function": {"name": "read_log", "parameters": {"type": "object"}}}
    return {"model": "gpt-4o", "messages": messages, "tools": [tool], **extra}


def in_dialect(body: dict[str, Any], dialect: str) -> bytes:
    made = json.dumps(body).encode()
    return made if dialect == "openai-chat" else holdfast.convert(made, dialect).body


def tool_names(body: bytes, dialect: str) -> list[str]:
    return [tool.name for tool in holdfast.read(body, dialect).tools]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_long_result_is_cited_and_its_original_handed_over(dialect: str) -> None:
    body = in_dialect(chat(log(200), "short"), dialect)
    fitted = fit(body, dialect=dialect, citing=RULES)
    assert holdfast.validate(fitted.body, dialect) == []
    [content] = fitted.contents
    assert content.data.decode() in {log(200), json.dumps({"result": log(200)})} or (
        log(200) in json.loads(content.data)["result"]
    )
    sent = holdfast.read(fitted.body, dialect)
    texts = [result.text for message in sent.messages for result in message.results]
    assert content.ref_id in texts[0]
    assert "short" in texts[1]
    assert tool_names(fitted.body, dialect) == ["read_log", NAME]
    assert fitted.edits[0].ref_id == content.ref_id
    assert fitted.tokens == holdfast.count(fitted.body, dialect=dialect).tokens
    assert fitted.tokens < holdfast.count(body, dialect=dialect).tokens / 3
    assert fitted.warnings == ()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_large_result_is_cited_from_its_bytes_as_a_small_one_from_its_text(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = in_dialect(chat(log(60) + '\n\t"\\ \u00e9 \u6f22 \U0001f600', log(50)), dialect)
    small = fit(body, dialect=dialect, limit=10**6, citing=RULES)
    monkeypatch.setattr(cite_results, "_LARGE", 0)
    large = fit(body, dialect=dialect, limit=10**6, citing=RULES)
    assert large.body == small.body
    assert large.contents == small.contents
    assert len(large.contents) == 2


def test_without_a_long_result_no_message_changes() -> None:
    body = in_dialect(chat("short", "x" * 1000), "openai-chat")
    fitted = fit(body, citing=RULES)
    assert json.loads(fitted.body)["messages"] == json.loads(body)["messages"]
    assert [edit.action for edit in fitted.edits] == ["offer"]
    assert fitted.contents == ()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_turn_by_turn_and_at_once_give_the_same_bytes(dialect: str) -> None:
    results = [log(60, seed) for seed in range(6)]
    state: FitState | None = None
    for n in range(1, 7):
        body = in_dialect(chat(*results[:n]), dialect)
        fitted = fit(body, dialect=dialect, citing=RULES, state=state, limit=100_000)
        state = fitted.state
        assert fitted.body == fit(body, dialect=dialect, citing=RULES, limit=100_000).body
        assert len(fitted.contents) == 1  # the others were handed over before


def test_expansions_are_not_cited_again() -> None:
    body = chat(log(200))
    [cited] = fit(body, citing=RULES).contents
    asked = {"name": NAME, "arguments": json.dumps({"ref_id": cited.ref_id})}
    opened = {"id": "call_x", "type": "function", "function": asked}
    body["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [opened]},
        {"role": "tool", "tool_call_id": "call_x", "content": log(100, seed=9)},
    ]
    fitted = fit(body, citing=RULES)
    assert len(fitted.contents) == 1
    assert log(100, seed=9) in holdfast.read(fitted.body).messages[-1].results[0].text


def test_what_a_tool_has_cited_itself_stays_and_can_be_opened() -> None:
    cited = holdfast.cite(log(300)).text
    fitted = fit(chat(cited), citing=RULES)
    assert fitted.contents == ()
    assert tool_names(fitted.body, "openai-chat") == ["read_log", NAME]


def test_a_tool_of_the_client_with_the_same_name_keeps_it() -> None:
    body = chat(log(200))
    body["tools"].append({"type": "function", "function": {"name": NAME, "description": "mine"}})
    assert tool_names(fit(body, citing=RULES).body, "openai-chat") == ["read_log", NAME, OTHER_NAME]


def test_a_client_that_offers_our_tool_is_not_offered_it_twice() -> None:
    body = chat(log(200))
    body["tools"].append(definition("openai-chat"))
    assert tool_names(fit(body, citing=RULES).body, "openai-chat") == ["read_log", NAME]


def test_errors_stay_and_logs_of_failures_are_cited() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "run", "input": {}}
    for size, cited in ((3_000, 0), (30_000, 1)):
        text = ("Traceback: it failed badly. " * 2000)[:size]
        result = {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": text}
        body = {
            "model": "claude-sonnet-4-5",
            "max_tokens": 100,
            "messages": [
                {"role": "user", "content": "Run it."},
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [result]},
            ],
        }
        assert len(fit(body, citing=RULES).contents) == cited


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"


def test_an_image_in_a_result_stays_beside_the_citation() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    content = [{"type": "text", "text": log(200)}, image]
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant",
             "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
            {"role": "user",
             "content": [{"type": "tool_result", "tool_use_id": "c1", "content": content}]},
        ],
    }  # fmt: skip
    fitted = fit(body, citing=RULES)
    parts = json.loads(fitted.body)["messages"][-1]["content"][0]["content"]
    assert parts[1] == image
    assert fitted.contents[0].ref_id in parts[0]["text"].partition("\n")[0]
    assert fitted.contents[0].data.decode() == log(200)


def looking(turns: int) -> dict[str, Any]:
    """An agent whose tool answers with a long text, an image and a short text, marked last."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look."}]
    for n in range(turns):
        parts = [{"type": "text", "text": log(200, n)}, image, {"type": "text", "text": "end"}]
        use = {"type": "tool_use", "id": f"c{n}", "name": "look", "input": {}}
        messages.append({"role": "assistant", "content": [use]})
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": parts}
        messages.append({"role": "user", "content": [result]})
    messages[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": messages}


def test_an_image_stays_when_cache_marks_move() -> None:
    first = fit(looking(1), citing=RULES)
    second = fit(looking(2), citing=RULES, state=first.state)
    assert second.body == fit(looking(2), citing=RULES).body
    assert second.body.count(PNG.encode()) == 2


def test_an_image_stays_where_the_text_beside_it_is_cut() -> None:
    fitted = fit(looking(6), citing=RULES, limit=1_925, strategy="progressive")
    assert any("cut" in cut.what for cut in fitted.edits)
    shown = json.loads(fitted.body)["messages"]
    results = [part for m in shown[1:] for part in m["content"] if part["type"] == "tool_result"]
    assert results
    for result in results:
        assert [part["type"] for part in result["content"]] == ["text", "image", "text"]


def test_what_is_cut_twice_leads_to_the_original() -> None:
    results = [f"result {n}: " + "word " * 180 for n in range(30)]
    state: FitState | None = None
    handed: dict[str, bytes] = {}
    named: set[str] = set()
    for n in range(1, 31):
        how = "progressive" if n % 2 else "auto"
        fitted = fit(chat(*results[:n]), citing=RULES, state=state, limit=2_815, strategy=how)
        state = fitted.state
        handed |= {content.ref_id: content.data for content in fitted.contents}
        named |= {cut.ref_id for cut in fitted.edits} - {""}
    cuts = {data.decode() for ref, data in handed.items() if "tool_result" in ref}
    assert cuts
    assert cuts <= set(results)
    assert named <= handed.keys()  # a report names nothing that cannot be opened


def test_what_was_unfolded_is_sent_whole() -> None:
    results = ["word " * 190 for _ in range(12)]
    folded = fit(chat(*results), citing=RULES, limit=2_000, strategy="fold")
    state = folded.state
    assert refs_in(folded.body)
    for made in folded.state.folds:
        state = unfold(state, made)
    whole = in_dialect(chat(*results, "short"), "openai-chat")
    again = fit(whole, citing=RULES, state=state, limit=100_000)
    assert json.loads(again.body)["messages"] == json.loads(whole)["messages"]


def test_without_citing_no_ref_is_shown_that_was_made_before() -> None:
    state = fit(chat(log(200)), citing=RULES).state
    fitted = fit(chat(log(200), "short"), state=state)
    assert refs_in(fitted.body) == []
    assert tool_names(fitted.body, "openai-chat") == ["read_log"]


def marked(body: dict[str, Any], *places: int) -> dict[str, Any]:
    """The request with cache marks on some messages, as clients of Anthropic move them."""
    made: dict[str, Any] = json.loads(json.dumps(body))
    for place in places:
        made["messages"][place]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return made


def test_moved_cache_marks_change_nothing_that_was_decided() -> None:
    results = [log(60, seed) for seed in range(5)]
    state: FitState | None = None
    before: list[str] = []
    for n in range(1, 6):
        plain = json.loads(in_dialect(chat(*results[:n]), "anthropic"))
        for message in plain["messages"]:
            if isinstance(message["content"], str):
                message["content"] = [{"type": "text", "text": message["content"]}]
        body = marked(plain, -1, *([-3] if n > 1 else []))
        fitted = fit(body, citing=RULES, state=state, limit=2_000)
        assert holdfast.validate(fitted.body) == []
        assert fitted.body.count(b"cache_control") <= 2
        state = fitted.state
        now = [json.dumps(unmarked(m)) for m in json.loads(fitted.body)["messages"]]
        if not any("folded" in cut.what for cut in fitted.edits):
            assert now[: len(before)] == before
        before = now
    assert fitted.tokens <= 2_000
    fresh = fit(body, citing=RULES, limit=100_000)
    assert fresh.body.count(b"cache_control") == 2


def unmarked(message: dict[str, Any]) -> dict[str, Any]:
    for part in message["content"]:
        part.pop("cache_control", None)
    return message


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 120), min_size=1, max_size=8),
    dialect=st.sampled_from(DIALECTS),
    share=st.floats(0.3, 1.2),
)
def test_it_fits_is_valid_and_every_ref_was_handed_over(
    sizes: list[int], dialect: str, share: float
) -> None:
    handed: set[str] = set()
    state: FitState | None = None
    limit = max(900, round(share * 200 * len(sizes)))
    for n in range(1, len(sizes) + 1):
        body = in_dialect(chat(*(log(s, seed=k) for k, s in enumerate(sizes[:n]))), dialect)
        fitted = fit(body, dialect=dialect, citing=RULES, state=state, limit=limit)
        state = fitted.state
        handed |= {content.ref_id for content in fitted.contents}
        assert holdfast.validate(fitted.body, dialect) == []
        assert holdfast.count(fitted.body, dialect=dialect).tokens == fitted.tokens <= limit
        shown = set(refs_in(fitted.body))
        assert shown <= handed
        assert NAME in tool_names(fitted.body, dialect) or not shown


def refs_in(body: bytes) -> list[str]:
    from holdfast.store.refs import REF  # noqa: PLC0415

    conversation = holdfast.read(body)
    texts = [
        block.text for m in conversation.messages for block in m.blocks if hasattr(block, "text")
    ]
    return [found[0] for text in texts for found in REF.finditer(text)]


def test_a_result_is_cited_for_what_its_own_call_asks_where_calls_have_no_ids() -> None:
    """Gemini's calls and results may have names only, with several in a row."""
    steps = {"read_log": "step 0-137", "list_jobs": "step 0-242"}
    calls = [{"functionCall": {"name": n, "args": {"about": a}}} for n, a in steps.items()]
    answers = [{"name": name, "response": {"result": log(400)}} for name in steps]
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "Please look."}]},
            {"role": "model", "parts": calls},
            {"role": "user", "parts": [{"functionResponse": answer} for answer in answers]},
        ]
    }
    fitted = fit(json.dumps(body).encode(), dialect="gemini", model="gemini-2.5-pro", citing=RULES)
    cited = holdfast.read(fitted.body, "gemini").messages[-1].results
    shown = {
        result.name: [s for s in steps.values() if f"{s} went" in result.text] for result in cited
    }
    assert shown == {name: [step] for name, step in steps.items()}
