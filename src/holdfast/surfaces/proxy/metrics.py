"""The proxy's own counters since it started, for Prometheus and for `/stats`.

metrics: after seen, before telemetry. Labels have few values: at most 50 models, no session, and
no word of a conversation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from holdfast.jobs import Attempt
from holdfast.store import Turn
from holdfast.store.queue import QueueFigures
from holdfast.surfaces.proxy.seen import RequestSeen, model_name
from holdfast.surfaces.proxy.worker_counters import LabelledCounters, Peers, WorkerCounters, summed

CONTENT_TYPE = CONTENT_TYPE_LATEST
MOST_MODELS = 50
_NAMESPACE = "holdfast"
_ADDED = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5)
_TOTAL = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_SHARES = tuple(n / 10 for n in range(1, 11))
_LEFT_OUT = ("_bucket", "_created")


class Metrics:
    """Counts requests and what became of them."""

    def __init__(self, open_requests: Callable[[], int], open_streams: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        counter = partial(Counter, namespace=_NAMESPACE, registry=self.registry)
        gauge = partial(Gauge, namespace=_NAMESPACE, registry=self.registry)
        histogram = partial(Histogram, namespace=_NAMESPACE, registry=self.registry)
        by_model = ("model",)
        self._models: set[str] = set()

        self._requests = counter(
            "requests", "Requests answered.", ("family", "dialect", "model", "status")
        )
        self._added = histogram("added_seconds", "Time the proxy itself took.", buckets=_ADDED)
        self._total = histogram("request_seconds", "Time until the last byte.", buckets=_TOTAL)
        self._store_failures = counter("store_failures", "Requests that the store failed.")
        gauge("open_requests", "Requests being answered.").set_function(open_requests)
        gauge("open_streams", "Streams being sent.").set_function(open_streams)

        self._tokens = {
            "untouched": counter("untouched_tokens", "Input as clients asked.", by_model),
            "predicted": counter("sent_tokens", "Input as it went out, counted by us.", by_model),
            "input": counter(
                "input_tokens", "Input over all calls, as providers report it.", by_model
            ),
            "cached": counter("cached_tokens", "Input read from providers' caches.", by_model),
            "output": counter("output_tokens", "Output as providers report it.", by_model),
            "expansions": counter("expansions", "Parts that models opened.", by_model),
            "expansion_tokens": counter("expansion_tokens", "Tokens of these.", by_model),
            "lazy_saved": counter("lazy_saved_tokens", "Schemas of tools set aside.", by_model),
            "tool_searches": counter("tool_searches", "Searches for such tools.", by_model),
            "tool_calls": counter("tool_calls", "Calls of clients' tools.", by_model),
            "lazy_calls": counter("lazy_tool_calls", "Of these, of tools set aside.", by_model),
        }
        self._cache_hits = counter("cache_hits", "Turns with cached input.", by_model)
        self._cost = counter("cost_dollars", "What turns cost, where prices are known.", by_model)
        # Savings can shrink, so they are no counters.
        self._saved = gauge("saved_tokens", "Untouched less input, over all calls.", by_model)
        self._saved_cost = gauge("saved_dollars", "Net of expansions and caches.", by_model)
        self._failed = counter("failed_turns", "Turns without an answer.", by_model)
        self._edits = counter("edits", "What was done to requests.", ("action",))
        self._refused = counter(
            "refused_calls", "Calls of expand_ref that opened nothing.", ("reason",)
        )
        self._answers = counter(
            "answers", "Requests looked up in memory, by what was there.", ("tier",)
        )
        self._warnings = counter("warnings", "Warnings given.")
        self._overruns = counter(
            "overruns", "Contents not read in time or within memory.", ("reason",)
        )
        self._faults = counter(
            "internal_errors", "Internal errors that a request survived.", ("step",)
        )
        by_kind = ("kind",)
        self._jobs = counter("jobs", "Attempts at jobs that ended here.", ("kind", "state"))
        self._job_cost = counter("job_cost_tokens", "Tokens that they took.", by_kind)
        self._job_time = histogram("job_seconds", "Time of attempts.", by_kind, buckets=_TOTAL)
        self._prefix = histogram(
            "prefix_share", "Share that is the beginning of the request before.", buckets=_SHARES
        )

    def count(self, seen: RequestSeen, status: int, turn: Turn | None) -> None:
        """Count a request that was answered, and the turn that was written down of it."""
        model = self._model(seen.model)
        family = seen.family or "unknown"
        self._requests.labels(family, seen.dialect, model, str(status)).inc()
        self._added.observe(seen.added)
        self._total.observe(seen.total)
        if seen.store_failed:
            self._store_failures.inc()
        if turn is not None:
            self._count_turn(turn, model)

    def overran(self, reason: str) -> None:
        """Count a content that a worker could not read: `deadline`, `crash`, `busy`, `failed`."""
        self._overruns.labels(reason).inc()

    def failed(self, step: str) -> None:
        """Count an internal error in a step of a request."""
        self._faults.labels(step).inc()

    def refused(self, calls: int, repeated: int) -> None:
        """Count calls of expand_ref that opened nothing; `repeated` of them were made before."""
        self._refused.labels("repeated").inc(repeated)
        self._refused.labels("nothing_found").inc(calls - repeated)

    def answered(self, tier: str) -> None:
        """Count a request that was answered from memory, `exact` or `semantic`, or was a `miss`."""
        self._answers.labels(tier).inc()

    def tried(self, attempt: Attempt) -> None:
        """Count an attempt at a job of the queue."""
        self._jobs.labels(attempt.kind, attempt.state).inc()
        self._job_cost.labels(attempt.kind).inc(attempt.cost)
        self._job_time.labels(attempt.kind).observe(attempt.seconds)

    def _count_turn(self, turn: Turn, model: str) -> None:
        used = turn.usage
        for name, counter in self._tokens.items():
            if amount := getattr(used, name):
                counter.labels(model).inc(amount)
        if used.cached:
            self._cache_hits.labels(model).inc()
        self._saved.labels(model).inc(used.saved)
        if used.failed:
            self._failed.labels(model).inc()
        self._cost.labels(model).inc(used.cost or 0.0)
        self._saved_cost.labels(model).inc(used.saved_cost or 0.0)
        for edit in turn.edits:
            self._edits.labels(edit.action).inc()
        self._warnings.inc(len(turn.warnings))
        if turn.number > 1:
            self._prefix.observe(turn.prefix_share)

    def _model(self, name: str) -> str:
        """The model as a label: the first that were seen, and `other`."""
        label = model_name(name)
        if label not in self._models:
            if len(self._models) >= MOST_MODELS:
                return "other"
            self._models.add(label)
        return label

    def counted(self) -> list[WorkerCounters]:
        """Return all counters, in the format for other workers."""
        return [
            WorkerCounters(
                metric.name,
                metric.documentation,
                metric.type,
                [(sample.name, dict(sample.labels), sample.value) for sample in metric.samples],
            )
            for metric in self.registry.collect()
        ]

    async def text(self, peers: Peers | None = None) -> bytes:
        """Everything in Prometheus' text format; with peers, theirs too."""
        if peers is None:
            return generate_latest(self.registry)
        return generate_latest(LabelledCounters(await peers.gathered(self.counted())))

    @staticmethod
    def queue_text(figures: QueueFigures) -> bytes:
        """Return the queue of the store in Prometheus' text format.

        It is the same for all workers of a proxy, so the requested worker alone reports it: a sum
        would count it several times.
        """
        registry = CollectorRegistry()
        gauge = partial(Gauge, namespace=_NAMESPACE, registry=registry)
        depth = gauge("jobs_depth", "Jobs that are not over.", ("kind", "state"))
        age = gauge("jobs_age_seconds", "How long the first has been due.", ("kind", "state"))
        for each in figures.depths:
            depth.labels(each.kind, each.state).set(each.jobs)
            age.labels(each.kind, each.state).set(each.waiting_seconds)
        gauge("jobs_cost_today_tokens", "Tokens debited today.").set(figures.cost_today)
        return generate_latest(registry)

    async def figures(self, peers: Peers | None = None) -> dict[str, object]:
        """Everything but the histograms' buckets, for JSON; with peers, the sums of all."""
        counted = self.counted()
        if peers is not None:
            counted = summed(await peers.gathered(counted))
        plain: dict[str, object] = {}
        labelled: dict[str, list[dict[str, object]]] = {}
        for metric in counted:
            for sample_name, labels, value in metric.samples:
                name = sample_name.removeprefix(f"{_NAMESPACE}_")
                if name.endswith(_LEFT_OUT):
                    continue
                if labels:
                    labelled.setdefault(name, []).append({**labels, "value": value})
                else:
                    plain[name] = value
        return plain | labelled
