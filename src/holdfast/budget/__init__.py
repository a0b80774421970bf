"""Token budgets: limits, usage, and whether the next request is allowed."""

from holdfast.budget.ledger import Allowance, BudgetViolation, Kind, Overhead, TokenBudget
from holdfast.budget.manager import TokenBudgetManager
from holdfast.budget.phases import TOKEN_BUDGET, Ceilings, PhaseBudget, phase_budget
from holdfast.budget.report import (
    LimitSummary,
    ProviderUsage,
    TokenBudgetReport,
    TokenBudgetSnapshot,
)
from holdfast.budget.usage import MOST_TOKENS, Usage, reported_usage

__all__ = [
    "MOST_TOKENS",
    "TOKEN_BUDGET",
    "Allowance",
    "BudgetViolation",
    "Ceilings",
    "Kind",
    "LimitSummary",
    "Overhead",
    "PhaseBudget",
    "ProviderUsage",
    "TokenBudget",
    "TokenBudgetManager",
    "TokenBudgetReport",
    "TokenBudgetSnapshot",
    "Usage",
    "phase_budget",
    "reported_usage",
]
