"""A span for each request, with OpenTelemetry's names for calls of models; off unless configured.

tracing: after seen, before telemetry. OpenTelemetry is an extra, and is imported only here, once
the settings ask for it. Spans hold ids and counts.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.errors import SettingsError
from holdfast.extras import how_to_install
from holdfast.settings import Settings
from holdfast.store import Turn
from holdfast.surfaces.proxy.seen import RequestSeen, model_name, session_id

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

_EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_PATH = "/v1/traces"
_PROVIDERS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "gemini": "gcp.gemini",
    "bedrock": "aws.bedrock",
    "cohere": "cohere",
}


class RequestTracer:
    """Writes spans to an exporter, in batches, in a separate thread."""

    def __init__(self, exporter: SpanExporter) -> None:
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        resource = Resource.create({"service.name": "holdfast"})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("holdfast")

    def write(self, seen: RequestSeen, status: int, turn: Turn | None) -> None:
        """Write the span of a request that was answered."""
        from opentelemetry.trace import SpanKind, StatusCode  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
            TraceContextTextMapPropagator,
        )

        about = attributes(seen, status, turn)
        parent = TraceContextTextMapPropagator().extract({"traceparent": seen.traceparent})
        span = self._tracer.start_span(
            f"{about['gen_ai.operation.name']} {about['gen_ai.request.model']}",
            context=parent,
            kind=SpanKind.CLIENT,
            attributes=about,
            start_time=seen.began_at,
        )
        if "error.type" in about:
            span.set_status(StatusCode.ERROR)
        span.end(seen.began_at + int(seen.total * 1e9))

    def close(self) -> None:
        """Write the remaining spans, and stop."""
        self._provider.shutdown()


def attributes(seen: RequestSeen, status: int, turn: Turn | None) -> dict[str, str | int | float]:
    """Return the attributes of a request's span."""
    gemini = seen.dialect == "gemini"
    about: dict[str, str | int | float] = {
        "gen_ai.operation.name": "generate_content" if gemini else "chat",
        "gen_ai.provider.name": _PROVIDERS.get(seen.family, "unknown"),
        "gen_ai.request.model": model_name(seen.model),
        "http.response.status_code": status,
        "holdfast.request.id": seen.id,
        "holdfast.added_ms": round(seen.added * 1000, 3),
    }
    if seen.session:
        about["gen_ai.conversation.id"] = session_id(seen.session)
    if status >= 400:
        about["error.type"] = str(status)
    if turn is not None:
        used = turn.usage
        about |= {
            "gen_ai.usage.input_tokens": used.input,
            "gen_ai.usage.output_tokens": used.output,
            "gen_ai.usage.cache_read.input_tokens": used.cached,
            "gen_ai.usage.cache_creation.input_tokens": used.cache_written,
            "holdfast.predicted_tokens": used.predicted,
            "holdfast.untouched_tokens": used.untouched,
            "holdfast.expansions": used.expansions,
            "holdfast.expansion_tokens": used.expansion_tokens,
            "holdfast.edits": len(turn.edits),
            "holdfast.prefix_share": turn.prefix_share,
        }
    return about


def configured(settings: Settings) -> RequestTracer | None:
    """Spans as the settings want them; None if they want none."""
    endpoint = settings.otel_endpoint.rstrip("/")
    if not endpoint:
        return None
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(
            "the collector is no HTTP address",
            where="otel_endpoint",
            fix="Give one such as http://localhost:4318, or leave it empty for no spans.",
        )
    try:
        exporter = import_module(_EXPORTER)
    except ImportError as error:
        raise SettingsError(
            "spans need OpenTelemetry, which is not installed",
            where="otel_endpoint",
            fix=f"{how_to_install('otel')} Or leave otel_endpoint empty.",
        ) from error
    url = endpoint if endpoint.endswith(_PATH) else endpoint + _PATH
    return RequestTracer(exporter.OTLPSpanExporter(endpoint=url))
