"""Nobody sees, changes or waits for another tenant's records: in every store, and through the
proxy.

Three tenants with the same names for everything call a store at random. Each has a twin, a separate
store that no other tenant uses: the shared store must return the twin's results. Three keys use the
proxy, with their own names and each other's; every word of a tenant has its mark, and no mark may
appear in another tenant's results or requests.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import quote

import asyncpg  # type: ignore[import-untyped]
import msgspec
import pytest
from starlette.routing import Route

from holdfast.errors import HoldfastError
from holdfast.store import Scope, Store, open_store
from holdfast.store.answer_store import AnswerStore, StoredAnswer
from holdfast.store.fact_store import Fact, FactFilter, FactSource, FactStore, NewFact
from holdfast.store.journal import JournalStore
from holdfast.store.queue import Claim, Job, JobQueue, NewJob
from holdfast.store.records import CleanupResult, RefInfo, Stored, StoreStats
from holdfast.store.tool_store import StoredTool, ToolStore
from holdfast.store.turn_store import IndexedTurn, NewTurn, TurnFilter, TurnStore
from holdfast.store.usage_ledger import Amount, Reservation, UsageLedger
from holdfast.surfaces.proxy.routes import PREFIXES
from holdfast.surfaces.proxy.server import application
from tests.hardening.asks import Asked
from tests.hardening.campaign import Campaign, short_and_full
from tests.hardening.driving import Answer, Era, era
from tests.store.harness import Clock, content, exported, lines_of, named, session, turn
from tests.store.oracle.store import model_store
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import DIALECTS, path_of, request_in

OPERATIONS = 100_000
SHORT = 400
SHORT_OF_STORES = 6_000
"""So that every call has returned something at least once; with 400, 25 calls compared nothing."""
ERA = 1_000
"""Operations of three tenants, before three others start: the stored data grows with every one."""
_WHOLE = frozenset({"erase", "expire", "export", "restore", "verify", "gc", "stats", "audit"})
"""Calls that read all there is: one in eight is one of them."""
_WITHOUT_RESULT = frozenset(
    {"answers.hit", "answers.put", "put", "put_summary", "restore", "save_calibration"}
    | {"tools.used", "verify", "ledger.renew", "ledger.settle"}
)
"""Calls that return nothing, or only faults; the others must return something."""
PATIENCE = 60.0

# --- stores --------------------------------------------------------------------------------------

_CONTENTS = [
    content(words, kind, ttl_seconds=ttl)
    for words in ("a", "b" * 300, "c")
    for kind, ttl in (("log", None), ("page", 500.0))
]
_MESSAGES = [b"m", b"n" * 400, b"o"]
_SAID = [
    NewTurn(role="user", content=words, at=1.0, print=words, maker="m", index=b"i")
    for words in ("my garden", "a house", "the garden of a house")
]

Call = Callable[[Store, Scope, random.Random], Awaitable[Any]]


def _names(chance: random.Random) -> list[str]:
    """Of contents that somebody may have: by ref, by hash, in an older form."""
    one = chance.choice(_CONTENTS)
    return [chance.choice([one.ref_id, one.sha256, f"src_{one.sha256[:20]}"])]


async def _put(store: Store, scope: Scope, chance: random.Random) -> Any:
    return await store.put(scope, chance.sample(_CONTENTS, chance.randrange(3)))


async def _add_turn(store: Store, scope: Scope, chance: random.Random) -> Any:
    messages = chance.sample(_MESSAGES, 2)
    record = session(scope.session, head=f"h{chance.randrange(3)}", updated_at=chance.random())
    number = chance.randrange(1, 4)
    return await store.add_turn(scope, turn(number, messages), record, named(*messages[:1]))


async def _put_summary(store: Store, scope: Scope, chance: random.Random) -> Any:
    source = chance.choice(["", chance.choice(_CONTENTS).sha256])
    return await store.put_summary(scope, chance.choice("kl"), chance.randbytes(2), source=source)


async def _remember(store: Store, scope: Scope, chance: random.Random) -> Any:
    known = await store.remembered.known(scope, turns := chance.sample(_SAID, 2))
    named = [
        msgspec.structs.replace(turn, id=place.id) for turn, place in zip(turns, known, strict=True)
    ]
    return [*known, await store.remembered.add(scope, named)]


async def _places(store: Store, scope: Scope, chance: random.Random) -> list[int]:
    """Of turns that somebody may have: places are numbers, which anybody can guess."""
    mine = [place for place, _ in await store.remembered.select(scope, TurnFilter())]
    return [*chance.sample(mine, min(len(mine), 1)), chance.randrange(-3, 0)]


async def _open_turns(store: Store, scope: Scope, chance: random.Random) -> Any:
    return [*(await store.remembered.turns(scope, await _places(store, scope, chance))).values()]


async def _forget_turns(store: Store, scope: Scope, chance: random.Random) -> Any:
    return await store.remembered.forget(scope, await _places(store, scope, chance))


async def _select_turns(store: Store, scope: Scope, _: random.Random) -> Any:
    rows = await store.remembered.select(scope, TurnFilter(session=scope.session or None))
    return [turn for _, turn in rows]


async def _words(store: Store, scope: Scope, _: random.Random) -> Any:
    rows = await store.remembered.with_words(scope, ["garden"], limit=50)
    return sorted((row.session, row.number) for row in rows)


def _fact(chance: random.Random) -> Fact:
    """Return one of a few facts, so that ids, words and subjects of different tenants collide."""
    number = chance.randrange(4)
    ref = chance.choice(["m", *_names(chance)])
    return Fact(
        id=f"f{number}",
        text=f"{chance.choice('xy')} {number}",
        sources=(FactSource(ref, "", chance.choice(["", "s1"])),),
        subject=chance.choice(["", "home"]),
        tags=chance.choice([(), ("t",)]),
        created_at=float(chance.randrange(3)),
    )


async def _add_facts(store: Store, scope: Scope, chance: random.Random) -> Any:
    fact = _fact(chance)
    known = await store.facts.get(scope, [fact.id])
    return None if known else await store.facts.add(scope, [NewFact(fact=fact)])


async def _changed(store: Store, scope: Scope) -> Any:
    return sorted(row.id for row in (await store.facts.changes(scope)).rows)


async def _confirmed(store: Store, scope: Scope, fact_id: str) -> Any:
    counter = (await store.facts.changes(scope)).counter
    return await store.facts.confirm(scope, [fact_id], counter)


async def _enqueue(store: Store, scope: Scope, chance: random.Random) -> Any:
    """Queue a job and finish this tenant's, so that there is something spent to compare."""
    new = NewJob(kind="sum", key=chance.choice("pq"), most_cost=5)
    added = await store.jobs.enqueue(scope, [new])
    finished = []
    for job in await store.jobs.claim(Claim(kinds=("sum",), limit=1_000)):
        if job.scope.of("") == scope.of(""):
            await store.jobs.finish(job, cost=3)
            finished.append((job.key, job.scope.session))
        else:
            await store.jobs.release(job)
    return added, sorted(finished)


