"""Work on large contents outside this process: under a deadline, within a memory limit.

tasks → ends → child → process → lanes → pool. What a stranger's tool has fetched is read by code
of many kinds, and some of it, ours or a library's, may one day meet a text that it takes hours
for, or that crashes it. In a process of its own that costs one citation, not the server.
"""

from holdfast.workers.lanes import work_for
from holdfast.workers.pool import LARGE_BYTES, Workers, WorkLimits

__all__ = ["LARGE_BYTES", "WorkLimits", "Workers", "work_for"]
