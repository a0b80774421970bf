"""Every error Holdfast raises, in one tree.

    HoldfastError
    ├── SettingsError                 a setting is unknown, ill-typed or unreadable
    ├── MissingExtraError             an optional dependency is not installed
    ├── WireError                     a request body cannot be read, edited or written
    │   ├── BadJSONError              the bytes are not the JSON a provider would accept
    │   ├── LimitError                the body is larger than the reader allows
    │   ├── ShapeError                JSON, but not a request of this dialect
    │   └── EditError                 the edit would leave the conversation invalid
    ├── TokenCountingError            no counter could count the text
    ├── BudgetExceededError           the request would not fit its budget
    ├── ContextOptimizationError      trimming could not reach the target
    │   ├── AnchorPreservationError   what must be kept does not fit
    │   └── AllocationError           the least that a prompt must hold does not fit
    ├── SummarizationError            every summariser failed
    ├── StoreError                    an original could not be stored or read back
    │   ├── StoreUnavailableError     the store cannot be reached, or is full or locked
    │   ├── StoreConflictError        someone else wrote the same record first
    │   ├── SessionErasedError        a session was erased while its answer was under way
    │   ├── RefCollisionError         two contents would share a ref
    │   └── DamagedContentError       what is stored is not what was stored
    ├── ExpandError                   an expansion asks for what cannot be given
    ├── ExtractError                  a file has no text that can be read
    ├── ResearchError                 a question cannot be researched, or a report not checked
    ├── PrivacyError                  a policy forbids to store the content
    │   └── UnmaskedError             an internal error left the request unmasked; it was not sent
    ├── AgentError                    an agent's run cannot go on
    │   └── ToolFailureError          a tool failed again and again with the same arguments
    ├── ToolError                     a tool is not there, or its definition cannot be read
    ├── ToolServerError               a server of tools failed, or cannot be used now
    └── ProviderError                 the provider refused or failed
        └── ModelError                a model that we asked gave no usable answer
            ├── ModelTimeoutError     it took too long
            ├── ModelRateLimitedError it wants to be asked later
            ├── ModelUnavailableError it cannot be reached, or failed
            ├── ModelAnswerError      what it said is no answer
            └── ModelRefusedError     it will not answer: asking again is no use

The branches are cut by what a caller would do next. Each error says what is wrong,
where, and what to do; none of the three ever holds text of a conversation. `HoldfastWarning` is the
base of all warnings.
"""

from __future__ import annotations

import functools


class HoldfastError(Exception):
    """The base of the tree: catch this to catch everything Holdfast raises on purpose."""

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what, where, fix)
        self.what = what
        """One sentence: what is wrong."""
        self.where = where
        """The place: a JSON path, a file and line, a setting's name; empty if there is none."""
        self.fix = fix
        """What to do about it; empty if nothing can be done."""

    def __reduce__(self) -> tuple[functools.partial[HoldfastError], tuple[()], dict[str, object]]:
        # Exceptions are copied and pickled by their positional arguments; ours have names.
        again = functools.partial(type(self), self.what, where=self.where, fix=self.fix)
        return again, (), dict(self.__dict__)

    def __str__(self) -> str:
        where = f" (at {self.where})" if self.where else ""
        fix = f" {self.fix}" if self.fix else ""
        return f"{self.what}{where}.{fix}"


class HoldfastWarning(UserWarning):
    """The base of all warnings of Holdfast. Their texts never hold text of a conversation."""


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

    def __init__(  # noqa: PLR0913 - the three of every error, and the numbers by name
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
        """Which limit: `input`, `output` or `total`; empty if it has no such name."""
        self.limit = limit
        """The limit in tokens, if it is known."""
        self.used = used
        """The tokens that were used of it before."""
        self.planned = planned
        """The tokens that the request would use, if they are known."""


class ContextOptimizationError(HoldfastError):
    """Trimming could not reach the target."""


class AnchorPreservationError(ContextOptimizationError, BudgetExceededError):
    """What must be kept does not fit the budget on its own."""


class AllocationError(ContextOptimizationError, BudgetExceededError):
    """The least that a prompt must hold does not fit its budget, in any form."""


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
        """What each provider's last attempt ended with, in the order in which they were asked."""


class StoreError(HoldfastError):
    """An original could not be stored or read back."""


class StoreUnavailableError(StoreError):
    """The store cannot be reached, or it is full, locked or read-only: try again later."""


class StoreConflictError(StoreError):
    """Someone else wrote the same record first."""


class SessionErasedError(StoreError):
    """The session was erased while its answer was under way: its last turn is not written."""


class RefCollisionError(StoreError):
    """Two contents would share a ref: the second needs a longer one."""


class DamagedContentError(StoreError):
    """What is stored is not what was stored; it is set apart and never served."""


class ExpandError(HoldfastError):
    """An expansion asks for what cannot be given; the text says what can."""


class ExtractError(HoldfastError):
    """A file has no text that can be read; the text says why, and what would help."""


class ResearchError(HoldfastError):
    """A question cannot be researched with what was given, or a report is none that we wrote."""


class PrivacyError(HoldfastError):
    """A policy forbids to store the content."""


class UnmaskedError(PrivacyError):
    """A request was not sent after an internal error, because it was not masked."""


class ToolError(HoldfastError):
    """A tool is not there, or its definition cannot be read."""


class AgentError(HoldfastError):
    """An agent's run cannot go on; what it did is in its journal."""


class ToolFailureError(AgentError):
    """A tool failed again and again with the same arguments: the model does not get past it."""


class ToolServerError(HoldfastError):
    """A server of tools (MCP) failed, cannot be reached, or may not do what was asked."""

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
        """Seconds until it may be tried again, if that is known."""


class ProviderError(HoldfastError):
    """The provider refused the request or failed to answer it."""


class ModelError(ProviderError):
    """A model that we asked gave no usable answer."""


class ModelTimeoutError(ModelError):
    """The model took too long."""


class ModelRateLimitedError(ModelError):
    """The model wants to be asked later."""

    def __init__(
        self, what: str, *, where: str = "", fix: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(what, where=where, fix=fix)
        self.retry_after = retry_after
        """Seconds to wait, if the provider said how many."""


class ModelUnavailableError(ModelError):
    """The model cannot be reached, or failed: it may work again later."""


class ModelAnswerError(ModelError):
    """What the model said is no answer: empty, no summary, longer than what it is of."""


class ModelRefusedError(ModelError):
    """The model will not answer, or cannot be asked at all: asking again is no use."""
