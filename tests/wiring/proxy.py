"""What each setting changes in the running proxy: an observation for any value, or why none."""

from __future__ import annotations

import http.client
import http.server
import json
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.errors import SettingsError
from holdfast.settings import DailyLimit, UpstreamEntry
from holdfast.store.refs import REF
from tests.engine.test_open_ahead import ANSWER, QUESTION, late
from tests.fitting.test_citing import chat
from tests.surfaces.proxy.faults import stall
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import (
    Answered,
    Running,
    ask,
    path_of,
    request_in,
    running_proxy,
)
from tests.surfaces.proxy.many_tools import MANY
from tests.surfaces.proxy.spoken import call, says, text
from tests.surfaces.proxy.test_server import Process
from tests.surfaces.proxy.upstream import Upstream
from tests.wiring import assembling
from tests.wiring.answers import PROXY_ANSWERS
from tests.wiring.proxy_summaries import PROXY_SUMMARIES
from tests.wiring.researching import PROXY_RESEARCH
from tests.wiring.wired import (
    LARGE,
    LONG,
    MEDIUM,
    ORDERS,
    SECRET,
    Observe,
    Wired,
    lifetime,
)

HEADERS = {
    "authorization": f"Bearer {KEY}",
    "x-goog-api-key": KEY,
    "anthropic-version": "2023-06-01",
}
CHAT = path_of("openai-chat")


def asked(
    proxy: Running,
    body: dict[str, Any] | None = None,
    dialect: str = "openai-chat",
    headers: Mapping[str, str] | None = None,
) -> Answered:
    sent_body = request_in(dialect, chat(question="Hello?") if body is None else body)
    return ask(proxy.url + path_of(dialect), sent_body, {**HEADERS, **(headers or {})})


@contextmanager
def proxied(**settings: Any) -> Iterator[tuple[Running, Upstream]]:
    with Upstream() as upstream:
        upstream.always = says(text("Well."))
        with running_proxy(settings, upstream.url) as proxy:
            yield proxy, upstream


def sent_texts(body: dict[str, Any], **settings: Any) -> str:
    """Return the text of the request that the provider gets."""
    with proxied(**settings) as (proxy, upstream):
        assert asked(proxy, body).status == 200
        return upstream.requests[0].texts


def status_of(body: dict[str, Any], **settings: Any) -> int:
    with running_proxy(settings) as proxy:
        return asked(proxy, body).status


def body_is_taken(most: int, _: Path) -> object:
    return status_of(chat(question="x" * 5_000), max_body_bytes=most)


def proxy_starts_workers(processes: int, _: Path) -> object:
    with running_proxy({"worker_processes": processes}) as proxy:
        assert asked(proxy, chat(LARGE)).status == 200
        return len(proxy.service.engine.workers.pids)


def proxy_has_a_worker(enabled: bool, _: Path) -> object:
    with running_proxy({"background_jobs": enabled}) as proxy:
        return proxy.service.engine.parts.jobs is not None


def proxy_takes_facts(enabled: bool, _: Path) -> object:
    with running_proxy({"enable_facts_ledger": enabled, "cite_policy": "always"}) as proxy:
        asked(proxy, chat(ORDERS))
        proxy.settled()
        proxy.do(proxy.service.engine.settle())
        return len(proxy.do(proxy.service.engine.facts.latest()))


def proxy_file_made_in(data_dir: str, folder: Path) -> object:
    with running_proxy({"store_url": "", "data_dir": str(folder / data_dir)}) as proxy:
        asked(proxy)
    return [path.relative_to(folder).as_posix() for path in folder.glob("*/holdfast.db")]


def proxy_store(name: str, folder: Path) -> object:
    with running_proxy({"store_url": f"sqlite:///{folder}/{name}"}) as proxy:
        asked(proxy)
    return [path.name for path in folder.glob("*.db")]


def proxy_cites(threshold: int, _: Path) -> object:
    return LONG in sent_texts(chat(LONG), cite_threshold=threshold)


def proxy_cites_by(setting: str) -> Callable[[Any, Path], object]:
    """Whether a result of some 900 tokens is cited with a value of a setting."""

    def observe(value: Any, _: Path) -> object:
        return MEDIUM in sent_texts(chat(MEDIUM), **{"cite_policy": "auto", setting: value})

    return observe