def _answer(chance: random.Random) -> StoredAnswer:
    return StoredAnswer(
        id=chance.choice("vw"),
        prompt="p" * chance.randrange(300),
        signature="sig",
        answer=chance.randbytes(2),
        refs=(chance.choice(_CONTENTS).ref_id,) if chance.random() < 0.3 else (),
        vector=b"v",
        embedder="e",
        expires_at=chance.choice([None, Clock().now + 300.0]),
    )


async def _restore(store: Store, scope: Scope, _: random.Random) -> Any:
    return await store.restore(scope, lines_of(await exported(store, scope)))


def _tool(chance: random.Random) -> StoredTool:
    name, hash_ = chance.choice("ab"), chance.choice(["h1", "h2"])
    return StoredTool(server=chance.choice(["", "s"]), name=name, definition=b"{}", hash=hash_)


async def _replaced(store: Store, scope: Scope, tool: StoredTool) -> bool:
    """Whether who saw the last revision, and whether who saw none, may change a tool."""
    earlier = await store.tools.get(scope, tool.key)
    seen = 0 if earlier is None else earlier.revision
    return await store.tools.replace(scope, msgspec.structs.replace(tool, revision=seen))


async def _number_of_tools(store: Store, scope: Scope) -> int:
    return (await store.tools.stamp(scope)).tools


def _reserved(chance: random.Random) -> Reservation:
    """Draw a new one: SQLite refuses a token that is reserved twice, the store in memory not."""
    return msgspec.structs.replace(_reservation(chance), token=f"z{chance.random()}")


