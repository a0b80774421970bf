"""Records of every kind for one session, and all that a user can read back of them.

Names, ids and refs are the same for everyone; the words are given by the caller. So two users of
one workspace hold the same ref, the same session, the same job: a statement that forgets whose a
record is mixes them up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.store import Scope, Store
from holdfast.store.answer_store import StoredAnswer
from holdfast.store.fact_store import Fact, FactSource, NewFact
from holdfast.store.queue import Claim, NewJob
from holdfast.store.records import Summary
from holdfast.store.refs import digest
from holdfast.store.tool_store import StoredTool
from holdfast.store.turn_store import NewTurn, TurnFilter
from tests.store.harness import content, named, session, turn

Say = Callable[[str], str]
"""Gives a text for a place, such as `title`."""

AT = 1_800_000_000.0
KEYS = ("k1", "made by a job", "no content")
TOOL = ("github", "search")


def said(id_: str, text: str, **more: Any) -> NewTurn:
    return NewTurn(role="user", content=text, at=AT, id=id_, print=id_, maker="m",
                   index=b"i", **more)  # fmt: skip


def fact(id_: str, text: str, ref: str, in_session: str, **more: Any) -> NewFact:
    source = FactSource(ref, more.pop("place", ""), in_session)
    made = Fact(id=id_, text=text, sources=(source,), created_at=AT, **more)
    return NewFact(fact=made, embedder="e", vector=b"v")


def answer(
    id_: str, prompt: str, text: str, refs: tuple[str, ...], in_session: str
) -> StoredAnswer:
    return StoredAnswer(id=id_, prompt=prompt, signature="sig", answer=text.encode(), refs=refs,
                        vector=b"\1", embedder="e", session=in_session, created_at=AT)  # fmt: skip


def tool(name: str, text: str, **more: Any) -> StoredTool:
    return StoredTool(server="github", name=name, definition=text.encode(), hash="h", tokens=1,
                      intent=text, maker="m", read=b"r", updated_at=AT, **more)  # fmt: skip


async def fill(store: Store, scope: Scope, say: Say) -> list[str]:
    """Store a session with records of every kind; return the refs of its contents.

    The first content is shared by all, the second is this session's, and the third has the
    caller's text.
    """
    name = scope.session
    shared, short, own = content("everybody's"), content(f"of {name}"), content(say("content"))
    detail = {"summary": say("summary"), "compressed": say("compressed")}
    meta = {"url": say("url"), "tool": "read"}
    await store.put(scope, [msgspec.structs.replace(each, **detail, meta=meta)
                            for each in (shared, short, own)])  # fmt: skip
    message = say("message").encode()
    record = session(name, title=say("title"), model=say("model"), client_session="c",
                     head="the same head", updated_at=AT + len(name))  # fmt: skip
    usage = turn(1, [message], model=say("model"), warnings=(say("warning"),))
    await store.add_turn(scope, usage, record, named(message))
    failing = msgspec.structs.replace(usage.usage, failed=True)
    failed = turn(2, [message], model="m", usage=failing, sent=None)
    await store.add_turn(scope, failed, msgspec.structs.replace(record, turns=2), {})
    await store.link(scope, [f"resp_{name}", say("link")])
    words = say("word")
    await store.remembered.add(
        scope, [said("t1", f"we spoke of {words}"), said(f"t2 {name}", f"and again {words}")]
    )
    await store.facts.add(
        scope,
        [
            fact("f1", "Everybody says so.", shared.ref_id, name, place=say("place")),
            fact(f"f2 {name}", say("fact"), own.ref_id, name, subject=say("subject"),
                 said_by="x", tags=("t",)),
            fact(f"f3 {name}", say("fact of a message"), "m1", name),
        ],
    )  # fmt: skip
    await store.answers.put(
        scope, answer("a1", say("prompt"), say("answer"), (shared.ref_id,), name)
    )
    await store.answers.put(scope, answer(f"a2 {name}", say("prompt"), say("answer"), (), name))
    await store.put_summary(scope, "k1", say("of the shared").encode(), source=shared.sha256)
    await store.put_summary(scope, "no content", say("of nothing").encode(), 1e6)
    await store.journal.append(scope, "j", [say("entry").encode(), say("entry").encode()])
    await store.tools.add(scope, [tool("search", say("tool")), tool("open", say("tool"))])
    await store.save_calibration(scope, say("calibration").encode())
    await store.jobs.enqueue(
        scope,
        [
            NewJob(kind="x", key="shared", ref_id=shared.ref_id, most_cost=10),
            NewJob(kind="x", key=f"of {name}", ref_id=short.ref_id, most_cost=10),
            NewJob(kind="x", key=f"no ref {name}"),
        ],
    )
    return [shared.ref_id, short.ref_id, own.ref_id]


async def do_jobs(store: Store) -> None:
    """Take every job once: one is done with a summary, one fails, others are handed back."""
    for job in await store.jobs.claim(Claim(kinds=("x",), limit=100)):
        if job.key == "shared":
            summary = Summary("made by a job", job.scope.user.encode(), digest(b"everybody's"))
            gist = f"gist of {job.scope.user} in {job.scope.workspace}"
            await store.jobs.finish(job, cost=7, summary=summary, gist=gist)
        elif job.key.startswith("of "):
            await store.jobs.fail(job, "it failed", cost=3)
        else:
            await store.jobs.release(job)


async def observe(store: Store, scope: Scope, sessions: tuple[str, ...]) -> dict[str, Any]:
    """Read all that a user can read, by every call, with the store's own numbers left out."""
    user = scope.of("")
    seen = await _of_sessions(store, scope, sessions)
    return (
        seen
        | await _of_user(store, user)
        | await _of_shelves(store, user)
        | {"all usage": await store.across.usage_of_sessions([scope.of(each) for each in sessions])}
    )