def proxy_opens_ahead(ahead: bool, _: Path) -> object:
    body = late(QUESTION)
    return ANSWER in sent_texts(body, cite_policy="always", open_ahead=ahead)


def proxy_offers(when: str, _: Path) -> object:
    """The tools before there is a citation, and whether they come in a message where there is."""
    with proxied(offer_expand=when, cite_policy="always") as (proxy, upstream):
        asked(proxy, chat("short"))
        asked(proxy, {**chat(LONG), "model": "gpt-5"}, "openai-responses")
        first, second = upstream.requests
        return first.tools, b"additional_tools" in second.body


def tools_sent_by(name: str, **others: Any) -> Observe:
    """Return the sent part of a request with very many tools."""

    def observe(value: object, _: Path) -> object:
        body = {**chat("short"), "tools": [{"type": "function", "function": t} for t in MANY]}
        settings = {"lazy_tool_tokens": 1_000, **others, name: value}
        with proxied(**settings) as (proxy, upstream):
            asked(proxy, body)
            return json.dumps(upstream.requests[0].value["tools"])

    return observe


def proxy_finds_tools_by(embedder: str) -> object:
    """Return the proxy's answer to a tool search with words that are in no tool."""
    trades = ["physician", "baker", "sailor", "painter"]
    tools = [
        {**MANY[0], "name": f"t{n}", "description": f"Calls the {trade}."}
        for n, trade in enumerate(trades)
    ]
    functions = [{"type": "function", "function": tool} for tool in tools]
    with proxied(lazy_tool_tokens=1, embedder=embedder) as (proxy, upstream):
        upstream.turns.append(says(call("find_tools", {"query": "I need a doctor"}, "c1")))
        asked(proxy, {**chat("short"), "tools": functions})
        return "No tool fits" in upstream.requests[1].texts


def proxy_finds_by(embedder: str, _: Path) -> object:
    """What memory and tools go by; both must follow the setting."""
    return proxy_finds_tools_by(embedder), assembling.makers_of_what_is_remembered(embedder)


def proxy_shows_secret(policy: str, _: Path) -> object:
    return SECRET in sent_texts(chat(f"key {SECRET}\n{LONG}"), privacy_policy=policy)


def proxy_titles(titles: bool, _: Path) -> object:
    with running_proxy({"session_titles": titles}) as proxy:
        asked(proxy, chat("short"))
        proxy.settled()
        engine = proxy.service.engine
        return [record.title for record in proxy.do(engine.store.sessions(engine.scope))]


def proxy_lifetime(hours: float, _: Path) -> object:
    with proxied(content_ttl_hours=hours) as (proxy, upstream):
        asked(proxy, chat(LONG))
        proxy.settled()
        engine = proxy.service.engine
        ref = REF.search(upstream.requests[0].texts)
        assert ref is not None
        return proxy.do(lifetime(engine, ref[0]))


def proxy_changes(enabled: bool, _: Path) -> object:
    body = chat(LONG * 5)
    with proxied(token_management_enabled=enabled) as (proxy, upstream):
        asked(proxy, body)
        return upstream.requests[0].body == request_in("openai-chat", body)


def proxy_cites_results(enabled: bool, _: Path) -> object:
    return LONG in sent_texts(chat(LONG), enable_content_citations=enabled)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


PORTS = (free_port(), free_port())


def proxy_port(port: int, _: Path) -> object:
    with running_proxy({"serve_port": port}) as proxy:
        return proxy.url.rpartition(":")[2]


def proxy_host(host: str, _: Path) -> object:
    with running_proxy({"serve_host": host}) as proxy:
        assert asked(proxy).status == 200
        return proxy.url.rpartition(":")[0]


def proxy_wants_token(token: str, _: Path) -> object:
    with running_proxy({"serve_token": token}) as proxy:
        return asked(proxy).status, asked(proxy, headers={"x-holdfast-token": "t0ken"}).status


def proxy_takes_tokens(tokens: dict[str, str], _: Path) -> object:
    with running_proxy({"serve_token": "t0ken", "serve_tokens": tokens}) as proxy:
        return asked(proxy, headers={"x-holdfast-token": "t-ann"}).status