def _reservation(chance: random.Random) -> Reservation:
    """One of few, so that tokens meet; each is new, for a token is made once."""
    return Reservation(
        token=f"{chance.choice('xy')}{chance.random()}" if chance.random() < 0.7 else "x",
        day=7,
        most=Amount(chance.randrange(40), 0.5),
        least=Amount(1, 0.25),
        expires_at=chance.choice([50.0, 90.0]),
    )


async def _expire(store: Store, scope: Scope, chance: random.Random) -> Any:
    """Remove old records, rarely: otherwise later calls would have little to compare."""
    return await store.expire(scope, 1.5) if chance.random() < 0.2 else None


async def _erase(store: Store, scope: Scope, chance: random.Random) -> Any:
    """Erase a tenant, seldom."""
    return await store.erase(scope) if chance.random() < 0.2 else None


CALLS: dict[str, Call] = {
    "put": _put,
    "get": lambda store, scope, chance: store.get(scope, *_names(chance)),
    "info": lambda store, scope, chance: store.info(scope, *_names(chance)),
    "refs": lambda store, scope, chance: store.refs(
        scope, limit=chance.randrange(4), before=chance.choice(["", *_names(chance)])
    ),
    "forget": lambda store, scope, chance: store.forget(scope, _names(chance)),
    "summary": lambda store, scope, chance: store.summary(scope, chance.choice("kl")),
    "put_summary": _put_summary,
    "jobs.enqueue": _enqueue,
    "jobs.latest": lambda store, scope, _: store.jobs.latest(scope),
    "jobs.spent": lambda store, scope, _: store.jobs.spent(scope),
    "remembered.known": lambda store, scope, chance: store.remembered.known(
        scope, chance.sample(_SAID, 2)
    ),
    "remembered.add": _remember,
    "remembered.changes": lambda store, scope, _: store.remembered.changes(scope),
    "remembered.indexed": lambda store, scope, _: store.remembered.indexed(scope),
    "remembered.with_words": _words,
    "remembered.turns": _open_turns,
    "remembered.recent": lambda store, scope, _: store.remembered.recent(scope, limit=3),
    "remembered.select": _select_turns,
    "remembered.forget": _forget_turns,
    "facts.add": _add_facts,
    "facts.get": lambda store, scope, chance: store.facts.get(scope, [_fact(chance).id]),
    "facts.latest": lambda store, scope, chance: store.facts.latest(
        scope, current=chance.random() < 0.5, tag=chance.choice(["", "t"])
    ),
    "facts.before": lambda store, scope, chance: store.facts.before(scope, [_fact(chance).id]),
    "facts.page": lambda store, scope, chance: store.facts.page(scope, _fact(chance).id),
    "facts.remove": lambda store, scope, chance: store.facts.remove(scope, [_fact(chance).id]),
    "facts.changes": lambda store, scope, _: _changed(store, scope),
    "facts.confirm": lambda store, scope, chance: _confirmed(store, scope, _fact(chance).id),
    "facts.history": lambda store, scope, chance: store.facts.history(scope, _fact(chance).id),
    "facts.matching": lambda store, scope, chance: store.facts.matching(
        scope, FactFilter(session=scope.session, words=chance.choice("xy"))
    ),
    "answers.put": lambda store, scope, chance: store.answers.put(scope, _answer(chance)),
    "answers.get": lambda store, scope, chance: store.answers.get(scope, chance.choice("vw")),
    "answers.candidates": lambda store, scope, _: store.answers.candidates(scope, "sig", "e"),
    "answers.hit": lambda store, scope, chance: store.answers.hit(scope, chance.choice("vw")),
    "answers.latest": lambda store, scope, chance: store.answers.latest(
        scope, ref=chance.choice(["", chance.choice(_CONTENTS).ref_id])
    ),
    "answers.forget": lambda store, scope, chance: store.answers.forget(
        scope, [chance.choice("vw")]
    ),
    "tools.add": lambda store, scope, chance: store.tools.add(scope, [_tool(chance)]),
    "tools.replace": lambda store, scope, chance: _replaced(store, scope, _tool(chance)),
    "tools.get": lambda store, scope, chance: store.tools.get(scope, _tool(chance).key),
    "tools.page": lambda store, scope, _: store.tools.page(scope),
    "tools.stamp": lambda store, scope, _: _number_of_tools(store, scope),
    "tools.used": lambda store, scope, chance: store.tools.used(scope, [_tool(chance).key]),
    "tools.forget": lambda store, scope, chance: store.tools.forget(scope, [_tool(chance).key]),
    "session": lambda store, scope, _: store.session(scope),
    "sessions": lambda store, scope, chance: store.sessions(
        scope, before=chance.choice(["", "s1"])
    ),
    "session_with_head": lambda store, scope, chance: store.session_with_head(
        scope, chance.sample(["h0", "h1", "h2"], 2)
    ),
    "session_beside": lambda store, scope, chance: store.session_beside(scope, chance.choice("jk")),
    "journal.append": lambda store, scope, chance: store.journal.append(
        scope, chance.choice("jk"), [chance.randbytes(2)], expect=chance.choice([None, 1, 2])
    ),
    "journal.read": lambda store, scope, chance: store.journal.read(scope, chance.choice("jk")),
    "journal.names": lambda store, scope, chance: store.journal.names(
        scope, chance.choice(["", "j"])
    ),
    "journal.forget": lambda store, scope, chance: store.journal.forget(scope, chance.choice("jk")),
    "ledger.day_use": lambda store, scope, _: store.ledger.day_use(scope, 7),
    "ledger.reserve": lambda store, scope, chance: store.ledger.reserve(
        scope, _reserved(chance), Amount(90, 9.0), chance.choice([0.0, 60.0])
    ),
    "ledger.renew": lambda store, scope, chance: store.ledger.renew(scope, chance.choice("xy"), 99),
    "ledger.settle": lambda store, scope, chance: store.ledger.settle(
        scope, _reservation(chance), Amount(chance.randrange(9), 0.5)
    ),
    "add_turn": _add_turn,
    "turns": lambda store, scope, _: store.turns(scope),
    "messages": lambda store, scope, _: store.messages(scope, sorted(named(*_MESSAGES))),
    "link": lambda store, scope, chance: store.link(scope, chance.sample(["r1", "r2"], 1)),
    "session_linked": lambda store, scope, _: store.session_linked(scope, "r1", "r2"),
    "close_session": lambda store, scope, _: store.close_session(scope),
    "delete_session": lambda store, scope, _: store.delete_session(scope),
    "erase_session": lambda store, scope, _: store.erase_session(scope),
    "usage": lambda store, scope, _: store.usage(scope, by="session"),
    "calibration": lambda store, scope, _: store.calibration(scope),
    "save_calibration": lambda store, scope, chance: store.save_calibration(
        scope, chance.randbytes(3)
    ),
    "audit": lambda store, scope, _: store.audit(scope, limit=3),
    "stats": lambda store, scope, _: store.stats(scope),
    "verify": lambda store, scope, _: store.verify(scope),
    "gc": lambda store, scope, chance: store.gc(scope, grace_seconds=chance.choice([-1.0, 300.0])),
    "expire": _expire,
    "erase": _erase,
    "export": lambda store, scope, _: _export(store, scope),
    "restore": _restore,
}
"""Every method that a scope is given to, with arguments by chance."""


