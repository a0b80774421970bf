"""Streams on their way to the client: nothing hidden is seen, nothing else is changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.budget.usage import Usage, reported_usage
from holdfast.errors import ProviderError, ShapeError
from holdfast.wire.responses import ArrayWriter, Relay
from tests.support.steps import is_linear
from tests.wire.responses.streams import (
    DIALECTS,
    HIDDEN,
    Part,
    Script,
    Seen,
    as_shown,
    chopped,
    events,
    hidden,
    scripts,
    signature,
    sse,
    understand,
    write,
)

every_dialect = pytest.mark.parametrize("dialect", DIALECTS)
dialects = st.sampled_from(DIALECTS)
cuts = st.lists(st.integers(0, 20_000), max_size=12)
mixed = scripts(names=("look_up", HIDDEN))

# Answers that the proxy continues, and the one that it does not.
chains = st.tuples(
    st.lists(scripts(names=(HIDDEN,)), max_size=2), scripts(names=("look_up", HIDDEN), prefix="l")
).map(lambda pair: [*(opening(n, script) for n, script in enumerate(pair[0])), pair[1]])


def opening(number: int, script: Script) -> Script:
    """An answer whose calls are all hidden, and which has at least one."""
    parts = [replace(part, id=f"{number}{part.id}") for part in script.parts]
    last = replace(EXPAND, id=f"last_{number}")
    return replace(script, id=f"hop{number}", parts=(*parts, last))


EXPAND = Part("call", ('{"ref":', '"r1"}'), "call_hidden", HIDDEN)
LOOK_UP = Part("call", ('{"q":1}',), "call_shown", "look_up")
HELLO = Part("text", ("Let me ", "look."))
ANSWER = Part("text", ("It is ", "42."))
THOUGHT = Part("thinking", ("hm",))


def run(relay: Relay, chunks: list[bytes]) -> bytes:
    out = [event for chunk in chunks for event in relay.feed(chunk)]
    return b"".join([*out, *relay.finish()])


def relay_all(dialect: str, *scripts: Script) -> tuple[Seen, Relay]:
    """Relay upstream answers that follow each other; the client's view of it."""
    relay = Relay(dialect, hidden)
    out = run(relay, write(scripts[0], dialect))
    for script in scripts[1:]:
        out += b"".join(relay.continue_with())
        out += run(relay, write(script, dialect))
    out += b"".join(relay.close())
    assert HIDDEN.encode() not in out
    return understand(out, dialect), relay


# --- properties --------------------------------------------------------------------------------


@given(scripts(), dialects, cuts)
def test_without_hidden_calls_bytes_leave_as_they_came(
    script: Script, dialect: str, places: list[int]
) -> None:
    stream = b"".join(write(script, dialect))
    relay = Relay(dialect, hidden)
    assert run(relay, chopped(stream, places)) == stream
    assert relay.close() == []
    assert not relay.failed


@given(chains, dialects, cuts)
def test_cuts_do_not_matter(given_scripts: list[Script], dialect: str, places: list[int]) -> None:
    def relayed(places: list[int]) -> tuple[bytes, Any]:
        relay = Relay(dialect, hidden)
        out = b""
        for n, script in enumerate(given_scripts):
            out += b"".join(relay.continue_with()) if n else b""
            out += run(relay, chopped(b"".join(write(script, dialect)), places))
        state = relay.hidden_calls, relay.visible_calls, relay.assistant_turn, relay.usage
        return out + b"".join(relay.close()), state

    assert relayed(places) == relayed([])


@given(chains, dialects)
def test_the_client_sees_one_stream_with_all_that_is_not_hidden(
    given_scripts: list[Script], dialect: str
) -> None:
    given_scripts = [replace(script, id=f"n{n}") for n, script in enumerate(given_scripts)]
    seen, relay = relay_all(dialect, *given_scripts)
    shown = [as_shown(script) for script in given_scripts]
    assert seen.id.endswith("n0")
    wanted = [(c.id, c.name, json.loads(c.text)) for s in shown for c in s.calls]
    assert [(a, b, json.loads(c)) for a, b, c in seen.calls] == wanted
    texts = [text for script in shown for text in script.texts]
    assert "".join(seen.text.split()) == "".join("".join(texts).split())
    # The client is told the context of the last call, and all that was generated.
    inputs = [s.input + (s.cached if dialect == "anthropic" else 0) for s in given_scripts]
    output = sum(s.output for s in given_scripts)
    assert reported_usage(seen.usage) == Usage(inputs[-1], output)
    assert reported_usage(relay.usage) == Usage(sum(inputs), output)
    several = {"calls": len(inputs), "input_tokens": sum(inputs)} if len(inputs) > 1 else None
    assert seen.usage.get("holdfast") == several


