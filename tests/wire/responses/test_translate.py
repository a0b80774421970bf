"""An answer of one dialect is an answer of every other: the same words, calls, usage and stop.

Streams are written and read here by `streams`, which shares nothing with the package.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ProviderError, ShapeError
from holdfast.wire.responses import (
    AnswerTranslator,
    read_response,
    translate_error,
    translate_response,
)
from holdfast.wire.responses.translate import BROKEN_OFF
from tests.wire.responses.streams import (
    DIALECTS,
    Part,
    Script,
    Seen,
    chopped,
    events,
    scripts,
    sse,
    understand,
    write,
)

PAIRS = list(permutations(DIALECTS, 2))
STOPS = {  # cut, calls, neither
    "openai-chat": ("length", "tool_calls", "stop"),
    "openai-responses": ("incomplete", "completed", "completed"),
    "anthropic": ("max_tokens", "tool_use", "end_turn"),
    "gemini": ("MAX_TOKENS", "STOP", "STOP"),
}
FULL = Script(
    (
        Part("thinking", ("Let me ", "see."), summarised=True),
        Part("text", ("It is ", "4", "2.")),
        Part("call", ('{"q": ', "1}"), "call_a", "look_up"),
        Part("call", ('{"q"', ": [2]}"), "call_b", "search"),
    ),
    id="abc",
)


def told(script: Script) -> Script:
    """The script with thinking in words: Responses' sealed thinking has none to carry over."""
    parts = (replace(p, summarised=True) if p.kind == "thinking" else p for p in script.parts)
    return replace(script, parts=tuple(parts))


def translate(stream: bytes, speaks: str, to: str, cuts: list[int] | None = None) -> bytes:
    translator = AnswerTranslator(speaks=speaks, to=to, model="m")
    chunks = chopped(stream, cuts or [])
    return b"".join([b"".join(translator.feed(c)) for c in chunks] + translator.close())


def tokens(seen: Seen, dialect: str) -> tuple[int, int, int]:
    """Input with cached tokens, output, and the cached tokens."""
    used = seen.usage
    if dialect == "anthropic":
        cached = used.get("cache_read_input_tokens", 0)
        return used["input_tokens"] + cached, used["output_tokens"], cached
    if dialect == "gemini":
        counts = "promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount"
    elif dialect == "openai-chat":
        counts = "prompt_tokens", "completion_tokens", "prompt_tokens_details"
    else:
        counts = "input_tokens", "output_tokens", "input_tokens_details"
    shown, written, cached = (used[count] for count in counts)
    return shown, written, cached if isinstance(cached, int) else cached["cached_tokens"]


def calls(seen: Seen) -> list[tuple[str, str, Any]]:
    return [(i, name, json.loads(arguments)) for i, name, arguments in seen.calls]


def expected_stop(script: Script, to: str) -> str:
    return STOPS[to][0 if script.cut else 1 if script.calls else 2]


@given(st.sampled_from(PAIRS), scripts())
def test_a_stream_says_the_same_in_every_dialect(pair: tuple[str, str], script: Script) -> None:
    speaks, to = pair
    script = told(script)
    source = b"".join(write(script, speaks))
    seen = understand(translate(source, speaks, to), to)
    assert seen.text == "".join(script.texts)
    assert "".join(seen.thinking) == "".join(p.text for p in script.parts if p.kind == "thinking")
    assert calls(seen) == [(p.id, p.name, json.loads(p.text)) for p in script.calls]
    assert seen.stop == expected_stop(script, to)
    shown = script.input + (script.cached if speaks == "anthropic" else 0)
    shown = max(shown, script.cached) if to == "anthropic" else shown
    assert tokens(seen, to) == (shown, script.output, script.cached)


@given(
    st.sampled_from(PAIRS), scripts(), st.lists(st.integers(min_value=0), max_size=20), st.data()
)
def test_however_a_stream_is_cut_the_bytes_are_the_same(
    pair: tuple[str, str], script: Script, cuts: list[int], data: st.DataObject
) -> None:
    speaks, to = pair
    stream = b"".join(write(told(script), speaks))
    if data.draw(st.booleans()):  # a stream that breaks off, wherever it does
        stream = stream[: data.draw(st.integers(0, len(stream)))]
    assert translate(stream, speaks, to, cuts) == translate(stream, speaks, to)


