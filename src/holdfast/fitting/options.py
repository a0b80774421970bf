"""Options for fitting a request.

One value is passed through all layers, from the surface to the last step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from holdfast.cite import CitingRules
from holdfast.tokens import ModelContextRegistry
from holdfast.trim.anchors import DEFAULT_ANCHORS, AnchorDefinition
from holdfast.trim.strategies import ContextStrategy

HIGH_WATER = 0.85
"""Share of the limit above which history is folded."""
LOW_WATER = 0.35
"""Share of the limit to which a fold reduces a request.

Each fold costs one request without the vendor's cache. On 100 recorded agents a half means 131
folds and 0.58 / 0.46 of the cost (Anthropic-, OpenAI-like), this 110 folds and 0.53 / 0.43.
"""

OfferExpand = Literal["auto", "always", "when_cited", "never"]
"""When the tool that opens refs is offered.

`auto`: from the first request on where that is large enough to pay for it, else with the first
citation that pays for the rewritten prefix; `always`: from the first request that has tools;
`when_cited`: with the first ref; `never`: not at all.
"""

OfferInline = Literal["auto", "always", "never"]
"""Whether that tool is offered in a message with the first ref, after the cached prefix."""

LazyMode = Literal["auto", "never"]
"""Whether schemas are set aside where tools are very many."""


def _no_directory(definitions: Sequence[bytes], _tokens: int) -> str:
    """Return a directory without names: the model has to search."""
    return f"There are {len(definitions)} tools."


class LazyRules(msgspec.Struct, frozen=True, kw_only=True):
    """From when on the schemas of tools are set aside, and which stay all the same."""

    mode: LazyMode = "never"
    tokens: int = 40_000
    """Tokens of tools from which on it is done, where a session begins or its tools change."""
    share: float = 0.5
    """Share of the limit from which on it is done in later requests too: little else fits."""
    pinned: tuple[str, ...] = ()
    """Names of tools, or patterns, that stay as they are."""
    native: bool = False
    """Whether whoever is asked can hold schemas back itself, where the model knows how: see
    wire/deferred_tools.py."""
    directory_tokens: int = 800
    directory: Callable[[Sequence[bytes], int], str] = _no_directory
    """(definitions as JSON, most tokens) → names and intents: see toolbox/."""


_BUNDLED = ModelContextRegistry()


class FitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for fitting a request; the defaults suit most callers."""

    model: str = ""
    """Empty: the model that the request names."""
    dialect: str | None = None
    """None: it is detected."""
    limit: int | None = None
    """Maximum input tokens; None: the model's own limit, which the upper bound must fit."""
    output: int | None = None
    """Tokens to leave for the answer; None: the request's own maximum."""
    anchors: Sequence[AnchorDefinition] = DEFAULT_ANCHORS
    strategy: str | ContextStrategy = "auto"
    rules: CitingRules = CitingRules()
    """How removed content is cited and stored."""
    cites: bool = False
    """Whether long tool results give way to citations when they arrive."""
    opens: bool = False
    """Whether the model is offered the tool that opens refs: someone must answer its calls."""
    opens_ahead: bool = False
    """Whether the passage of a hidden content that a new user message asks for is appended to it:
    see open_ahead.py."""
    in_place: bool = False
    """Whether a request whose model can open no ref is shortened in place instead of folded: see
    in_place.py. The proxy sets it; agents and adapters open refs themselves."""
    offer_expand: OfferExpand = "auto"
    """When it is offered. Providers cache tools first: a tool that comes with the first citation
    makes them write the whole prefix again, a tool that is there from the start costs its own
    tokens in every request."""
    offer_inline: OfferInline = "auto"
    """Whether it is offered in a message after the cached prefix, with the first ref. That costs
    nothing before the first ref, but the API must support such messages. `auto`: if the client's
    own request shows that; `always`: also for OpenAI's own models with Responses."""
    lazy: LazyRules = LazyRules()
    """When tool schemas are hidden. The caller must answer the calls of the two tools that replace
    them, and forward calls: see upstream/finding.py."""
    whole: frozenset[str] = frozenset()
    """The client's messages that someone asked to have whole, by name: see keeping.py."""
    betas: frozenset[str] = frozenset()
    """Names in the client's header `anthropic-beta`."""
    summary_tokens: int = 0
    """Tokens of a digest for a model's summary; 0 without a model. The summary comes later, from
    the queue: see `FitState.told`."""
    ends: bool = True
    """Whether the model is asked to finish a conversation that can grow no more."""
    reports_usage: bool = False
    """Whether a stream is asked to report its usage, where that has to be asked for."""
    debug: bool = False
    """Whether the guard's looks at a request that must end are logged."""
    platform: str = ""
    registry: ModelContextRegistry = _BUNDLED
    """Limits of models, with overrides from the settings."""
    high_water: float = HIGH_WATER
    low_water: float = LOW_WATER