@given(mixed, dialects)
def test_the_turn_goes_back_whole(script: Script, dialect: str) -> None:
    relay = Relay(dialect, hidden)
    run(relay, write(script, dialect))
    turn = [json.loads(message) for message in relay.assistant_turn]
    assert calls_of(turn, dialect) == [(c.id, c.name, json.loads(c.text)) for c in script.calls]
    spelled = json.dumps(turn, ensure_ascii=False)
    for part in script.parts:
        if part.kind == "thinking":
            signed = part.text if dialect in ("openai-chat", "gemini") else f"signed {part.text}"
            assert json.dumps(signed, ensure_ascii=False)[1:-1] in spelled
        if part.kind == "call" and dialect == "gemini":
            assert signature(part) in spelled
    ids = {call.id for call in relay.hidden_calls}
    assert ids == {call.id for call in script.calls if call.name == HIDDEN}
    assert {call.id for call in relay.visible_calls} == {c.id for c in script.calls} - ids


def calls_of(turn: list[Any], dialect: str) -> list[tuple[str, str, Any]]:
    if dialect == "openai-chat":
        made = [call for message in turn for call in message.get("tool_calls", ())]
        return [
            (c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in made
        ]
    if dialect == "openai-responses":
        items = [item for item in turn if item["type"] == "function_call"]
        return [(item["call_id"], item["name"], json.loads(item["arguments"])) for item in items]
    if dialect == "anthropic":
        blocks = [b for message in turn for b in message["content"] if b["type"] == "tool_use"]
        return [(block["id"], block["name"], block["input"]) for block in blocks]
    parts = [p["functionCall"] for content in turn for p in content["parts"] if "functionCall" in p]
    return [(part["id"], part["name"], part["args"]) for part in parts]


@given(mixed, dialects, st.integers(0, 20_000))
def test_a_stream_that_breaks_off_has_failed_and_hides_what_it_must(
    script: Script, dialect: str, place: int
) -> None:
    whole = write(script, dialect)
    stream = b"".join(whole)
    kept = stream[: place % len(b"".join(whole[:-3]) or b"x")]  # before the end begins
    relay = Relay(dialect, hidden)
    out = run(relay, [kept])
    assert relay.failed
    assert HIDDEN.encode() not in out
    if not any(call.name == HIDDEN for call in script.calls):
        again = Relay(dialect, hidden)
        assert run(again, [kept]) + b"".join(again.close()) == kept
    ended = events(b"".join([out, *relay.error(502, "broken off")]))
    assert "broken off" in json.dumps(ended[-1])


junk_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "type choices delta index tool_calls function name usage candidates content parts "
                "functionCall response output output_index item message content_block error "
                "finish_reason finishReason sequence_number id usageMetadata tools".split()
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
junk_types = st.sampled_from(
    "content_block_start content_block_delta message_start message_delta message_stop "
    "response.created response.output_item.added response.output_item.done "
    "response.completed".split()
)
junk_events = st.one_of(
    st.binary(max_size=30),
    junk_values.map(sse),
    st.tuples(junk_values, junk_types).map(
        lambda pair: sse({**(pair[0] if isinstance(pair[0], dict) else {}), "type": pair[1]})
    ),
)


@given(st.lists(junk_events, max_size=6), mixed, dialects, st.integers(0, 30))
def test_junk_breaks_nothing(junk: list[bytes], script: Script, dialect: str, place: int) -> None:
    good = write(script, dialect)
    place %= len(good)
    relay = Relay(dialect, lambda _: False)
    stream = b"".join([*good[:place], *junk, *good[place:]])
    assert run(relay, [stream]) + b"".join(relay.close()) == stream
    assert isinstance(relay.assistant_turn, tuple)
    hiding = Relay(dialect, hidden)
    run(hiding, [stream])
    hiding.continue_with()
    run(hiding, [stream])
    hiding.close()
    assert isinstance(hiding.hidden_calls, list)
    assert isinstance(hiding.usage, dict)


# --- single stories ----------------------------------------------------------------------------


@every_dialect
def test_text_goes_through_at_once(dialect: str) -> None:
    relay = Relay(dialect, hidden)
    sent = b""
    for event in write(Script((HELLO, EXPAND)), dialect):
        sent += b"".join(relay.feed(event))
        if b"look." in event:
            break
    assert b"look." in sent


@every_dialect
def test_the_end_waits_while_the_proxy_may_go_on(dialect: str) -> None:
    relay = Relay(dialect, hidden)
    out = run(relay, write(Script((HELLO, EXPAND)), dialect))
    assert relay.hidden_calls[0].id == "call_hidden"
    assert json.loads(relay.hidden_calls[0].arguments) == {"ref": "r1"}
    assert not relay.visible_calls
    assert not relay.failed
    for end in (b'finish_reason":"', b"message_stop", b"response.completed", b"finishReason"):
        assert end not in out.replace(b": ", b":")


@every_dialect
def test_the_answer_follows_what_was_said_before(dialect: str) -> None:
    seen, relay = relay_all(dialect, Script((THOUGHT, HELLO, EXPAND)), Script((ANSWER,), "second"))
    assert seen.text.split() == "Let me look. It is 42.".split() or dialect.startswith(
        ("anthropic", "openai-responses")
    )
    assert not seen.calls
    assert seen.stop in ("stop", "end_turn", "completed", "STOP")
    assert not relay.silent


@every_dialect
def test_visible_calls_of_the_same_turn_are_handed_over(dialect: str) -> None:
    seen, _ = relay_all(dialect, Script((EXPAND, LOOK_UP)))
    assert [call[:2] for call in seen.calls] == [("call_shown", "look_up")]
    assert seen.stop in ("tool_calls", "tool_use", "completed", "STOP")


def test_a_hidden_call_that_only_the_end_tells_of_is_hidden() -> None:
    """Some services of Responses send no event for an item, and tell of it with the end."""
    item = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": HIDDEN,
            "arguments": "{}", "status": "completed"}  # fmt: skip
    ends = {"id": "r", "object": "response", "status": "completed", "output": [item]}
    stream = sse({"type": "response.completed", "response": ends}, "response.completed")
    relay = Relay("openai-responses", hidden)
    shown = run(relay, [stream])
    assert HIDDEN.encode() not in shown
    assert [call.name for call in relay.hidden_calls] == [HIDDEN]