def whole(script: Script, dialect: str) -> bytes:
    """The script as an answer in one piece, made of the dialect's stream by hand."""
    if dialect == "openai-responses":
        _, last = events(b"".join(write(script, dialect)))[-1]
        return json.dumps(last["response"]).encode()
    values = [value for _, value in events(b"".join(write(script, dialect)))]
    if dialect == "gemini":
        parts = [p for v in values for p in v["candidates"][0]["content"]["parts"]]
        body = values[-1]
        body["candidates"][0]["content"]["parts"] = parts
        return json.dumps(body).encode()
    words = {
        kind: "".join(p.text for p in script.parts if p.kind == kind)
        for kind in ("text", "thinking")
    }
    if dialect == "openai-chat":
        function = [
            {"id": p.id, "type": "function", "function": {"name": p.name, "arguments": p.text}}
            for p in script.calls
        ]
        message = {"role": "assistant", "content": words["text"] or None, "tool_calls": function}
        message["reasoning_content"] = words["thinking"] or None
        choice = {"index": 0, "message": message, "logprobs": None}
        choice["finish_reason"] = values[-3]["choices"][0]["finish_reason"]
        return json.dumps({**values[-2], "choices": [choice]}).encode()
    content = []
    for part in script.parts:
        if part.kind == "call":
            use = {"type": "tool_use", "id": part.id, "name": part.name}
            content.append({**use, "input": json.loads(part.text)})
        elif part.kind == "thinking":
            content.append({"type": "thinking", "thinking": part.text, "signature": "s"})
        else:
            content.append({"type": "text", "text": part.text})
    message = values[0]["message"]
    usage = {**message["usage"], **values[-2]["usage"]}
    return json.dumps(
        {**message, **values[-2]["delta"], "content": content, "usage": usage}
    ).encode()


def thoughts(body: bytes, dialect: str) -> str:
    value = json.loads(body)
    if dialect == "openai-chat":
        return value["choices"][0]["message"].get("reasoning_content") or ""
    if dialect == "anthropic":
        return "".join(b["thinking"] for b in value["content"] if b["type"] == "thinking")
    if dialect == "gemini":
        parts = value["candidates"][0]["content"]["parts"]
        return "".join(part["text"] for part in parts if part.get("thought"))
    items = [item for item in value["output"] if item["type"] == "reasoning"]
    return "".join(part["text"] for item in items for part in item["summary"])


@given(st.sampled_from(PAIRS), scripts())
def test_a_whole_answer_says_what_the_stream_says(pair: tuple[str, str], script: Script) -> None:
    speaks, to = pair
    script = told(script)
    seen = understand(translate(b"".join(write(script, speaks)), speaks, to), to)
    body = translate_response(whole(script, speaks), speaks=speaks, to=to, model="m").body
    answer = read_response(body, to)
    assert "".join(answer.texts) == seen.text
    assert [(c.id, c.name, json.loads(c.arguments)) for c in answer.calls] == calls(seen)
    assert thoughts(body, to) == "".join(seen.thinking)
    assert {"completed": "completed"}.get(seen.stop, seen.stop) == (
        json.loads(body).get("status") or answer.stop_reason
    )
    assert tokens(Seen(usage=answer.usage), to) == tokens(seen, to)


@pytest.mark.parametrize(("speaks", "to"), PAIRS)
def test_nothing_that_both_have_is_lost_there_and_back(speaks: str, to: str) -> None:
    there = translate(b"".join(write(FULL, speaks)), speaks, to)
    back = understand(translate(there, to, speaks), speaks)
    assert back.text == "It is 42."
    assert "".join(back.thinking) == "Let me see."
    assert calls(back) == [("call_a", "look_up", {"q": 1}), ("call_b", "search", {"q": [2]})]
    assert back.stop == STOPS[speaks][1]


# --- what is lost ------------------------------------------------------------------------------


