"""Work on large contents in other processes, with a deadline and a memory limit.

tasks → ends → child → process → lanes → pool. Contents fetched by tools are parsed by code of many
kinds. Some of it, ours or a library's, may one day meet a text that takes hours or crashes it. In a
separate process that costs one citation, not the server.
"""

from holdfast.workers.lanes import work_for
from holdfast.workers.pool import LARGE_BYTES, Workers, WorkLimits

__all__ = ["LARGE_BYTES", "WorkLimits", "Workers", "work_for"]
