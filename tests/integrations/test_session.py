"""What all adapters share: messages to a request that fits, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from holdfast import Holdfast, count, validate
from holdfast.errors import BudgetExceededError, HoldfastError, StoreUnavailableError
from holdfast.expand.tool import definition
from holdfast.integrations._host import Host
from holdfast.integrations._session import Fit, Threads
from holdfast.store.sqlite import SqliteStore

LIMIT = 4_000
AROUND = {"model": "gpt-4o", "tools": [definition("openai-chat")]}
LOG = "\n".join(f"{n:05} INFO request {n * 7} served in {n % 90} ms" for n in range(600))


class Say:
    """A message of a framework that nobody wrote."""

    def __init__(self, *values: dict[str, Any]) -> None:
        self.values = values


class Plain:
    dialect = "openai-chat"

    def __init__(self) -> None:
        self.written = 0

    def write(self, message: Say) -> Sequence[Mapping[str, Any]]:
        self.written += 1
        return message.values

    def read(self, parts: Sequence[tuple[Any, Say | None]]) -> Sequence[Say]:
        return [Say(*(value for value, _ in parts))]


def call(n: int, text: str = LOG) -> list[Say]:
    function = {"name": "read_log", "arguments": f'{{"n": {n}}}'}
    calls = [{"id": f"call_{n}", "type": "function", "function": function}]
    return [
        Say({"role": "assistant", "content": None, "tool_calls": calls}),
        Say({"role": "tool", "tool_call_id": f"call_{n}", "content": f"log {n}\n{text}"}),
    ]


def conversation(calls: int) -> list[Say]:
    messages = [Say({"role": "user", "content": "Which requests failed?"})]
    for n in range(calls):
        messages += call(n)
    return messages


def body(fit: Fit[Say]) -> dict[str, Any]:
    return {**AROUND, "messages": [value for say in fit.messages for value in say.values]}


def test_a_call_that_fits_goes_out_as_the_same_objects() -> None:
    messages = [Say({"role": "user", "content": "Hello"})]
    with Host("memory:") as host:
        fit = Threads(host, Plain()).fit(messages, AROUND, "a")
    assert fit.messages == messages
    assert fit.fitted is not None
    assert fit.fitted.edits == ()


class Note:
    """A framework's message with attributes, which a program may edit in place."""

    def __init__(self, content: Any, name: str = "ann") -> None:
        self.content, self.name = content, name


class Notes:
    dialect = "openai-chat"

    def __init__(self) -> None:
        self.written = 0

    def write(self, message: Any) -> Sequence[Mapping[str, Any]]:
        self.written += 1
        return [message if isinstance(message, dict) else {"role": "user", **vars(message)}]

    def read(self, parts: Sequence[tuple[Any, Any]]) -> Sequence[Any]:
        raise AssertionError(f"nothing is edited here: {parts!r}")


def edit_text(message: Note) -> None:
    message.content = "Edited"


def edit_block(message: Note) -> None:
    message.content[0]["text"] = "Edited"


def edit_other_field(message: Note) -> None:
    message.name = "Edited"


def edit_value(message: dict[str, Any]) -> None:
    message["content"] = "Edited"


@pytest.mark.parametrize(
    ("message", "edit"),
    [
        (Note("Hello"), edit_text),
        (Note([{"type": "text", "text": "Hello"}]), edit_block),
        (Note("Hi", name="Hello"), edit_other_field),
        ({"role": "user", "content": "Hello"}, edit_value),
    ],
)
def test_a_message_that_was_edited_in_place_goes_out_as_it_is_now(message: Any, edit: Any) -> None:
    form = Notes()
    with Host("memory:") as host:
        threads: Threads[Any] = Threads(host, form)
        threads.fit([message], AROUND, "a")
        threads.fit([message], AROUND, "a")
        assert form.written == 1, "one that did not change is written once"
        edit(message)
        fit = threads.fit([message], AROUND, "a")
    assert fit.fitted is not None
    assert b"Edited" in fit.fitted.body
    assert b"Hello" not in fit.fitted.body


@pytest.mark.parametrize("name", ["a", ""])
def test_a_history_that_was_cut_back_is_asked_as_it_is_now(name: str) -> None:
    messages = conversation(4)
    with Host("memory:") as host:
        threads = Threads(host, Plain(), limit=LIMIT)
        threads.fit(messages, AROUND, name)
        for length in (5, 3, 7):  # as after an undo, and going on from there
            fit = threads.fit(messages[:length], AROUND, name)
            assert fit.fitted is not None
            assert len(fit.fitted.state.asked.messages) == length
            assert len(fit.messages) <= length
            assert validate(body(fit)) == []