def test_signatures_logprobs_citations_and_strangers_are_named() -> None:
    block = {"type": "text", "text": "Hi", "citations": [{"type": "char_location"}]}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    use = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    message = {"type": "message", "id": "msg_1", "content": [thinking, use, block]}
    message["stop_reason"] = "pause_turn"
    translated = translate_response(
        json.dumps(message).encode(), speaks="anthropic", to="openai-chat", model="m"
    )
    assert translated.lost == (
        "thinking signatures",
        "blocks of type server_tool_use",
        "citations",
        "the stop reason pause_turn",
    )
    choice = {"message": {"content": "Hi"}, "logprobs": {"content": []}, "finish_reason": "stop"}
    other = {"index": 1, "message": {"content": "Ho"}, "finish_reason": "stop"}
    body = json.dumps({"id": "c", "choices": [choice, other]}).encode()
    translated = translate_response(body, speaks="openai-chat", to="gemini", model="m")
    assert translated.lost == ("logprobs", "further choices")


def test_unknown_events_are_skipped_and_named_in_signs_that_a_header_takes() -> None:
    stream = b"".join(
        [
            *write(FULL, "anthropic")[:2],
            sse({"type": "new\r\nx-evil: ☃" + "y" * 100}),
            b"data: {broken\n\n",
            *write(FULL, "anthropic")[2:],
        ]
    )
    translator = AnswerTranslator(speaks="anthropic", to="openai-chat", model="m")
    out = b"".join([*translator.feed(stream), *translator.close()])
    assert understand(out, "openai-chat").text == "It is 42."
    assert translator.lost[0] == f"the event new__x-evil__{'_'}{'y' * 26}"
    assert translator.lost[1] == "an event that is no JSON object"


def test_a_provider_that_invents_names_does_not_fill_the_header() -> None:
    translator = AnswerTranslator(speaks="anthropic", to="gemini", model="m")
    translator.feed(b"".join(sse({"type": f"event_{n}"}) for n in range(1000)))
    assert len(translator.lost) == 20


# --- ids ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["openai-chat", "openai-responses", "anthropic"])
def test_calls_without_an_id_get_the_same_one_again(to: str) -> None:
    anonymous = replace(FULL, parts=tuple(replace(p, anonymous=True) for p in FULL.parts))
    stream = b"".join(write(anonymous, "gemini"))
    first, again = (understand(translate(stream, "gemini", to), to) for _ in range(2))
    assert first.calls == again.calls
    ids = [call_id for call_id, _, _ in first.calls]
    assert len(set(ids)) == 2
    assert all(len(call_id) <= 40 and call_id.startswith("call_") for call_id in ids)
    other = b"".join(write(replace(anonymous, id="xyz"), "gemini"))
    assert {i for i, _, _ in understand(translate(other, "gemini", to), to).calls}.isdisjoint(ids)


# --- providers that write otherwise ------------------------------------------------------------


def chat(*deltas: dict[str, Any], stop: str = "stop") -> bytes:
    choices = [*({"index": 0, "delta": delta} for delta in deltas)]
    choices.append({"index": 0, "delta": {}, "finish_reason": stop})
    values = [{"id": "chatcmpl-1", "choices": [choice]} for choice in choices]
    return b"".join([*map(sse, values), sse("[DONE]")])


def piece(index: int, arguments: str, **head: Any) -> dict[str, Any]:
    name = head.pop("name", None)
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return {"tool_calls": [{"index": index, **head, "function": function}]}


def test_calls_that_grow_by_turns_stand_one_behind_the_other() -> None:
    stream = chat(
        piece(0, "", id="a", name="f"),
        piece(1, "", id="b", name="g"),
        piece(0, '{"x":'),
        piece(1, '{"y":'),
        piece(0, "1}"),
        piece(1, "2}"),
        stop="tool_calls",
    )
    seen = understand(translate(stream, "openai-chat", "anthropic"), "anthropic")
    assert seen.calls == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


def test_calls_that_are_all_numbered_0_are_told_apart_by_their_ids() -> None:
    stream = chat(
        piece(0, '{"x":1}', id="a", name="f"), piece(0, '{"x":2}', id="b", name="f"), stop="stop"
    )
    seen = understand(translate(stream, "openai-chat", "anthropic"), "anthropic")
    assert seen.calls == [("a", "f", '{"x":1}'), ("b", "f", '{"x":2}')]
    assert seen.stop == "tool_use"


