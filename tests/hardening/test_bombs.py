"""Bombs: no request blocks the others, and each gets a usable response.

The short form sends small bombs to a proxy in this process and checks structural facts: other
requests are answered meanwhile, and unreadable contents are recorded. The campaign sends all of
them at full size to a separate process, with a ping every ten milliseconds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil  # type: ignore[import-untyped]
import pytest

from holdfast.engine import histories, session
from holdfast.fitting.state import BY_ENDS, FitState
from holdfast.privacy import detectors
from holdfast.surfaces.proxy import exchange, server
from holdfast.surfaces.proxy.dashboard import exports, pages, session_reader
from holdfast.tokens import count
from holdfast.wire import openai_chat
from holdfast.wire.responses import Relay
from holdfast.workers import WorkLimits
from tests.hardening.blunt import Blunt
from tests.hardening.bombs import BOMBS, CHAT, COUNTING, Bomb, Thrown, log_lines, result
from tests.hardening.throwing import TABLE_HEAD, all_thrown, row, send, target
from tests.surfaces.proxy.harness import ask, running_proxy, turns_of
from tests.surfaces.proxy.test_server import Process

WORST_SECONDS, P99_SECONDS = 0.1, 0.02
SMALL = 0.01
"""The scale of the short form: 200 KB instead of 20 MB."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and stops workers")


def named(beginning: str) -> Bomb:
    return next(bomb for bomb in BOMBS if bomb.name.startswith(beginning))


def test_there_are_thirty_bombs_and_each_has_its_name() -> None:
    assert len({bomb.name for bomb in BOMBS}) == len(BOMBS) >= 30


def test_small_bombs_are_answered_one_by_one() -> None:
    names = (
        "page",
        "Python",
        "one word",
        "escapes",
        "20,000",
        "nested",
        "half",
        "count",
        "expand",
        "40,000",
        "pages of",
        "answer with",
        "stream with",
        "100,000 calls",
        "15 million",
    )
    bombs = [next(bomb for bomb in BOMBS if bomb.name.startswith(name)) for name in names]
    with Blunt() as upstream, running_proxy({"worker_processes": 1}, upstream.url) as proxy:
        for bomb in bombs:
            built = bomb.build(SMALL)
            upstream.answer = built.answer
            assert {send(proxy.url, built, body) for body in built.bodies} <= set(bomb.statuses), (
                bomb.name
            )
        assert ask(f"{proxy.url}/healthz").status == 200


def test_others_are_answered_while_a_content_is_stuck_and_the_record_says_so() -> None:
    limited = patch("holdfast.engine.options.WorkLimits", partial(WorkLimits, seconds=3.0))
    settings = {"worker_processes": 1}
    with limited, Blunt() as upstream, running_proxy(settings, upstream.url) as proxy:
        workers = proxy.service.engine.workers
        workers.warm()
        os.kill(workers.pids[0], signal.SIGSTOP)
        body = result(log_lines(100_000))
        with ThreadPoolExecutor(1) as client:
            stuck = client.submit(ask, proxy.url + CHAT, body)
            while not workers.busy:
                assert not stuck.done()
            assert ask(f"{proxy.url}/healthz").status == 200
            short = ask(proxy.url + CHAT, result("ok", question="Another conversation?"))
            assert short.status == 200
            assert not stuck.done()
            answer = stuck.result()
        assert answer.status == 200
        assert "only its ends are shown" in answer.headers["x-holdfast-warning"]
        [turn] = turns_of(proxy, answer)
        [edit] = [edit for edit in turn.edits if edit.what == BY_ENDS]
        assert "took longer than" in edit.why
        opened = proxy.do(proxy.service.engine.expand_ref(edit.ref_id, {"lines": "2-3"}))
        assert opened.content in log_lines(100_000)


def workers_at_work(process: Process) -> list[psutil.Process]:
    """Send a large content, and return the proxy's workers as soon as there are some.

    They are looked for before the answer comes: a worker that takes too long on a busy machine is
    ended, and the content is cited by its ends.
    """
    proxy = psutil.Process(process.process.pid)
    built = named("log").build(SMALL)
    with ThreadPoolExecutor(1) as client:
        answer = client.submit(send, process.url, built, built.bodies[0])
        workers: list[psutil.Process] = proxy.children()
        while not workers and not answer.done():
            wait([answer], timeout=0.01)
            workers = proxy.children()
        assert answer.result() == 200
    assert workers
    return workers


def test_the_workers_of_a_proxy_end_with_it(tmp_path: Path) -> None:
    with target(tmp_path) as (process, _):
        workers = workers_at_work(process)
    assert not any(worker.is_running() for worker in workers)


def test_a_worker_outlives_a_killed_proxy_by_no_more_than_its_order(tmp_path: Path) -> None:
    with target(tmp_path) as (process, _):
        workers = workers_at_work(process)
        process.process.kill()
        process.process.wait()
        _, alive = psutil.wait_procs(workers, timeout=30)
        assert all(worker.status() == psutil.STATUS_ZOMBIE for worker in alive)


def test_a_large_count_is_that_of_the_request_as_it_stands() -> None:
    body = named("count").build(0.06).bodies[0]
    assert len(body) > 1_000_000
    with Blunt() as upstream, running_proxy({"worker_processes": 1}, upstream.url) as proxy:
        counted = ask(proxy.url + COUNTING, body)
        assert counted.json == {"input_tokens": count(body, dialect="anthropic").tokens}
        assert proxy.service.engine.workers.pids
        broken = ask(proxy.url + COUNTING, body[:-1])
        assert broken.status == 400
        assert "not JSON" in broken.json["error"]["message"]


