"""What citing costs those who did not need it: `python -m benchmarks regret`.

Recorded agents under our rules and the peers', in one run, at several windows: how much was hidden
that the model then wrote verbatim, how many calls that takes, and what all of it costs with the
vendors' caches. reuse → recording → rules → telling → report, each using what stands before it;
learning fits the policy's numbers.
"""

from benchmarks.regret.report import run

__all__ = ["run"]