@every_dialect
def test_an_end_is_given_once(dialect: str) -> None:
    relay = Relay(dialect, hidden)
    run(relay, write(Script((HELLO, EXPAND)), dialect))
    relay.close()
    assert relay.close() == []


@every_dialect
def test_a_turn_that_was_all_hidden_ends_empty(dialect: str) -> None:
    seen, relay = relay_all(dialect, Script((EXPAND,)))
    assert seen.text == ""
    assert seen.stop in ("stop", "end_turn", "completed", "STOP")
    assert relay.silent


@every_dialect
def test_a_continuation_with_nothing_in_it_ends_empty(dialect: str) -> None:
    seen, _ = relay_all(dialect, Script((EXPAND,)), Script((THOUGHT,), "second"))
    assert seen.text == ""


@every_dialect
def test_an_answer_that_the_provider_left_empty_stays_empty(dialect: str) -> None:
    seen, _ = relay_all(dialect, Script((), cut=True))
    assert not seen.text


@every_dialect
def test_hops_may_be_many(dialect: str) -> None:
    hops = [Script((replace(EXPAND, id=f"h{n}"),), f"hop{n}") for n in range(5)]
    seen, relay = relay_all(dialect, *hops, Script((ANSWER, LOOK_UP), "last"))
    assert seen.text == "It is 42."
    assert [call[0] for call in seen.calls] == ["call_shown"]
    assert relay.reported == seen.usage
    assert relay.upstream_id.endswith("last")


@every_dialect
def test_an_error_inside_the_stream_is_passed_on(dialect: str) -> None:
    error = sse({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}, "error")
    relay = Relay(dialect, hidden)
    begun = write(Script((HELLO,)), dialect)[:3]
    assert run(relay, [*begun, error]) == b"".join([*begun, error])
    assert relay.failed


