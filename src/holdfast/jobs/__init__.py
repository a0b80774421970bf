"""Background work: a queue in the store, and workers that run its jobs."""

from holdfast.jobs.folding import FoldSummaries, fold_summaries
from holdfast.jobs.protocol import Attempt, Handler, Outcome
from holdfast.jobs.running import background, worker_of
from holdfast.jobs.summarising import SummaryQueue, asks_models, summary_queue
from holdfast.jobs.worker import Worker, WorkerRules

__all__ = [
    "Attempt",
    "FoldSummaries",
    "Handler",
    "Outcome",
    "SummaryQueue",
    "Worker",
    "WorkerRules",
    "asks_models",
    "background",
    "fold_summaries",
    "summary_queue",
    "worker_of",
]