def note_threads(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, threads: set[str]) -> None:
    """Note which threads call a function."""
    real = getattr(place, name)

    def noted(*args: Any, **options: Any) -> Any:
        threads.add(threading.current_thread().name)
        return real(*args, **options)

    monkeypatch.setattr(place, name, noted)


def assert_off_the_loop(threads: set[str]) -> None:
    """Raise unless worker threads, and no other thread, did it."""
    assert threads
    assert all(name.startswith("holdfast-work") for name in threads)


def throw(name: str, scale: float) -> None:
    """Send a bomb to a separate proxy, which answers it."""
    built = named(name).build(scale)
    with Blunt() as upstream, running_proxy({}, upstream.url) as proxy:
        upstream.answer = built.answer
        assert send(proxy.url, built, built.bodies[0]) == 200


def test_a_large_event_is_not_read_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[tuple[int, str]] = []
    feed = Relay.feed

    def noted(relay: Relay, chunk: bytes) -> list[bytes]:
        before = relay.waiting_bytes
        fed = feed(relay, chunk)
        size = before + len(chunk) - relay.waiting_bytes
        reads.append((size, threading.current_thread().name))
        return fed

    monkeypatch.setattr(Relay, "feed", noted)
    throw("one event", 0.05)
    size, reader = max(reads)
    assert size > 400_000
    assert reader.startswith("holdfast-work")


def test_many_tools_are_not_read_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[str] = set()
    note_threads(monkeypatch, openai_chat, "tools", threads)
    throw("10,000 tools", 0.02)
    assert_off_the_loop(threads)


def test_many_messages_are_not_gone_through_on_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What becomes of a request once it is answered is no reason to hold the next."""
    threads: set[str] = set()

    def note(name: str) -> None:
        real = getattr(FitState, name)
        look: Any = real.fget if isinstance(real, property) else real

        def noted(state: FitState) -> Any:
            threads.add(threading.current_thread().name)
            return look(state)

        monkeypatch.setattr(
            FitState, name, property(noted) if isinstance(real, property) else noted
        )

    note("held_bytes")
    note("let_go")
    messages = [{"role": "user", "content": "words " * 1_000} for _ in range(200)]
    body = json.dumps({"model": "gpt-4o", "messages": messages}).encode()
    with Blunt() as upstream, running_proxy({}, upstream.url) as proxy:
        assert send(proxy.url, Thrown((body,)), body) == 200
        proxy.settled()
    assert_off_the_loop(threads)


def test_a_long_history_is_assembled_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[str, set[str]] = {}
    for name in (
        "split_request",
        "_marks",
        "_drafts",
        "history_budget",
        "_query",
        "recent_history",
    ):
        note_threads(monkeypatch, histories, name, threads.setdefault(name, set()))
    throw("40,000 messages", 0.02)
    for callers in threads.values():
        assert_off_the_loop(callers)


def test_pages_are_written_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[str] = set()
    for place, name in (
        (pages, "turn_page"),
        (pages, "session_page"),
        (exports, "turns_json"),
        (session, "asked_body"),
        (session_reader, "last_sides"),
        (session_reader, "rows"),
    ):
        note_threads(monkeypatch, place, name, threads)
    throw("pages of", 0.001)
    assert_off_the_loop(threads)


def test_an_answer_with_very_many_calls_is_read_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: set[str] = set()
    note_threads(monkeypatch, exchange, "read_response", threads)
    note_threads(monkeypatch, Relay, "finish", threads)
    with Blunt() as upstream, running_proxy({}, upstream.url) as proxy:
        for name in ("answer with", "stream with"):
            built = named(name).build(0.02)
            upstream.answer = built.answer
            answer = ask(proxy.url + CHAT, built.bodies[0])
            assert answer.status == 200
            assert answer.body.count(b'"call_') == 2_000, "the client gets all of its own calls"
    assert_off_the_loop(threads)


def test_a_model_with_too_many_hidden_calls_is_asked_once_more_without_our_tools() -> None:
    built = named("100,000 calls").build(0.01)
    sent: list[bytes] = []
    with Blunt() as upstream, running_proxy({}, upstream.url) as proxy:
        upstream.answer = built.answer
        said = upstream._said

        def noted(body: bytes) -> bytes:
            sent.append(body)
            return said(body)

        upstream._said = noted  # type: ignore[method-assign]
        answer = ask(proxy.url + CHAT, built.bodies[0])
        assert answer.status == 200
        assert b"expand_ref" not in answer.body
        first, again, last = (json.loads(body) for body in sent)
        assert [tool["function"]["name"] for tool in first["tools"]] == ["expand_ref"]
        assert again["tool_choice"] == "none"
        assert again["messages"] == first["messages"], "nothing of it is lost"
        assert "tools" not in last, "it called though it was told not to"
        assert last["messages"] == first["messages"]
        [turn] = turns_of(proxy, answer)
        assert turn.usage.input == 30, "all calls are on the bill"


def test_what_is_made_when_first_used_is_made_before_the_first_request() -> None:
    detectors._occurring.cache_clear()
    server.warm_up()
    assert detectors._occurring.cache_info().currsize == 1


@pytest.mark.campaign
def test_no_bomb_of_full_size_holds_the_proxy(tmp_path: Path) -> None:
    """On an idle machine; `python -m tests.hardening.throwing 1.0` prints the table."""
    rows, slow = [TABLE_HEAD], []
    for bomb, outcome in all_thrown(tmp_path):
        rows.append(row(outcome))
        if outcome.worst > WORST_SECONDS or outcome.p99 > P99_SECONDS:
            slow.append(outcome.name)
        assert set(outcome.statuses) <= set(bomb.statuses), outcome
    sys.stdout.write("\n".join(rows) + "\n")
    assert not slow