@every_dialect
def test_an_event_without_its_empty_line_is_closed_before_others_follow(dialect: str) -> None:
    stream = b"".join(write(Script((HELLO, EXPAND)), dialect)).rstrip(b"\n")
    relay = Relay(dialect, hidden)
    out = run(relay, [stream])
    assert not relay.failed
    out += b"".join(relay.continue_with())
    out += run(relay, write(Script((ANSWER,)), dialect)) + b"".join(relay.close())
    assert understand(out, dialect).text.endswith("It is 42.")


@every_dialect
def test_comments_pass_through(dialect: str) -> None:
    relay = Relay(dialect, hidden)
    run(relay, write(Script((EXPAND,)), dialect))
    relay.continue_with()
    assert relay.feed(b": keep-alive\n\n") == [b": keep-alive\n\n"]


def test_a_stream_without_end_is_refused() -> None:
    relay = Relay("gemini", hidden, max_stream_bytes=1000)
    with pytest.raises(ProviderError, match="1,000 bytes"):
        [relay.feed(b": still here\n\n") for _ in range(100)]


def test_a_dialect_without_streams_of_ours_is_refused() -> None:
    with pytest.raises(ShapeError, match="no streams"):
        Relay("cohere", hidden)


# --- OpenAI chat -------------------------------------------------------------------------------


def chat(*choices: Any, **more: Any) -> bytes:
    return sse({"id": "x", "created": 1, "model": "m", "choices": list(choices), **more})


