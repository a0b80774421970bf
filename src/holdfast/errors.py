"""Every error Holdfast raises, in one tree.

    HoldfastError
    ├── SettingsError                 a setting is unknown, ill-typed or unreadable
    ├── MissingExtraError             an optional dependency is not installed
    ├── WireError                     a request body cannot be read, edited or written
    │   ├── BadJSONError              the bytes are not the JSON a provider would accept
    │   ├── LimitError                the body is larger than the reader allows
    │   ├── ShapeError                JSON, but not a request of this dialect
    │   └── EditError                 the edit would make the conversation invalid
    ├── TokenCountingError            no counter could count the text
    ├── BudgetExceededError           the request would not fit its budget
    ├── ContextOptimizationError      trimming could not reach the target
    │   ├── AnchorPreservationError   the content that must be kept does not fit
    │   └── AllocationError           the minimum content of a prompt does not fit
    ├── SummarizationError            every summariser failed
    ├── StoreError                    an original could not be stored or read back
    │   ├── StoreUnavailableError     the store cannot be reached, or is full or locked
    │   ├── StoreConflictError        another writer changed the same record first
    │   ├── SessionErasedError        a session was erased while its answer was generated
    │   ├── RefCollisionError         two contents have the same ref
    │   └── DamagedContentError       stored data is damaged
    ├── ExpandError                   an expansion requests something unavailable
    ├── ExtractError                  a file has no readable text
    ├── ResearchError                 a question cannot be researched, or a report not checked
    ├── PrivacyError                  a policy forbids storing the content
    │   └── UnmaskedError             an internal error left the request unmasked; it was not sent
    ├── AgentError                    an agent's run cannot continue
    │   └── ToolFailureError          a tool failed repeatedly with the same arguments
    ├── ToolError                     a tool does not exist, or its definition is invalid
    ├── ToolServerError               a tool server failed, or cannot be used now
    └── ProviderError                 the provider refused or failed
        └── ModelError                a model that Holdfast called gave no usable answer
            ├── ModelTimeoutError     it took too long
            ├── ModelRateLimitedError its rate limit was reached
            ├── ModelUnavailableError it is unreachable or failed
            ├── ModelAnswerError      its answer is unusable
            └── ModelRefusedError     it refuses to answer; a retry would not help

The branches differ in what a caller should do next. Each error states the problem, its location and
the remedy, and never contains conversation text. `HoldfastWarning` is the base of all warnings.
"""

from __future__ import annotations

import functools


class HoldfastError(Exception):
    """The base class of all errors that Holdfast raises deliberately."""

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what, where, fix)
        self.what = what
        """One sentence that describes the problem."""
        self.where = where
        """Location: a JSON path, a file and line, or a setting's name; may be empty."""
        self.fix = fix
        """What to do about it; empty if nothing can be done."""

    def __reduce__(self) -> tuple[functools.partial[HoldfastError], tuple[()], dict[str, object]]:
        # Exceptions are copied and pickled by positional arguments; these have keyword arguments.
        again = functools.partial(type(self), self.what, where=self.where, fix=self.fix)
        return again, (), dict(self.__dict__)

    def __str__(self) -> str:
        where = f" (at {self.where})" if self.where else ""
        fix = f" {self.fix}" if self.fix else ""
        return f"{self.what}{where}.{fix}"


class HoldfastWarning(UserWarning):
    """The base class of Holdfast's warnings. Their texts never contain conversation text."""


class SettingsError(HoldfastError):
    """A setting is unknown, ill-typed or unreadable."""


class MissingExtraError(HoldfastError, ImportError):
    """An optional dependency is not installed; also an `ImportError`, as Python would raise."""


class WireError(HoldfastError):
    """A request body cannot be read, edited or written."""


class BadJSONError(WireError):
    """The bytes are not the JSON a provider would accept."""


class LimitError(WireError):
    """The body is larger, deeper or has more keys than the reader allows."""


class ShapeError(WireError):
    """The body is JSON, but not a request of this dialect."""


