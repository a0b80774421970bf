"""Keep an agent's session inside its models' context windows, and end it in time."""

from holdfast.guard.estimate import (
    estimate_messages_tokens,
    estimate_tool_schema_tokens,
    resolve_tokenizer,
)
from holdfast.guard.final_turn import FinalReport, final_turn_guidance, meta_guidance
from holdfast.guard.guard import ContextGuard, Status
from holdfast.guard.reports import Counters
from holdfast.guard.targets import (
    DEFAULT_CONTEXT_BUFFER_TOKENS,
    DEFAULT_CONTEXT_WINDOW_TOKENS,
    ContextGuardBlockedEntry,
    ContextGuardEvaluation,
    TargetContextConfig,
    resolve_target,
)
from holdfast.guard.telemetry import (
    OVER_LIMIT_WARNING,
    ContextDebugEvent,
    ContextGuardEvent,
    ContextGuardMetric,
    ContextLogEntry,
    GuardMessage,
    Listener,
    RequestMetrics,
    Trigger,
    log,
)
from holdfast.guard.tool_budget import OutputStore, OverflowMode, ToolPolicy, ToolReservation

__all__ = [
    "DEFAULT_CONTEXT_BUFFER_TOKENS",
    "DEFAULT_CONTEXT_WINDOW_TOKENS",
    "OVER_LIMIT_WARNING",
    "ContextDebugEvent",
    "ContextGuard",
    "ContextGuardBlockedEntry",
    "ContextGuardEvaluation",
    "ContextGuardEvent",
    "ContextGuardMetric",
    "ContextLogEntry",
    "Counters",
    "FinalReport",
    "GuardMessage",
    "Listener",
    "OutputStore",
    "OverflowMode",
    "RequestMetrics",
    "Status",
    "TargetContextConfig",
    "ToolPolicy",
    "ToolReservation",
    "Trigger",
    "estimate_messages_tokens",
    "estimate_tool_schema_tokens",
    "final_turn_guidance",
    "log",
    "meta_guidance",
    "resolve_target",
    "resolve_tokenizer",
]