def piece(index: int, call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return {"index": index, **({"id": call_id} if call_id else {}), "function": function}


def delta(index: int = 0, stop: str | None = None, **said: Any) -> dict[str, Any]:
    return {"index": index, "delta": said, "finish_reason": stop}


def test_chat_call_whose_name_comes_late_is_hidden() -> None:
    stream = [
        chat(delta(role="assistant", content="")),
        chat(delta(tool_calls=[piece(0, "h", None, "")])),
        chat(delta(content="between")),
        chat(delta(tool_calls=[piece(0, None, HIDDEN, "{}")])),
        chat(delta(stop="tool_calls")),
        sse("[DONE]"),
    ]
    relay = Relay("openai-chat", hidden)
    out = run(relay, stream) + b"".join(relay.close())
    seen = understand(out, "openai-chat")
    assert (seen.text, seen.calls, seen.stop) == ("between", [], "stop")
    assert [call.id for call in relay.hidden_calls] == ["h"]


def test_chat_calls_whose_names_come_late_wait_only_for_their_own() -> None:
    stream = [
        chat(delta(role="assistant", content="")),
        chat(delta(tool_calls=[piece(0, "a", None, ""), piece(1, "h", None, "")])),
        chat(delta(tool_calls=[piece(0, None, "look_up", "{")])),
        chat(delta(tool_calls=[piece(0, None, None, "}")])),
        chat(delta(tool_calls=[piece(1, None, HIDDEN, "{}")])),
    ]
    relay = Relay("openai-chat", hidden)
    out = b"".join(event for part in stream for event in relay.feed(part))
    pieces = [
        piece
        for _, value in events(out)
        for piece in value["choices"][0]["delta"].get("tool_calls", ())
    ]
    assert [piece["index"] for piece in pieces] == [0, 0, 0]
    assert "".join(piece["function"]["arguments"] for piece in pieces) == "{}"
    assert [call.id for call in relay.hidden_calls] == ["h"]


def test_chat_call_whose_name_never_comes_is_passed_on() -> None:
    stream = [
        chat(delta(tool_calls=[piece(0, "h", None, "{}")])),
        chat(delta(content="more")),
        sse("[DONE]"),
    ]
    for kept in (stream, stream[:-1]):
        assert run(Relay("openai-chat", hidden), kept) == b"".join(kept)


@pytest.mark.parametrize("first", [HIDDEN, "look_up"])
def test_chat_calls_that_share_a_number_are_told_apart_by_id(first: str) -> None:
    [second] = {HIDDEN, "look_up"} - {first}
    stream = [
        chat(delta(role="assistant", tool_calls=[piece(0, first, first, "{}")])),
        chat(delta(tool_calls=[piece(0, second, second, "{}")])),
        chat(delta(stop="tool_calls")),
        sse("[DONE]"),
    ]
    relay = Relay("openai-chat", hidden)
    out = run(relay, stream) + b"".join(relay.close())
    assert understand(out, "openai-chat").calls == [("look_up", "look_up", "{}")]
    assert [call.id for call in relay.hidden_calls] == [HIDDEN]


def test_chat_choices_stream_side_by_side() -> None:
    stream = [
        chat(delta(0, role="assistant", content="a"), delta(1, role="assistant", content="b")),
        chat(delta(0, stop="stop")),
        chat(delta(1, content="c")),
        chat(delta(1, stop="stop")),
        sse("[DONE]"),
    ]
    assert run(Relay("openai-chat", hidden), stream) == b"".join(stream)
    stream.insert(1, chat(delta(1, tool_calls=[piece(0, "h", HIDDEN, "{}")])))
    relay = Relay("openai-chat", hidden)
    out = run(relay, stream) + b"".join(relay.close())
    assert HIDDEN.encode() not in out
    assert not relay.hidden_calls, "only the first choice can be continued"


def test_chat_words_that_come_with_the_end_are_not_held_back() -> None:
    relay = Relay("openai-chat", hidden)
    out = run(
        relay,
        [
            chat(delta(role="assistant", tool_calls=[piece(0, "h", HIDDEN, "{}")])),
            chat(delta(stop="tool_calls", content="late")),
            sse("[DONE]"),
        ],
    )
    assert b"late" in out
    assert b'"tool_calls"' not in out
    assert understand(out + b"".join(relay.close()), "openai-chat").text == "late"


def test_chat_usage_that_the_client_did_not_ask_for_is_kept_from_it() -> None:
    relay = Relay("openai-chat", hidden, hide_usage=True)
    out = run(relay, write(Script((HELLO,)), "openai-chat"))
    assert b"prompt_tokens" not in out
    assert relay.usage["prompt_tokens"] == 10
    assert understand(out, "openai-chat").stop == "stop"


def test_chat_chunk_without_choices_does_not_lend_its_id() -> None:
    first = sse({"id": "", "model": "", "choices": [], "prompt_filter_results": []})
    relay = Relay("openai-chat", hidden)
    out = run(relay, [first, *write(Script((HELLO, EXPAND)), "openai-chat")])
    out += b"".join(relay.close())
    assert out.startswith(first)
    assert understand(out.removeprefix(first), "openai-chat").id == "chatcmpl-first"


def test_chat_refusal_and_audio_go_back() -> None:
    stream = [
        chat(delta(role="assistant", refusal="I ")),
        chat(delta(refusal="won't.")),
        chat(delta(audio={"id": "au", "data": "QUJD"})),
        chat(delta(audio={"data": "REVG", "transcript": "t"})),
        chat(delta(stop="stop")),
    ]
    relay = Relay("openai-chat", hidden)
    run(relay, stream)
    [message] = [json.loads(raw) for raw in relay.assistant_turn]
    assert message["refusal"] == "I won't."
    assert message["audio"] == {"id": "au"}
    assert message["content"] is None


# --- Gemini ------------------------------------------------------------------------------------


def gem(*parts: Any, stop: str = "") -> bytes:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return sse(
        {
            "candidates": [{**candidate, **({"finishReason": stop} if stop else {})}],
            "responseId": "r",
        }
    )


def test_gemini_parts_of_one_chunk_are_parted() -> None:
    call = {"functionCall": {"name": HIDDEN, "args": {}}, "thoughtSignature": "s"}
    relay = Relay("gemini", hidden)
    out = run(relay, [gem({"text": "a"}, call, stop="STOP")])
    assert events(out)[0][1]["candidates"][0]["content"]["parts"] == [{"text": "a"}]
    assert "finishReason" not in events(out)[0][1]["candidates"][0]
    assert json.loads(relay.assistant_turn[0])["parts"] == [{"text": "a"}, call]


def test_gemini_arguments_in_pieces_are_hidden_and_put_together() -> None:
    stream = [
        gem({"functionCall": {"name": HIDDEN, "willContinue": True}}),
        gem(
            {
                "functionCall": {
                    "partialArgs": [{"jsonPath": "$.ref", "stringValue": "r"}],
                    "willContinue": True,
                }
            }
        ),
        gem(
            {
                "functionCall": {
                    "partialArgs": [
                        {"jsonPath": "$.ref", "stringValue": "1"},
                        {"jsonPath": "$.at.line", "numberValue": 3},
                    ],
                    "willContinue": True,
                }
            }
        ),
        gem({"functionCall": {}}),
        gem({"text": "after"}, stop="STOP"),
    ]
    relay = Relay("gemini", hidden)
    out = run(relay, stream)
    assert b"functionCall" not in out
    assert b"after" in out
    [call] = relay.hidden_calls
    assert json.loads(call.arguments) == {"ref": "r1", "at": {"line": 3}}


def test_gemini_signature_on_empty_text_goes_back() -> None:
    relay = Relay("gemini", hidden)
    run(relay, [gem({"text": "a"}), gem({"text": "b"}), gem({"text": "", "thoughtSignature": "s"})])
    [content] = [json.loads(raw) for raw in relay.assistant_turn]
    assert content["parts"] == [{"text": "ab"}, {"text": "", "thoughtSignature": "s"}]


def test_gemini_prompt_that_is_refused_on_the_way_ends_the_stream() -> None:
    refused = sse({"promptFeedback": {"blockReason": "SAFETY"}, "responseId": "r2"})
    for first in (Script((EXPAND,)), Script((HELLO, EXPAND))):
        relay = Relay("gemini", hidden)
        run(relay, write(first, "gemini"))
        relay.continue_with()
        out = run(relay, [refused]) + b"".join(relay.close())
        assert not relay.failed
        assert relay.stop_reason == "SAFETY"
        assert events(out)[-1][1]["promptFeedback"]["blockReason"] == "SAFETY"
        assert events(out)[-1][1]["responseId"] == "first"


def test_gemini_array_is_made_of_the_same_chunks() -> None:
    stream = write(Script((HELLO, ANSWER)), "gemini")
    relay, writer = Relay("gemini", hidden), ArrayWriter()
    out = b"".join(piece for chunk in stream for piece in writer.write(relay.feed(chunk)))
    out += b"".join(writer.write([*relay.finish(), *relay.close()])) + writer.close()
    assert json.loads(out) == [value for _, value in events(b"".join(stream))]
    assert ArrayWriter().close() == b"[]"


# --- OpenAI Responses --------------------------------------------------------------------------


def test_responses_do_not_repeat_the_hidden_tool() -> None:
    armed = [
        event.replace(b'"name": "look_up"', b'"name": "expand_ref"')
        for event in write(Script((HELLO,)), "openai-responses")
    ]
    assert HIDDEN.encode() in armed[0]
    relay = Relay("openai-responses", hidden)
    out = run(relay, armed) + b"".join(relay.close())
    assert HIDDEN.encode() not in out
    assert understand(out, "openai-responses").text == "Let me look."


def test_responses_failure_is_told_with_what_was_seen() -> None:
    relay = Relay("openai-responses", hidden)
    out = run(relay, write(Script((HELLO, EXPAND)), "openai-responses"))
    out += b"".join(relay.continue_with())
    second = write(Script((ANSWER,), "second"), "openai-responses")
    second[-1] = second[-1].replace(b"response.completed", b"response.failed")
    out += run(relay, second)
    assert relay.failed
    name, value = events(out)[-1]
    assert name == "response.failed"
    assert value["response"]["id"] == "resp_first"
    assert len(value["response"]["output"]) == 2


# --- Anthropic ---------------------------------------------------------------------------------


def test_anthropic_broken_arguments_go_back_as_an_object() -> None:
    relay = Relay("anthropic", hidden)
    run(relay, write(Script((replace(EXPAND, pieces=('{"ref',)),)), "anthropic"))
    assert relay.hidden_calls[0].arguments == '{"ref'
    assert json.loads(relay.assistant_turn[0])["content"][0]["input"] == {}


def _chunk(text: str) -> bytes:
    delta = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return b"data: " + json.dumps({"id": "x", "choices": [delta]}).encode() + b"\n\n"


@pytest.mark.parametrize(
    "stream",
    [
        lambda size: _chunk("ab") * (size // len(_chunk("ab"))),
        lambda size: _chunk("x" * size),
        lambda size: b"data: " + b"y" * size,
        lambda size: b"data: " + b"\r" * size,
    ],
    ids=("many events", "one long event", "an event without end", "line ends alone"),
)
def test_an_answer_that_comes_byte_by_byte_takes_steps_in_proportion(
    stream: Callable[[int], bytes],
) -> None:
    def work(size: int) -> Callable[[], object]:
        data = stream(size)
        relay = Relay("openai-chat", hidden)

        def relayed() -> None:
            for at in range(len(data)):
                relay.feed(data[at : at + 1])
            relay.finish()

        return relayed

    assert is_linear(work, 5_000)
