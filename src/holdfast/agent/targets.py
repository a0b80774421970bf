"""The models to which an agent may send its requests, in the order in which it tries them.

Each target has its own client and session, because a session holds the bytes of one dialect.
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
    """A model, with values that differ from the known ones."""

    model: str
    window: int | None = None
    """Tokens of its context window; None for the known value."""
    max_output_tokens: int | None = None
    buffer_tokens: int | None = None
    """Reserve for errors of counting; None for 256."""
    tokenizer: str | None = None
    url: str = ""
    key: str = ""
    dialect: str = ""

    def __repr__(self) -> str:
        return f"<Target {self.model}>"


class OpenTarget(NamedTuple):
    """A target with an open client."""

    config: TargetContextConfig
    client: Client


def open_target(
    target: Target,
    engine: Holdfast,
    settings: Settings,
    *,
    session: str,
    manager: TokenBudgetManager,
    strategy: str,
) -> OpenTarget:
    """Return a client for a target, and the limits that the guard enforces."""
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
        ends=False,  # the agent ends runs itself: see guard/final_turn.py
    )
    config = _target_config(target, client, settings)
    client.max_output_tokens = config.output_tokens
    return OpenTarget(config, client)


def _target_config(target: Target, client: Client, settings: Settings) -> TargetContextConfig:
    """Return a target's limits: its own, the model's or provider's, or the defaults."""
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
        # The registry asks the settings for the model and its provider, then uses its own table.
        model_config={
            "context_window": registry.known_window(transport.counted_as),
            "max_output_tokens": limits.output_reserved,
            "tokenizer": transport.counted_as,
        },
        # For an unknown model the registry's guess is used, which is below the guard's constant.
        defaults={"context_window": limits.context_window},
    )
