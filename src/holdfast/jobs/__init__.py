"""Work behind the answers: a queue in the store, and workers that do what is in it."""

from holdfast.jobs.protocol import Attempt, Handler, Outcome
from holdfast.jobs.running import background, worker_of
from holdfast.jobs.summarising import Opened, asker
from holdfast.jobs.worker import Worker, WorkerRules

__all__ = [
    "Attempt",
    "Handler",
    "Opened",
    "Outcome",
    "Worker",
    "WorkerRules",
    "asker",
    "background",
    "worker_of",
]
