"""Facts: what was said, as statements that stand on their own, with their sources and history.

dates · question · clauses · pronouns → statements · values → extracting, index → indexes → ledger →
reading, each using only what stands before it.
"""

from holdfast.facts.indexes import Indexes
from holdfast.facts.ledger import Ledger, RankedFact, get_top_facts
from holdfast.facts.reading import fact_jobs
from holdfast.store.fact_shelf import Fact, FactFilter, FactKind, FactSource

__all__ = [
    "Fact",
    "FactFilter",
    "FactKind",
    "FactSource",
    "Indexes",
    "Ledger",
    "RankedFact",
    "fact_jobs",
    "get_top_facts",
]