async def _export(store: Store, scope: Scope) -> list[bytes]:
    return sorted(await exported(store, scope))


async def _outcome(call: Call, store: Store, scope: Scope, seed: str) -> Any:
    try:
        return _comparable(await call(store, scope, random.Random(seed)))
    except HoldfastError as error:
        return type(error).__name__, error.what


def _comparable(value: Any) -> Any:
    """Return a value without fields that may differ: bytes on the disk, pending accesses."""
    match value:
        case Stored(info, data):
            return _comparable(info), data
        case RefInfo():
            return info_without_accesses(value)
        case StoreStats():
            return {**{name: getattr(value, name) for name in value.__struct_fields__}, "stored": 0}
        # Users of one workspace share equal contents, which are removed with the last user's.
        case CleanupResult():
            return value.refs
        case Job() | StoredTool():  # its number is one of everyone's
            return _unnumbered(value)
        case IndexedTurn():  # likewise its place
            return value.session, value.number, value.index
        case list():
            return [_comparable(part) for part in value]
        case _:
            return value


def _unnumbered(value: Job | StoredTool) -> Any:
    if isinstance(value, Job):
        return value.kind, value.key, value.state
    return msgspec.structs.replace(value, revision=0)


def info_without_accesses(info: RefInfo) -> dict[str, Any]:
    fields = {name: getattr(info, name) for name in info.__struct_fields__}
    return {**fields, "accesses": 0, "accessed_at": None}