def test_a_call_without_arguments_has_an_empty_object() -> None:
    stream = chat(piece(0, "", id="a", name="f"), stop="tool_calls")
    for to in ("anthropic", "openai-responses"):
        assert understand(translate(stream, "openai-chat", to), to).calls == [("a", "f", "{}")]


def test_words_behind_a_call_and_a_name_that_comes_late_are_kept() -> None:
    late = piece(0, '{"x":1}', id="a")
    named = piece(0, "", name="f")
    stream = chat({"content": "Now "}, late, named, {"content": "done."}, stop="tool_calls")
    seen = understand(translate(stream, "openai-chat", "anthropic"), "anthropic")
    assert seen.texts == ["Now ", "done."]
    assert seen.calls == [("a", "f", '{"x":1}')]


def test_arguments_that_are_no_object_are_kept_as_text() -> None:
    stream = chat(piece(0, "{broken", id="a", name="f"), stop="tool_calls")
    seen = understand(translate(stream, "openai-chat", "gemini"), "gemini")
    assert calls(seen) == [("a", "f", {"arguments": "{broken"})]


def test_a_custom_call_is_one_in_openais_dialects_and_has_an_input_elsewhere() -> None:
    patch = 'line "1"\n☃'
    script = Script((Part("call", (patch[:5], patch[5:]), "c", "apply", freeform=True),))
    stream = b"".join(write(script, "openai-responses"))
    out = events(translate(stream, "openai-responses", "openai-chat"))
    pieces = [
        c for _, v in out[:-1] for ch in v["choices"] for c in ch["delta"].get("tool_calls", ())
    ]
    assert "".join(p["custom"]["input"] for p in pieces) == patch
    for to in ("anthropic", "gemini"):
        seen = understand(translate(stream, "openai-responses", to), to)
        assert calls(seen) == [("c", "apply", {"input": patch})]


def test_a_response_whose_items_come_only_with_its_end_is_read_all_the_same() -> None:
    stream = write(FULL, "openai-responses")
    short = b"".join([*stream[:2], stream[-1]])
    seen = understand(translate(short, "openai-responses", "anthropic"), "anthropic")
    assert (seen.text, len(seen.calls)) == ("It is 42.", 2)


def test_gemini_arguments_that_come_in_parts_are_one_call() -> None:
    def part(**call: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": [{"functionCall": call}]}}]}

    values = [
        part(name="f", willContinue=True),
        part(partialArgs=[{"jsonPath": "$.q", "stringValue": "wh"}], willContinue=True),
        part(partialArgs=[{"jsonPath": "$.q", "stringValue": "at"}]),
        {"candidates": [{"finishReason": "STOP"}]},
    ]
    seen = understand(translate(b"".join(map(sse, values)), "gemini", "openai-chat"), "openai-chat")
    assert [(name, json.loads(given)) for _, name, given in seen.calls] == [("f", {"q": "what"})]


def test_a_refusal_stays_one_between_openais_dialects() -> None:
    stream = chat({"refusal": "I will "}, {"refusal": "not."})
    values = [v for _, v in events(translate(stream, "openai-chat", "openai-responses"))]
    assert values[-1]["response"]["output"][0]["content"] == [
        {"type": "refusal", "refusal": "I will not."}
    ]
    seen = understand(translate(stream, "openai-chat", "anthropic"), "anthropic")
    assert (seen.text, seen.stop) == ("I will not.", "refusal")


def test_usage_is_told_to_chat_clients_that_ask_for_it() -> None:
    stream = b"".join(write(FULL, "anthropic"))
    translator = AnswerTranslator(
        speaks="anthropic", to="openai-chat", model="m", include_usage=False
    )
    out = b"".join([*translator.feed(stream), *translator.close()])
    assert b'"usage"' not in out


def test_an_anthropic_stream_tells_its_input_at_the_start() -> None:
    stream = write(replace(FULL, cached=0), "anthropic")
    translator = AnswerTranslator(speaks="anthropic", to="gemini", model="m")
    assert translator.feed(stream[0]) == []
    start = events(translate(b"".join(stream), "anthropic", "openai-responses"))[0][1]
    assert start["response"]["status"] == "in_progress"


def test_what_the_proxy_says_of_several_calls_is_carried_on() -> None:
    account = {"calls": 2, "input_tokens": 40}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "holdfast": account}
    choice = {"message": {"content": "Hi"}, "finish_reason": "stop"}
    body = json.dumps({"id": "c", "choices": [choice], "usage": usage}).encode()
    out = translate_response(body, speaks="openai-chat", to="anthropic", model="m").body
    assert json.loads(out)["usage"]["holdfast"] == account


