"""The client in a program: what reaches the provider fits, is valid, and is accounted for."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast.client import Client, Reply
from holdfast.client.pace import Pace
from holdfast.client.requests import ParsedRequest
from holdfast.engine import Holdfast
from holdfast.errors import (
    BudgetExceededError,
    ContextOptimizationError,
    ModelRefusedError,
    ProviderError,
    SettingsError,
)
from holdfast.fitting.options import LazyRules
from holdfast.settings import Settings
from holdfast.trim import AnchorDefinition
from holdfast.upstream.hidden_calls import AnswerIds
from holdfast.wire import read
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.faults import status
from tests.surfaces.proxy.upstream import Upstream
from tests.wire.responses.streams import Part, Script

MODELS = {
    "openai-chat": "openai:gpt-5",
    "openai-responses": "openai:gpt-5",
    "anthropic": "anthropic:claude-sonnet-4-5",
    "gemini": "google:gemini-2.5-flash",
}
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "read_log",
            "description": "Reads a log.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
]


def says(text: str) -> Script:
    return Script((Part("text", (text,)),))


def calls(name: str, arguments: dict[str, Any], id_: str = "call_x1") -> Script:
    return Script((Part("call", (json.dumps(arguments),), id=id_, name=name),))


def opens(got: Any) -> Script:
    """Open the last line of the result that is cited."""
    [ref, *_] = re.findall(r"ref:\w+:[0-9a-f]{16}", json.dumps(got.value))
    return calls("expand_ref", {"ref_id": ref, "lines": "4001-4001"})


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(work())


def client_of(upstream: Upstream, dialect: str = "openai-chat", **more: Any) -> Client:
    return Client(
        MODELS[dialect],
        url=upstream.url,
        key="key-of-the-test",
        dialect=dialect,
        store="memory:",
        **more,
    )


def log(lines: int) -> str:
    rows = [f"{n:05} INFO request {n * 7} served" for n in range(lines)]
    return "\n".join([*rows, f"{lines:05} ERROR cannot reach db-3"])


def with_result(text: str) -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "read_log", "arguments": "{}"}}
    return [
        {"role": "system", "content": "You are brief."},
        {"role": "user", "content": "What went wrong?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
    ]


@pytest.mark.parametrize("dialect", MODELS)
def test_a_chat_is_fitted_sent_and_accounted_for_in_every_dialect(dialect: str) -> None:
    with Upstream(says("It was db-3."), says("Yes.")) as upstream:

        async def work() -> tuple[Reply, Reply]:
            async with client_of(upstream, dialect, limit=4_000) as client:
                messages = with_result(log(4_000))
                first = await client.chat(messages, tools=TOOLS)
                messages += [*first.messages, {"role": "user", "content": "Sure?"}]
                second = await client.chat(messages, tools=TOOLS)
                usage = client.get_token_usage()
                assert usage.budget.total.used == sum(
                    (reply.usage.input or 0) + (reply.usage.output or 0)
                    for reply in (first, second)
                )
                assert not usage.budget.input.approximate
                return first, second

        first, second = run(work)
        assert upstream.refused == []
        assert (first.text, second.text) == ("It was db-3.", "Yes.")
        assert all(got.tokens <= 4_000 for got in upstream.requests)
        assert first.untouched > 20_000 > first.predicted
        assert "cite" in {edit.action for edit in first.edits}
        assert first.metadata["usage"]["input"] == upstream.requests[0].tokens
        assert first.messages[-1]["holdfast"]["tokens"] == first.usage.output
        # Earlier messages are unchanged: the vendor's cache stays valid.
        key = {"gemini": "contents", "openai-responses": "input"}.get(dialect, "messages")
        before, after = (got.value[key] for got in upstream.requests)
        assert after[: len(before)] == before


@pytest.mark.parametrize("dialect", MODELS)
def test_a_stream_gives_the_text_as_it_comes_and_the_reply_at_its_end(dialect: str) -> None:
    script = Script((Part("text", ("It ", "was ", "db-3.")),))
    with Upstream(script) as upstream:

        async def work() -> list[Any]:
            async with client_of(upstream, dialect) as client:
                asked = [{"role": "user", "content": "What was it?"}]
                return [part async for part in client.stream(asked)]

        *texts, last = run(work)
        assert "".join(part.text for part in texts) == "It was db-3."
        assert last.reply is not None
        assert last.reply.text == "It was db-3."
        assert last.reply.usage.input == upstream.requests[0].tokens
        assert upstream.refused == []


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("dialect", MODELS)
def test_what_the_model_opens_is_answered_inside(dialect: str, streams: bool) -> None:
    with Upstream(opens, says("It was db-3."), says("Yes.")) as upstream:

        async def work() -> Reply:
            async with client_of(upstream, dialect, limit=6_000) as client:
                messages = with_result(log(4_000))
                if streams:
                    parts = [part async for part in client.stream(messages, tools=TOOLS)]
                    reply = parts[-1].reply
                    assert "".join(part.text for part in parts) == "It was db-3."
                else:
                    reply = await client.chat(messages, tools=TOOLS)
                assert reply is not None
                messages += [*reply.messages, {"role": "user", "content": "Sure?"}]
                await client.chat(messages, tools=TOOLS)
                return reply

        reply = run(work)
        assert upstream.refused == []
        assert reply.text == "It was db-3."
        assert reply.calls == ()
        assert "cannot reach db-3" in upstream.requests[1].body.decode()
        # The hidden call is brought back into the next request, where the model wrote it.
        assert "expand_ref" in json.dumps(upstream.requests[2].value)
        assert all(got.tokens <= 6_000 for got in upstream.requests)
        # Both requests are paid for, and the request itself was as long as the first one only.
        first, second = (got.tokens for got in upstream.requests[:2])
        assert reply.usage.input == first + second
        assert reply.context_tokens == reply.predicted


def answer_about_log(upstream: Upstream, dialect: str, *, streams: bool) -> str:
    """The text of an answer to a question about a long log."""

    async def work() -> str:
        async with client_of(upstream, dialect, limit=6_000) as client:
            messages = with_result(log(4_000))
            if streams:
                return "".join([p.text async for p in client.stream(messages, tools=TOOLS)])
            return (await client.chat(messages, tools=TOOLS)).text

    return str(run(work))


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("dialect", MODELS)
def test_a_model_that_opens_and_says_nothing_is_asked_again(dialect: str, streams: bool) -> None:
    with Upstream(opens, says(""), says("It was db-3.")) as upstream:
        assert answer_about_log(upstream, dialect, streams=streams) == "It was db-3."
        assert upstream.refused == []
        first, _, last = upstream.requests
        assert last.texts == first.texts


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("dialect", MODELS)
def test_where_the_provider_refuses_to_go_on_the_first_request_goes_out_again(
    dialect: str, streams: bool
) -> None:
    with Upstream(opens, faults.status(400), says("It was db-3.")) as upstream:
        assert answer_about_log(upstream, dialect, streams=streams) == "It was db-3."
        first, _, last = upstream.requests
        assert last.texts == first.texts


@pytest.mark.parametrize("dialect", MODELS)
def test_an_answer_that_is_empty_without_openings_is_given_as_it_is(dialect: str) -> None:
    with Upstream(says("")) as upstream:

        async def work() -> str:
            async with client_of(upstream, dialect, limit=6_000) as client:
                return (await client.chat(with_result(log(4_000)), tools=TOOLS)).text

        assert run(work) == ""
        assert len(upstream.requests) == 1


@pytest.mark.parametrize("dialect", MODELS)
def test_an_empty_turn_behind_an_opening_is_not_sent_back(dialect: str) -> None:
    """The history with it was invalid, so that all of it was read anew."""

    def opens(got: Any) -> Script:
        [ref, *_] = re.findall(r"ref:\w+:[0-9a-f]{16}", json.dumps(got.value))
        called = calls("expand_ref", {"ref_id": ref, "lines": "4001-4001"})
        return Script((Part("text", ("Let me look.",)), *called.parts))

    with Upstream(opens, Script(()), says("Yes.")) as upstream:

        async def work() -> tuple[Reply, Reply]:
            async with client_of(upstream, dialect, limit=6_000) as client:
                messages = with_result(log(4_000))
                first = await client.chat(messages, tools=TOOLS)
                messages += [*first.messages, {"role": "user", "content": "Sure?"}]
                return first, await client.chat(messages, tools=TOOLS)

        first, second = run(work)
        assert (first.text, second.text) == ("Let me look.", "Yes.")
        assert upstream.refused == []
        assert "repair" not in {edit.action for edit in second.edits}
        _, opened, later = upstream.requests
        assert later.texts.startswith(opened.texts)


def test_calls_of_the_programs_own_tools_come_back_in_its_own_dialect() -> None:
    with Upstream(calls("read_log", {"path": "a"}), says("done")) as upstream:

        async def work() -> None:
            async with client_of(upstream, "anthropic") as client:
                messages: list[dict[str, Any]] = [{"role": "user", "content": "Read a."}]
                reply = await client.chat(messages, tools=TOOLS)
                [call] = reply.calls
                assert (call.name, json.loads(call.arguments)) == ("read_log", {"path": "a"})
                assert reply.messages[0]["tool_calls"][0]["id"] == call.id
                result = {"role": "tool", "tool_call_id": call.id, "content": "fine"}
                reply = await client.chat([*messages, *reply.messages, result], tools=TOOLS)
                assert reply.text == "done"

        run(work)
        assert upstream.refused == []


def test_a_budget_says_no_before_anything_is_sent_and_can_be_raised() -> None:
    with Upstream(says("hello")) as upstream:

        async def work() -> None:
            async with client_of(upstream, budget=500, max_output_tokens=1_000) as client:
                with pytest.raises(BudgetExceededError, match="total budget of 500"):
                    await client.chat([{"role": "user", "content": "hi"}])
                assert upstream.requests == []
                client.set_token_budget({"total": 50_000})
                assert (await client.chat([{"role": "user", "content": "hi"}])).text == "hello"
                used = client.get_token_usage().budget.total.used
                assert 0 < used < 100  # the reported use, not the reservation

        run(work)


def test_a_limit_that_does_not_exist_is_refused() -> None:
    with Upstream() as upstream:

        async def work() -> None:
            async with client_of(upstream) as client:
                with pytest.raises(SettingsError, match=r"budget\.cost"):
                    client.set_token_budget({"cost": 5, "total": 100})
                assert client.budget.budget.total.limit is None, "nothing of it was taken"

        run(work)


def test_a_refusal_gives_its_room_back_and_is_typed() -> None:
    with Upstream(status(500), says("hello")) as upstream:

        async def work() -> None:
            async with client_of(upstream, budget=20_000) as client:
                with pytest.raises(ProviderError, match="status 500"):
                    await client.chat([{"role": "user", "content": "hi"}])
                assert client.get_token_usage().budget.total.used == 0
                await client.chat([{"role": "user", "content": "hi"}])

        run(work)


def test_marked_messages_stay_through_every_fold_and_marks_are_never_sent() -> None:
    rule = "The customer is called Zebulon."
    history: list[dict[str, Any]] = [{"role": "user", "content": "Hello."}]
    for n in range(60):
        history.append({"role": "assistant", "content": f"Answer {n}. " + "word " * 60})
        history.append({"role": "user", "content": f"Question {n}? " + "more " * 60})
    plain = [*history[:21], {"role": "assistant", "content": rule}, *history[22:]]
    marked = [dict(message) for message in plain]
    marked[21]["holdfast"] = {"anchor": True}
    for messages, stays in ((plain, False), (marked, True)):
        with Upstream(says("ok")) as upstream:

            async def work(asked: Any = messages, where: Any = upstream) -> None:
                async with client_of(where, "anthropic", limit=2_000) as client:
                    await client.chat(asked)

            run(work)
            body = upstream.requests[0].body.decode()
            assert upstream.refused == []
            assert '"holdfast"' not in body
            said = any(
                rule in json.dumps(m) and m["role"] == "assistant"
                for m in upstream.requests[0].value["messages"]
            )
            assert said is stays


def test_trimming_folds_now_and_the_next_request_goes_on_from_it() -> None:
    history = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"Turn {n}: " + "word " * 80}
        for n in range(41)
    ]
    with Upstream(says("ok"), says("ok")) as upstream:

        async def work() -> None:
            async with client_of(upstream, trims_per_minute=2) as client:
                assert await client.trim_context() is None
                reply = await client.chat(history)
                fitted = await client.trim_context(1_500)
                assert fitted is not None
                assert fitted.tokens <= 1_500
                more = [*history, *reply.messages, {"role": "user", "content": "And now?"}]
                await client.chat(more)
                await client.trim_context(1_500)
                with pytest.raises(ContextOptimizationError, match="2 times within a minute"):
                    await client.trim_context(1_500)

        run(work)
        first, second = upstream.requests
        assert second.tokens < first.tokens / 2
        assert upstream.refused == []


def test_the_pace_lets_as_many_through_as_it_says() -> None:
    pace = Pace(2)
    pace.take(0.0)
    pace.take(1.0)
    with pytest.raises(ContextOptimizationError, match="Wait 58 seconds"):
        pace.take(2.0)
    pace.take(60.0)
    with pytest.raises(ContextOptimizationError):
        Pace(0).take(0.0)


def test_the_report_tells_of_the_budget_of_accuracy_and_of_strategies() -> None:
    with Upstream(says("one"), says("two")) as upstream:

        async def work() -> None:
            async with client_of(upstream, budget=100_000) as client:
                for _ in range(2):
                    await client.chat([{"role": "user", "content": "How do you do? " * 20}])
                report = client.report()
                assert report.data()["accuracy"][0]["observed"] == 2
                assert "2 reported, off by" in report.text()
                assert "effects" in report.data()
                assert report.data()["budget"]["total"]["limit"] == 100_000

        run(work)


def test_budget_strategy_and_anchors_also_go_by_the_names_of_the_configuration() -> None:
    custom = AnchorDefinition(
        type="custom", selector=lambda *_: False, priority=1, description="none"
    )
    client = Client(
        "offline",
        token_budget={"input": 700},
        context_strategy="progressive",
        context_preservation=[custom],
    )
    assert client.get_token_usage().budget.input.limit == 700
    assert (client._strategy, client._preserve) == ("progressive", (custom,))
    twofold: list[dict[str, Any]] = [
        {"budget": 1, "token_budget": 1},
        {"strategy": "fold", "context_strategy": "fold"},
        {"preserve": [], "context_preservation": []},
    ]
    for twice in twofold:
        with pytest.raises(SettingsError, match="two names"):
            Client("offline", **twice)


class CountingPlugin:
    """Counts in its own way, and reads usage where no other would."""

    def estimate_token_usage(self, messages: Any) -> int:
        return 1_000 * len(messages)

    def parse_response(self, body: bytes) -> dict[str, int]:
        return {"input_tokens": 77, "output_tokens": len(json.loads(body)["choices"])}


def test_a_plugin_counts_and_reads_usage_in_its_own_way() -> None:
    with Upstream(says("one")) as upstream:

        async def work() -> None:
            async with client_of(upstream, plugin=CountingPlugin()) as client:
                asked = [{"role": "user", "content": "hi"}]
                assert client.estimate(asked).tokens == 1_000
                reply = await client.chat(asked)
                assert (reply.usage.input, reply.usage.output) == (77, 1)
                assert client.get_token_usage().budget.total.used == 78

        run(work)


def test_a_budget_is_held_against_the_count_of_the_plugin() -> None:
    class Dear:
        def estimate_token_usage(self, messages: list[Any]) -> int:
            return 5_000 * len(messages)

    with Upstream() as upstream:
        upstream.always = says("hello")

        async def work() -> None:
            async with client_of(upstream, budget=30_000, plugin=Dear()) as client:
                asked = [{"role": "user", "content": "hi"}]
                assert (await client.chat(asked)).text == "hello"
                with pytest.raises(BudgetExceededError) as refused:
                    await client.chat(asked * 9)
                assert (refused.value.planned or 0) >= 45_000

        run(work)
        assert len(upstream.requests) == 1


def test_it_blocks_for_programs_that_do_not_await() -> None:
    with Upstream(says("one"), says("two"), says("three")) as upstream:
        with client_of(upstream).sync as client:
            asked = [{"role": "user", "content": "hi"}]
            assert client.chat(asked).text == "one"
            assert "".join(part.text for part in client.stream(asked)) == "two"
            assert client.trim_context(1_000) is not None
            assert client.get_token_usage().budget.total.used > 0
            assert "openai:gpt-5" in client.report().text()
        with pytest.raises(SettingsError, match="not open"):
            client.chat(asked)


def test_the_offline_model_answers_without_key_or_network() -> None:
    async def work() -> None:
        async with holdfast.Client(store="memory:") as client:
            reply = await client.chat(with_result(log(3_000)), tools=TOOLS)
            assert "the result of `read_log`" in reply.text
            assert reply.predicted < reply.untouched / 10
            assert client.report().accuracy == ()  # our own count teaches nothing

    run(work)


@pytest.mark.filterwarnings("ignore:the tokens of 'echo")
def test_a_program_is_asked_with_the_conversation_as_text() -> None:
    command = [sys.executable, "-c", "import sys; print(sys.stdin.read().upper())"]
    settings = Settings.load(summarization_commands={"echo": command})

    async def work() -> None:
        async with Client("[cli]echo:x", store="memory:", settings=settings) as client:
            reply = await client.chat(with_result("all is well"))
            assert "YOU ARE BRIEF." in reply.text
            assert "TOOL: ALL IS WELL" in reply.text

    run(work)


def test_models_of_others_are_not_asked_where_that_is_forbidden() -> None:
    settings = Settings.load(forbid_model_calls=True)
    with pytest.raises(ModelRefusedError):
        Client("anthropic:claude-sonnet-4-5", settings=settings)
    with Upstream() as upstream:
        Client("openai:gpt-5", url=upstream.url, settings=settings)  # this machine's own


def test_the_key_of_the_settings_goes_to_their_address_alone() -> None:
    settings = Settings.load(upstreams__openai__key="sk-secret")
    with Upstream(says("hello")) as upstream:

        async def work() -> None:
            client = Client("openai:gpt-5", url=upstream.url, store="memory:", settings=settings)
            async with client:
                with pytest.raises(ProviderError, match="status 401"):
                    await client.chat([{"role": "user", "content": "hi"}])

        run(work)
        assert "sk-secret" not in str(upstream.requests[0].headers)


@pytest.mark.parametrize("url", ["ftp://x", "http://ann:secret@x", "nowhere"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="no HTTP address"):
        Client("openai:gpt-5", url=url)


def test_no_tool_is_set_aside_for_nobody_would_answer_for_it() -> None:
    tools: list[dict[str, Any]] = [
        {"type": "function", "function": {**TOOLS[0]["function"], "name": f"read_log_{n}"}}
        for n in range(40)
    ]
    rules = LazyRules(mode="auto", tokens=100, share=0.01)
    with Upstream(says("Fine.")) as upstream:

        async def work() -> None:
            async with Holdfast.open("memory:") as opened:
                options = msgspec.structs.replace(opened.options, lazy=rules)
                engine = opened.with_parts(options=options)
                async with client_of(upstream, engine=engine) as client:
                    await client.chat([{"role": "user", "content": "Hello."}], tools=tools)

        run(work)
        offered = {tool["function"]["name"] for tool in upstream.requests[0].value["tools"]}
        assert {tool["function"]["name"] for tool in tools} <= offered
        assert "find_tools" not in offered


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
def test_old_exchanges_are_folded_where_an_opening_needs_their_room(
    dialect: str, streams: bool
) -> None:
    limit = 10_300

    def opens(got: Any) -> Script:
        [ref, *_] = re.findall(r"ref:log:[0-9a-f]{16}", json.dumps(got.value))
        return calls("expand_ref", {"ref_id": ref, "lines": "1-100"})

    chatter: list[dict[str, Any]] = []
    for n in range(30):
        chatter.append({"role": "user", "content": f"Question {n}: " + f"why {n} so? " * 60})
        chatter.append({"role": "assistant", "content": f"Answer {n}."})
    messages = [*chatter, *with_result(log(4_000))[1:]]
    with Upstream(opens, says("It was db-3."), says("Yes.")) as upstream:

        async def work() -> Reply:
            async with client_of(upstream, dialect, limit=limit) as client:
                if streams:
                    parts = [part async for part in client.stream(messages, tools=TOOLS)]
                    reply = parts[-1].reply
                else:
                    reply = await client.chat(messages, tools=TOOLS)
                assert reply is not None
                later = [*messages, *reply.messages, {"role": "user", "content": "Sure?"}]
                await client.chat(later, tools=TOOLS)
                session = client.engine.session(reply.session)
                assert await session.rebuild(reply.turn)
                return reply

        reply = run(work)
    first, second, third = upstream.requests
    assert limit - first.tokens < 2_000, "there must be little room"
    assert f"{99:05} INFO request" in second.texts, "the page was not opened whole"
    assert "fold" in {edit.action for edit in reply.edits}
    assert all(got.tokens <= limit for got in (first, second, third))
    assert upstream.refused == []


def test_the_last_id_of_an_answer_is_the_last_that_a_provider_gave() -> None:
    ids = AnswerIds()
    for name in ("first", "second", ""):
        ids.keep(name)
    assert (ids.first, ids.last) == ("first", "second")


@pytest.mark.parametrize("engine_ends", [True, False])
@pytest.mark.parametrize("client_ends", [True, False])
def test_a_conversation_is_asked_to_end_only_if_both_engine_and_client_want_that(
    engine_ends: bool, client_ends: bool
) -> None:
    async def work() -> None:
        async with Holdfast.open("memory:") as opened:
            options = msgspec.structs.replace(opened.options, ends=engine_ends)
            engine = opened.with_parts(options=options)
            asked = ParsedRequest(read({"messages": []}, "openai-chat"), "openai-chat", frozenset())
            model = MODELS["openai-chat"]
            async with Client(model, engine=engine, key="k", ends=client_ends) as client:
                assert client._options(asked, None).ends is (engine_ends and client_ends)

    run(work)