def test_every_method_that_a_scope_is_given_to_is_asked() -> None:
    scoped = {
        prefix + name
        for prefix, kind in (
            ("", Store),
            ("jobs.", JobQueue),
            ("remembered.", TurnStore),
            ("facts.", FactStore),
            ("answers.", AnswerStore),
            ("tools.", ToolStore),
            ("journal.", JournalStore),
            ("ledger.", UsageLedger),
        )
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if "scope" in inspect.signature(method).parameters
    }
    assert scoped == CALLS.keys()


def tenants(era: int = 0) -> tuple[Scope, Scope, Scope]:
    """Two keys; and another user in the workspace of the first, with whom contents are shared."""
    first, second = f"key-a{era}", f"key-b{era}"
    return Scope("local", first), Scope("local", second), Scope("other", first)


async def _asked_by_three(campaign: Campaign, url: str, most: int) -> None:
    clock = Clock()
    shared = await open_store(url, clock=clock)
    twins: dict[Scope, Store] = {}
    some, whole = sorted(CALLS.keys() - _WHOLE), sorted(_WHOLE)
    telling: set[str] = set()
    try:
        for number in campaign.rounds(most):
            if number % ERA == 0:
                asking = tenants(number // ERA)
                twins = {scope: model_store(clock) for scope in asking}
            chance = campaign.chance(number)
            tenant = chance.choice(asking)
            scope = tenant.of(chance.choice(["", "s1", "s2", "s2"]))
            name = chance.choice(whole if chance.random() < 0.125 else some)
            seed = f"{campaign.seed}:{number}:call"
            answer = await _outcome(CALLS[name], shared, scope, seed)
            expected = await _outcome(CALLS[name], twins[tenant], scope, seed)
            if expected:
                telling.add(name)
            if answer != expected:
                told = f"{answer!r:.200} is not {expected!r:.200}"
                campaign.found(f"round {number}: {name} of {scope}: {told}")
            if chance.random() < 0.02:
                clock.advance(chance.choice([1.0, 200.0, 4000.0]))
    finally:
        await shared.close()
    empty = CALLS.keys() - telling - _WITHOUT_RESULT
    if empty and campaign.done >= most:  # else time was up before each had its turn
        campaign.found(f"only ever compared nothing with nothing: {sorted(empty)}")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Any) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/holdfast.db"


@short_and_full("operations", SHORT_OF_STORES, OPERATIONS, is_slow=False)
def test_a_shared_store_answers_each_as_if_it_were_alone(
    campaign: Campaign, url: str, operations: int
) -> None:
    asyncio.run(_asked_by_three(campaign, url, operations))


def test_no_call_waits_for_the_locks_of_another_tenant(postgres_url: str) -> None:
    """PostgreSQL removes contents under a lock of their workspace: another's is not held up."""
    held, another, _ = tenants()
    other = another.of("s1")

    async def work() -> None:
        store = await open_store(postgres_url)
        holder = await asyncpg.connect(postgres_url)
        try:
            async with holder.transaction():
                lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 71))"
                await holder.execute(lock, held.workspace)
                for name, call in CALLS.items():
                    async with asyncio.timeout(PATIENCE):
                        await _outcome(call, store, other, name)
                waiting = asyncio.create_task(store.put(held.of("s1"), _CONTENTS[:1]))
                await asyncio.wait([waiting], timeout=0.2)
                assert not waiting.done(), "the lock is one that a tenant itself waits for"
            await waiting
        finally:
            await holder.close()
            await store.close()

    asyncio.run(work())


# --- the proxy -----------------------------------------------------------------------------------


class Tenant(NamedTuple):
    """A tenant of the proxy; the mark is in all its words."""

    mark: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        bearing = {"authorization": f"Bearer {self.key}", "x-goog-api-key": self.key}
        return bearing | {"anthropic-version": "2023-06-01", "x-holdfast-token": self.token}

    @property
    def token(self) -> str:
        return f"token-{self.mark}"