def test_comments_keep_the_connection_open() -> None:
    translator = AnswerTranslator(speaks="openai-chat", to="anthropic", model="m")
    assert translator.feed(b": still here\n\n") == [b":\n\n"]
    translator = AnswerTranslator(speaks="openai-chat", to="gemini", model="m")
    assert translator.feed(b": still here\n\n") == []


# --- errors ------------------------------------------------------------------------------------

ERRORS = {
    "openai-chat": sse({"error": {"message": "Too much.", "code": "rate_limit_exceeded"}}),
    "openai-responses": sse(
        {"type": "error", "code": "rate_limit_exceeded", "message": "Too much."}, "error"
    ),
    "anthropic": sse(
        {"type": "error", "error": {"type": "rate_limit_error", "message": "Too much."}}, "error"
    ),
    "gemini": sse({"error": {"code": 429, "message": "Too much.", "status": "RESOURCE_EXHAUSTED"}}),
}


def error_of(value: Any) -> str:
    return str(value["error"]["message"])


@pytest.mark.parametrize(("speaks", "to"), PAIRS)
def test_an_error_in_the_middle_ends_the_stream_as_one(speaks: str, to: str) -> None:
    stream = b"".join([*write(FULL, speaks)[:5], ERRORS[speaks], *write(FULL, speaks)[5:]])
    out = translate(stream, speaks, to)
    assert error_of(events(out)[-1][1]) == "Too much."
    kinds = {"anthropic": "rate_limit_error", "gemini": "RESOURCE_EXHAUSTED"}
    error = events(out)[-1][1]["error"]
    assert (error.get("status") or error["type"]) == kinds.get(to, "rate_limit_error")


@pytest.mark.parametrize(("speaks", "to"), PAIRS)
def test_a_stream_that_breaks_off_ends_with_an_error(speaks: str, to: str) -> None:
    translator = AnswerTranslator(speaks=speaks, to=to, model="m")
    out = translator.feed(b"".join(write(FULL, speaks)[:5])) + translator.close()
    assert error_of(events(b"".join(out))[-1][1]) == BROKEN_OFF
    assert translator.feed(b"".join(write(FULL, speaks))) == []


@pytest.mark.parametrize(("speaks", "to"), PAIRS)
def test_an_error_body_keeps_its_message(speaks: str, to: str) -> None:
    body = events(ERRORS[speaks])[0][1]
    out = translate_error(429, json.dumps(body).encode(), speaks=speaks, to=to)
    assert error_of(json.loads(out)) == "Too much."


def test_an_error_that_is_no_json_is_told_in_its_words() -> None:
    out = translate_error(502, b"<h1>Bad gateway</h1>", speaks="anthropic", to="openai-chat")
    assert error_of(json.loads(out)) == "<h1>Bad gateway</h1>"
    listed = b'[{"error": {"code": 503, "message": "Later.", "status": "UNAVAILABLE"}}]'
    assert b"Later." in translate_error(503, listed, speaks="gemini", to="anthropic")


def test_a_request_that_was_too_long_is_told_in_the_words_that_the_clients_know() -> None:
    said = "prompt is too long: 9 tokens > 8 maximum"
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": said}}
    out = translate_error(
        400, json.dumps(body).encode(), speaks="anthropic", to="openai-chat"
    ).decode()
    assert "maximum context length" in out
    assert "9 tokens > 8 maximum" in out


def test_an_error_inside_a_whole_answer_is_one() -> None:
    body = b'{"error": {"message": "Later.", "code": 503}}'
    translated = translate_response(body, speaks="openai-chat", to="anthropic", model="m")
    assert translated.status == 503
    assert error_of(json.loads(translated.body)) == "Later."


