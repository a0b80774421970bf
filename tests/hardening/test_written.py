"""After the end of a response its request can be rebuilt: its turn is written before."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from holdfast.engine import Holdfast
from tests.fitting.test_citing import chat, log
from tests.hardening.asks import Asked
from tests.hardening.driving import era
from tests.hardening.shapes import KEYS
from tests.surfaces.proxy.harness import DIALECTS, path_of, request_in

SESSION = "written"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_turn_is_written_before_the_last_byte_of_its_answer(
    dialect: str, stream: bool, tmp_path: Path
) -> None:
    body = request_in(dialect, chat(log(300)), stream=stream)
    headers = [(name.encode(), value.encode()) for name, value in KEYS.items()]
    headers += [(b"host", b"localhost"), (b"x-holdfast-session", SESSION.encode())]
    asked = Asked("POST", path_of(dialect, stream=stream), headers, body, dialect)
    rebuilt: list[bytes] = []

    async def main() -> list[str]:
        async with era(store_url=f"sqlite:///{tmp_path}/holdfast.db") as proxy:

            async def at_end() -> None:
                [scope] = await proxy.service.engine.store.scopes()
                engine = Holdfast(proxy.service.engine.store, scope)
                rebuilt.append(await engine.session(SESSION).rebuild(1))

            proxy.at_end = at_end
            _, wrong = await proxy.judged(asked, random.Random(3))
            return wrong

    assert asyncio.run(main()) == []
    assert rebuilt == [body]