def test_every_call_fits_is_valid_and_begins_with_what_was_sent_before() -> None:
    messages = conversation(0)
    before: list[Say] = []
    folds = 0
    with Host("memory:") as host:
        threads = Threads(host, Plain(), limit=LIMIT)
        for n in range(40):
            messages += call(n)
            fit = threads.fit(messages, AROUND, "a")
            assert count(body(fit)).tokens <= LIMIT
            assert validate(body(fit)) == []
            assert fit.fitted is not None
            assert body(fit)["messages"] == [m.value for m in fit.fitted.state.sent.messages]
            folded = any(edit.action in ("fold", "drop") for edit in fit.fitted.edits)
            assert folded or fit.messages[: len(before)] == before  # the very objects
            folds += folded
            before = fit.messages
    assert 0 < folds < 10


def test_messages_are_written_once() -> None:
    messages, form = conversation(0), Plain()
    with Host("memory:") as host:
        threads = Threads(host, form, limit=LIMIT)
        for n in range(10):
            messages += call(n)
            threads.fit(messages, AROUND, "a")
    assert form.written == len(messages)


def test_a_message_of_several_values_is_shown_whole_or_edited_whole() -> None:
    words = Say({"role": "user", "content": "Which requests failed?"})
    turn = Say(*(value for say in call(1) for value in say.values))
    short = Say(*(value for say in call(2, "nothing") for value in say.values))
    with Host("memory:") as host:
        fit = Threads(host, Plain(), limit=LIMIT).fit([words, turn, short], AROUND, "a")
    assert fit.messages[0] is words
    assert fit.messages[2] is short
    edited = fit.messages[1]
    assert edited.values[0] == turn.values[0]
    assert len(edited.values[1]["content"]) < len(LOG) / 4


def test_what_left_is_opened_byte_for_byte() -> None:
    messages = conversation(1)
    with Host("memory:") as host:
        threads = Threads(host, Plain(), limit=LIMIT)
        fit = threads.fit(messages, AROUND, "a")
        assert fit.fitted is not None
        [edit] = [edit for edit in fit.fitted.edits if edit.action == "cite"]
        opened = threads.expand({"ref_id": edit.ref_id, "lines": "300-302"})
        stored = host.run(lambda engine: engine.store.get(engine.scope, edit.ref_id or ""))
    assert "\n".join(LOG.splitlines()[298:301]) in opened
    assert stored is not None
    assert stored.data.decode() == messages[-1].values[0]["content"]


@pytest.mark.parametrize("name", ["", "a"])
def test_what_was_sent_is_sent_again_by_another_process(tmp_path: Any, name: str) -> None:
    messages = conversation(3)  # cited, and far from a fold
    url = f"sqlite:///{tmp_path / 'store.db'}"
    sent = []
    for _ in range(2):
        with Host(url) as host:
            threads = Threads(host, Plain(), limit=LIMIT)
            fit = threads.fit(messages, AROUND, name)
            threads.observe(fit, {"prompt_tokens": 3_000, "completion_tokens": 5})
            sent.append(body(fit)["messages"])
        messages += call(90, "short")
    assert sent[1][: len(sent[0])] == sent[0]


def test_a_store_that_fails_leaves_the_call_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(SqliteStore):
        async def put(self, *_: Any, **__: Any) -> Any:
            raise StoreUnavailableError("the disk is full")

    async def main() -> None:
        threads = Threads(Host(Holdfast(Broken.in_memory())), Plain(), limit=LIMIT)
        messages = conversation(8)
        fit = await threads.afit(messages, AROUND, "a")
        assert fit.messages == messages
        assert fit.fitted is None
        threads.observe(fit)

    asyncio.run(main())
    assert "the disk is full" in caplog.text
    assert "INFO request" not in caplog.text


def test_a_store_that_cannot_be_opened_leaves_the_call_as_it_is() -> None:
    messages = conversation(1)
    host = Host("sqlite:////proc/nowhere/store.db")
    threads = Threads(host, Plain(), limit=LIMIT)
    assert threads.fit(messages, AROUND, "a").messages == messages
    assert "INFO request" not in threads.expand({"ref_id": "text:abc"})


def test_what_is_no_json_leaves_the_call_as_it_is() -> None:
    messages = [Say({"role": "user", "content": "\ud800"})]
    with Host("memory:") as host:
        assert Threads(host, Plain()).fit(messages, AROUND, "a").messages == messages


def test_what_fits_in_no_way_is_an_error_before_it_is_sent() -> None:
    messages = [Say({"role": "user", "content": LOG})]
    with Host("memory:") as host, pytest.raises(BudgetExceededError):
        Threads(host, Plain(), limit=100).fit(messages, AROUND, "a")


def test_a_loop_does_not_wait_for_itself() -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            host = Host(engine)
            with pytest.raises(HoldfastError, match="event loop"):
                host.run(lambda engine: engine.stats())
            assert await host.wait(lambda engine: engine.stats())

    asyncio.run(main())
