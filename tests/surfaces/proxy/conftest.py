"""Servers that several files of tests share; each file has its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.surfaces.proxy import demo
from tests.surfaces.proxy.harness import Running, running_proxy
from tests.surfaces.proxy.upstream import Upstream
from tests.surfaces.proxy.wire import Wire


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


@pytest.fixture(scope="module")
def proxy(upstream: Upstream) -> Iterator[Running]:
    with running_proxy({}, upstream.url) as running:
        yield running


@pytest.fixture(scope="module")
def busy() -> Iterator[Running]:
    with demo.busy_proxy() as running:
        yield running


@pytest.fixture(scope="module")
def attacked() -> Iterator[Running]:
    with demo.attacked_proxy() as running:
        yield running


@pytest.fixture
def wire() -> Iterator[Wire]:
    server = Wire()
    yield server
    server.close()