class EditError(WireError):
    """The edit would leave the conversation invalid, so it was not made."""


class TokenCountingError(HoldfastError):
    """No counter could count the text."""


class BudgetExceededError(HoldfastError):
    """The request would not fit its budget, so it was not sent."""

    def __init__(  # noqa: PLR0913 - named arguments
        self,
        what: str,
        *,
        where: str = "",
        fix: str = "",
        kind: str = "",
        limit: int | None = None,
        used: int = 0,
        planned: int | None = None,
    ) -> None:
        super().__init__(what, where=where, fix=fix)
        self.kind = kind
        """Kind of limit: `input`, `output` or `total`; empty for others."""
        self.limit = limit
        """Limit in tokens, if known."""
        self.used = used
        """Tokens used before the request."""
        self.planned = planned
        """Tokens that the request would use, if known."""


class ContextOptimizationError(HoldfastError):
    """Trimming could not reach the target."""


class AnchorPreservationError(ContextOptimizationError, BudgetExceededError):
    """The content that must be kept does not fit the budget."""


class AllocationError(ContextOptimizationError, BudgetExceededError):
    """The minimum content of a prompt does not fit its budget in any form."""


class SummarizationError(HoldfastError):
    """Every summariser failed."""

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        fix: str = "",
        failures: tuple[HoldfastError, ...] = (),
    ) -> None:
        super().__init__(what, where=where, fix=fix)
        self.failures = failures
        """Each provider's last error, in the order of the calls."""


class StoreError(HoldfastError):
    """An original could not be stored or read back."""


class StoreUnavailableError(StoreError):
    """The store cannot be reached, or it is full, locked or read-only: try again later."""


class StoreConflictError(StoreError):
    """Another writer changed the same record first."""


class SessionErasedError(StoreError):
    """The session was erased while its answer was generated; its last turn is not stored."""


class RefCollisionError(StoreError):
    """Two contents have the same ref; the second needs a longer one."""


class DamagedContentError(StoreError):
    """Stored data is damaged; it is quarantined and never returned."""


class ExpandError(HoldfastError):
    """An expansion requests something unavailable; the text lists valid options."""


class ExtractError(HoldfastError):
    """A file has no readable text; the text states why and what would help."""


class ResearchError(HoldfastError):
    """A question cannot be researched, or a report was not written by Holdfast."""


class PrivacyError(HoldfastError):
    """A policy forbids storing the content."""


class UnmaskedError(PrivacyError):
    """A request was not sent because an internal error left it unmasked."""


class ToolError(HoldfastError):
    """A tool does not exist, or its definition is invalid."""


class AgentError(HoldfastError):
    """An agent's run cannot continue; its steps are in the journal."""


class ToolFailureError(AgentError):
    """A tool failed repeatedly with the same arguments."""


class ToolServerError(HoldfastError):
    """A tool server (MCP) failed, is unreachable, or forbids the operation."""

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        fix: str = "",
        kind: str = "failed",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(what, where=where, fix=fix)
        self.kind = kind
        """`gone`, `unavailable`, `timeout`, `forbidden`, `unknown` or `failed`."""
        self.retry_after = retry_after
        """Seconds until a retry is allowed, if known."""


class ProviderError(HoldfastError):
    """The provider refused the request or failed to answer it."""


class ModelError(ProviderError):
    """A model that Holdfast called gave no usable answer."""


class ModelTimeoutError(ModelError):
    """The model took too long."""


class ModelRateLimitedError(ModelError):
    """The model's rate limit was reached."""

    def __init__(
        self, what: str, *, where: str = "", fix: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(what, where=where, fix=fix)
        self.retry_after = retry_after
        """Seconds to wait, if the provider stated them."""


class ModelUnavailableError(ModelError):
    """The model is unreachable or failed; a retry may succeed."""


class ModelAnswerError(ModelError):
    """The model's answer is unusable: empty, not a summary, or longer than its source."""


class ModelRefusedError(ModelError):
    """The model refuses to answer or cannot be called; a retry would not help."""
