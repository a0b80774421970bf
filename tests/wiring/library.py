"""What each setting changes in the library: an observation for any value, or why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import holdfast
from holdfast.allocate import budget_of_phase
from holdfast.compat import ContentArchive
from holdfast.compat.actions import action_message
from holdfast.engine import Holdfast
from holdfast.errors import AllocationError, BudgetExceededError
from holdfast.jobs import background
from holdfast.jobs.running import rules_of
from holdfast.settings import Settings
from holdfast.store import Scope, SessionRecord, Turn
from holdfast.store.opening import open_memory
from holdfast.store.protocol import Store
from holdfast.store.queue import Claim, Job, NewJob
from holdfast.store.refs import REF
from tests.allocate.made import allocated, item
from tests.engine.test_open_ahead import ANSWER, QUESTION, late
from tests.fitting.test_citing import chat
from tests.store.harness import Clock
from tests.wiring import assembling
from tests.wiring.answers import LIBRARY_ANSWERS
from tests.wiring.researching import LIBRARY_RESEARCH
from tests.wiring.summaries import SUMMARIES
from tests.wiring.wired import (
    LARGE,
    LONG,
    MEDIUM,
    ORDERS,
    SECRET,
    Wired,
    lifetime,
)

_T = TypeVar("_T")
HOUR = 3600


def with_engine(work: Callable[[Holdfast], Awaitable[_T]], **settings: Any) -> _T:
    async def main() -> _T:
        async with Holdfast.open(
            settings=Settings(**{"store_url": "memory:"} | settings)
        ) as engine:
            return await work(engine)

    return asyncio.run(main())


def is_cited(threshold: int, _: Path) -> object:
    async def work(engine: Holdfast) -> bool:
        return bool((await engine.cite(LONG)).ref_id)

    return with_engine(work, cite_threshold=threshold)


def fit_cites_by(setting: str) -> Callable[[Any, Path], object]:
    """Whether a result of some 900 tokens is cited with a value of a setting."""

    def observe(value: Any, _: Path) -> object:
        async def work(engine: Holdfast) -> bool:
            return bool((await engine.fit(chat(MEDIUM))).contents)

        return with_engine(work, **{setting: value})

    return observe


def fit_opens_ahead(ahead: bool, _: Path) -> object:
    async def work(engine: Holdfast) -> bool:
        return ANSWER.encode() in (await engine.fit(late(QUESTION))).body

    return with_engine(work, cite_policy="always", open_ahead=ahead)


def citation_shows_secret(policy: str, _: Path) -> object:
    async def work(engine: Holdfast) -> bool:
        return SECRET in (await engine.cite(f"key {SECRET}\n{LONG}")).text

    return with_engine(work, privacy_policy=policy)


def title_of_a_session(titles: bool, _: Path) -> object:
    async def work(engine: Holdfast) -> str:
        session = engine.session("s")
        fitted = await session.fit(chat("short"))
        await engine.observe(session, fitted)
        return session.record.title

    return with_engine(work, session_titles=titles)


def lifetime_of_cited(hours: float, _: Path) -> object:
    async def work(engine: Holdfast) -> float | None:
        return await lifetime(engine, (await engine.cite(LONG)).ref_id)

    return with_engine(work, content_ttl_hours=hours)


def fit_offers(when: str, _: Path) -> object:
    """Whether the tool is offered before there is a citation, and in a message where there is."""

    async def work(engine: Holdfast) -> tuple[bool, bool]:
        at_once = b"expand_ref" in (await engine.fit(chat("short"))).body
        body = holdfast.convert(chat(LONG), "openai-responses").body
        fitted = await engine.fit(body.replace(b"gpt-4o", b"gpt-5"))
        return at_once, b"additional_tools" in fitted.body

    return with_engine(work, offer_expand=when, cite_policy="always")


def fit_cites(enabled: bool, _: Path) -> object:
    async def work(engine: Holdfast) -> bool:
        fitted = await engine.session("s").fit(chat(LONG * 40), limit=8_000)
        return b"content_citation" in fitted.body or REF.search(fitted.body.decode()) is not None

    message = asyncio.run(
        action_message([], [], "agent", settings=Settings(enable_content_citations=enabled))
    )
    try:
        cites = with_engine(work, enable_content_citations=enabled)
    except BudgetExceededError:
        cites = False
    return "citations" in message["content"], cites


def facts_are_taken(enabled: bool, _: Path) -> object:
    """How many facts are known of a result that was cited, and of one in a request that was fit."""

    async def work(engine: Holdfast) -> list[int]:
        await engine.cite(ORDERS)
        counts = [len(await engine.facts.latest())]
        await engine.fit(chat(ORDERS.replace("ORD", "PUR")), session="s")
        await engine.settle()
        return [*counts, len(await engine.facts.latest())]

    return with_engine(work, enable_facts_ledger=enabled, cite_policy="always")


def recalled_by(embedder: str) -> object:
    """Return the result of a question that shares no word with the messages."""

    async def work(engine: Holdfast) -> str:
        trades = ("physician in Oslo", "baker in Rome", "sailor in Bonn", "painter in Lyon")
        told = [{"role": "user", "content": f"My cousin is a {trade}."} for trade in trades]
        await engine.remember("s", told)
        return (await engine.recall("Who works as a doctor?", k=1)).text

    return with_engine(work, embedder=embedder)


TRADES = ("physician", "baker", "sailor", "painter")


def tools_found_by(embedder: str) -> object:
    """Return the result of a search with words that are in no tool."""
    tools = [
        {"name": f"t{n}", "description": f"Calls the {trade}."} for n, trade in enumerate(TRADES)
    ]

    async def work(engine: Holdfast) -> list[str]:
        await engine.toolbox.register(tools)
        return [hit.name for hit in await engine.toolbox.search("I need a doctor", 1)]

    return with_engine(work, embedder=embedder)


def found_by(embedder: str, _: Path) -> object:
    """What memory and tools find; both must follow the setting."""
    return {"memory": recalled_by(embedder), "tools": tools_found_by(embedder)}


def workers_are_started(processes: int, _: Path) -> object:
    async def work(engine: Holdfast) -> int:
        await engine.cite(LARGE)
        return len(engine.workers.pids)

    return with_engine(work, worker_processes=processes)


def file_made_in(data_dir: str, folder: Path) -> object:
    async def work(_: Holdfast) -> None:
        return None

    with_engine(work, store_url="", data_dir=str(folder / data_dir))
    return [path.relative_to(folder).as_posix() for path in folder.glob("*/holdfast.db")]


def file_of_the_url(name: str, folder: Path) -> object:
    async def work(engine: Holdfast) -> str:
        return engine.store.url.removeprefix(f"sqlite:///{folder}/")

    return with_engine(work, store_url=f"sqlite:///{folder}/{name}")


def archived(enabled: bool, folder: Path) -> object:
    with ContentArchive(Settings(content_archive_enabled=enabled), folder) as archive:
        return archive.retrieve(archive.archive("text"))


def archived_after_a_day(hours: float, folder: Path) -> object:
    now = [1_800_000_000.0]
    config = Settings(content_archive_enabled=True, content_archive_ttl_hours=hours)
    with ContentArchive(config, folder, clock=lambda: now[0]) as archive:
        name = archive.archive("text")
        now[0] += 24 * HOUR
        archive.cleanup_expired()
        return archive.retrieve(name)


def folder_of_the_archive(name: str, folder: Path) -> object:
    named = str(folder / name) if name else ""
    config = Settings(
        content_archive_enabled=True, data_dir=str(folder / "data"), research_archive_dir=named
    )
    with ContentArchive(config) as archive:
        archive.archive("text")
    return sorted(path.parent.relative_to(folder).as_posix() for path in folder.rglob("*.db"))


def queue_is_worked_on(enabled: bool, _: Path) -> object:
    async def work() -> bool:
        store = open_memory()
        settings = Settings(background_jobs=enabled)
        async with background(store, settings, patience=0.0) as worker:
            return worker is not None and await swept(store) is not None

    return asyncio.run(work())


async def swept(store: Store) -> Job | None:
    """The job of sweeping, once it was done."""
    while True:
        jobs = await store.jobs.latest(None, kind="sweep")
        if jobs and jobs[0].completed_at is not None:
            return jobs[0]
        await asyncio.sleep(0)


def idle_session_is_closed(days: float, _: Path) -> object:
    async def work() -> bool:
        clock = Clock()
        store = open_memory(clock=clock)
        record = SessionRecord(session="s", updated_at=clock.now - 100 * 24 * HOUR)
        turn = Turn(number=1, started_at=0.0)
        await store.add_turn(Scope().of("s"), turn, record, {})
        settings = Settings(sweep_idle_days=days)
        async with background(store, settings, clock=clock, patience=0.0):
            await swept(store)
        session = await store.session(Scope().of("s"))
        return session is not None and session.closed_at is not None

    return asyncio.run(work())


def old_session_is_deleted(days: float, _: Path) -> object:
    async def work() -> bool:
        clock = Clock()
        store = open_memory(clock=clock)
        record = SessionRecord(session="s", updated_at=clock.now - 100 * 24 * HOUR)
        turn = Turn(number=1, started_at=0.0)
        await store.add_turn(Scope().of("s"), turn, record, {})
        settings = Settings(retain_days=days)
        async with background(store, settings, clock=clock, patience=0.0):
            await swept(store)
        return await store.session(Scope().of("s")) is None

    return asyncio.run(work())


def jobs_within(setting: str) -> Callable[[Any, Path], object]:
    """How many of three jobs of 100 tokens a worker may begin with a value of a quota."""

    def observe(value: Any, _: Path) -> object:
        async def work() -> int:
            store = open_memory()
            jobs = [NewJob(kind="x", key=str(n), most_cost=100) for n in range(3)]
            await store.jobs.enqueue(Scope().of("s"), jobs)
            rules = rules_of(Settings(**{setting: value}), slots=1)
            claim = Claim(kinds=("x",), limit=9, quotas=rules.quotas)
            return len(await store.jobs.claim(claim))

        return asyncio.run(work())

    return observe


def item_levels(budget: int, **settings: Any) -> list[str]:
    """Return the levels of five items within a number of words; `error` if they do not fit."""
    items = [item(f"s{n}", 100, n / 10) for n in range(5)]
    try:
        result = allocated(items, budget, settings=Settings(**settings))
    except AllocationError:
        return ["error"]
    return [record.level for record in result.fidelity_metadata.values()]


def levels_by(setting: str, budget: int) -> Callable[[Any, Path], object]:
    def observe(value: Any, _: Path) -> object:
        return item_levels(budget, **{setting: value})

    return observe


def budget_by(setting: str, phase: str) -> Callable[[Any, Path], object]:
    """The tokens that a phase has with a value of a setting."""

    def observe(value: Any, _: Path) -> object:
        config = Settings(**{setting: value})
        return budget_of_phase(phase, "openai:gpt-4.1", config).effective_budget()

    return observe


ARGUMENT = "the library takes it as an argument of the call: "
SERVING = "about the proxy's own address and clients; the library listens to nobody"
SENDING = "about where the proxy's requests are sent; the library sends none"
READING = "the library is handed bodies that its caller holds already; `read` takes `limits`"

PROXYS_TOOLS = "schemas are set aside by the proxy alone, which answers find_tools itself"
LIBRARY: dict[str, Wired | str] = {
    "max_body_bytes": READING,
    "color": "the command line's: see below",
    "output": "the command line's: see below",
    "data_dir": Wired(file_made_in, "one", "two"),
    "store_url": Wired(file_of_the_url, "a.db", "b.db"),
    "cite_threshold": Wired(is_cited, 4_000, 5_000),
    "cite_policy": Wired(fit_cites_by("cite_policy"), "auto", "always"),
    "cite_tools": Wired(fit_cites_by("cite_tools"), {}, {"*": "always"}),
    "offer_expand": Wired(fit_offers, "when_cited", "inline"),
    "open_ahead": Wired(fit_opens_ahead, True, False),
    "lazy_tools": PROXYS_TOOLS,
    "lazy_tool_tokens": PROXYS_TOOLS,
    "pinned_tools": PROXYS_TOOLS,
    "privacy_policy": Wired(citation_shows_secret, "allow", "mask"),
    "session_titles": Wired(title_of_a_session, True, False),
    "content_ttl_hours": Wired(lifetime_of_cited, 0.0, 2.0),
    "worker_processes": Wired(workers_are_started, 0, 1),
    "background_jobs": Wired(queue_is_worked_on, True, False),
    "retain_days": Wired(old_session_is_deleted, 0.0, 1.0),
    "sweep_idle_days": Wired(idle_session_is_closed, 0.0, 1.0),
    "summary_tokens_per_day": Wired(jobs_within("summary_tokens_per_day"), 100, 500),
    "token_management_enabled": Wired(levels_by("token_management_enabled", 200), True, False),
    "token_safety_margin": Wired(budget_by("token_safety_margin", "analysis"), 0.1, 0.2),
    "analysis_budget_percent": Wired(budget_by("analysis_budget_percent", "analysis"), 0.8, 0.5),
    "synthesis_budget_percent": Wired(
        budget_by("synthesis_budget_percent", "synthesis"), 0.85, 0.5
    ),
    "allow_content_dropping": Wired(levels_by("allow_content_dropping", 80), True, False),
    "min_items_per_phase": Wired(levels_by("min_items_per_phase", 60), 1, 3),
    "enable_content_citations": Wired(fit_cites, True, False),
    "embedder": Wired(found_by, "words", "minilm"),
    "enable_facts_ledger": Wired(facts_are_taken, True, False),
    "content_archive_enabled": Wired(archived, True, False),
    "content_archive_ttl_hours": Wired(archived_after_a_day, 23.0, 25.0),
    "research_archive_dir": Wired(folder_of_the_archive, "", "mine"),
    **LIBRARY_RESEARCH,
    **LIBRARY_ANSWERS,
    "serve_host": SERVING,
    "serve_port": SERVING,
    "serve_token": SERVING,
    "serve_tokens": SERVING,
    "tenant_by": SERVING,
    "serve_names": SERVING,
    "serve_offline": SERVING,
    "serve_workers": SERVING,
    "model_aliases": SERVING,
    "daily_limit": SERVING,
    "upstream_idle_seconds": SENDING,
    "request_limit": ARGUMENT + "`limit`",
    "on_store_failure": "the library raises StoreUnavailableError: the caller decides",
    "log_format": "a library does not configure its caller's logging",
    "otel_endpoint": "a library does not configure its caller's tracing",
    **assembling.LIBRARY,
    **SUMMARIES,
}
