"""The proxy: point any client at it, and its requests fit.

Order of imports: routes → switches → upstreams → sending → expansions → telemetry → service →
exchange → counting → app → safety → gate → server. offline answers if there is no upstream.
telemetry writes the metrics, logs and spans that seen collects.
"""