async def _of_sessions(store: Store, scope: Scope, sessions: tuple[str, ...]) -> dict[str, Any]:
    user = scope.of("")
    seen: dict[str, Any] = {}
    hashes = [digest(data) for data in (b"frame", b"everybody's")]
    for name in ("", *sessions):
        here = scope.of(name)
        infos = await store.refs(here)
        seen[f"refs {name}"] = infos
        seen[f"newest {name}"] = [await store.refs(here, limit=1),
                                  await store.refs(here, kind="log", limit=2)]  # fmt: skip
        seen[f"usage {name}"] = [await store.usage(here, by="model"),
                                 await store.usage(here, by="day")]  # fmt: skip
        seen[f"facts {name}"] = await store.facts.latest(here, current=False)
        seen[f"answers {name}"] = [await store.answers.latest(here),
                                   await store.answers.latest(here, ref=_first(infos))]  # fmt: skip
        seen[f"jobs {name}"] = [_job(job) for job in await store.jobs.latest(here)]
        holding = await store.remembered.with_words(here, ["spoke"], limit=50)
        seen[f"words {name}"] = [_indexed(each) for each in holding]
        seen[f"journals {name}"] = await store.journal.names(here)
        seen[f"entries {name}"] = await store.journal.read(here, "j")
        if name:
            turns = await store.turns(here)
            seen[f"session {name}"] = [await store.session(here),
                                       await store.session_beside(here, "j")]  # fmt: skip
            seen[f"turns {name}"] = turns
            trail = [sha256 for each in turns if each.sent for sha256 in each.sent.added]
            seen[f"messages {name}"] = await store.messages(here, [*trail, *hashes])
            seen[f"linked {name}"] = await store.session_linked(user, f"resp_{name}")
            seen[f"recent {name}"] = await store.remembered.recent(here, limit=50)
            seen[f"known {name}"] = await store.remembered.known(
                here, [said("t1", ""), msgspec.structs.replace(said("", ""), print="t1")]
            )
            wanted = TurnFilter(session=name)
            seen[f"selected {name}"] = [
                turn_ for _, turn_ in await store.remembered.select(user, wanted)
            ]
    return seen


async def _of_user(store: Store, user: Scope) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    seen["contents"] = [[info, stored and stored.data] for info in await store.refs(user)
                        for stored in [await store.get(user, info.ref_id, peek=True)]]  # fmt: skip
    listed = await store.sessions(user)
    seen["sessions"] = [listed, await store.sessions(user, client_session="c", limit=1)]
    heads = ["the same head"]
    seen["with head"] = [
        await store.session_with_head(user, heads),
        await store.session_with_head(user, heads, client=("c", "")),
    ]
    seen["older"] = [await store.sessions(user, before=record.session) for record in listed]
    seen["summaries"] = [await store.summary(user, key) for key in KEYS]
    seen["calibration"] = await store.calibration(user)
    seen["audit"] = sorted(map(repr, await store.audit(user)))
    stats = await store.stats(user)
    seen["stats"] = msgspec.structs.replace(stats, stored=0)
    seen["spent"] = await store.jobs.spent(user)
    seen["all sessions"] = await store.across.sessions([user], limit=50)
    seen["all days"] = await store.across.usage_by_day([user])
    seen["all failures"] = await store.across.failures([user], limit=50)
    seen["all refs"] = await store.across.refs([user], limit=50)
    seen["all stats"] = msgspec.structs.replace(await store.across.stats([user]), stored=0)
    # The order of the lines is the store's own, and so are the revisions of tools.
    seen["export"] = sorted([_line(line) async for line in store.export(user)], key=repr)
    return seen


async def _of_shelves(store: Store, user: Scope) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    seen["facts by id"] = await store.facts.get(user, ["f1", "f2 s1", "f3 s1"])
    seen["facts before"] = await store.facts.before(user, ["f1", "f2 s1", "f2 s2"])
    seen["facts paged"] = await store.facts.page(user)
    changes = await store.facts.changes(user)
    seen["fact changes"] = sorted(changes.rows)
    seen["confirmed"] = await store.facts.confirm(user, ["f1"], changes.counter)
    seen["turn changes"] = await store.remembered.changes(user)
    indexed = await store.remembered.indexed(user)
    seen["indexed"] = [_indexed(each) for each in indexed]
    opened = await store.remembered.turns(user, [each.place for each in indexed])
    seen["opened"] = [opened[each.place] for each in indexed]
    seen["answer"] = [await store.answers.get(user, id_) for id_ in ("a1", "a2 s1")]
    seen["candidates"] = await store.answers.candidates(user, "sig", "e")
    latest = await store.answers.latest(user)
    seen["older answers"] = [await store.answers.latest(user, before=each.id) for each in latest]
    tools = await store.tools.page(user)
    seen["tools"] = sorted(
        (msgspec.structs.replace(each, revision=0) for each in tools), key=lambda each: each.name
    )
    one = await store.tools.get(user, TOOL)
    seen["tool"] = one and msgspec.structs.replace(one, revision=0)
    seen["stamp"] = (await store.tools.stamp(user)).tools
    return seen


def _first(infos: list[Any]) -> str:
    return infos[0].ref_id if infos else ""


def _job(job: Any) -> Any:
    return msgspec.structs.replace(job, id=0)


def _indexed(each: Any) -> Any:
    return msgspec.structs.replace(each, place=0)


def _line(line: bytes) -> Any:
    value = msgspec.json.decode(line)
    for name in ("revision", "id" if value.get("type") == "job" else "revision"):
        value.pop(name, None)
    if isinstance(value.get("tool"), dict):
        value["tool"].pop("revision", None)
    return value
