"""A store that is full or missing: requests are forwarded with a warning, or refused."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.errors import StoreUnavailableError
from holdfast.store import Scope
from holdfast.store.refs import REF
from holdfast.store.sqlite import SqliteStore
from tests.fitting.test_citing import chat, log
from tests.surfaces.proxy.harness import (
    DIALECTS,
    KEYS,
    Running,
    ask,
    ask_model,
    path_of,
    request_in,
    running_proxy,
    text_of,
)
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.test_faults import error_in
from tests.surfaces.proxy.upstream import Upstream

LONG = "\n".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(400))
"""What cannot be pressed into the pages that an empty database has."""

Trouble = Callable[[Running], None]
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
EACH = pytest.mark.parametrize("dialect", DIALECTS)


def may_grow_to(proxy: Running, pages: int) -> None:
    """Limit the database to a number of pages; existing ones stay, so 1 forbids growth."""
    store = proxy.service.engine.store
    assert isinstance(store, SqliteStore)
    proxy.do(store._write(lambda db: db.execute(f"PRAGMA max_page_count = {pages}").get))


def full(proxy: Running) -> None:
    may_grow_to(proxy, 1)


def gone(proxy: Running) -> None:
    proxy.do(proxy.service.engine.store.close())


def folder_of(proxy: Running) -> Path:
    return Path(proxy.service.engine.store.url.removeprefix("sqlite:///")).parent


def deleted(proxy: Running) -> None:
    shutil.rmtree(folder_of(proxy))


TROUBLES = pytest.mark.parametrize("trouble", [full, gone, deleted])


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        running.always = says(text("All went well."))
        yield running


def settings(folder: Path, then: str) -> dict[str, str]:
    return {"store_url": f"sqlite:///{folder}/store.db", "on_store_failure": then}


@EACH
@BOTH
@TROUBLES
def test_a_request_passes_as_it_came_with_a_warning(
    upstream: Upstream, tmp_path: Path, dialect: str, stream: bool, trouble: Trouble
) -> None:
    with running_proxy(settings(tmp_path, "pass"), upstream.url) as proxy:
        trouble(proxy)
        body = request_in(dialect, chat(LONG), stream=stream)
        answered = ask_model(proxy, dialect, body, stream=stream)
        assert text_of(dialect, answered, stream=stream) == "All went well."
        assert "store" in answered.headers["x-holdfast-warning"]
        assert upstream.requests[0].body == body


@EACH
@TROUBLES
def test_a_request_is_refused_where_that_is_the_setting(
    upstream: Upstream, tmp_path: Path, dialect: str, trouble: Trouble
) -> None:
    with running_proxy(settings(tmp_path, "refuse"), upstream.url) as proxy:
        trouble(proxy)
        body = request_in(dialect, chat(LONG))
        answered = ask_model(proxy, dialect, body)
        assert answered.status == 503
        assert error_in(dialect, answered.json)
        assert upstream.requests == []


def test_what_needs_no_room_is_answered_on_a_full_disk(upstream: Upstream, tmp_path: Path) -> None:
    with running_proxy(settings(tmp_path, "refuse"), upstream.url) as proxy:
        full(proxy)
        for _ in range(30):  # more than the free pages can hold
            body = request_in("openai-chat", chat(log(30), question="What? " * 200))
            answered = ask(f"{proxy.url}/v1/chat/completions", body, KEYS)
            assert answered.status == 200
            proxy.settled()


def test_once_there_is_room_again_results_are_cited_again(
    upstream: Upstream, tmp_path: Path
) -> None:
    where = path_of("anthropic")
    with running_proxy(settings(tmp_path, "pass"), upstream.url) as proxy:
        body = request_in("anthropic", chat(LONG))
        full(proxy)
        assert "x-holdfast-warning" in ask(proxy.url + where, body, KEYS).headers
        may_grow_to(proxy, 1_000_000)
        assert "x-holdfast-warning" not in ask(proxy.url + where, body, KEYS).headers
        sent = upstream.requests[-1]
        found = REF.search(sent.texts)
        assert found
        stored = proxy.do(proxy.service.engine.store.get(proxy.service.engine.scope, found[0]))
        assert stored is not None
        assert stored.data.decode() == LONG


@pytest.mark.parametrize(("then", "status"), [("pass", 200), ("refuse", 503)])
def test_a_client_that_asks_for_a_count_is_told_that_of_its_own_request(
    upstream: Upstream, tmp_path: Path, then: str, status: int
) -> None:
    with running_proxy(settings(tmp_path, then), upstream.url) as proxy:
        url, body = f"{proxy.url}/v1/messages/count_tokens", request_in("anthropic", chat(LONG))
        with_store = ask(url, body, KEYS).json["input_tokens"]
        gone(proxy)
        answered = ask(url, body, KEYS)
        assert answered.status == status
        if status == 200:
            assert answered.json["input_tokens"] > with_store  # nothing is cited in it


def replaced(folder: Path) -> None:
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    shutil.rmtree(folder)
    copy.rename(folder)


def without_its_log(folder: Path) -> None:
    (folder / "store.db-wal").unlink()


def moved(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


@pytest.mark.parametrize("loss", [shutil.rmtree, without_its_log, moved])
def test_a_write_that_would_be_lost_is_not_acknowledged(
    tmp_path: Path, loss: Callable[[Path], None]
) -> None:
    folder = tmp_path / "store"
    with running_proxy({"store_url": f"sqlite:///{folder}/store.db"}) as proxy:
        store, scope = proxy.service.engine.store, proxy.service.engine.scope
        proxy.do(store.save_calibration(scope, b"before"))
        loss(folder)
        with pytest.raises(StoreUnavailableError, match="deleted, moved or replaced"):
            proxy.do(store.save_calibration(scope, b"after"))
        if loss is moved:  # a restored file is used again
            folder.with_name("elsewhere").rename(folder)
            proxy.do(store.save_calibration(scope, b"again"))
            assert proxy.do(store.calibration(scope)) == b"again"


def test_a_file_that_took_the_stores_place_is_used_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with running_proxy({"store_url": f"sqlite:///{folder}/store.db"}) as proxy:
        store, scope = proxy.service.engine.store, proxy.service.engine.scope
        proxy.do(store.save_calibration(scope, b"before"))
        replaced(folder)
        assert proxy.do(store.calibration(scope)) == b"before"
        proxy.do(store.save_calibration(scope, b"after"))
        assert proxy.do(stored_calibration(folder / "store.db", scope)) == b"after"


async def stored_calibration(path: Path, scope: Scope) -> bytes | None:
    """Read the file of this name, with separate connections."""
    store = await SqliteStore.open(path)
    try:
        return await store.calibration(scope)
    finally:
        await store.close()


@pytest.mark.parametrize(("then", "status"), [("pass", 200), ("refuse", 503)])
def test_health_and_log_tell_of_a_store_that_is_gone(
    upstream: Upstream,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    then: str,
    status: int,
) -> None:
    caplog.set_level("INFO", "holdfast")
    with running_proxy(settings(tmp_path / "store", then), upstream.url) as proxy:
        body = request_in("openai-chat", chat(LONG))
        ask(f"{proxy.url}/v1/chat/completions", body, KEYS)
        proxy.settled()
        assert ask(f"{proxy.url}/healthz").body == b"ok\n"
        moved(tmp_path / "store")
        for _ in range(2):
            ask(f"{proxy.url}/v1/chat/completions", request_in("openai-chat", chat(LONG[1:])), KEYS)
            proxy.settled()
        health = ask(f"{proxy.url}/healthz")
        assert health.status == status
        assert b"the store is unavailable" in health.body
        (tmp_path / "elsewhere").rename(tmp_path / "store")
        ask(f"{proxy.url}/v1/chat/completions", body, KEYS)
        proxy.settled()
        assert ask(f"{proxy.url}/healthz").body == b"ok\n"
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1  # however many requests met it
    assert errors[0].startswith("event=store_unavailable")
    assert "deleted, moved or replaced" in caplog.text
    assert "event=store_available" in caplog.text


@pytest.mark.parametrize("page", ["/", "/sessions/x", "/refs/ref:text:0123456789abcdef", "/stats"])
def test_a_damaged_database_is_no_missing_page(tmp_path: Path, page: str) -> None:
    with running_proxy(settings(tmp_path, "pass")) as proxy:
        for file in (tmp_path / "store.db", tmp_path / "store.db-wal"):
            if file.exists():
                file.write_bytes(b"\xff" * file.stat().st_size)
        answered = ask(proxy.url + page)
        assert answered.status == 503
        assert b"damaged" in answered.body or b"no store" in answered.body
