"""Contents that a person puts back are complete from the next request on, in any process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Holdfast
from holdfast.errors import StoreError
from holdfast.fitting import FitOptions, Fitted
from holdfast.store import Scope
from holdfast.wire import read
from tests.engine.test_open_ahead import sent
from tests.fitting.test_citing import chat, in_dialect, log
from tests.trim.test_fit import DIALECTS


def how(engine: Holdfast, dialect: str = "openai-chat", limit: int | None = None) -> FitOptions:
    """Cite every long result."""
    rules = msgspec.structs.replace(engine.options.rules, policy="always")
    return msgspec.structs.replace(
        engine.options, rules=rules, model="gpt-4o", dialect=dialect, limit=limit
    )


def spans(body: bytes, dialect: str) -> list[bytes]:
    return [message.raw for message in read(body, dialect).messages]


def refs_hidden(fitted: Fitted) -> list[str]:
    return [edit.ref_id for edit in fitted.edits if edit.action in ("cite", "fold")]


def talk(turns: int, lines: int = 200) -> dict[str, Any]:
    return chat(*(log(lines + n) for n in range(turns)))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_cited_result_goes_out_in_the_clients_bytes_and_stays(dialect: str) -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            session, options = engine.session("s"), how(engine, dialect)
            first = in_dialect(talk(1), dialect)
            [ref] = refs_hidden(await sent(engine, session, first, options))
            own = spans(first, dialect)[-1]
            await session.put_back(ref)
            second = await sent(engine, session, in_dialect(talk(2), dialect), options)
            assert own in spans(second.body, dialect)
            restored = next(edit for edit in second.edits if edit.action == "restore")
            assert ref in restored.what
            assert restored.to_tokens > restored.from_tokens + 500
            third = await sent(engine, session, in_dialect(talk(3), dialect), options)
            assert own in spans(third.body, dialect)
            assert "restore" not in [edit.action for edit in third.edits], "it was done once"
            assert third.body.startswith(second.body[: second.body.index(own)])

    asyncio.run(main())


def test_a_fold_is_undone_and_other_messages_are_folded_instead() -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            session, options = engine.session("s"), how(engine, limit=6_000)
            options = msgspec.structs.replace(options, cites=False)
            turns, fold = 1, ""
            while not fold:
                turns += 1
                body = json.dumps(talk(turns, lines=60)).encode()
                fitted = await sent(engine, session, body, options)
                fold = next(iter(refs_hidden(fitted)), "")
            state = session.state
            assert state is not None
            [edit] = [edit for edit in fitted.edits if edit.action == "fold"]
            own = [message.raw for message in state.asked.messages[edit.start : edit.stop]]
            await session.put_back(fold)
            wide = msgspec.structs.replace(options, limit=30_000)
            for more in range(turns + 1, turns + 30):
                body = json.dumps(talk(more, lines=60)).encode()
                fitted = await sent(engine, session, body, wide)
                assert set(own) <= set(spans(fitted.body, "openai-chat")), more
            assert [e for turn in await engine.store.turns(session.scope, after=turns)
                    for e in turn.edits if e.action == "fold"]  # fmt: skip

    asyncio.run(main())


def test_what_does_not_fit_stays_hidden_and_the_request_goes_out() -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            session, options = engine.session("s"), how(engine, limit=3_000)
            [ref] = refs_hidden(await sent(engine, session, json.dumps(talk(1, 900)).encode(),
                                           options))  # fmt: skip
            await session.put_back(ref)
            fitted = await sent(engine, session, json.dumps(talk(2, 900)).encode(), options)
            assert "restore" not in [edit.action for edit in fitted.edits]
            assert ref in fitted.body.decode()
            wish = (await session.wishes.all())[ref]
            assert (wish.whole, wish.why) == (False, "there was no room for it")

    asyncio.run(main())


def test_another_process_and_a_restart_obey_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"

    async def main() -> None:
        async with Holdfast.open(url) as answering, Holdfast.open(url) as looking:
            session, options = answering.session("s"), how(answering)
            first = json.dumps(talk(1)).encode()
            [ref] = refs_hidden(await sent(answering, session, first, options))
            await looking.session("s").put_back(ref)
            fitted = await sent(answering, session, json.dumps(talk(2)).encode(), options)
            own = spans(first, "openai-chat")[-1]
            assert own in spans(fitted.body, "openai-chat")
        async with Holdfast.open(url) as later:
            session = later.session("s")
            fitted = await sent(later, session, json.dumps(talk(3)).encode(), how(later))
            assert own in spans(fitted.body, "openai-chat")
            rewritten = talk(4)
            rewritten["messages"][0]["content"] = "Another question?"  # nothing is replayed
            fitted = await sent(later, session, json.dumps(rewritten).encode(), how(later))
            assert own in spans(fitted.body, "openai-chat")
            assert len(refs_hidden(fitted)) == 3

    asyncio.run(main())


def test_look_for_another_request_is_not_taken_for_one_of_its_own(tmp_path: Path) -> None:
    """One that is only looked up, or answered from memory, never comes to be fitted."""
    url = f"sqlite:///{tmp_path / 'store.db'}"

    async def main() -> None:
        async with Holdfast.open(url) as here, Holdfast.open(url) as there:
            session, options = here.session("s"), how(here)
            first = in_dialect(talk(1), "openai-chat")
            [ref] = refs_hidden(await sent(here, session, first, options))
            await sent(here, session, first, options)  # by now it knows how many wishes there are
            longer = in_dialect(talk(2), "openai-chat")
            await here.sessions.look_up(read(longer, "openai-chat"))
            await there.session("s").put_back(ref)
            second = await sent(here, session, longer, options)
            assert spans(first, "openai-chat")[-1] in spans(second.body, "openai-chat")

    asyncio.run(main())


def test_who_never_wrote_down_what_it_sent_obeys_too(tmp_path: Path) -> None:
    """Its first request was abandoned; another process continued the session."""
    url = f"sqlite:///{tmp_path / 'store.db'}"

    async def main() -> None:
        async with Holdfast.open(url) as here, Holdfast.open(url) as there:
            options, first = how(here), in_dialect(talk(1), "openai-chat")
            await here.session("s").fit(first, options)
            [ref] = refs_hidden(await sent(there, there.session("s"), first, options))
            await there.session("s").put_back(ref)
            longer = in_dialect(talk(2), "openai-chat")
            second = await sent(here, here.session("s"), longer, options)
            assert spans(first, "openai-chat")[-1] in spans(second.body, "openai-chat")

    asyncio.run(main())


def test_request_that_was_looked_up_is_not_looked_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            options = how(engine)
            body = in_dialect(talk(1), "openai-chat")
            session = await engine.session_of(read(body, "openai-chat"))
            await sent(engine, session, body, options)
            looks, look = [], engine.store.session_beside

            async def looked(scope: Scope, journal: str) -> Any:
                looks.append(journal)
                return await look(scope, journal)

            monkeypatch.setattr(engine.store, "session_beside", looked)
            again = read(in_dialect(talk(2), "openai-chat"), "openai-chat")
            assert await engine.session_of(again) is session
            await session.fit(again, options)
            assert len(looks) == 1

    asyncio.run(main())


def test_marks_for_the_vendors_cache_may_move_and_it_stays_whole() -> None:
    def body(turns: int) -> bytes:
        asked = json.loads(in_dialect(talk(turns), "anthropic"))
        asked["messages"][-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        return json.dumps(asked).encode()

    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            session, options = engine.session("s"), how(engine, "anthropic")
            [ref] = refs_hidden(await sent(engine, session, body(1), options))
            await session.put_back(ref)
            for turns in (2, 3, 4):
                fitted = await sent(engine, session, body(turns), options)
                result = json.loads(fitted.body)["messages"][2]["content"][0]
                assert log(200) in json.dumps(result["content"]).replace("\\n", "\n")

    asyncio.run(main())


def test_it_may_be_taken_back_and_what_is_unknown_is_refused() -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            session, options = engine.session("s"), how(engine)
            with pytest.raises(StoreError, match="stands for the ref"):
                await session.put_back("ref:log:0123456789abcdef")
            [ref] = refs_hidden(await sent(engine, session, json.dumps(talk(1)).encode(), options))
            await session.put_back(ref)
            await session.put_back(ref, whole=False)
            fitted = await sent(engine, session, json.dumps(talk(2)).encode(), options)
            assert ref in fitted.body.decode()
            assert await session.wishes.names() == frozenset()
            assert await engine.session("t").wishes.all() == {}

    asyncio.run(main())


@settings(max_examples=12, deadline=None)
@given(
    dialect=st.sampled_from(DIALECTS),
    lines=st.lists(st.integers(5, 260), min_size=2, max_size=7),
    chosen=st.lists(st.integers(0, 20), max_size=3),
    limit=st.sampled_from([None, 4_000, 9_000]),
)
def test_whatever_is_put_back_every_request_fits_and_comes_back(
    dialect: str, lines: list[int], chosen: list[int], limit: int | None
) -> None:
    async def main() -> None:
        async with Holdfast.open("memory:") as engine:
            session, options = engine.session("s"), how(engine, dialect, limit)
            refs: list[str] = []
            for n in range(1, len(lines) + 1):
                body = in_dialect(chat(*map(log, lines[:n])), dialect)
                refs += refs_hidden(await sent(engine, session, body, options))
                for choice in chosen:
                    if refs:
                        ref = refs[choice % len(refs)]
                        try:
                            await session.put_back(ref, whole=bool((choice + n) % 3))
                        except StoreError:
                            continue  # it was folded since, or is complete

    asyncio.run(main())
