"""Memory of large requests is returned to the system; small ones are not worth it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from holdfast.surfaces.proxy.heap import LARGE_BYTES
from tests.surfaces.proxy.harness import ask, path_of, running_proxy


def test_memory_goes_back_after_a_large_request_and_only_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []

    def of_glibc(name: str) -> Callable[..., object]:
        return lambda *_: calls.append(name)

    monkeypatch.setattr("holdfast.surfaces.proxy.heap._of_glibc", of_glibc)
    with running_proxy({}) as proxy:
        for question, trims in (("Hello?", 0), ("words " * (LARGE_BYTES // 6), 1)):
            body = {"model": "gpt-4o", "messages": [{"role": "user", "content": question}]}
            ask(proxy.url + path_of("openai-chat"), json.dumps(body).encode())
            proxy.settled()
            assert calls.count("malloc_trim") == trims
