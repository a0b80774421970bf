"""Read the contents that a plan names, in workers where they are large.

Runs in a thread: a worker is waited for. All contents of one request share one deadline.
"""

from __future__ import annotations

from holdfast.errors import PrivacyError
from holdfast.faults import logged_faults
from holdfast.fitting import FitPlan, Fitted
from holdfast.fitting.reads import Answer, CiteRequest, ReadRequest
from holdfast.workers import Workers


class ContentReader:
    """Reads the contents of one request. Create one instance per request."""

    def __init__(self, workers: Workers) -> None:
        self._citer = workers.citer()
        self._matcher = workers.matcher()

    def finish(self, plan: FitPlan | Fitted) -> Fitted:
        """Read what a plan needs until it is a request that fits."""
        while isinstance(plan, FitPlan):
            plan = plan.finish([self._read(request) for request in plan.reads])
        return plan

    def _read(self, request: ReadRequest) -> Answer:
        """Return the citation or the match; None for a content that may not leave."""
        try:
            if isinstance(request, CiteRequest):
                return self._citer(
                    request.text, question=request.question, tool=request.tool, rules=request.rules
                )
            # Without the passages that are opened ahead a request is as good as it came.
            with logged_faults("holdfast.fitting").caught("open"):
                return self._matcher(
                    request.ref_id, request.data, request.kind, request.question, request.rules
                )
        except PrivacyError:
            pass
        return None