ASKING = tuple(Tenant(f"mark{n}of{n * 7919}", f"{KEY}-{n}") for n in range(3))
SETTINGS: dict[str, Any] = {
    "tenant_by": "key",
    "serve_token": "admin-token",
    "serve_tokens": {tenant.mark: tenant.token for tenant in ASKING},
}
_SESSIONS = ("nightly", "s1", "")
_PAGE_ROUTES = re.compile(r"\{(\w+)(?::\w+)?\}")


class World:
    """A proxy with three tenants, and all names that they have been given."""

    def __init__(self, proxy: Era) -> None:
        self.proxy = proxy
        self.refs: set[str] = {"ref:log:" + "0" * 16}
        self.sessions: set[str] = {"nightly"}
        self.responses: set[str] = {"resp_0"}
        self.histories: dict[str, list[dict[str, Any]]] = {}
        self.routes = [
            route.path
            for route in application(proxy.service).routes
            if isinstance(route, Route) and "GET" in (route.methods or ())
        ]

    async def ask(self, who: Tenant | None, chance: random.Random) -> list[str]:
        """Send one random request; return foreign text in its response."""
        kind = chance.choice(("talk", "talk", "talk", "count", "page", "page", "chain"))
        asked = getattr(self, f"_{kind}")(who or chance.choice(ASKING), chance)
        if who is None:
            bare = [pair for pair in asked.headers if pair[0] in (b"content-type",)]
            asked = asked._replace(headers=[*bare, (b"host", b"127.0.0.1:8787")])
        answer, _ = await self.proxy.judged(asked, chance)
        if who is None:
            return self._refused(asked, answer)
        self._learn(answer)
        shown = [answer.body, *(request.body for request in self.proxy.provider.sent)]
        others = [tenant for tenant in ASKING if tenant != who]
        return [
            f"{asked.method} {asked.target[:80]} of {who.mark} holds {other.mark}"
            for text in shown
            for other in others
            if other.mark.encode() in text
        ]

    def _refused(self, asked: Asked, answer: Answer) -> list[str]:
        """Check that a request without a token sees nothing."""
        marks = [tenant.mark for tenant in ASKING if tenant.mark.encode() in answer.body]
        is_open = asked.path.startswith(("/login", "/static/", "/healthz"))
        wrong = [f"{asked.target[:80]} without a token holds {mark}" for mark in marks]
        if not is_open and answer.status not in (303, 401, 404):
            wrong.append(f"{asked.method} {asked.target[:80]} without a token: {answer.status}")
        return wrong

    def _learn(self, answer: Answer) -> None:
        for request in self.proxy.provider.sent:
            self.refs |= set(re.findall(r"ref:\w+:[0-9a-f]{16}", request.body.decode()))
        if name := answer.headers.get("x-holdfast-session"):
            self.sessions.add(name)
        if answer.headers.get("content-type") == "application/json":
            value = json.loads(answer.body)
            if isinstance(value, dict) and str(value.get("id", "")).startswith("resp"):
                self.responses.add(value["id"])
        while len(self.refs) > 300:
            self.refs.pop()
        while len(self.sessions) > 300:
            self.sessions.pop()

    def _request(self, who: Tenant, path: str, body: bytes, chance: random.Random) -> Asked:
        headers = who.headers
        if name := chance.choice([*_SESSIONS, chance.choice(sorted(self.sessions))]):
            headers |= {"x-holdfast-session": name}
        listed = [(key.encode(), value.encode()) for key, value in headers.items()]
        listed += [(b"content-type", b"application/json"), (b"host", b"127.0.0.1:8787")]
        return Asked("POST", path, listed, body)

    def _body(self, who: Tenant, chance: random.Random) -> dict[str, Any]:
        """Return a conversation with a shared beginning, refs of any tenant, and a mark."""
        ref = chance.choice(sorted(self.refs))
        lines = "\n".join(f"{n:03} INFO {who.mark} step {chance.randrange(9)}" for n in range(60))
        call = {"id": "call_0", "type": "function",
                "function": {"name": "read_log", "arguments": "{}"}}  # fmt: skip
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Hello?"}]
        if chance.random() < 0.8:
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_0", "content": lines},
            ]
        if chance.random() < 0.6:
            messages += [
                {"role": "assistant", "content": chance.choice(["Done.", "Let me look.\n\nDone."])},
                {"role": "user", "content": f"And {ref}?"},
            ]
        tool = {"name": "read_log", "parameters": {"type": "object", "properties": {}}}
        tools = [{"type": "function", "function": tool}]
        return {"model": "gpt-4o", "messages": messages, "tools": tools}

    def _talk(self, who: Tenant, chance: random.Random) -> Asked:
        dialect, stream = chance.choice(DIALECTS), chance.random() < 0.3
        body = request_in(dialect, self._body(who, chance), stream=stream)
        return self._request(who, path_of(dialect, stream=stream), body, chance)

    def _count(self, who: Tenant, chance: random.Random) -> Asked:
        dialect, path = chance.choice(
            [
                ("anthropic", "/v1/messages/count_tokens"),
                ("gemini", "/v1beta/models/gemini-2.5-flash:countTokens"),
            ]
        )
        body = request_in(dialect, self._body(who, chance))
        return self._request(who, path, body, chance)

    def _chain(self, who: Tenant, chance: random.Random) -> Asked:
        previous = chance.choice(sorted(self.responses))
        body = {"model": "gpt-4o", "input": f"{who.mark}?", "previous_response_id": previous}
        path = path_of("openai-responses")
        return self._request(who, path, json.dumps(body).encode(), chance)

    def _page(self, who: Tenant, chance: random.Random) -> Asked:
        other = chance.choice(ASKING)
        values = {
            "name": chance.choice(sorted(self.sessions)),
            "number": chance.choice("123"),
            "side": chance.choice(["client", "sent"]),
            "index": chance.choice("0123"),
            "ref": chance.choice(sorted(self.refs)),
            "tenant": chance.choice([f"team-{other.mark}", "default", "anonymous"]),
            "rest": "x",
            "form": chance.choice(["csv", "json"]),
        }
        path = _PAGE_ROUTES.sub(
            lambda found: quote(quote(values[found[1]], safe="")), chance.choice(self.routes)
        )
        listed = [(b"host", b"127.0.0.1:8787"), (b"x-holdfast-token", who.token.encode())]
        # An address that names another's tenant is refused with their name in it, as it was given.
        return Asked("GET", path + chance.choice(["", "?show=yes", "?page=2"]), listed, b"")


