"""Holdfast: a context engine for LLM agents. Every call fits; nothing is lost.

These are the names that people use first. The rest stands one import deeper: `holdfast.errors`,
`holdfast.wire`, `holdfast.tokens`, `holdfast.budget`, `holdfast.guard`, `holdfast.trim`,
`holdfast.fitting`, `holdfast.store`, `holdfast.expand`, `holdfast.facades`.
"""

import logging

from holdfast.cite import cite
from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError
from holdfast.fitting import fit
from holdfast.settings import Settings
from holdfast.store import Scope
from holdfast.tokens import count
from holdfast.wire import convert, read, repair, validate, write

__version__ = "0.1.0"

# A library is silent unless its user says where its log goes: without a handler of ours Python
# would print our warnings on the standard error of any program that never set up logging.
logging.getLogger("holdfast").addHandler(logging.NullHandler())

__all__ = [
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
    "validate",
    "write",
]