def test_what_is_no_answer_and_no_dialect_is_refused() -> None:
    with pytest.raises(ProviderError):
        translate_response(b"[1]", speaks="gemini", to="anthropic", model="m")
    with pytest.raises(ShapeError):
        AnswerTranslator(speaks="cohere", to="anthropic", model="m")


# --- hostile input -----------------------------------------------------------------------------

junk = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "type index delta choices content parts candidates output item response id usage "
                "message text functionCall name args tool_calls function arguments output_index "
                "content_block finish_reason finishReason stop_reason thinking custom input error "
                "status usageMetadata partialArgs jsonPath promptFeedback content_index "
                "summary".split()
            ),
            inside,
            max_size=5,
        )
    ),
    max_leaves=12,
)
TYPES = (
    "message_start content_block_start content_block_delta content_block_stop message_delta "
    "message response.output_item.added response.output_item.done response.output_text.delta "
    "response.function_call_arguments.delta response.completed response.failed error"
).split()


@given(st.sampled_from(PAIRS), st.lists(st.tuples(st.sampled_from(TYPES), junk), max_size=6))
def test_junk_never_raises_and_always_ends(
    pair: tuple[str, str], values: list[tuple[str, Any]]
) -> None:
    speaks, to = pair
    stream = [
        sse({"type": t, **v} if isinstance(v, dict) else v if v != "" else {}) for t, v in values
    ]
    translator = AnswerTranslator(speaks=speaks, to=to, model="m")
    out = translator.feed(b"".join(stream)) + translator.close()
    assert translator.ended
    events(b"".join(out))
    for _, value in values:
        if isinstance(value, dict):
            translate_response(json.dumps(value).encode(), speaks=speaks, to=to, model="m")


@given(
    st.sampled_from(["anthropic", "gemini", "openai-chat"]), st.text(st.characters(codec="utf-8"))
)
def test_a_call_of_the_clients_custom_tool_is_custom_again(speaks: str, patch: str) -> None:
    given_input = json.dumps({"input": "x" + patch})
    script = Script((Part("call", (given_input[:9], given_input[9:]), "c", "apply"),))
    stream = b"".join(write(script, speaks))
    translator = AnswerTranslator(
        speaks=speaks, to="openai-responses", model="m", custom=frozenset({"apply"})
    )
    out = events(b"".join([*translator.feed(stream), *translator.close()]))
    [item] = out[-1][1]["response"]["output"]
    assert (item["type"], item["input"]) == ("custom_tool_call", "x" + patch)
    deltas = [v["delta"] for name, v in out if name == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == "x" + patch


def test_events_of_many_megabytes_and_many_calls_cost_their_length() -> None:
    large = Script((Part("text", ("a" * 4_000_000,)), Part("call", ('{"a":1}',), "c", "f")))
    out = translate(b"".join(write(large, "anthropic")), "anthropic", "openai-chat")
    assert len(out) < 4_100_000
    starts = [piece(n, '{"x":', id=f"c{n}", name="f") for n in range(2000)]
    grown = [piece(0, " ") for _ in range(1000)]
    seen = understand(
        translate(chat(*starts, *grown, stop="tool_calls"), "openai-chat", "anthropic"), "anthropic"
    )
    assert len(seen.calls) == 2000


@pytest.mark.parametrize(("speaks", "to"), PAIRS)
def test_the_last_event_counts_though_no_blank_line_ends_it(speaks: str, to: str) -> None:
    stream = b"".join(write(FULL, speaks))
    assert stream.endswith(b"\n\n")
    assert translate(stream[:-2], speaks, to) == translate(stream, speaks, to)


def test_a_count_that_is_null_later_stays_as_it_was_told() -> None:
    def event(kind: str, **more: Any) -> bytes:
        return sse({"type": kind, **more}, kind)

    stream = b"".join(
        [
            event("message_start", message={"id": "m", "usage": {"input_tokens": 7}}),
            event("message_delta", delta={"stop_reason": "end_turn"},
                  usage={"input_tokens": None, "output_tokens": 3}),
            event("message_stop"),
        ]
    )  # fmt: skip
    seen = understand(translate(stream, "anthropic", "openai-chat"), "openai-chat")
    assert (seen.usage["prompt_tokens"], seen.usage["completion_tokens"]) == (7, 3)
