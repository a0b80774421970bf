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
from holdfast.guard import TargetContextConfig, resolve_target
from holdfast.settings import Settings
from holdfast.tokens import ModelContextRegistry


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A model, and what differs from what is known of it."""

    model: str
    window: int | None = None
    """Tokens of its context window; None: as known."""
    max_output_tokens: int | None = None
    buffer_tokens: int | None = None
    """Room for the errors of counting; None: 256."""
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
    config = _config_of(target, client, settings)
    client.max_output_tokens = config.output_tokens
    return Line(config, client)


def _config_of(target: Target, client: Client, settings: Settings) -> TargetContextConfig:
    """The numbers of a target: its own, else the model's or provider's, else defaults (C17)."""
    transport, registry = client.transport, ModelContextRegistry(settings)
    limits = registry.resolve(transport.counted_as)
    return resolve_target(
        transport.provider,
        transport.model,
        session={
            "context_window": target.window,
            "context_window_buffer_tokens": target.buffer_tokens,
            "max_output_tokens": target.max_output_tokens,
            "tokenizer": target.tokenizer,
        },
        # The registry asks the settings for the model, then for its provider, then its own table.
        model_config={
            "context_window": registry.known_window(transport.counted_as),
            "max_output_tokens": limits.output_reserved,
            "tokenizer": transport.counted_as,
        },
        # Of a model that nobody knows its guess is taken: it is below the guard's constant.
        defaults={"context_window": limits.context_window},
    )
