"""Account for every request exactly once.

A book is not safe to share between threads; the manager is.
"""

from __future__ import annotations

import msgspec

from holdfast.budget.ledger import Overhead
from holdfast.budget.report import ProviderUsage
from holdfast.budget.usage import Usage

MOST_REQUESTS = 10_000
"""Maximum requests that can still be corrected; older ones remain counted."""
MOST_PROVIDERS = 1_000
OTHERS = "(others)"
"""Name under which providers after the first `MOST_PROVIDERS` are counted."""


class UsageEntry(msgspec.Struct, frozen=True):
    """The tokens of one request."""

    provider: str
    input: int = 0
    output: int = 0
    input_known: bool = False
    """Whether the provider reported the input; otherwise it is an estimate or missing."""
    output_known: bool = False
    overhead: Overhead = Overhead()

    def after(self, later: UsageEntry, usage: Usage) -> UsageEntry:
        """Return this request updated by a later entry; `usage` states which sides are known.

        For each side the last report wins. An estimate never replaces a report.
        """
        takes_input = usage.input is not None and (later.input_known or not self.input_known)
        takes_output = usage.output is not None and (later.output_known or not self.output_known)
        return UsageEntry(
            later.provider if takes_input or takes_output else self.provider,
            later.input if takes_input else self.input,
            later.output if takes_output else self.output,
            later.input_known if takes_input else self.input_known,
            later.output_known if takes_output else self.output_known,
            self.overhead if later.overhead == Overhead() else later.overhead,
        )


class UsageTotals(msgspec.Struct):
    """Totals over many requests."""

    requests: int = 0
    input: int = 0
    output: int = 0
    inputs_unknown: int = 0
    outputs_unknown: int = 0
    system: int = 0
    tools: int = 0
    formatting: int = 0

    def add(self, entry: UsageEntry, sign: int = 1) -> None:
        """Add a request, or remove it with a sign of -1."""
        self.requests += sign
        self.input += sign * entry.input
        self.output += sign * entry.output
        self.inputs_unknown += sign * (not entry.input_known)
        self.outputs_unknown += sign * (not entry.output_known)
        self.system += sign * entry.overhead.system_messages
        self.tools += sign * entry.overhead.tool_definitions
        self.formatting += sign * entry.overhead.formatting

    @property
    def overhead(self) -> Overhead:
        """Return the tokens that were not conversation."""
        return Overhead(self.system, self.tools, self.formatting)


class UsageBook:
    """All requests, by provider and in total."""

    def __init__(self) -> None:
        self.sums = UsageTotals()
        self.changes = 0
        self._providers: dict[str, UsageTotals] = {}
        self._open: dict[str, UsageEntry] = {}

    def find(self, request_id: str | None) -> UsageEntry | None:
        """Return the request with an id while it can be corrected."""
        return None if request_id is None else self._open.get(request_id)

    def record(
        self,
        provider: str,
        usage: Usage,
        *,
        is_report: bool,
        request_id: str | None = None,
        overhead: Overhead | None = None,
    ) -> None:
        """Add a request, or update one that was added before."""
        entry = UsageEntry(
            self._place(provider),
            usage.input or 0,
            usage.output or 0,
            is_report and usage.input is not None,
            is_report and usage.output is not None,
            overhead or Overhead(),
        )
        earlier = self.find(request_id)
        if earlier is not None:
            entry = earlier.after(entry, usage)
            self._add(earlier, -1)
        self._add(entry)
        if request_id is not None:
            self._keep(request_id, entry)

    def take_out(self, request_id: str) -> None:
        """Remove a request that was never sent."""
        self._add(self._open.pop(request_id), -1)

    def providers(self) -> tuple[ProviderUsage, ...]:
        """Return each provider's totals, largest first."""
        usages = (
            ProviderUsage(
                name,
                sums.requests,
                sums.input,
                sums.output,
                bool(sums.inputs_unknown or sums.outputs_unknown),
            )
            for name, sums in self._providers.items()
        )
        return tuple(
            sorted(usages, key=lambda usage: (-usage.input - usage.output, usage.provider))
        )

    def _place(self, provider: str) -> str:
        if provider in self._providers or len(self._providers) < MOST_PROVIDERS:
            return provider
        return OTHERS

    def _add(self, entry: UsageEntry, sign: int = 1) -> None:
        self.changes += 1
        self.sums.add(entry, sign)
        of_provider = self._providers.setdefault(entry.provider, UsageTotals())
        of_provider.add(entry, sign)
        if not of_provider.requests:
            del self._providers[entry.provider]

    def _keep(self, request_id: str, entry: UsageEntry) -> None:
        self._open.pop(request_id, None)
        self._open[request_id] = entry
        if len(self._open) > MOST_REQUESTS:
            del self._open[next(iter(self._open))]
