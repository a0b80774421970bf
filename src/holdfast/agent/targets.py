"""Where an agent may send its requests, in the order in which it tries them.

targets: after outcome, before agent. A target is a model with its window; behind it stands a
client with a session of its own, for each dialect remembers its own bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from holdfast.budget import TokenBudgetManager
from holdfast.client import Client
from holdfast.engine import Holdfast
from holdfast.guard import TargetContextConfig
from holdfast.settings import Settings
from holdfast.tokens import ModelContextRegistry
from holdfast.tokens.limits import DEFAULT_BUFFER_TOKENS, output_reserve


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A model, and what differs from what is known of it."""

    model: str
    window: int | None = None
    """Tokens of its context window; None: as known."""
    max_output_tokens: int | None = None
    buffer_tokens: int = DEFAULT_BUFFER_TOKENS
    tokenizer: str | None = None
    url: str = ""
    key: str = ""
    dialect: str = ""

    def __repr__(self) -> str:
        return f"<Target {self.model}>"


class Line(NamedTuple):
    """A target that can be asked."""

    config: TargetContextConfig
    client: Client


def open_line(
    target: Target,
    engine: Holdfast,
    settings: Settings,
    *,
    session: str,
    manager: TokenBudgetManager,
    strategy: str,
) -> Line:
    """A client for a target, and the numbers that the guard holds requests against."""
    client = Client(
        target.model,
        engine=engine,
        settings=settings,
        session=session,
        strategy=strategy,
        url=target.url,
        key=target.key,
        dialect=target.dialect,
        manager=manager,
        ends=False,  # the agent does so itself: see guard/final_turn.py
    )
    known = ModelContextRegistry(settings).resolve(client.transport.counted_as)
    window = target.window or known.context_window
    output = target.max_output_tokens
    if output is None:
        output = min(output_reserve(known, agent_loop=True), window // 4)
    client.max_output_tokens = output
    config = TargetContextConfig(
        client.transport.provider,
        client.transport.model,
        window,
        target.tokenizer or client.transport.counted_as,
        target.buffer_tokens,
        output,
    )
    return Line(config, client)
