"""Holdfast: a context engine for LLM agents. Every call fits; nothing is lost.

This module exports the most common names. The other public names are one level deeper:
`holdfast.errors`, `holdfast.wire`, `holdfast.tokens`, `holdfast.budget`, `holdfast.guard`,
`holdfast.trim`, `holdfast.fitting`, `holdfast.store`, `holdfast.expand`, `holdfast.compat`.
"""

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.agent import Agent
    from holdfast.cite import cite
    from holdfast.client import Client
    from holdfast.engine import Holdfast
    from holdfast.errors import HoldfastError
    from holdfast.fitting import fit
    from holdfast.researching import research
    from holdfast.settings import Settings
    from holdfast.store import Scope
    from holdfast.tokens import count
    from holdfast.wire import convert, read, repair, validate, write
else:
    import holdfast.cite  # noqa: F401 - for its name: see below
    from holdfast._lazy import lazily

    # `holdfast.cite` is the function. Its package has the same name and would replace it on its
    # first import, so it is imported here, where it loads nothing else, and then deleted.
    del cite
    __getattr__ = lazily(
        __name__,
        {
            "Agent": "holdfast.agent",
            "Client": "holdfast.client",
            "Holdfast": "holdfast.engine",
            "HoldfastError": "holdfast.errors",
            "Scope": "holdfast.store",
            "Settings": "holdfast.settings",
            "cite": "holdfast.cite",
            "convert": "holdfast.wire",
            "count": "holdfast.tokens",
            "fit": "holdfast.fitting",
            "read": "holdfast.wire",
            "repair": "holdfast.wire",
            "research": "holdfast.researching",
            "validate": "holdfast.wire",
            "write": "holdfast.wire",
        },
    )

__version__ = "0.1.0"

# A library must not print unless its user configures logging. Without a handler, Python would print
# our warnings on the standard error of programs that never set up logging.
logging.getLogger("holdfast").addHandler(logging.NullHandler())

__all__ = [
    "Agent",
    "Client",
    "Holdfast",
    "HoldfastError",
    "Scope",
    "Settings",
    "cite",
    "convert",
    "count",
    "fit",
    "read",
    "repair",
    "research",
    "validate",
    "write",
]
