"""Upstreams that fail in every way, in every order: the client gets an error, and the session
continues.
"""

from __future__ import annotations

import http.client
import logging
import random
from collections.abc import Iterator

from tests.fitting.test_citing import chat, log
from tests.hardening.campaign import Campaign, short_and_full
from tests.hardening.driving import Complaints
from tests.hardening.shapes import KEYS
from tests.surfaces.proxy import faults
from tests.surfaces.proxy.harness import DIALECTS, Running, ask, path_of, request_in, running_proxy
from tests.surfaces.proxy.spoken import opens, says, text
from tests.surfaces.proxy.upstream import Fault, Turn, Upstream

FAULTS: tuple[Fault, ...] = (
    faults.reset,
    faults.reset_by_the_network,
    faults.reset_midway,
    faults.truncated,
    faults.error_inside,
    faults.no_utf8,
    faults.redirected,
    faults.zipped,
    faults.empty,
    faults.web_page,
    *(faults.status(code) for code in (400, 401, 404, 413, 418, 429, 500, 503, 529)),
    *(faults.usage_of(tokens) for tokens in (0, 10**12)),
)
_OWN = frozenset({502, 504})
"""The proxy's own statuses for a failed upstream; others are the upstream's."""


def _script(chance: random.Random) -> list[Turn]:
    """Openings, and then a fault."""
    openings = [opens("1-3") for _ in range(chance.choice((0, 0, 1, 2)))]
    return [*openings, chance.choice(FAULTS)]


def _try(proxy: Running, upstream: Upstream, chance: random.Random, number: int) -> Iterator[str]:
    dialect, stream = chance.choice(DIALECTS), chance.random() < 0.5
    question = f"What went wrong, {number}?"
    body = request_in(dialect, chat(log(120), question=question), stream=stream)
    where = proxy.url + path_of(dialect, stream=stream)
    upstream.turns.extend(_script(chance))
    try:
        status = ask(where, body, KEYS).status
        if status >= 500 and status not in _OWN | {500, 503, 529}:
            yield f"status {status}"
    except (OSError, http.client.HTTPException):
        pass  # as the upstream broke off, so did its answer
    upstream.turns.clear()
    upstream.turns.append(says(text("Now it works.")))
    answer = ask(where, body, KEYS)
    if answer.status != 200 or b"Now it works." not in answer.body:
        yield f"the session does not go on: {answer.status} {answer.body[:200]!r}"
    yield from upstream.refused
    upstream.refused.clear()
    upstream.requests.clear()


def _fail(campaign: Campaign, rounds: int) -> None:
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    try:
        with Upstream() as upstream, running_proxy({}, upstream.url) as proxy:
            for number in campaign.rounds(rounds):
                for wrong in _try(proxy, upstream, campaign.chance(number), number):
                    campaign.found(f"round {number}: {wrong}")
            proxy.settled()
    finally:
        logging.getLogger().removeHandler(complaints)
    for line in complaints.lines:
        campaign.found(line)


@short_and_full("rounds", 40, 10_000)
def test_sessions_go_on_after_faults_of_the_upstream(campaign: Campaign, rounds: int) -> None:
    _fail(campaign, rounds)