def sessions_of_two_keys(tenant_by: str, _: Path) -> object:
    """How many sessions two clients with equal requests have."""
    with running_proxy({"tenant_by": tenant_by, "serve_token": "t0ken"}) as proxy:
        token = {"x-holdfast-token": "t0ken"}
        answers = [
            asked(proxy, headers={**token, "authorization": f"Bearer {key}"}) for key in "ab"
        ]
        return len({answered.headers["x-holdfast-session"] for answered in answers})


def proxy_answers_to(names: list[str], _: Path) -> object:
    with running_proxy({"serve_names": names}) as proxy:
        return asked(proxy, headers={"host": "gateway.example"}).status


def serves_from_memory(workers: int, folder: Path) -> object:
    """Whether a store in memory will do: several workers cannot share one."""
    process = Process(folder, "--store", "memory:", "--workers", str(workers))
    process.process.terminate()
    process.end()
    return bool(process.url)


OPENAI = {"openai": UpstreamEntry(key="sk-any")}


def other_family_is_answered(offline: bool, _: Path) -> object:
    with running_proxy({"serve_offline": offline, "upstreams": OPENAI}) as proxy:
        body = request_in("anthropic", chat("a short result"))
        return ask(proxy.url + path_of("anthropic"), body, HEADERS).status


def named_upstream_is_asked(patterns: list[str], _: Path) -> object:
    with Upstream() as upstream:
        upstream.always = says(text("Well."))
        entry = UpstreamEntry(upstream.url, models=patterns, key=KEY)
        with running_proxy({"upstreams": {"local": entry}, "serve_offline": True}) as proxy:
            asked(proxy)
        return len(upstream.requests)


def model_asked_for(aliases: dict[str, str], _: Path) -> object:
    with proxied(model_aliases=aliases) as (proxy, upstream):
        upstream.always = says(text("Well."))
        asked(proxy)
        return upstream.requests[0].model


def second_is_allowed(limit: DailyLimit, _: Path) -> object:
    with proxied(daily_limit=limit) as (proxy, upstream):
        upstream.always = says(text("Well."))
        asked(proxy)
        proxy.settled()
        return asked(proxy).status


def proxy_waits(seconds: float, _: Path) -> object:
    with proxied(upstream_idle_seconds=seconds) as (proxy, upstream):
        upstream.turns.append(stall)
        try:
            body = request_in("openai-chat", chat(question="Hello?"))
            return ask(proxy.url + CHAT, body, HEADERS, patience=2).status
        except TimeoutError:
            return "still waiting"


def proxy_limit(most: int, _: Path) -> object:
    questions = [{"role": "user", "content": f"{n}: " + "why " * 50} for n in range(60)]
    answers = [{"role": "assistant", "content": f"{n}: " + "so " * 50} for n in range(60)]
    messages = [message for pair in zip(questions, answers, strict=True) for message in pair]
    body = {"model": "gpt-4o", "messages": [*messages, {"role": "user", "content": "And now?"}]}
    with proxied(request_limit=most) as (proxy, _upstream):
        return int(asked(proxy, body).headers["x-holdfast-tokens"]) <= 3_000


def answer_without_store(then: str, folder: Path) -> object:
    settings = {"store_url": f"sqlite:///{folder}/store.db", "on_store_failure": then}
    with proxied(**settings) as (proxy, _upstream):
        proxy.do(proxy.service.engine.store.close())
        return asked(proxy, chat(LONG)).status


def lines_of_the_log(how: str, folder: Path) -> object:
    (folder / "holdfast.toml").write_text(f'log_format = "{how}"\n')
    process = Process(folder, "--store", "memory:")
    process.process.send_signal(signal.SIGTERM)
    _, said = process.end()
    return '"event": "stopped"' in said, "event=stopped" in said


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes spans, and remembers that there were some."""

    paths: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.paths.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Do nothing: the test reports."""


def spans(named: bool, _: Path) -> object:
    """Return the collector's spans; without the extra, the proxy's hint to install it."""
    paths: list[str] = []
    handler = type("Remembering", (Collector,), {"paths": paths})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            endpoint = f"http://127.0.0.1:{server.server_port}" if named else ""
            with running_proxy({"otel_endpoint": endpoint}) as proxy:
                asked(proxy)
                proxy.settled()
        except SettingsError as error:
            return "holdfast[otel]" in error.fix
        finally:
            server.shutdown()
            thread.join()
    return paths