async def _asked_through_the_proxy(campaign: Campaign, most: int) -> None:
    rounds = campaign.rounds(most)
    number = next(rounds, None)
    while number is not None:
        async with era(**SETTINGS) as proxy:
            world = World(proxy)
            last = number + ERA // 2
            while number is not None and number < last:
                chance = campaign.chance(number)
                who = None if chance.random() < 0.1 else chance.choice(ASKING)
                for complaint in await world.ask(who, chance):
                    campaign.found(f"round {number}: {complaint}")
                number = next(rounds, None)


@short_and_full("requests", SHORT // 2, OPERATIONS, is_slow=False)
def test_no_key_sees_a_word_of_another_through_the_proxy(campaign: Campaign, requests: int) -> None:
    asyncio.run(_asked_through_the_proxy(campaign, requests))


PROVIDERS = (
    "/v1/", "/v1beta/", "/v1alpha/", "/openai/", "/api/v1/", "/model/", "/v2/",
    "/upload/v1", "/download/v1", "/v1internal", "/api/oauth/", "/api/claude_",
    "/api/event_logging/", "/api/hello", "/backend-api/",
)  # fmt: skip
"""Mounts of all paths to a provider: conversations, counts and forwarded paths."""


def test_every_route_of_the_application_is_asked() -> None:
    """A page is requested by its route; prefixes belong to the providers."""

    async def work() -> None:
        async with era(**SETTINGS) as proxy:
            world = World(proxy)
            routes = application(proxy.service).routes
            assert PREFIXES == PROVIDERS
            known = {"name", "number", "side", "index", "ref", "tenant", "rest", "form"}
            for path in world.routes:
                assert set(_PAGE_ROUTES.findall(path)) <= known, path
            others = {route.path for route in routes if isinstance(route, Route)} - {*world.routes}
            # What changes something is asked by name in test_dashboard_actions.py, for another
            # tenant's session too.
            changing = {f"/sessions/{{name}}/{do}" for do in ("delete", "put-back")}
            changing |= {"/sessions/delete"}
            assert others == {"/logout", *changing, *(f"/tenants/{{tenant}}{p}" for p in changing)}

    asyncio.run(work())
