"""The engine: originals are stored before citations are shown, and sessions continue."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Holdfast, Scope
from holdfast.condense.kinds import condenser_for
from holdfast.condense.source import Source
from holdfast.store.records import Content
from holdfast.store.refs import REF, digest
from tests.fitting.test_citing import chat, log


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(work())  # type: ignore[arg-type]


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db"


def test_a_citation_can_be_opened_exactly(url: str) -> None:
    async def work() -> None:
        async with Holdfast.open(url) as engine:
            made = await engine.cite(log(500), question="step 0-77")
            assert "step 0-77" in made.text
            stored = await engine.store.get(engine.scope, made.ref_id)
            assert stored is not None
            assert stored.data.decode() == log(500)
            part = await engine.expand_ref(made.ref_id, {"lines": "10-12"})
            assert part.content.splitlines() == log(500).splitlines()[9:12]
            other = Holdfast(engine.store, Scope(user="someone else"))
            assert "no content is stored" in (await other.expand_ref(made.ref_id)).text

    run(work)


def test_what_is_short_is_not_stored(url: str) -> None:
    async def work() -> None:
        async with Holdfast.open(url) as engine:
            assert (await engine.cite("short")).ref_id == ""
            assert await engine.store.refs(engine.scope) == []

    run(work)


def test_large_content_is_cited_off_the_loop(url: str) -> None:
    async def work() -> None:
        async with Holdfast.open(url) as engine:
            made = await engine.cite(log(30_000))
            page = await engine.expand_ref(made.ref_id, {"lines": "29999-30000"})
            assert page.content.splitlines() == log(30_000).splitlines()[-2:]

    run(work)


def test_fit_stores_every_original_it_takes_out(url: str) -> None:
    async def work() -> None:
        async with Holdfast.open(url) as engine:
            for n in range(1, 9):
                body = chat(*(log(80, seed) for seed in range(n)))
                fitted = await engine.fit(body, session="a", limit=2500)
                assert holdfast.count(fitted.body).tokens <= 2500
                for ref in {found[0] for found in REF.finditer(fitted.body.decode())}:
                    if ref != "ref:log:9f2c4e1ab07d3358":  # the example in the tool's description
                        assert await engine.store.get(engine.scope, ref) is not None, ref

    run(work)


def test_a_session_is_recognised_by_its_beginning(url: str) -> None:
    async def work() -> None:
        async with Holdfast.open(url) as engine:
            names = []
            for n in range(1, 4):
                conversation = holdfast.read(chat(*(log(80, seed) for seed in range(n))))
                session = await engine.session_of(conversation)
                names.append(session.name)
                await engine.observe(session, await session.fit(conversation), {"prompt_tokens": 9})
            assert len(set(names)) == 1
            other = await engine.session_of(holdfast.read(chat(log(80), question="Another?")))
            assert other.name not in names
            fresh = Holdfast(engine.store)  # as another process would see it
            conversation = holdfast.read(chat(*(log(80, seed) for seed in range(4))))
            assert (await fresh.session_of(conversation)).name == names[0]

    run(work)


def test_a_session_is_known_before_its_first_turn_is_written_down(url: str) -> None:
    async def work() -> None:
        async with Holdfast.open(url) as engine:
            conversations = [holdfast.read(chat(*[log(80)] * n)) for n in (1, 2)]
            sessions = [await engine.session_of(one) for one in conversations]
            assert sessions[0] is sessions[1]
            fitted = [await sessions[0].fit(one) for one in conversations]
            turns = await asyncio.gather(*(engine.observe(sessions[0], one) for one in fitted))
            assert sorted(turn.number for turn in turns) == [1, 2]
            fresh = await Holdfast(engine.store).session(sessions[0].name).load()
            assert fresh.state is not None
            assert len(fresh.state.asked.messages) == 5

    run(work)


@pytest.mark.parametrize("limit", [2000, 2200, 2400, 2600])  # which folds at other turns
def test_after_a_restart_the_same_bytes_go_out(tmp_path: Path, limit: int) -> None:
    async def work() -> None:
        url = f"sqlite:///{tmp_path}/store.db"
        bodies = [chat(*(log(60, seed) for seed in range(n))) for n in range(1, 12)]
        async with Holdfast.open(url) as engine:
            session = engine.session("s")
            for body in bodies[:-1]:
                fitted = await session.fit(body, limit=limit)
                await engine.observe(session, fitted, {"prompt_tokens": fitted.tokens})
            assert any("fold" in edit.action for turn in await engine.store.turns(session.scope)
                       for edit in turn.edits)  # fmt: skip
            expected = await session.fit(bodies[-1], limit=limit)
        async with Holdfast.open(url) as engine:
            fitted = await engine.session("s").fit(bodies[-1], limit=limit)
            assert fitted.body == expected.body

    run(work)


def test_a_turn_says_what_was_done_and_what_it_saved(url: str) -> None:
    async def work() -> None:
        async with Holdfast.open(url) as engine:
            session = engine.session("s")
            fitted = await session.fit(chat(log(300)))
            usage = {"prompt_tokens": 700, "completion_tokens": 11,
                     "prompt_tokens_details": {"cached_tokens": 600}}  # fmt: skip
            turn = await engine.observe(session, fitted, usage, milliseconds=3.5)
            assert [t.number for t in await engine.store.turns(session.scope)] == [1]
            [edit, offer] = turn.edits
            assert (edit.action, offer.action) == ("cite", "offer")
            assert edit.ref_id == fitted.contents[0].ref_id
            assert edit.from_tokens > edit.to_tokens
            assert (turn.usage.input, turn.usage.cached, turn.usage.output) == (700, 600, 11)
            assert turn.usage.untouched > turn.usage.predicted
            assert turn.usage.cost is not None
            assert turn.usage.saved_cost is not None
            assert turn.usage.saved_cost > 0
            [total] = (await engine.stats())[1]
            assert total.input == 700

    run(work)


def test_two_engines_may_write_to_one_session(tmp_path: Path) -> None:
    async def work() -> None:
        url = f"sqlite:///{tmp_path}/store.db"
        async with Holdfast.open(url) as one, Holdfast.open(url) as two:
            for n in range(1, 5):
                engine = (one, two)[n % 2]
                session = engine.session("s")
                fitted = await session.fit(chat(*(log(60, seed) for seed in range(n))))
                await engine.observe(session, fitted)
            numbers = [turn.number for turn in await one.store.turns(one.scope.of("s"))]
            assert numbers == [1, 2, 3, 4]

    run(work)


@pytest.mark.filterwarnings("ignore::holdfast.tokens.counter.UnknownModelWarning")
def test_what_was_learnt_about_counting_is_kept(tmp_path: Path) -> None:
    async def work() -> None:
        url = f"sqlite:///{tmp_path}/store.db"
        async with Holdfast.open(url) as engine:
            session = engine.session("s")
            for n in range(1, 12):
                fitted = await session.fit(chat(*["short"] * n, model="some-new-model"))
                await engine.observe(session, fitted, {"prompt_tokens": fitted.tokens * 2})
        async with Holdfast.open(url) as engine:
            body = json.dumps(chat(*["short"] * 12, model="some-new-model"))
            plain = holdfast.count(body).tokens
            assert (await engine.fit(body)).tokens > 1.5 * plain

    run(work)


def test_another_content_under_the_same_ref_gets_a_longer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        async with Holdfast.open("memory:") as engine:
            first = holdfast.cite(log(100)).content
            assert first is not None
            put = engine.store.put
            refused: list[str] = []

            async def collide(scope: Scope, contents: Any) -> None:
                # The store's answer when 16 digits are shared, which no test can bring about.
                for content in contents:
                    if len(content.ref_id.rsplit(":", 1)[1]) == 16:
                        refused.append(content.ref_id)
                        raise holdfast.errors.RefCollisionError("two contents would share a ref")
                await put(scope, contents)

            monkeypatch.setattr(engine.store, "put", collide)
            made = await engine.cite(log(100))
            assert refused == [first.ref_id]
            assert made.ref_id == f"ref:{first.kind}:{digest(log(100).encode())[:32]}"
            fitted = await engine.fit(chat(log(100)))
            assert [len(c.ref_id.rsplit(":", 1)[1]) for c in fitted.contents] == [32]
            assert isinstance(fitted.contents[0], Content)

    run(work)


def turn_of(text: str, more: int = 0) -> dict[str, Any]:
    """Return a short separate conversation."""
    messages = [{"role": "user", "content": text}]
    messages += [{"role": ("assistant", "user")[n % 2], "content": f"{n}"} for n in range(more)]
    return {"model": "gpt-4o", "messages": messages}


def test_a_session_of_many_turns_goes_on_from_its_last() -> None:
    async def work() -> None:
        async with Holdfast.open("memory:") as engine:
            session = engine.session("s")
            for n in range(1_003):  # more than a store lists at once
                fitted = await session.fit(turn_of(f"question {n}"))
                await engine.observe(session, fitted)
            fresh = await Holdfast(engine.store).session("s").load()
            assert fresh.state is not None
            assert fresh.state.asked.messages[0].value["content"] == "question 1002"

    run(work)


def test_turns_of_two_engines_with_different_histories_are_read_as_they_were(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        url = f"sqlite:///{tmp_path}/store.db"
        async with Holdfast.open(url) as one, Holdfast.open(url) as two:

            async def turn(engine: Holdfast, body: dict[str, Any]) -> None:
                session = engine.session("s")
                await engine.observe(session, await session.fit(body))

            await turn(one, turn_of("first", 4))
            await turn(two, turn_of("first", 6))
            await turn(one, turn_of("rewritten"))  # it shares nothing with the turn before
            await turn(two, turn_of("first", 8))  # it shares all with a turn before that
            fresh = await Holdfast(one.store).session("s").load()
            assert fresh.state is not None
            shown = [message.value["content"] for message in fresh.state.asked.messages]
            assert shown == ["first", *map(str, range(8))]

    run(work)


@pytest.mark.parametrize("ended", ["deleted", "closed", "deleted and written again"])
def test_a_session_that_was_ended_meanwhile_shows_no_ref_that_is_gone(url: str, ended: str) -> None:
    async def work() -> None:
        now = [1_800_000_000.0]
        async with Holdfast.open(url, clock=lambda: now[0]) as engine:
            session = engine.session("s")
            first = await session.fit(chat(log(80)))
            await engine.observe(session, first)
            now[0] += 100_000
            if ended == "closed":
                await engine.store.close_session(session.scope)
                now[0] += 100_000
                assert (await engine.store.gc(engine.scope)).refs == 1
            else:
                await engine.store.delete_session(session.scope)
            if ended == "deleted and written again":
                other = Holdfast(engine.store, clock=lambda: now[0])
                await other.observe(other.session("s"), await other.fit(turn_of("x"), session="s"))
            for body in (chat(log(80), "short"), chat(log(80), "short", "short")):
                fitted = await session.fit(body)
                turn = await engine.observe(session, fitted)
                for ref in {found[0] for found in REF.finditer(fitted.body.decode())}:
                    if ref != "ref:log:9f2c4e1ab07d3358":
                        assert await engine.store.get(engine.scope, ref) is not None
            assert (await engine.store.turns(session.scope))[-1].number == turn.number

    run(work)


def test_a_run_that_was_cleaned_up_before_its_first_turn_shows_no_ref_that_is_gone(
    url: str,
) -> None:
    async def work() -> None:
        async with Holdfast.open(url) as engine:
            first = await engine.fit(chat(log(80)), session="s")
            [content] = first.contents
            assert await engine.store.delete_session(engine.scope.of("s")) == 1
            again = await engine.fit(chat(log(80), "short"), session="s")
            assert content.ref_id.encode() in again.body
            assert await engine.store.get(engine.scope, content.ref_id) is not None

    run(work)


def test_two_fits_at_once_both_go_on_from_what_was_sent_before(tmp_path: Path) -> None:
    async def work() -> None:
        url = f"sqlite:///{tmp_path}/store.db"
        bodies = [chat(*(log(60, seed) for seed in range(n))) for n in range(1, 12)]
        async with Holdfast.open(url) as engine:
            session = engine.session("s")
            for body in bodies[:-1]:
                await engine.observe(session, await session.fit(body, limit=2200))
            expected = await session.fit(bodies[-1], limit=2200)
        async with Holdfast.open(url) as engine:
            session = engine.session("s")
            both = await asyncio.gather(*(session.fit(bodies[-1], limit=2200) for _ in range(2)))
            assert {fitted.body for fitted in both} == {expected.body}

    run(work)


def test_what_may_not_be_stored_is_in_no_turn_either(url: str) -> None:
    async def work() -> None:
        settings = holdfast.Settings(privacy_policy="refuse")
        secret = "AKIA" + "QWERTYUIOPASDFGH"
        async with Holdfast.open(url, settings=settings) as engine:
            session = engine.session("s")
            body = turn_of(f"my key is {secret}", 2)
            await engine.observe(session, await session.fit(body))
            lines = b"".join([line async for line in engine.store.export(session.scope)])
            assert b'"turn"' in lines
            for data in (json.loads(line).get("data") for line in lines.splitlines()):
                assert secret not in b64decode(data or "").decode()
            fresh = Holdfast(engine.store)
            again = await fresh.fit(body, session="s")
            assert json.loads(again.body) == body

    run(work)


def test_citations_can_be_switched_off(url: str) -> None:
    async def work() -> None:
        settings = holdfast.Settings(enable_content_citations=False)
        body = json.dumps(chat(log(300))).encode()
        async with Holdfast.open(url, settings=settings) as engine:
            for session in ("", "s"):
                fitted = await engine.fit(body, session=session)
                assert fitted.body == body
            assert await engine.store.refs(engine.scope) == []

    run(work)


def test_who_only_reads_writes_nothing(url: str) -> None:
    async def work() -> None:
        async with Holdfast.open(url) as engine:
            store = engine.store
            saved: list[bytes] = []

            async def save(_: Scope, data: bytes) -> None:
                saved.append(data)

            store.save_calibration = save  # type: ignore[method-assign,assignment]
            await engine.expand_ref("ref:log:0123456789abcdef")
        assert saved == []

    run(work)


def test_a_conversation_that_was_repaired_is_recognised_after_a_restart(url: str) -> None:
    async def work() -> None:
        broken = chat("short")
        broken["messages"].insert(1, {"role": "tool", "tool_call_id": "none", "content": "lost"})
        longer = {**broken, "messages": [*broken["messages"], {"role": "user", "content": "On."}]}
        async with Holdfast.open(url) as engine:
            session = await engine.session_of(holdfast.read(broken))
            fitted = await session.fit(holdfast.read(broken))
            assert fitted.state.asked is not None
            await engine.observe(session, fitted)
            fresh = Holdfast(engine.store)
            assert (await fresh.session_of(holdfast.read(longer))).name == session.name

    run(work)


def test_a_text_as_input_is_taken_up_again_after_a_restart(tmp_path: Path) -> None:
    async def work() -> None:
        url = f"sqlite:///{tmp_path}/store.db"
        body = {"model": "gpt-5", "input": "What is it?"}
        async with Holdfast.open(url) as engine:
            session = engine.session("s")
            await engine.observe(session, await session.fit(body))
        async with Holdfast.open(url) as engine:
            again = await engine.session("s").fit(body)
            assert json.loads(again.body) == body

    run(work)


@pytest.mark.parametrize("session", ["", "s"])
def test_others_go_on_while_a_large_request_is_worked_on(session: str) -> None:
    async def work() -> None:
        async with Holdfast.open("memory:") as engine:
            body = json.dumps(chat(log(30_000))).encode()
            fitting = asyncio.ensure_future(engine.fit(body, session=session))
            turns = 0
            while not fitting.done():
                turns += 1
                await asyncio.sleep(0)
            assert len((await fitting).contents) == 1
            assert turns > 20  # of the loop; on it, the work would be one of three

    run(work)


def test_no_representation_holds_content(url: str) -> None:
    async def work() -> None:
        async with Holdfast.open(url) as engine:
            text = "the zebra went away\n" * 200
            made = await engine.cite(text, question="zebra")
            session = engine.session("s")
            fitted = await session.fit(chat(text, question="Where is the zebra?"))
            turn = await engine.observe(session, fitted)
            stored = await engine.store.get(engine.scope, made.ref_id)
            opened = await engine.expand_ref(made.ref_id, {"query": "zebra"})
            source = Source(text.encode())
            condenser = condenser_for(source)
            shown: list[object] = [made, made.content, stored, opened, fitted, fitted.contents]
            shown += [fitted.state, session, turn, fitted.edits, condenser.condense(source)]
            shown += [condenser.passages(source)]
            for value in shown:
                assert "zebra" not in repr(value)

    run(work)