PHASES = "about the phases of a research; the proxy's requests have none, and their counts bounds"
ARCHIVE = "the archive is for code that does not await; the proxy keeps originals in its store"
LIBRARYS_WORKER = "the proxy has the library's worker (`background_jobs`), and no other"

PROXY: dict[str, Wired | str] = {
    "max_body_bytes": Wired(body_is_taken, 1_000, 100_000),
    "color": "the proxy draws nothing in a terminal",
    "output": "the proxy answers in the client's dialect",
    "data_dir": Wired(proxy_file_made_in, "one", "two"),
    "store_url": Wired(proxy_store, "a.db", "b.db"),
    "cite_threshold": Wired(proxy_cites, 4_000, 5_000),
    "cite_policy": Wired(proxy_cites_by("cite_policy"), "auto", "always"),
    "cite_tools": Wired(proxy_cites_by("cite_tools"), {}, {"*": "always"}),
    "offer_expand": Wired(proxy_offers, "always", "inline"),
    "open_ahead": Wired(proxy_opens_ahead, True, False),
    "lazy_tools": Wired(tools_sent_by("lazy_tools"), "auto", "never"),
    "embedder": Wired(proxy_finds_by, "words", "minilm"),
    "lazy_tool_tokens": Wired(tools_sent_by("lazy_tool_tokens"), 1_000, 1_000_000),
    "pinned_tools": Wired(tools_sent_by("pinned_tools"), [], ["office_1*"]),
    "privacy_policy": Wired(proxy_shows_secret, "allow", "mask"),
    "session_titles": Wired(proxy_titles, True, False),
    "content_ttl_hours": Wired(proxy_lifetime, 0.0, 2.0),
    "worker_processes": Wired(proxy_starts_workers, 0, 1),
    "background_jobs": Wired(proxy_has_a_worker, True, False),
    "retain_days": LIBRARYS_WORKER,
    "sweep_idle_days": LIBRARYS_WORKER,
    "token_management_enabled": Wired(proxy_changes, True, False),
    "token_safety_margin": PHASES,
    "analysis_budget_percent": PHASES,
    "synthesis_budget_percent": PHASES,
    "allow_content_dropping": PHASES,
    "min_items_per_phase": PHASES,
    "enable_content_citations": Wired(proxy_cites_results, True, False),
    "enable_facts_ledger": Wired(proxy_takes_facts, True, False),
    "content_archive_enabled": ARCHIVE,
    "content_archive_ttl_hours": ARCHIVE,
    "research_archive_dir": ARCHIVE,
    **PROXY_RESEARCH,
    **PROXY_ANSWERS,
    "serve_host": Wired(proxy_host, "127.0.0.1", "127.0.0.2"),
    "serve_port": Wired(proxy_port, *PORTS),
    "serve_token": Wired(proxy_wants_token, "", "t0ken"),
    "serve_tokens": Wired(proxy_takes_tokens, {}, {"ann": "t-ann"}),
    "tenant_by": Wired(sessions_of_two_keys, "key", "none"),
    "serve_names": Wired(proxy_answers_to, [], ["gateway.example"]),
    "serve_workers": Wired(serves_from_memory, 1, 2),
    "serve_offline": Wired(other_family_is_answered, False, True),
    "upstreams": Wired(named_upstream_is_asked, ["gpt-*"], ["claude-*"]),
    "model_aliases": Wired(model_asked_for, {}, {"gpt-4o": "gpt-4o-mini"}),
    "daily_limit": Wired(second_is_allowed, DailyLimit(), DailyLimit(dollars=1e-7)),
    "upstream_idle_seconds": Wired(proxy_waits, 0.2, 60.0),
    "request_limit": Wired(proxy_limit, 3_000, 0),
    "on_store_failure": Wired(answer_without_store, "pass", "refuse"),
    "log_format": Wired(lines_of_the_log, "text", "json"),
    "otel_endpoint": Wired(spans, False, True),
    **PROXY_SUMMARIES,
    **assembling.PROXY,
}
