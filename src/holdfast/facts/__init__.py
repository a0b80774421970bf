"""Facts: statements from conversations and tool results, with their sources and history."""

from holdfast.facts.fact_reader import fact_jobs
from holdfast.facts.index_cache import FactIndexCache
from holdfast.facts.ledger import Ledger, RankedFact, get_top_facts
from holdfast.store.fact_store import Fact, FactFilter, FactKind, FactSource

__all__ = [
    "Fact",
    "FactFilter",
    "FactIndexCache",
    "FactKind",
    "FactSource",
    "Ledger",
    "RankedFact",
    "fact_jobs",
    "get_top_facts",
]
